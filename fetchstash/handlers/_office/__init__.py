"""Documents and presentations of word processors: Office, OpenDocument, EPUB, RTF."""

from dataclasses import replace

from fetchstash.handlers._binary import UnreadHandler
from fetchstash.handlers._format import Format, Head, Sniffed, family

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


_DOCX = Format(
    kind="office_doc",
    word="DOCX",
    handler=_HERE + "_docx:DocxHandler",
    paths=_BESIDE,
    media_types=(_OOXML + "wordprocessingml.document", _OOXML + "wordprocessingml.template"),
    extensions=("docx",),
    zip_members=(_PACKAGE, "word/"),
    signed=True,
)
_PPTX = Format(
    kind="office_doc",
    word="PPTX",
    handler=_HERE + "_pptx:PptxHandler",
    paths=_BESIDE,
    media_types=(
        _OOXML + "presentationml.presentation",
        _OOXML + "presentationml.slideshow",
        _OOXML + "presentationml.template",
    ),
    extensions=("pptx",),
    zip_members=(_PACKAGE, "ppt/"),
    signed=True,
    page_word="slides",
)
_ODT = Format(
    kind="office_doc",
    word="ODT",
    handler=_HERE + "_odf:OdfHandler",
    paths=_BESIDE,
    media_types=(_ODF + "text", _ODF + "text-template"),
    extensions=("odt",),
    signed=True,
)
_DOC = Format(
    kind="office_doc",
    word="DOC",
    handler=_HERE + "_doc:OldOfficeHandler",
    media_types=("application/msword",),
    extensions=("doc",),
    ole_members=("WordDocument",),
    signed=True,
)
_IWORK = Format(
    kind="office_doc", word="iWork document", handler=UnreadHandler, media_types=(), signed=True
)

FORMATS = (
    replace(_DOCX, word="office document", media_types=(), extensions=(), zip_members=()),
    replace(
        _DOCX,
        word="DOCM",
        media_types=(_WORD,),
        extensions=(),
        zip_members=(_PACKAGE, "word/vbaProject.bin"),
    ),
    replace(
        _PPTX,
        word="PPTM",
        media_types=(_POWERPOINT,),
        extensions=(),
        zip_members=(_PACKAGE, "ppt/vbaProject.bin"),
    ),
    _DOCX,
    _PPTX,
    _ODT,
    replace(
        _ODT,
        word="ODP",
        media_types=(_ODF + "presentation",),
        extensions=("odp",),
        page_word="slides",
    ),
    # Some programs write "mimetype" compressed or late, so that the members alone tell.
    replace(
        _ODT,
        word="office document",
        media_types=("application/vnd.oasis.opendocument",),
        extensions=(),
        zip_members=("content.xml", "META-INF/manifest.xml"),
    ),
    replace(_ODT, word="ODG", media_types=(_ODF + "graphics",), extensions=()),
    replace(_ODT, word="office document", media_types=(_ODF + "*",), extensions=()),
    Format(
        kind="office_doc",
        word="EPUB",
        handler=_HERE + "_epub:EpubHandler",
        paths=_BESIDE,
        media_types=("application/epub+zip",),
        extensions=("epub",),
        # Some programs write the member "mimetype" compressed or late (OCF, section 4.3).
        zip_members=("mimetype", "META-INF/container.xml"),
        signed=True,
    ),
    Format(
        kind="office_doc",
        word="RTF",
        handler=_HERE + "_rtf:RtfHandler",
        media_types=("application/rtf", "text/rtf"),
        extensions=("rtf",),
        sniff=_sniff_rtf,
    ),
    *family(
        Format(
            kind="office_doc",
            word="",
            handler=_HERE + "_xml_texts:XmlTextHandler",
            media_types=(),
            is_markup=True,
        ),
        ("FictionBook", _FB2, "fb2"),
        ("OPML outline", _OPML, "opml"),
    ),
    Format(
        kind="office_doc",
        word="JATS article",
        handler=_HERE + "_xml_texts:XmlTextHandler",
        media_types=(_JATS,),
        sniff=_sniff_xml_text,
        is_markup=True,
    ),
    # Pages, Numbers and Keynote store the same members: a snapshot of Apple's objects.
    replace(
        _IWORK,
        media_types=(
            "application/vnd.apple.iwork",
            "application/vnd.apple.pages",
            "application/vnd.apple.numbers",
            "application/vnd.apple.keynote",
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
    _DOC,
    replace(
        _DOC,
        word="PPT",
        media_types=("application/vnd.ms-powerpoint",),
        extensions=("ppt",),
        ole_members=("PowerPoint Document",),
        page_word="slides",
    ),
    replace(
        _DOC,
        word="document of Word before 97",
        media_types=("application/x-msword-before-97",),
        extensions=(),
        ole_members=(),
        signatures=tuple((0, magic) for magic in OLD_WORD),
    ),
    replace(
        _DOC,
        word="presentation of PowerPoint before 97",
        media_types=("application/x-mspowerpoint-before-97",),
        extensions=(),
        ole_members=("PP40",),
        signatures=tuple((0, magic) for magic in OLD_POWERPOINT),
    ),
    # A document under a password hides its streams ([MS-OFFCRYPTO], section 2.3.4.4).
    replace(
        _DOC,
        kind="unknown_binary",
        word="binary",
        media_types=("application/x-ole-storage",),
        extensions=(),
        ole_members=(),
    ),
)
