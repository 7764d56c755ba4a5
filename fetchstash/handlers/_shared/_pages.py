"""Pages of a text: how one without text is marked, and one that OCR read."""


def blank_page(number: int) -> str:
    """Return the text of page ``number`` (from 1) where it has no text layer."""
    return f"[Page {number}]\n(no text on this page)\n\n"


def ocr_text(text: str, confidence: float) -> str:
    """Return what OCR read, under a line that says so and how sure it is."""
    if not text:
        return "[read by OCR: no text]\n"
    return f"[read by OCR, confidence {f'{confidence:.2f}'.lstrip('0')}]\n{text}\n"


def ocr_page(number: int, text: str, confidence: float) -> str:
    """Return the text of page ``number`` (from 1) as OCR read it."""
    return f"[Page {number}]\n{ocr_text(text, confidence)}\n"
