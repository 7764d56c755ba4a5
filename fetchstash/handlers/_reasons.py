"""Why a document, or a part of it, is not read: a table of our own words by code.

Nothing of a document may stand in a reason, because reasons are shown outside the fence. The worker
sends the code with its numbers, and the server words it from this table: a worker that a document
has taken over has no word to add.
"""

import builtins
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, unique
from string import Formatter
from typing import Any, get_args

from fetchstash.errors import BadArgument, FetchstashError, NoText, OutOfRange, TooLarge
from fetchstash.text import clip
from fetchstash.text.ranges import Unit

MAX_QUOTED = 60
MAX_VALUE = 2**63

KEPT = "Its bytes are kept."
FETCH_AGAIN = "Fetch it again."
READ_LINES = "Slice its text by lines, or grep it."
LOOK = "Its bytes are kept; look at a page as a picture."
PAGE_PATHS = (
    'Take a heading of its outline, a fragment such as "#install", or "page", "left_out", "links", '
    '"tables", "images" or "data".'
)
THERE = "Take a path that is there, or read the whole."
THERE_INSIDE = "Take a key or an index that is there, or read the whole."

LIBRARIES: Mapping[str, str] = {
    "PIL": "", "charset_normalizer": "", "jsonpath": "", "lxml": "", "magic": "magic",
    "onnxruntime": "ocr", "pi_heif": "", "pypdf": "", "pypdfium2": "", "python_calamine": "",
    "rapidocr": "ocr", "resvg_py": "", "selectolax": "", "tiktoken": "", "yaml": "",
}  # fmt: skip
"""Libraries that a reader may miss, by the name that is imported, and the extra that brings each.

"" stands for the default install.
"""

_ERRORS = frozenset(
    name
    for name, value in vars(builtins).items()
    if isinstance(value, type) and issubclass(value, BaseException)
) | {"PanicException", "PdfiumError", "UnpicklingError", "error"}

_UNKNOWN = {
    "error": "an error of a library",
    "library": "of this format",
    "media_type": "of an unknown type",
}
"""What is shown instead of a value that is in no table."""


