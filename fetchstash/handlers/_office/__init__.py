"""Documents and presentations of word processors: Office, OpenDocument, EPUB, RTF."""

from dataclasses import replace
from enum import unique

from fetchstash.handlers._binary import UnreadHandler
from fetchstash.handlers._contract import Format, Head, Sniffed, variant
from fetchstash.handlers._reasons import KEPT, ReasonTable


@unique
class OfficeReason(ReasonTable):
    """Why a document or a book is not read."""

    DAMAGED_DOCUMENT = "the document is damaged or cut short", KEPT
    NO_DOCUMENT = "the package holds no document", KEPT
    OLD_WORD = "documents of Word before 97 are not read", "Save it as DOCX."
    OLD_SLIDES = "presentations of PowerPoint before 97 are not read", "Save it as PPTX."
    SLIDES_ENCRYPTED = "the presentation is encrypted and opens only with its password", KEPT
    SLIDES_DAMAGED = "the presentation is damaged or cut short", KEPT
    BOOK_LOCKED = "the book is locked by rights management", KEPT
    BOOK_MISSING = "the container holds no book", KEPT
    BOOK_EMPTY = "the book holds no text", KEPT
    NO_RTF = "the file is no RTF", KEPT
    RTF_TOKENS = "only its first {limit:,} control words and runs of text are read", KEPT


_HERE = "fetchstash.handlers._office."
_OOXML = "application/vnd.openxmlformats-officedocument."
_WORD_TYPES = f"{_OOXML}wordprocessingml.document {_OOXML}wordprocessingml.template"
_SLIDE_TYPES = " ".join(
    f"{_OOXML}presentationml.{name}" for name in ("presentation", "slideshow", "template")
)
_ODF = "application/vnd.oasis.opendocument"
_WORD = "application/vnd.ms-word.document.macroenabled.12"
_PPT = "application/vnd.ms-powerpoint"
_POWERPOINT = "application/vnd.ms-powerpoint.presentation.macroenabled.12"
# Parts of an Office Open XML package (ECMA-376, part 2); macros change the format.
_PACKAGE = "[Content_Types].xml"
# Word for Windows 1 and 2, for DOS, and for Macintosh 4 and 5; PowerPoint 2 and 3.
OLD_WORD = (
    b"\x9b\xa5\x21\0",
    b"\xdb\xa5\x2d\0",
    b"\x31\xbe\0\0\0\xab",
    b"\xfe\x37\0\x1c",
    b"\xfe\x37\0\x23",
)
OLD_POWERPOINT = (b"\xed\xde\xad\x0b", b"\x0b\xad\xde\xed")
# Pictures, and what the text leaves out (handlers/_parts.py).
_BESIDE = ("left_out", "images", "images/*")


_JATS, _OPML = "application/jats+xml", "text/x-opml"


def _sniff_articles(head: Head) -> Sniffed | None:
    """Recognise the root element of one of these formats."""
    start = head.text.lstrip("\ufeff \t\r\n")[:2_048]
    if not start.startswith("<"):
        return None
    if "<article" in start and ("JATS" in start or "NLM//DTD" in start or "jats" in start):
        return Sniffed(_JATS, "JATS article")
    return Sniffed(_OPML, "element opml") if "<opml" in start else None


def _sniff_rtf(head: Head) -> Sniffed | None:
    if not head.data.startswith(b"{\\rtf"):
        return None
    return Sniffed("application/rtf", "signature {\\rtf")


