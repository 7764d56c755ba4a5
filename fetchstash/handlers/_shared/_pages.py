"""Pages of a text: how one without text is marked, and one that OCR read."""

from fetchstash.handlers._pdf import NO_MAPPING

_LEGIBLE = 0.5
"""The confidence below which most of a page was not read."""


def blank_page(number: int) -> str:
    """Return the text of page ``number`` (from 1) where it has no text layer."""
    return f"[Page {number}]\n(no text on this page)\n\n"


def unmapped_page(number: int) -> str:
    """Return how page ``number`` begins where its font has no usable mapping to characters."""
    return f"[Page {number}]\n{NO_MAPPING}\n"


def ocr_text(text: str, confidence: float) -> str:
    """Return what OCR read, under a line that says so and how sure it is."""
    if not text and confidence >= _LEGIBLE:
        return "[read by OCR: no text]\n"
    sure = f"{confidence:.2f}".lstrip("0")
    if confidence < _LEGIBLE:
        sure += ": most of it is in letters that the models do not know. Look at the picture"
    return f"[read by OCR, confidence {sure}]\n{text}{text and chr(10)}"


def ocr_page(number: int, text: str, confidence: float) -> str:
    """Return the text of page ``number`` (from 1) as OCR read it."""
    return f"[Page {number}]\n{ocr_text(text, confidence)}\n"
