"""The reasons why a document, or a part of it, is not read: a table of our own words by code.

Nothing of a document may stand in a reason, because reasons are shown outside the fence. The worker
sends the code with its numbers, and the server words it from this table: a worker that a document
has taken over has no word to add.
"""

import builtins
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum, unique
from string import Formatter
from typing import Any

from fetchstash.errors import BadArgument, FetchstashError, NoText, OutOfRange, TooLarge
from fetchstash.text import clip, counted

MAX_QUOTED = 60

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
    "PIL": "",
    "charset_normalizer": "",
    "jsonpath": "",
    "lark": "",
    "lxml": "",
    "magic": "magic",
    "onnxruntime": "ocr",
    "pi_heif": "heic",
    "pypdf": "",
    "pypdfium2": "",
    "python_calamine": "",
    "rapidocr": "ocr",
    "resvg_py": "",
    "selectolax": "",
    "tiktoken": "",
    "tinytag": "",
    "yaml": "",
}
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


class ReasonTable(Enum):
    """Base of the tables of reasons: the formats' own, and Reason for what they share.

    A member is a code with what happened, what to do next, and the class of the error (NoText if
    none). Codes differ between tables. A value in braces is a whole number, but for these: ``name``
    is a name or path that the caller gave, or a part of it; ``why`` another reason; ``media_type``
    one that a format declares, else ""; ``unit`` a unit; ``error`` the class of an exception;
    ``library`` one of LIBRARIES. A reason that is shown alone begins in lower case: "Failed to
    extract text from PDF: the file is empty".
    """

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

    @contextmanager
    def instead_of(self, *errors: type[Exception]) -> Generator[None]:
        """Raise this reason instead of ``errors``, and of a panic in a library of Rust."""
        try:
            yield
        except BaseException as error:
            # pyo3's PanicException is a BaseException that no module exports.
            if isinstance(error, errors) or type(error).__name__ == "PanicException":
                raise self.error() from None
            raise

    @property
    def names(self) -> frozenset[str]:
        """The names of its values."""
        parsed = Formatter().parse(f"{self.what} {self.next_step}")
        return frozenset(name for _, name, _, _ in parsed if name)


@unique
class Reason(ReasonTable):
    """Reasons that many formats share, and those of the reader itself."""

    # Of many formats
    EMPTY_FILE = "the file is empty", FETCH_AGAIN
    ENCRYPTED = "the document is encrypted and opens only with its password", KEPT
    NO_TEXT = "the document holds no text", KEPT
    NOT_READ = "it is of a variant that its reader does not know", KEPT
    CUT_AT_LIMIT = "only its first {chars:,} characters were kept", KEPT
    NO_READER = "no reader for it; its bytes are kept", KEPT
    NO_PATHS = (
        "This kind of document has no parts that are read by path or as pictures.",
        "Slice its text by lines or characters.",
    )
    NO_OCR = "this kind of document has no pages that OCR reads", KEPT
    NOT_A_PICTURE = (
        "This part is text, and not rendered as an image.",
        'Use render="text".',
        BadArgument,
    )
    NO_PAGES = "This part has no pages.", 'Use unit="lines" or unit="chars".', BadArgument
    BAD_RANGE = (
        "A range of {unit} begins at {base} or later and ends no earlier.",
        "Correct start and end.",
        BadArgument,
    )
    BEHIND_END = (
        "This part has no {unit} behind {total:,}.",
        "Take a start of at most {last}.",
        OutOfRange,
    )
    LARGE_PICTURE = (
        "The picture does not fit the bound even as a thumbnail.",
        "Raise context.max_image_size_bytes.",
        TooLarge,
    )

    NOTHING_THERE = "There is nothing at {name}.", THERE, OutOfRange

    # Documents in documents
    MEMBER_WITHOUT_TEXT = (
        "{name} has no text: it is {media_type}.",
        "To have its bytes, save the whole file (fetchstash get --raw -o FILE) and unpack it.",
    )
    MEMBER_PICTURE = "{name} has no text: it is {media_type}.", 'Use render="image".'
    MEMBER_WANTED = (
        "This has members.",
        "Name one of them as path; its text lists them.",
        BadArgument,
    )
    NESTED_MEMBERS = "Members are read through at most {limit} nested archives or mails.", KEPT

    # Zip containers, of office documents and books too
    ZIP_MEMBER_ENCRYPTED = "a member of the zip container is encrypted", KEPT
    ZIP_METHOD = "a member has an unknown compression method ({method})", KEPT
    ZIP_CHECKSUM = "the zip container is damaged: the checksum of a member is wrong", KEPT
    ZIP_MEMBER_LOST = (
        "the zip container is damaged: a member is not where the directory says",
        KEPT,
    )
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

    # Compound files
    NO_COMPOUND_FILE = "the file is no compound file", KEPT
    COMPOUND_SECTORS = "the compound file is damaged: its sectors have an unknown size", KEPT
    COMPOUND_SHARED = "the compound file is damaged: its streams share their sectors", KEPT

    # Pictures of documents, and what their text leaves out
    DOCUMENT_PICTURES = (
        "The document has {count:picture}.",
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
    IMAGE_PIXELS = "the picture has more than {limit:,} pixels", KEPT

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


Value = int | str | ReasonTable


@dataclass(frozen=True, slots=True)
class Cause:
    """A reason with its values."""

    reason: ReasonTable
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
        values = {"reason": self.reason, **self.values}
        return {k: v.name.lower() if isinstance(v, ReasonTable) else v for k, v in values.items()}

    def _shown(self) -> dict[str, int | str]:
        return {name: _shown(name, value) for name, value in self.values.items()}


class _Number(int):
    """A number whose format may be a noun: ``{count:page}`` is "1 page" or "2 pages"."""

    def __format__(self, form: str) -> str:
        return counted(self, form) if form[-1:].isalpha() else super().__format__(form)


def quoted(argument: str) -> str:
    """Return a name or a path that the caller gave, for an error: quoted, within 60 characters."""
    return repr(clip(argument, MAX_QUOTED))


def _shown(name: str, value: Value) -> int | str:
    """Return a value as it may stand outside the fence: by a table, or as the caller gave it."""
    if isinstance(value, ReasonTable):
        return value.what
    if isinstance(value, int):
        return _Number(value)
    if name in _UNKNOWN:
        if not value or (name != "media_type" and not is_known(name, value)):
            return _UNKNOWN[name]
        extra = LIBRARIES.get(value) if name == "library" else ""
        return f"{value} (install fetchstash[{extra}])" if extra else value
    return value if name == "unit" else quoted(value)


def is_known(name: str, value: str) -> bool:
    """Return whether ``value`` may be shown as an ``error`` or a ``library``."""
    return value in (_ERRORS if name == "error" else LIBRARIES)
