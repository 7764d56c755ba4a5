"""Documents and presentations of word processors: Office, OpenDocument, EPUB, RTF."""

from dataclasses import replace
from enum import unique

from fetchstash.handlers._binary import UnreadHandler
from fetchstash.handlers._contract import Format, Head, Sniffed, family
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
_ODF = "application/vnd.oasis.opendocument."
_WORD = "application/vnd.ms-word.document.macroenabled.12"
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
# Pictures, and what the text leaves out (handlers/_shared/_beside.py).
_BESIDE = ("left_out", "images", "images/*")


_FB2, _JATS, _OPML = "application/x-fictionbook+xml", "application/jats+xml", "text/x-opml"


def _sniff_xml_text(head: Head) -> Sniffed | None:
    """Recognise the root element of one of these formats."""
    start = head.text.lstrip("\ufeff \t\r\n")[:2_048]
    if not start.startswith("<"):
        return None
    if "<FictionBook" in start:
        return Sniffed(_FB2, "element FictionBook")
    if "<article" in start and ("JATS" in start or "NLM//DTD" in start or "jats" in start):
        return Sniffed(_JATS, "JATS article")
    if "<opml" in start:
        return Sniffed(_OPML, "element opml")
    return None


def _sniff_rtf(head: Head) -> Sniffed | None:
    if not head.data.startswith(b"{\\rtf"):
        return None
    return Sniffed("application/rtf", "signature {\\rtf")


_DOCUMENT = Format(kind="office_doc", word="office document", handler="", media_types=())
_OOXML_DOCUMENT = replace(_DOCUMENT, paths=_BESIDE, signed=True)
_DOCX = replace(_OOXML_DOCUMENT, handler=_HERE + "_docx:DocxHandler")
_PPTX = replace(_OOXML_DOCUMENT, handler=_HERE + "_pptx:PptxHandler", page_word="slides")
_ODF_DOCUMENT = replace(_OOXML_DOCUMENT, handler=_HERE + "_odf:OdfHandler")
_OLE = replace(_DOCUMENT, handler=_HERE + "_doc:OldOfficeHandler", signed=True)
_XML_TEXT = replace(_DOCUMENT, handler=_HERE + "_xml_texts:XmlTextHandler", is_markup=True)
# Pages, Numbers and Keynote store a snapshot of Apple's objects.
_IWORK = replace(_DOCUMENT, word="iWork document", handler=UnreadHandler, signed=True)

FORMATS = (
    _DOCX,
    replace(
        _DOCX, word="DOCM", media_types=(_WORD,), zip_members=(_PACKAGE, "word/vbaProject.bin")
    ),
    replace(
        _PPTX, word="PPTM", media_types=(_POWERPOINT,), zip_members=(_PACKAGE, "ppt/vbaProject.bin")
    ),
    replace(
        _DOCX,
        word="DOCX",
        media_types=tuple(f"{_OOXML}wordprocessingml.{name}" for name in ("document", "template")),
        extensions=("docx",),
        zip_members=(_PACKAGE, "word/"),
    ),
    replace(
        _PPTX,
        word="PPTX",
        media_types=tuple(
            f"{_OOXML}presentationml.{name}" for name in ("presentation", "slideshow", "template")
        ),
        extensions=("pptx",),
        zip_members=(_PACKAGE, "ppt/"),
    ),
    *family(_ODF_DOCUMENT, ("ODT", f"{_ODF}text {_ODF}text-template", "odt")),
    *family(replace(_ODF_DOCUMENT, page_word="slides"), ("ODP", f"{_ODF}presentation", "odp")),
    # Some programs write "mimetype" compressed or late, so that the members alone tell.
    replace(
        _ODF_DOCUMENT,
        media_types=("application/vnd.oasis.opendocument",),
        zip_members=("content.xml", "META-INF/manifest.xml"),
    ),
    *family(_ODF_DOCUMENT, ("ODG", f"{_ODF}graphics", ""), ("office document", f"{_ODF}*", "")),
    replace(
        _OOXML_DOCUMENT,
        word="EPUB",
        handler=_HERE + "_epub:EpubHandler",
        media_types=("application/epub+zip",),
        extensions=("epub",),
        # Some programs write the member "mimetype" compressed or late (OCF, section 4.3).
        zip_members=("mimetype", "META-INF/container.xml"),
    ),
    *family(
        replace(_DOCUMENT, handler=_HERE + "_rtf:RtfHandler", sniff=_sniff_rtf),
        ("RTF", "application/rtf text/rtf", "rtf"),
    ),
    *family(_XML_TEXT, ("FictionBook", _FB2, "fb2"), ("OPML outline", _OPML, "opml")),
    *family(replace(_XML_TEXT, sniff=_sniff_xml_text), ("JATS article", _JATS, "")),
    replace(
        _IWORK,
        media_types=tuple(
            f"application/vnd.apple.{name}" for name in ("iwork", "pages", "numbers", "keynote")
        ),
        extensions=("pages", "numbers", "key"),
        zip_members=("Index/Document.iwa",),
    ),
    *(
        replace(_IWORK, media_types=(f"application/x-iwork-{name}",), zip_members=(member,))
        for name, member in (
            ("package", "Index.zip"),
            ("pages", "index.xml"),
            ("keynote", "index.apxl"),
        )
    ),
    *family(replace(_OLE, ole_members=("WordDocument",)), ("DOC", "application/msword", "doc")),
    *family(
        replace(_OLE, ole_members=("PowerPoint Document",), page_word="slides"),
        ("PPT", "application/vnd.ms-powerpoint", "ppt"),
    ),
    replace(
        _OLE,
        word="document of Word before 97",
        media_types=("application/x-msword-before-97",),
        signatures=tuple((0, magic) for magic in OLD_WORD),
    ),
    replace(
        _OLE,
        word="presentation of PowerPoint before 97",
        media_types=("application/x-mspowerpoint-before-97",),
        ole_members=("PP40",),
        signatures=tuple((0, magic) for magic in OLD_POWERPOINT),
    ),
    # A document under a password hides its streams ([MS-OFFCRYPTO], section 2.3.4.4).
    replace(_OLE, kind="unknown_binary", word="binary", media_types=("application/x-ole-storage",)),
)
