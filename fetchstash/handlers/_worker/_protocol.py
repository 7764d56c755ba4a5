"""Frames of the pipe between server and worker, and the checks of each value in them.

A frame is a JSON object after its length in four bytes. Never pickle: the worker reads hostile
bytes, so that its answers may be nothing but data. Values are read through ``Values``.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import IO, Any, TypeVar, get_args

from fetchstash.errors import FetchstashError
from fetchstash.handlers._contract import Format
from fetchstash.handlers._reasons import Cause, Reason, ReasonTable, Value, is_known
from fetchstash.handlers._registry import built_in, reasons, words
from fetchstash.text import clip
from fetchstash.text.facts import FACTS, PAGE_VERDICTS, DocumentFacts, Fact
from fetchstash.text.hygiene import clean, clean_line
from fetchstash.text.ranges import Heading, Unit

T = TypeVar("T")

LENGTH_BYTES = 4
MAX_FRAME = 16 * 2**20
MAX_STRUCTURE = 128 * 2**10
"""Bytes of a frame outside its strings."""

# Bounds of one job's answer, in characters: kept by the worker, checked by the server.
MAX_HEADINGS = 2_000
MAX_TITLE = 200
MAX_LINE = 1_000
MAX_PREVIEW = 50_000
# A result shows at most a tenth of this. A longer part is cut, and the result says so.
MAX_PART_TEXT = 1_000_000

MAX_NUMBER = 2**53 - 1
MAX_VALUE = 2**63  # of the numbers in a reason
MAX_COUNT = 10**12  # of pages, rows, members: more than any document has

OF_SERVER = frozenset(
    (
        "content_kind",
        "word",
        "is_text",
        "paths",
        "unit",
        "page_word",
        "pictures",
        "extraction_error",
        "leads_to",
    )
)
"""Facts that the server itself knows: by the format that it chose, by the table of reasons, or by a
look at the document (_leads)."""

# RFC 6838, section 4.2.
_MEDIA_TYPE = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]{0,63}/[a-z0-9][a-z0-9!#$&^_.+-]{0,63}")


class ProtocolError(Exception):
    """The other side broke the protocol."""


@dataclass(frozen=True, slots=True)
class PluginReport:
    """An installed or enabled package: its formats, or why it was not loaded.

    It has neither if it is installed and not enabled. ``ended``: loading it ended its worker.
    """

    package: str
    formats: tuple[Format, ...] = ()
    failure: str = ""
    ended: bool = False

    @property
    def words(self) -> str:
        """The words of its formats."""
        return words(self.formats)


def encode(frame: dict[str, Any]) -> bytes:
    """Return ``frame`` as bytes. Raises ProtocolError if it is longer than MAX_FRAME."""
    # ASCII with escapes can hold a lone surrogate; the reader cleans every string.
    body = json.dumps(frame, separators=(",", ":")).encode("ascii")
    if len(body) > MAX_FRAME:
        raise ProtocolError
    return len(body).to_bytes(LENGTH_BYTES, "big") + body


def body_length(prefix: bytes) -> int:
    """Return the length that ``prefix`` announces. Raises ProtocolError above MAX_FRAME."""
    length = int.from_bytes(prefix, "big")
    if length > MAX_FRAME:
        raise ProtocolError
    return length


def decode(body: bytes) -> dict[str, Any]:
    """Return the object in ``body``. Raises ProtocolError if there is none.

    What is long in an answer is one string. Millions of small values would hold the server's loop
    for a second while they are read.
    """
    if len(body) > MAX_STRUCTURE and _structure(body) > MAX_STRUCTURE:
        raise ProtocolError
    try:
        return Values(json.loads(body)).data
    except (ValueError, RecursionError) as error:
        raise ProtocolError from error


def _structure(body: bytes) -> int:
    """Return how many bytes are outside of strings.

    JSON has a byte between two strings. So those above MAX_STRUCTURE need not be looked at.
    """
    # No regular expression: one over escapes keeps gigabytes, or breaks before Python 3.11.5.
    unescaped = body.replace(rb"\\", b"").replace(rb"\"", b"")
    return sum(map(len, unescaped.split(b'"', 2 * MAX_STRUCTURE)[::2]))


def read_frame(stream: IO[bytes]) -> dict[str, Any] | None:
    """Read one frame, blocking; None at the end of the stream. Raises ProtocolError."""
    prefix = stream.read(LENGTH_BYTES)
    return decode(stream.read(body_length(prefix))) if len(prefix) == LENGTH_BYTES else None


def _typed(value: Any, kind: type[T]) -> T:
    """Return ``value`` if it is of this very type: true is no number."""
    if isinstance(value, kind) and type(value) is kind:
        return value
    raise ProtocolError


class Values:
    """A received object. A method raises ProtocolError for a value of another type.

    Strings come clean, because JSON can spell lone surrogates.
    """

    def __init__(self, data: Any) -> None:
        self.data: dict[str, Any] = _typed(data, dict)

    def __contains__(self, name: str) -> bool:
        return self.data.get(name) is not None

    def is_true(self, name: str) -> bool:
        """Return whether a value is true; anything else counts as false."""
        return self.data.get(name) is True

    def member(self, name: str) -> "Values":
        """Return an object."""
        return Values(self.data.get(name))

    def count(self, name: str, most: int = MAX_NUMBER) -> int:
        """Return a number from 0 to ``most``."""
        value = _typed(self.data.get(name), int)
        if not 0 <= value <= most:
            raise ProtocolError
        return value

    def flag(self, name: str) -> bool:
        """Return true or false."""
        return _typed(self.data.get(name), bool)

    def string(self, name: str, max_chars: int) -> str:
        """Return a string as it is."""
        return bounded(self.data.get(name), max_chars)

    def line(self, name: str, max_chars: int = MAX_LINE) -> str:
        """Return text on one line, clean."""
        return clean_line(self.string(name, max_chars))

    def lines(self, name: str, max_items: int, max_chars: int) -> tuple[str, ...]:
        """Return a list of lines, clean."""
        return tuple(clean_line(bounded(item, max_chars)) for item in self.items(name, max_items))

    def text(self, name: str, max_chars: int) -> str:
        """Return text of many lines, clean."""
        return clean(self.string(name, max_chars)).text

    def items(self, name: str, max_items: int) -> list[Any]:
        """Return a list, its items unchecked."""
        value: list[Any] = _typed(self.data.get(name), list)  # pyright: ignore[reportUnknownVariableType]
        if len(value) > max_items:
            raise ProtocolError
        return value

    def headings(self, name: str, max_items: int) -> list[Heading]:
        """Return an outline."""
        outline: list[Heading] = []
        for item in self.items(name, max_items):
            match item:
                case [str(title), int(level), unit, int(start)] if (
                    unit in get_args(Unit) and 0 <= level <= MAX_NUMBER and 0 <= start <= MAX_NUMBER
                ):
                    outline.append(Heading(clean_line(title[:MAX_TITLE]), level, unit, start))
                case _:
                    raise ProtocolError
        return outline


def bounded(value: Any, max_chars: int) -> str:
    """Return ``value`` if it is a string of at most ``max_chars``. Raises ProtocolError."""
    if isinstance(value, str) and len(value) <= max_chars:
        return value
    raise ProtocolError


def headings_json(headings: Iterable[Heading]) -> list[list[Any]]:
    """Return headings as JSON, each title clean and on one line."""
    return [[clip(clean_line(h.title), MAX_TITLE), h.level, h.unit, h.start] for h in headings]


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


def _reason(code: Any) -> ReasonTable:
    if not isinstance(code, str) or code not in reasons():
        raise ValueError
    return reasons()[code]


def _checked(name: str, value: Any, request_text: str | None) -> Value:
    match name:
        case "why":
            why = _reason(value)
            if not why.names:
                return why
        case "name":
            if isinstance(value, str) and (request_text is None or value in request_text):
                return value
        case "media_type" if isinstance(value, str):
            return value if built_in().declares(value) else ""
        case "error" | "library" if isinstance(value, str):
            return value if is_known(name, value) else ""
        case "unit":
            if isinstance(value, str) and value in get_args(Unit):
                return value
        case _:
            if isinstance(value, int) and abs(value) < MAX_VALUE:
                return int(value)
    raise ValueError


def facts_json(facts: DocumentFacts) -> dict[str, Any]:
    """Return facts as JSON, clean and each within its bound."""
    return {
        name: _bounded(getattr(facts, name), fact)
        for name, fact in FACTS.items()
        if name not in OF_SERVER
    }


def _bounded(value: Any, fact: Fact) -> Any:
    match fact.shape:
        case "line":
            return clip(clean_line(value), fact.max_chars)
        case "lines":
            return [clip(clean_line(item), fact.max_chars) for item in value[: fact.max_items]]
        case "headings":
            return headings_json(value[: fact.max_items])
        case _:
            return value


def read_facts(data: Values) -> dict[str, Any]:
    """Return the facts in a frame. Raises ProtocolError.

    What stands outside the fence is not among them, but for page_verdict, a key of a table.
    """
    facts = {n: _read_fact(data, n, fact) for n, fact in FACTS.items() if n not in OF_SERVER}
    if facts["page_verdict"] not in ("", *PAGE_VERDICTS):
        raise ProtocolError
    if not _MEDIA_TYPE.fullmatch(facts["media_type"]):
        facts["media_type"] = ""
    return facts


def _read_fact(data: Values, name: str, fact: Fact) -> Any:
    match fact.shape:
        case "line":
            return data.line(name, fact.max_chars)
        case "lines":
            return data.lines(name, fact.max_items, fact.max_chars)
        case "headings":
            return tuple(data.headings(name, fact.max_items))
        case "flag":
            return data.flag(name)
        case "count":
            return data.count(name, MAX_COUNT) if name in data else None
