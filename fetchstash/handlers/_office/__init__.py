"""Documents and presentations of word processors: Office, OpenDocument, EPUB, RTF."""

from dataclasses import replace

from fetchstash.handlers._format import Format, Head, Sniffed

_HERE = "fetchstash.handlers._office."
_OOXML = "application/vnd.openxmlformats-officedocument."
_ODF = "application/vnd.oasis.opendocument."
_WORD = "application/vnd.ms-word.document.macroenabled.12"
_POWERPOINT = "application/vnd.ms-powerpoint.presentation.macroenabled.12"
# Parts of an Office Open XML package (ECMA-376, part 2); macros change the format.
_PACKAGE = "[Content_Types].xml"
# Pictures, and what the text leaves out (handlers/_shared/_beside.py).
_BESIDE = ("left_out", "images", "images/*")


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
    handler=_HERE + "_old_office:OldOfficeHandler",
    media_types=("application/msword",),
    extensions=("doc",),
    ole_members=("WordDocument",),
    signed=True,
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
    _DOC,
    replace(
        _DOC,
        word="PPT",
        media_types=("application/vnd.ms-powerpoint",),
        extensions=("ppt",),
        ole_members=("PowerPoint Document",),
        page_word="slides",
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
