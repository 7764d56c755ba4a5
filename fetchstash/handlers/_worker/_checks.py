"""Values of frames, checked one by one. Each function raises ProtocolError for anything else.

Strings are cleaned, because JSON can spell lone surrogates.
"""

from collections.abc import Mapping
from typing import Any, get_args

from fetchstash.errors import FetchstashError
from fetchstash.handlers._reasons import Cause, Reason, ReasonTable, Value, is_known
from fetchstash.handlers._registry import built_in, reasons
from fetchstash.handlers._worker._frames import MAX_LINE, MAX_TITLE, ProtocolError
from fetchstash.text.hygiene import clean, clean_line
from fetchstash.text.ranges import Heading, Unit

MAX_NUMBER = 2**53


def member(data: dict[str, Any], name: str) -> dict[str, Any]:
    """Return an object."""
    value = data.get(name)
    if not isinstance(value, dict):
        raise ProtocolError
    return value  # pyright: ignore[reportUnknownVariableType] - its values are checked one by one


def count(data: dict[str, Any], name: str) -> int:
    """Return a number from 0."""
    value = data.get(name)
    if type(value) is not int or not 0 <= value < MAX_NUMBER:
        raise ProtocolError
    return value


def flag(data: dict[str, Any], name: str) -> bool:
    """Return true or false."""
    value = data.get(name)
    if not isinstance(value, bool):
        raise ProtocolError
    return value


def string(value: Any, max_chars: int) -> str:
    """Return ``value`` if it is a string, as it is."""
    if not isinstance(value, str) or len(value) > max_chars:
        raise ProtocolError
    return value


def line(data: dict[str, Any], name: str, max_chars: int = MAX_LINE) -> str:
    """Return text on one line, clean."""
    return clean_line(string(data.get(name), max_chars))


def lines(data: dict[str, Any], name: str, max_items: int, max_chars: int) -> tuple[str, ...]:
    """Return a list of lines, clean."""
    return tuple(clean_line(string(item, max_chars)) for item in _items(data, name, max_items))


def text(data: dict[str, Any], name: str, max_chars: int) -> str:
    """Return text of many lines, clean."""
    return clean(string(data.get(name), max_chars)).text


def headings(data: dict[str, Any], name: str, max_items: int) -> list[Heading]:
    """Return an outline."""
    return [_heading(item) for item in _items(data, name, max_items)]


def _items(data: dict[str, Any], name: str, max_items: int) -> list[Any]:
    value: Any = data.get(name)
    if not isinstance(value, list) or len(value) > max_items:  # pyright: ignore[reportUnknownArgumentType]
        raise ProtocolError
    return value  # pyright: ignore[reportUnknownVariableType]


def _heading(item: Any) -> Heading:
    match item:
        case [str(title), int(level), unit, int(start)] if (
            unit in get_args(Unit) and 0 <= level < MAX_NUMBER and 0 <= start < MAX_NUMBER
        ):
            return Heading(clean_line(title[:MAX_TITLE]), level, unit, start)
        case _:
            raise ProtocolError


MAX_VALUE = 2**63


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
            if why.names:
                raise ValueError
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