_DOCUMENT = Format(kind="office_doc", word="office document", handler="", media_types=())
_OOXML_DOCUMENT = replace(_DOCUMENT, paths=_BESIDE, signed=True)
_DOCX = replace(_OOXML_DOCUMENT, handler=_HERE + "_docx:DocxHandler")
_PPTX = replace(_OOXML_DOCUMENT, handler=_HERE + "_pptx:PptxHandler", page_word="slides")
_ODF_DOCUMENT = replace(_OOXML_DOCUMENT, handler=_HERE + "_odf:OdfHandler")
_EPUB = replace(_OOXML_DOCUMENT, handler=_HERE + "_books:EpubHandler")
_EPUB_MEMBERS = ("mimetype", "META-INF/container.xml")
_OLE = replace(_DOCUMENT, handler=_HERE + "_doc:OldOfficeHandler", signed=True)
_RTF = replace(_DOCUMENT, handler=_HERE + "_rtf:RtfHandler", sniff=_sniff_rtf)
_XML_TEXT = replace(_DOCUMENT, handler=_HERE + "_books:XmlTextHandler", is_markup=True)
# Pages, Numbers and Keynote store a snapshot of Apple's objects.
_IWORK = replace(_DOCUMENT, handler=UnreadHandler, signed=True)
_APPLE = " ".join(f"application/vnd.apple.{n}" for n in ("iwork", "pages", "numbers", "keynote"))
_OBJECTS = ("Index/Document.iwa",)


FORMATS = (
    _DOCX,
    variant(_DOCX, "DOCM", _WORD, zip_members=(_PACKAGE, "word/vbaProject.bin")),
    variant(_PPTX, "PPTM", _POWERPOINT, zip_members=(_PACKAGE, "ppt/vbaProject.bin")),
    variant(_DOCX, "DOCX", _WORD_TYPES, "docx", zip_members=(_PACKAGE, "word/")),
    variant(_PPTX, "PPTX", _SLIDE_TYPES, "pptx", zip_members=(_PACKAGE, "ppt/")),
    variant(_ODF_DOCUMENT, "ODT", f"{_ODF}.text {_ODF}.text-template", "odt"),
    variant(_ODF_DOCUMENT, "ODP", f"{_ODF}.presentation", "odp", page_word="slides"),
    # Some programs write "mimetype" compressed or late, so that the members alone tell.
    replace(
        _ODF_DOCUMENT, media_types=(_ODF,), zip_members=("content.xml", "META-INF/manifest.xml")
    ),
    variant(_ODF_DOCUMENT, "ODG", f"{_ODF}.graphics"),
    variant(_ODF_DOCUMENT, "office document", f"{_ODF}.*"),
    # The same holds for EPUB (OCF, section 4.3).
    variant(_EPUB, "EPUB", "application/epub+zip", "epub", zip_members=_EPUB_MEMBERS),
    variant(_RTF, "RTF", "application/rtf text/rtf", "rtf"),
    variant(_XML_TEXT, "OPML outline", _OPML, "opml"),
    variant(_XML_TEXT, "JATS article", _JATS, sniff=_sniff_articles),
    variant(_IWORK, "iWork document", _APPLE, "pages numbers key", zip_members=_OBJECTS),
    variant(_IWORK, "iWork document", "application/x-iwork-package", zip_members=("Index.zip",)),
    variant(_IWORK, "iWork document", "application/x-iwork-pages", zip_members=("index.xml",)),
    variant(_IWORK, "iWork document", "application/x-iwork-keynote", zip_members=("index.apxl",)),
    variant(_OLE, "DOC", "application/msword", "doc", ole_members=("WordDocument",)),
    variant(_OLE, "PPT", _PPT, "ppt", ole_members=("PowerPoint Document",), page_word="slides"),
    variant(_OLE, "document of Word before 97", "application/x-msword-before-97", "", *OLD_WORD),
    variant(
        _OLE,
        "presentation of PowerPoint before 97",
        "application/x-mspowerpoint-before-97",
        "",
        *OLD_POWERPOINT,
        ole_members=("PP40",),
    ),
    # A document under a password hides its streams ([MS-OFFCRYPTO], section 2.3.4.4).
    replace(_OLE, kind="unknown_binary", word="binary", media_types=("application/x-ole-storage",)),
)
