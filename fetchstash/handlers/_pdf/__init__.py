"""PDF, read by pdfium; pypdf where that fails."""

import re

from fetchstash.handlers._format import Format, Head, Sniffed

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
        paths=("images", "images/*"),
        pictures=True,
    ),
)
