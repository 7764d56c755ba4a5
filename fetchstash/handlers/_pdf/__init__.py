"""PDF, read by pdfium; pypdf where that fails. Here: its declaration, and the cleaning of text."""

import re
from enum import unique

from fetchstash.errors import BadArgument, OutOfRange
from fetchstash.handlers._contract import Format, Head, Sniffed
from fetchstash.handlers._reasons import FETCH_AGAIN, KEPT, LOOK, ReasonTable


@unique
class PdfReason(ReasonTable):
    """Why a PDF is not read."""

    PDF_PAGES = (
        "A PDF has pages.",
        'Use unit="pages", with render="image" for a picture.',
        BadArgument,
    )
    NO_PAGE = (
        "There is no page {number}: the document has {count}.",
        "Use 1 to {count}.",
        OutOfRange,
    )
    PDF_CIPHER = "the document is encrypted in a way that is not known here", KEPT
    PDF_PAGE_LIMIT = "only the first {limit:,} of its {pages:,} pages were read", KEPT
    PDF_NO_PAGE = "the file is {why}: not one page can be read", FETCH_AGAIN
    PDF_RECOVERED = "the file is {why}: {pages:page} found in it", FETCH_AGAIN
    PDF_RECOVERED_OF = (
        "the file is {why}: {pages:,} of its {stated:page} found in it",
        FETCH_AGAIN,
    )
    PDF_NONE = "no PDF", FETCH_AGAIN
    PDF_DAMAGED = "damaged", FETCH_AGAIN
    PDF_CUT = "cut short", FETCH_AGAIN
    PDF_UNREADABLE = "the document is damaged: {count:unreadable page}", LOOK
    PDF_SCANNED = "the document has no text layer, only pictures of {count:page}", LOOK
    PDF_DRAWN = "the document has no text, only {count:drawn page}", LOOK
    PDF_BLANK = "the document has no text, only {count:blank page}", KEPT


_HEADER = re.compile(rb"%PDF-\d")
_OBJECT = re.compile(rb"\d obj\b|\bstartxref\b")
# ISO 32000-1, annex H.3.4.1: readers look for the header in this many bytes.
_REACH = 1_024


def sniff(head: Head) -> Sniffed | None:
    """Recognise a header; in a text it must open the file, and an object must follow."""
    header = _HEADER.search(head.data, 0, _REACH)
    if not header:
        return None
    before = head.data[: header.start()]
    if head.is_text and (before.strip(b"\0\xef\xbb\xbf \t\r\n") or not _OBJECT.search(head.data)):
        return None
    return Sniffed("application/pdf", "signature %PDF-" + (f" at {len(before)}" if before else ""))


FORMATS = (
    Format(
        kind="pdf",
        word="PDF",
        handler="fetchstash.handlers._pdf._handler:PdfHandler",
        media_types=("application/pdf", "application/x-pdf"),
        extensions=("pdf",),
        sniff=sniff,
        signed=True,
        paths=("left_out", "images", "images/*"),
        pictures=True,
    ),
)


# pdfium replaces a hyphen and line end within a word by one of these.
_MARKED_BREAK = re.compile(r"[\ufffe\x02]([^\s\ufffe\x02]*)[ \t]*")
# A hyphen and a line end that pdfium leaves: the word breaks between two lower-case letters.
_PLAIN_BREAK = re.compile(
    r"(?:-(?<=[a-zß-ÿ]-)\n(?=[a-zß-ÿ])|\u00ad(?<=[^\W\d_]\u00ad)\n)(\S*)[ \t]*"
)
_EMPTY_LINES = re.compile(r"\n{3,}")
# Latin ligatures of the block Alphabetic Presentation Forms, which nobody searches for.
_LIGATURES = {"ﬀ": "ff", "ﬁ": "fi", "ﬂ": "fl", "ﬃ": "ffi", "ﬄ": "ffl", "ﬅ": "st", "ﬆ": "st"}


def without_ligatures(text: str) -> str:
    """Return a text with the letters that ligatures stand for."""
    for ligature, letters in _LIGATURES.items():
        if ligature in text:
            text = text.replace(ligature, letters)
    return text


def mend(text: str) -> str:
    """Return a page's text with line feeds, joined words, plain letters and no outer blank lines.

    Most pages need little of this, and a check costs a tenth of the work.
    """
    text = without_ligatures(text.replace("\r\n", "\n").replace("\r", "\n"))
    if "\ufffe" in text or "\x02" in text:
        # The rest of the word comes before the line end; Jean-Paul keeps the hyphen.
        text = _MARKED_BREAK.sub(lambda m: f"{'-'[m[1][:1].islower() :]}{m[1]}\n", text)
    if "-\n" in text or "\u00ad" in text:
        text = _PLAIN_BREAK.sub(lambda match: f"{match[1]}\n", text)
    text = "\n".join([line.rstrip() for line in text.split("\n")])
    if "\n\n\n" in text:
        text = _EMPTY_LINES.sub("\n\n", text)
    return text.strip("\n")


NO_MAPPING = "(what follows is no text: its font has no usable mapping to characters)"
"""The line that opens the text of such a page."""
_MIN_CHARS = 40
_MIN_PAIRS = 60
_LONG_WORD = re.compile(r"[A-Za-z]{4,}")
# Control, private and replacement characters; pdfium marks a broken word by U+0002.
_STRANGE = re.compile("[\x01\x03-\x08\x0b\x0e-\x1f\x7f\ue000-\uf8ff\ufffd]")
_MAX_STRANGE = 0.25
# So many of the characters of a page in a Latin script are plain vowels, at the least.
_MIN_VOWELS = 0.22
# Half of the pairs of letters in the languages of Western Europe are these, in others a third; of
# the pairs of any other order of the alphabet a sixth.
_PAIRS = (
    "thheineranrendonenatouedhatooritishiesngstartesementealetirariioicnedecoroelallalichieeiun"
    "bedadigemanonsompepoprqusisotatrurusvevowawewieessllcaceasamemilolniosadidskkaakkinajazaow"
    "czször"
)
_COMMON = frozenset(_PAIRS[at : at + 2] for at in range(0, len(_PAIRS), 2))
_MIN_COMMON = 0.24


def is_garbage(text: str) -> bool:
    """Return whether a page's text is unreadable.

    A count of five letters decides it for most pages.
    """
    lower = text.lower()
    if sum(map(lower.count, "aeiou")) >= _MIN_VOWELS * len(lower):
        return False
    chars = len("".join(text.split()))
    if chars < _MIN_CHARS:
        return False
    strange = len(_STRANGE.findall(text))
    if strange >= _MAX_STRANGE * chars:
        return True
    words = _LONG_WORD.findall(_STRANGE.sub("", text).lower())
    if sum(map(len, words)) < chars / 3:  # another script, or numbers
        return False
    pairs = [word[at : at + 2] for word in words for at in range(len(word) - 1)]
    return len(pairs) >= _MIN_PAIRS and sum(map(_COMMON.__contains__, pairs)) < _MIN_COMMON * len(
        pairs
    )
