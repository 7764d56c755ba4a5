"""Values of JSON: numbers keep their spelling; picked by pointer or path."""

import json
import re
from typing import Any, TypeGuard

from fetchstash.handlers._data import DataReason
from fetchstash.handlers._data._json_layout import lay_out
from fetchstash.handlers._reasons import Reason

# Python reads integers of up to 4,300 digits, a guard against quadratic time; JSON allows more.
_MAX_DIGITS = 4_000
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?", re.ASCII)


class Spelled(float):
    """A number that remembers its spelling: 1.10 is not printed as 1.1."""

    __slots__ = ("spelling",)
    spelling: str

    @classmethod
    def read(cls, spelling: str) -> "Spelled":
        """Return the number that ``spelling`` stands for."""
        number = cls(spelling)
        number.spelling = spelling
        return number


def _integer(spelling: str) -> int | Spelled:
    return (
        int(spelling)
        if len(spelling) < _MAX_DIGITS and spelling != "-0"
        else Spelled.read(spelling)
    )


_DECODER = json.JSONDecoder(
    parse_float=Spelled.read, parse_int=_integer, parse_constant=Spelled.read
)


def is_object(value: Any) -> TypeGuard[dict[str, Any]]:
    """Return whether a JSON value is an object, whose keys are strings."""
    return isinstance(value, dict)


def is_array(value: Any) -> TypeGuard[list[Any]]:
    """Return whether a JSON value is an array."""
    return isinstance(value, list)


def read(text: str) -> Any:
    """Return the value of a JSON text. Raises ValueError, RecursionError above 1,000 levels."""
    return _DECODER.decode(text.lstrip("\ufeff"))


def number(text: str) -> int | Spelled | None:
    """Return the number with this spelling, None if it is none (RFC 8259, section 6)."""
    if not _NUMBER.fullmatch(text):
        return None
    return _integer(text) if text.lstrip("-").isdigit() else Spelled.read(text)


def write(value: Any) -> str:
    """Return ``value`` as JSON on one line, with the spelling of numbers kept."""
    if is_object(value):
        return "{" + ", ".join(f"{write(k)}: {write(v)}" for k, v in value.items()) + "}"
    if is_array(value):
        return "[" + ", ".join(write(item) for item in value) + "]"
    if isinstance(value, Spelled):
        return value.spelling
    return json.dumps(value, ensure_ascii=False)


def pick(value: Any, path: str) -> Any:
    """Return the part of ``value`` that ``path`` points at.

    A JSON pointer (RFC 6901) begins with "/", a JSONPath (RFC 9535) with "$"; anything else is a
    key of the outermost object. A path that may match several values returns their list. Raises
    OutOfRange if nothing matches, BadArgument if it is no path.
    """
    if path.startswith("$"):
        return _by_path(value, path)
    if not path:
        return value
    names = path.split("/")[1:] if path.startswith("/") else [path]
    for name in names:
        value = _step(
            value,
            name.replace("~1", "/").replace("~0", "~") if path.startswith("/") else name,
            path,
        )
    return value


def _step(value: Any, name: str, path: str) -> Any:
    if is_object(value) and name in value:
        return value[name]
    # RFC 6901, section 4: an index has no sign and no leading zero.
    if (
        is_array(value)
        and re.fullmatch(r"0|[1-9]\d{0,9}", name, re.ASCII)
        and int(name) < len(value)
    ):
        return value[int(name)]
    if is_object(value):
        raise DataReason.NOT_IN_OBJECT.error(name=path, count=len(value))
    if is_array(value):
        raise DataReason.NOT_IN_ARRAY.error(name=path, count=len(value))
    raise DataReason.NOT_IN_VALUE.error(name=path)


def _by_path(value: Any, path: str) -> Any:
    from jsonpath import JSONPath, JSONPathEnvironment  # noqa: PLC0415 - heavy
    from jsonpath.exceptions import JSONPathError  # noqa: PLC0415

    try:
        query = JSONPathEnvironment(strict=True).compile(path)
        values: list[Any] = query.findall(value)
    except JSONPathError as error:
        raise DataReason.BAD_JSONPATH.error(name=path) from error
    if not values:
        raise Reason.NOTHING_THERE.error(name=path)
    return values[0] if isinstance(query, JSONPath) and query.singular_query() else values


def on_lines(value: Any) -> str:
    """Return ``value`` as JSON, laid out on lines."""
    return "".join(lay_out(write(value)))