@unique
class Reason(Enum):
    """A code, what happened, what to do next, and the class of the error (NoText if none).

    A value in braces is a whole number, but for these: ``name`` is a name or path that the caller
    gave, or a part of it; ``why`` another Reason; ``media_type`` one that a format declares;
    ``unit`` a unit; ``error`` the class of an exception; ``library`` one of LIBRARIES. A reason
    that is shown alone begins in lower case: "Failed to extract text from PDF: the file is empty".
    """

    # Of many formats
    EMPTY_FILE = "the file is empty", FETCH_AGAIN
    ENCRYPTED = "the document is encrypted and opens only with its password", KEPT
    NO_TEXT = "the document holds no text", KEPT
    DAMAGED_DOCUMENT = "the document is damaged or cut short", KEPT
    NOT_READ = "it is of a variant that its reader does not know", KEPT
    CUT_AT_LIMIT = "only its first {chars:,} characters were kept", KEPT
    NO_READER = "no reader for it; its bytes are kept", KEPT
    NO_PATHS = (
        "This kind of document has no parts that are read by path or as pictures.",
        "Slice its text by lines or characters.",
    )
    NO_OCR = "this kind of document has no pages that OCR reads", KEPT
    NOT_A_PICTURE = (
        "This part is text, and not rendered as an image.", 'Use render="text".', BadArgument,
    )  # fmt: skip
    NO_PAGES = "This part has no pages.", 'Use unit="lines" or unit="chars".', BadArgument
    BAD_RANGE = (
        "A range of {unit} begins at {base} or later and ends no earlier.",
        "Correct start and end.",
        BadArgument,
    )
    BEHIND_END = (
        "This part has {total:,} {unit}.", "Take a start of at most {last}.", OutOfRange,
    )  # fmt: skip
    LARGE_PICTURE = (
        "The picture does not fit the bound even as a thumbnail.",
        "Raise context.max_image_size_bytes.",
        TooLarge,
    )

    # Paths into values
    NOTHING_THERE = "There is nothing at {name}.", THERE, OutOfRange
    NOT_IN_OBJECT = (
        "There is nothing at {name}: the object before it has {count:,} other keys.",
        THERE_INSIDE,
        OutOfRange,
    )
    NOT_IN_ARRAY = (
        "There is nothing at {name}: the array before it has {count:,} items, counted from 0.",
        THERE_INSIDE,
        OutOfRange,
    )
    NOT_IN_VALUE = (
        "There is nothing at {name}: the value before it is no object or array.",
        THERE_INSIDE,
        OutOfRange,
    )
    BAD_JSONPATH = (
        "{name} is no JSONPath of RFC 9535.",
        "Correct it, or give a JSON pointer such as /items/0/name.",
        BadArgument,
    )
    BAD_XPATH = (
        "{name} is no path to elements.",
        "Write it as in /catalog/book[2]/title or //book/@id.",
        BadArgument,
    )
    NO_COLUMN = (
        "There is no column {name}.",
        "Take names of the header or numbers from 1 to {count}, separated by commas.",
        OutOfRange,
    )
    BAD_JSON = "This is not valid JSON, so it has no paths.", READ_LINES
    BAD_YAML = "This is not valid YAML, so it has no paths.", READ_LINES
    BAD_TOML = "This is not valid TOML, so it has no paths.", READ_LINES
    YAML_ALIASES = (
        "Its aliases expand to more than {limit:,} values, so it has no paths.", READ_LINES,
    )  # fmt: skip
    YAML_DEPTH = "It is nested deeper than {limit}, so it has no paths.", READ_LINES
    YAML_ANCHOR = "One of its anchors is missing or holds itself, so it has no paths.", READ_LINES
    INI_VALUES = (
        "INI has sections, and no values that are read by path.", "Take a section of its outline.",
    )  # fmt: skip
    LARGE_FOR_VALUES = "Values are read by path up to {limit:,} bytes.", READ_LINES
    LARGE_FOR_ELEMENTS = "Elements are found by path up to {limit:,} bytes.", READ_LINES

    # Archives, and documents in documents
    DAMAGED_ARCHIVE = "the archive is damaged or cut short", FETCH_AGAIN
    UNLISTED_ARCHIVE = "the members of this kind of archive are not listed", KEPT
    OVERLAP = "its members overlap, as in a zip bomb: none of them is read", KEPT
    LARGE_ARCHIVE = (
        "the archive unpacks to more than {limit:,} bytes: what follows is not listed", KEPT,
    )  # fmt: skip
    MANY_STREAMS = "the file holds more than {limit:,} compressed streams", KEPT
    LARGE_MEMBER = "the member is larger than {limit:,} bytes", KEPT
    UNREAD_MEMBER = "{name} is not read: {why}.", KEPT
    MEMBER_WITHOUT_TEXT = "{name} has no text: it is {media_type}.", KEPT
    NO_MEMBER = "There is no member {name}.", "The archive's text lists them all.", OutOfRange
    NO_ATTACHMENT = "There is no attachment {name}.", "The mail's text lists them all.", OutOfRange
    MEMBER_WANTED = (
        "This has members.", "Name one of them as path; its text lists them.", BadArgument,
    )  # fmt: skip
    NESTED_MEMBERS = "Members are read through at most {limit} nested archives or mails.", KEPT

    # Why a member is not read
    LEADS_OUT = "its name leads out of the archive", KEPT
    IS_LINK = "it is a link", KEPT
    IS_FOLDER = "it is a folder", KEPT
    IS_DEVICE = "it is a device", KEPT
    IS_ENCRYPTED = "it is encrypted", KEPT

    # Zip containers, of office documents and books too
    ZIP_MEMBER_ENCRYPTED = "a member of the zip container is encrypted", KEPT
    ZIP_METHOD = "a member has an unknown compression method ({method})", KEPT
    ZIP_CHECKSUM = "the zip container is damaged: the checksum of a member is wrong", KEPT
    ZIP_MEMBER_LOST = (
        "the zip container is damaged: a member is not where the directory says", KEPT,
    )  # fmt: skip
    ZIP_CUT = "the zip container is cut short", FETCH_AGAIN
    ZIP_NO_DIRECTORY = "the zip container is cut short: it has no directory", FETCH_AGAIN
    ZIP_DIRECTORY_CUT = "the zip container is damaged: its directory breaks off", KEPT
    ZIP_MEMBER_DAMAGED = "the zip container is damaged: a member cannot be unpacked", KEPT
    ZIP_LARGE = "its members unpack to more than {limit:,} bytes in all", KEPT
    ZIP_MEMBER_LARGE = "a member of the zip container unpacks to more than {limit:,} bytes", KEPT

    # XML
    XML_ENTITIES = "it declares entities, which could expand without end", KEPT
    XML_DEPTH = "its XML is nested deeper than {limit:,}", KEPT
    XML_DAMAGED = "its XML is damaged at line {line:,}", KEPT
    XML_TAG = "its XML holds a tag larger than {limit:,} bytes", KEPT

    # Office documents and books
    NO_DOCUMENT = "the package holds no document", KEPT
    NO_COMPOUND_FILE = "the file is no compound file", KEPT
    COMPOUND_SECTORS = "the compound file is damaged: its sectors have an unknown size", KEPT
    COMPOUND_SHARED = "the compound file is damaged: its streams share their sectors", KEPT
    OLD_WORD = "documents of Word before 97 are not read", "Save it as DOCX."
    OLD_SLIDES = "presentations of PowerPoint before 97 are not read", "Save it as PPTX."
    SLIDES_ENCRYPTED = "the presentation is encrypted and opens only with its password", KEPT
    SLIDES_DAMAGED = "the presentation is damaged or cut short", KEPT
    BOOK_LOCKED = "the book is locked by rights management", KEPT
    BOOK_MISSING = "the container holds no book", KEPT
    BOOK_EMPTY = "the book holds no text", KEPT
    NO_RTF = "the file is no RTF", KEPT
    RTF_TOKENS = "only its first {limit:,} control words and runs of text are read", KEPT
    MAIL_RTF = "its body is compressed RTF, which is not read", KEPT

    # Tables
    SHEETS_DAMAGED = "the spreadsheet is damaged, cut short or encrypted", KEPT
    SHEETS_ENCRYPTED = "the spreadsheet is encrypted and opens only with its password", KEPT
    SHEETS_EMPTY = "the spreadsheet holds no value", KEPT
    SHEETS_NO_FORMULA = (
        "There are no formulas at {name}.",
        'Take "formulas", or "formulas/" and the name of a sheet of an XLSX.',
        OutOfRange,
    )
    SHEET_DAMAGED = "a sheet of it is damaged: what follows is missing", KEPT
    SHEET_ROW = "it has a cell behind the last of a sheet, XFD{limit}", KEPT
    SHEET_SPAN = (
        "its cells lie too far apart: a sheet spans {cells:,} cells, and {limit:,} are read", KEPT,
    )  # fmt: skip
    DATABASE_DAMAGED = "the database is damaged or cut short", FETCH_AGAIN
    DATABASE_EMPTY = "the database has no tables", KEPT

    # PDF
    PDF_PAGES = (
        "A PDF has pages.", 'Use unit="pages", with render="image" for a picture.', BadArgument,
    )  # fmt: skip
    NO_PAGE = (
        "There is no page {number}: the document has {count}.", "Use 1 to {count}.", OutOfRange,
    )  # fmt: skip
    PDF_CIPHER = "the document is encrypted in a way that is not known here", KEPT
    PDF_PAGE_LIMIT = "only the first {limit:,} of its {pages:,} pages were read", KEPT
    PDF_NO_PAGE = "the file is {why}: not one page can be read", FETCH_AGAIN
    PDF_RECOVERED = "the file is {why}: {pages:,} pages were found in it", FETCH_AGAIN
    PDF_RECOVERED_OF = (
        "the file is {why}: {pages:,} of its {stated:,} pages were found in it", FETCH_AGAIN,
    )  # fmt: skip
    PDF_NONE = "no PDF", FETCH_AGAIN
    PDF_DAMAGED = "damaged", FETCH_AGAIN
    PDF_CUT = "cut short", FETCH_AGAIN
    PDF_UNREADABLE = "the document is damaged: its {count:,} pages are unreadable", LOOK
    PDF_UNREADABLE_PAGE = "the document is damaged: its page is unreadable", LOOK
    PDF_SCANNED = "the document has no text layer: its {count:,} pages are pictures", LOOK
    PDF_SCANNED_PAGE = "the document has no text layer: its page is a picture", LOOK
    PDF_DRAWN = "the document has no text: its {count:,} pages are drawn", LOOK
    PDF_DRAWN_PAGE = "the document has no text: its page is drawn", LOOK
    PDF_BLANK = "the document has no text: its {count:,} pages are blank", LOOK
    PDF_BLANK_PAGE = "the document has no text: its page is blank", LOOK

    # Web pages
    PAGE_WITHOUT_TEXT = "the page has no text of its own", KEPT
    PAGE_TAGS = "it has no text before its tag {limit:,}, and the rest is not read", KEPT
    PAGE_NO_PICTURE = (
        "A web page is not rendered as an image.",
        'Take render="text", or a picture of path="images", such as "images/1".',
        BadArgument,
    )
    PAGE_PICTURES = (
        "The page has {count} pictures.",
        'List them with path="images"; take one as "images/1".',
        OutOfRange,
    )
    PAGE_PICTURE_HELD = (
        "This is no picture on the web.", 'List them with path="images".', OutOfRange,
    )  # fmt: skip
    PAGE_NO_DATA = "The page holds no data.", 'Read it by path="page".', OutOfRange
    PAGE_NO_PART = "The page has no such part.", PAGE_PATHS, OutOfRange
    PAGE_NO_SECTION = "The page has no section of that name.", PAGE_PATHS, OutOfRange

    # Pictures of documents, and what their text leaves out
    DOCUMENT_PICTURES = (
        "The document has {count} pictures.",
        'List them with path="images"; take one as "images/1".',
        OutOfRange,
    )
    DOCUMENT_NO_PICTURE = (
        "This part is no picture.",
        'Take a picture of path="images", such as "images/1".',
        BadArgument,
    )
    DOCUMENT_NO_PART = (
        "The document has no such part.",
        'Take a heading of its outline, "images" or "left_out".',
        OutOfRange,
    )
    DOCUMENT_HOLDS_NO_PICTURE = "The document does not hold this picture.", KEPT, OutOfRange

    # Pictures
    IMAGE_DAMAGED = "the image is damaged or cut short", FETCH_AGAIN
    IMAGE_UNKNOWN = "the image is damaged, or of a format that is not known here", KEPT
    SVG_LARGE = "the drawing is larger than {limit:,} bytes", READ_LINES
    IMAGE_PIXELS = "the picture has more than {limit:,} pixels", KEPT
    IMAGE_NO_EXIF = "The image has no EXIF.", 'Use render="image" to see it.', OutOfRange
    IMAGE_NO_TEXT = (
        "An image has no text.",
        'Use render="image", or path="exif" for all that its EXIF says.',
        BadArgument,
    )

    # Mails, notebooks, calendars
    MAIL_DEPTH = "its parts are nested too deeply", KEPT
    MHTML_NO_PAGE = "the web archive holds no page", KEPT
    WARC_EMPTY = "the web archive holds no response", KEPT
    MAILS_CUT = "only its first {limit:,} mails were read", KEPT
    MAIL_MISSING = "the compound file holds no message", KEPT
    NOTEBOOK_LARGE = "the notebook is larger than {limit:,} bytes", KEPT
    NOTEBOOK_EMPTY = "it holds no cells", KEPT
    NOTEBOOK_DEPTH = "its JSON is nested too deeply", KEPT
    NOTEBOOK_DAMAGED = "its JSON is damaged or cut short", FETCH_AGAIN
    NO_ENTRY = (
        "There is no entry {name}: the calendar has {count:,}.",
        'Use "/1" to "/{count}", or "/" and a UID.',
        OutOfRange,
    )
    NO_ENTRIES = (
        "There is no entry {name}: the calendar has 0.", "Leave the path out.", OutOfRange,
    )  # fmt: skip

    # The reader itself, and plugins
    MEMORY = "it needs more memory than extract.memory_mb allows", KEPT
    DEPTH = "it is nested too deeply", KEPT
    FAILED = "the reader failed ({error})", KEPT
    LIBRARY = "the library {library} is missing", KEPT
    OWN_REASON = "the reader gave up for a reason of its own", KEPT
    OWN_OUT_OF_RANGE = "There is nothing of that name.", THERE, OutOfRange
    OWN_BAD_ARGUMENT = "The reader does not take this request.", THERE, BadArgument
    OWN_TOO_LARGE = "That part is too large.", "Ask for a smaller part.", TooLarge
    SNIFFER_FAILED = "its sniffer failed ({error})", KEPT
    SNIFFER_ANSWER = "its sniffer returned what is no Sniffed", KEPT

    def __init__(self, what: str, next_step: str, cls: type[FetchstashError] = NoText) -> None:
        self.what = what
        self.next_step = next_step
        self.cls = cls

    def error(self, **values: "Value") -> FetchstashError:
        """Return the error to raise. The values that are named in braces are required."""
        return self.cause(**values).error()

    def cause(self, **values: "Value") -> "Cause":
        """Return the reason with its values."""
        return Cause(self, values)

    @property
    def names(self) -> frozenset[str]:
        """The names of its values."""
        parsed = Formatter().parse(f"{self.what} {self.next_step}")
        return frozenset(name for _, name, _, _ in parsed if name)


