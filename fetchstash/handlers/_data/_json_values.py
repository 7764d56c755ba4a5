"""Values of JSON and YAML: found by path, and the shape of all.

Numbers, strings and single spaces keep their spelling: nothing is parsed into values. A few regular
expressions do it (linear, no stack), because 5 MB must take well under two seconds. Escaped quotes
are hidden first, so that a string is a quote, no quotes, and a quote: one step of any length, with
one way to match.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from fetchstash.handlers._charset import long_lines
from fetchstash.handlers._data import DataReason
from fetchstash.handlers._reasons import Reason
from fetchstash.text.untyped import is_array, is_object

WIDTH = 160
# Deeper levels get no more indent: a million brackets would become a square of spaces.
_MAX_INDENT = 20
_BATCH_LINES = 4_096

_STRING = '"[^"]*"'
# Text to keep (with single spaces), and white space to drop. ``re`` keeps some hundred bytes for
# each repetition, so their number is bounded.
_WHITE_SPACE = re.compile(rf'((?:{_STRING}|[^\s"]+|[ ](?=[^\s\]}}])){{1,256}}|")|\s+')
# A key if there is one, a scalar or a bracket, and the comma behind it.
_STEP = re.compile(
    rf"""\s*(?:({_STRING})\s*(:\s?)\s*)?"""
    rf"""(?:({_STRING}|[^\s\[\]{{}},:"]+)|([\[{{])|([\]}}]))\s*(,?)\s*"""
)
_CLOSERS = {"[": "]", "{": "}"}
# Only hostile files need more lines for their size; the rest of such a file goes on lines of 80
# pieces.
_LINES_AT_LEAST, _CHARS_A_LINE = 50_000, 20
_PIECES = re.compile(rf'(?:{_STRING}|[^\s\[\]{{}},"]+|\s|[\[\]{{}},"]){{1,80}}')


def _hide_escapes(text: str) -> str:
    """Return ``text`` with control characters for escaped quotes and backslashes.

    The length stays. JSON has no control characters (RFC 8259, section 7), and readers see none.
    """
    text = text.replace("\x01", "").replace("\x02", "")
    return text.replace("\\\\", "\\\x01").replace('\\"', "\\\x02")


def _show_escapes(text: str) -> str:
    return text.replace("\\\x02", '\\"').replace("\\\x01", "\\\\")


def has_long_lines(text: str) -> bool:
    """Return whether a line of ``text`` is longer than WIDTH."""
    return any(long_lines(text, WIDTH))


@dataclass(slots=True)
class _Open:
    """An open container: its bracket and where that stands, and its first line, -1 if written."""

    bracket: str
    start: int
    line: int
    prefix: str


def lay_out(text: str, keys: list[tuple[str, int]] | None = None) -> Iterator[str]:
    """Yield the layout of JSON in batches of lines; a container that fits a line stands on one.

    Adds the keys of the outermost object (as spelled, with quotes) and their lines to ``keys``.
    From the first place that is no JSON the text stays unchanged, so that nothing is lost. The
    layout is at most some four times as long as the text.
    """
    text = _WHITE_SPACE.sub(r"\1", _hide_escapes(text))
    opened: list[_Open] = []
    lines: list[str] = []
    written = at = 0
    lines_left = _LINES_AT_LEAST + len(text) // _CHARS_A_LINE
    while written + len(lines) < lines_left and (step := _STEP.match(text, at)):
        key, colon, scalar, bracket, closer, comma = step.groups()
        matches = opened and _CLOSERS[opened[-1].bracket] == closer
        if (closer and (key or not matches)) or (bracket and comma):
            break
        indent = " " * min(2 * (len(opened) - bool(closer)), _MAX_INDENT)
        if key:
            if keys is not None and len(opened) == 1:
                keys.append((_show_escapes(key), written + len(lines) + 1))
            indent += key + (colon if colon == ": " else ": ")
        if scalar:
            lines.append(f"{indent}{scalar}{comma}")
            lines_left += 1
        elif bracket:
            opened.append(_Open(bracket, step.start(4), len(lines), indent))
            lines.append(indent + bracket)
        else:
            container = opened.pop()
            whole = text[container.start : step.end(5)]
            if len(whole) <= WIDTH and container.line >= 0:
                del lines[container.line :]
                lines.append(f"{container.prefix}{whole}{comma}")
            else:
                lines.append(f"{indent}{closer}{comma}")
        at = step.end()
        # A short container may still come to stand on one line.
        if len(lines) >= _BATCH_LINES and not (opened and at - opened[-1].start <= WIDTH):
            yield _show_escapes("\n".join(lines) + "\n")
            written += len(lines)
            lines.clear()
            for container in opened:
                container.line = -1
    if at < len(text):
        lines += _PIECES.findall(text, at) if written + len(lines) >= lines_left else [text[at:]]
    if lines:
        yield _show_escapes("\n".join(lines) + "\n")


def find_keys(text: str, limit: int) -> list[tuple[str, int]]:
    """Return the first keys of the outermost object, as spelled, with their lines (from 1)."""
    keys: list[tuple[str, int]] = []
    text = _hide_escapes(text.lstrip("\ufeff"))
    depth = at = counted = 0
    line = 1
    while len(keys) < limit and (step := _STEP.match(text, at)):
        if step[1] and depth == 1:
            line += text.count("\n", counted, step.start(1))
            counted = step.start(1)
            keys.append((_show_escapes(step[1]), line))
        depth += bool(step[4]) - bool(step[5])
        at = step.end()
    return keys


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
    is_plain = len(spelling) < _MAX_DIGITS and spelling != "-0"
    return int(spelling) if is_plain else Spelled.read(spelling)


_DECODER = json.JSONDecoder(
    parse_float=Spelled.read, parse_int=_integer, parse_constant=Spelled.read
)


def read(text: str) -> Any:
    """Return the value of a JSON text. Raises ValueError, RecursionError above 1,000 levels."""
    return _DECODER.decode(text.lstrip("\ufeff"))


_SPACE = re.compile(r"[ \t\n\r]*")


def _skip_space(text: str, at: int) -> int:
    space = _SPACE.match(text, at)
    return at if space is None else space.end()


def array_items(text: str, at: int) -> Iterator[Any]:
    """Yield the items of the JSON array that starts at ``at``. Raises ValueError."""
    for value, _ in _items(text, at):
        yield value


def _items(text: str, at: int) -> Iterator[tuple[Any, int]]:
    """Yield the items of an array, each with its end."""
    at = _skip_space(text, at + 1)
    while text[at : at + 1] != "]":
        value, at = _DECODER.raw_decode(text, at)
        at = _skip_space(text, at)
        yield value, at
        at = _behind_comma(text, at, "]")


def _behind_comma(text: str, at: int, closing: str) -> int:
    """Return where the next item starts, or the closing bracket stands. Raises ValueError."""
    mark = text[at : at + 1]
    if mark == ",":
        at = _skip_space(text, at + 1)
    if (mark == ",") == (text[at : at + 1] == closing):
        raise ValueError
    return at


def members(text: str, at: int) -> Iterator[tuple[str, int]]:
    """Yield the keys of the JSON object that starts at ``at``, and where their values start.

    An array is passed item by item. Raises ValueError.
    """
    at = _skip_space(text, at + 1)
    while text[at : at + 1] != "}":
        key, at = _DECODER.raw_decode(text, at)
        at = _skip_space(text, at)
        if not isinstance(key, str) or text[at : at + 1] != ":":
            raise ValueError
        at = _skip_space(text, at + 1)
        if at >= len(text):
            raise ValueError
        yield key, at
        if text[at] == "[":
            for _, behind in _items(text, at):
                at = behind
            at = text.index("]", at) + 1
        else:
            _, at = _DECODER.raw_decode(text, at)
        at = _behind_comma(text, _skip_space(text, at), "}")


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
    return value.spelling if isinstance(value, Spelled) else json.dumps(value, ensure_ascii=False)


_PLAIN_STEP = re.compile(r"\.?([^.\[\]/'\"$]+)|/([^/\[\]]+)|\.?\[([^\[\]]{0,100})\]")
_BRACKETED = re.compile(r"\*?|-?\d{1,10}|-?\d{0,10}:-?\d{0,10}|'[^']*'|\"[^\"]*\"")

_LENGTH_OF = re.compile(r"([^|]*[^|\s])\s*\|\s*length\s*")


def pick(value: Any, path: str) -> Any:
    """Return the part of ``value`` that ``path`` points at.

    A JSON pointer (RFC 6901) begins with "/", a JSONPath (RFC 9535) with "$". Other spellings are
    those of jq and of programs: ``.stations[5].name``, ``stations.5``, ``stations/5``,
    ``stations[].name``. A key of the outermost object goes first. A path that may match several
    values returns their list, and ``PATH | length`` the number of items, keys or characters. Raises
    OutOfRange if nothing matches, BadArgument if it is no path.
    """
    if not path:
        return value
    if path.startswith("/"):
        names = [name.replace("~1", "/").replace("~0", "~") for name in path.split("/")[1:]]
        for name in names:
            value = _step(value, name, path)
        return value
    if is_object(value) and path in value:
        return value[path]
    if counted_path := _LENGTH_OF.fullmatch(path):
        found = pick(value, counted_path[1])
        if not (is_object(found) or is_array(found) or isinstance(found, str)):
            raise DataReason.NOT_IN_VALUE.error(name=path)
        return len(found)
    steps = _steps(path.removeprefix("$"))
    if steps is None or (path.startswith("$") and ".." in path):
        if path.startswith("$"):
            return _by_path(value, path)
        return _step(value, path, path)
    if all(isinstance(step, str) for step in steps):
        for step in steps:
            value = _step(value, str(step), path)
        return value
    return _by_path(value, "$" + "".join(_written(step) for step in steps))


def _steps(path: str) -> list[str | tuple[str]] | None:
    """Return the names of a plain path, and as (selector,) what may match several values.

    None for what is no plain path.
    """
    steps: list[str | tuple[str]] = []
    at = len(path) if path == "." else 0
    while at < len(path):
        step = _PLAIN_STEP.match(path, at)
        if step is None:
            return None
        name, bracket = step[1] or step[2], step[3]
        if name is None and not _BRACKETED.fullmatch(bracket):
            return None
        if name == "*" or bracket in ("", "*"):
            steps.append(("*",))
        elif name is not None:
            steps.append(name)
        elif bracket[0] in "'\"":
            steps.append(bracket[1:-1])
        else:
            steps.append(bracket if bracket.isdigit() else (bracket,))
        at = step.end()
    return steps


def _written(step: str | tuple[str]) -> str:
    """Return a step as JSONPath has it."""
    if isinstance(step, tuple):
        return f"[{step[0]}]"
    return f"[{step}]" if step.isdigit() else f"[{json.dumps(step)}]"


def _step(value: Any, name: str, path: str) -> Any:
    if is_object(value):
        if name not in value:
            raise DataReason.NOT_IN_OBJECT.error(name=path, count=len(value))
        return value[name]
    if not is_array(value):
        raise DataReason.NOT_IN_VALUE.error(name=path)
    # RFC 6901, section 4: an index has no sign and no leading zero.
    is_index = re.fullmatch(r"0|[1-9]\d{0,9}", name, re.ASCII)
    if not is_index or int(name) >= len(value):
        raise DataReason.NOT_IN_ARRAY.error(name=path, count=len(value))
    return value[int(name)]


def _by_path(value: Any, path: str) -> Any:
    from jsonpath import JSONPath, JSONPathEnvironment  # noqa: PLC0415 - heavy
    from jsonpath.exceptions import JSONPathError  # noqa: PLC0415

    try:
        environment = JSONPathEnvironment(strict=True)
        environment.function_extensions |= _linear_functions()
        query = environment.compile(path)
        values: list[Any] = query.findall(value)
    except JSONPathError as error:
        raise DataReason.BAD_JSONPATH.error(name=path) from error
    if not values:
        raise Reason.NOTHING_THERE.error(name=path)
    return values[0] if isinstance(query, JSONPath) and query.singular_query() else values


def _linear_functions() -> dict[str, Any]:
    """Return ``match`` and ``search`` (RFC 9535, section 2.4) by RE2, which takes linear time."""
    import re2  # noqa: PLC0415 - for JSONPath alone
    from jsonpath.function_extensions import ExpressionType, FilterFunction  # noqa: PLC0415

    @lru_cache(maxsize=100)  # a document may bring a pattern with each of its values
    def compiled(pattern: str) -> Any:
        options = re2.Options()
        options.log_errors = False
        try:
            return re2.compile(pattern.encode("utf-8", "surrogatepass"), options)
        except re2.error:
            return None  # RFC 9535: a bad pattern matches nothing

    class Linear(FilterFunction):
        """One of the two functions; ``method`` is that of a compiled pattern."""

        @property
        def arg_types(self) -> list[ExpressionType]:
            return [ExpressionType.VALUE, ExpressionType.VALUE]

        @property
        def return_type(self) -> ExpressionType:
            return ExpressionType.LOGICAL

        def __init__(self, method: str) -> None:
            self.method = method

        def __call__(self, value: object, pattern: object) -> bool:
            if not isinstance(value, str) or not isinstance(pattern, str):
                return False
            regex = compiled(pattern)
            if regex is None:
                return False
            return getattr(regex, self.method)(value.encode("utf-8", "surrogatepass")) is not None

    return {"match": Linear("fullmatch"), "search": Linear("search")}


def on_lines(value: Any) -> str:
    """Return ``value`` as JSON, laid out on lines."""
    return "".join(lay_out(write(value)))


def value_at(value: Any, path: str) -> str:
    """Return the part of ``value`` at ``path`` on lines. Raises what ``pick`` raises."""
    return on_lines(pick(value, path))