Value = int | str | Reason


@dataclass(frozen=True, slots=True)
class Cause:
    """A reason with its values."""

    reason: Reason
    values: Mapping[str, Value]

    def words(self) -> str:
        """Return what happened, in words."""
        return self.reason.what.format_map(self._shown())

    def error(self) -> FetchstashError:
        """Return the error in words; its details are the cause as JSON."""
        next_step = self.reason.next_step.format_map(self._shown())
        return self.reason.cls(self.words(), next_step, **self.to_json())

    def to_json(self) -> dict[str, Any]:
        """Return the code, and the values by name."""
        values = {k: v.name.lower() if isinstance(v, Reason) else v for k, v in self.values.items()}
        return {"reason": self.reason.name.lower(), **values}

    def _shown(self) -> dict[str, int | str]:
        return {name: _shown(name, value) for name, value in self.values.items()}


def cause_of(error: FetchstashError) -> Cause:
    """Return the cause of an error that a handler raised.

    An error that was made without a Reason, as by a plugin, has words that are not in the table: of
    it only the class counts.
    """
    if "reason" in error.details:
        return read_cause(error.details)
    own = (Reason.OWN_OUT_OF_RANGE, Reason.OWN_BAD_ARGUMENT, Reason.OWN_TOO_LARGE)
    return Cause(next((r for r in own if isinstance(error, r.cls)), Reason.OWN_REASON), {})


def read_cause(data: Mapping[str, Any], request_text: str | None = None) -> Cause:
    """Return the cause in JSON, each value checked.

    A ``name`` must stand in what the caller gave. Raises ValueError for anything that is no cause.
    """
    reason = _reason(data.get("reason"))
    if frozenset(data) != reason.names | {"reason"}:
        raise ValueError
    return Cause(reason, {name: _checked(name, data[name], request_text) for name in reason.names})


def quoted(argument: str) -> str:
    """Return a name or a path that the caller gave, for an error: quoted, within 60 characters."""
    return repr(clip(argument, MAX_QUOTED))


def _reason(code: Any) -> Reason:
    if not isinstance(code, str) or code.upper() not in Reason.__members__:
        raise ValueError
    return Reason[code.upper()]


def _checked(name: str, value: Any, request_text: str | None) -> Value:
    match name:
        case "why":
            why = _reason(value)
            if why.names:
                raise ValueError
            return why
        case "name":
            if isinstance(value, str) and (request_text is None or value in request_text):
                return value
        case "error" | "library" | "media_type":
            if isinstance(value, str):
                return value if _is_known(name, value) else ""
        case "unit":
            if isinstance(value, str) and value in get_args(Unit):
                return value
        case _:
            if isinstance(value, int) and abs(value) < MAX_VALUE:
                return int(value)
    raise ValueError


def _shown(name: str, value: Value) -> int | str:
    """Return a value as it may stand outside the fence: by a table, or as the caller gave it."""
    if isinstance(value, Reason):
        return value.what
    if isinstance(value, int) or name == "unit":
        return value
    if name in _UNKNOWN:
        extra = LIBRARIES.get(value) if name == "library" else ""
        hint = f": install fetchstash[{extra}]" if extra else ""
        return f"{value}{hint}" if _is_known(name, value) else _UNKNOWN[name]
    return quoted(value)


def _is_known(name: str, value: str) -> bool:
    """Return whether the table for values of this name has ``value``."""
    if name == "media_type":
        from fetchstash.handlers._registry import built_in  # noqa: PLC0415 - it imports readers

        return built_in().declares(value)
    return value in (_ERRORS if name == "error" else LIBRARIES)
