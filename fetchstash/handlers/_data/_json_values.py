"""Values of JSON and YAML: read, written, laid out, and the shape of all.

Numbers, strings and single spaces keep their spelling: nothing is parsed into values. A few regular
expressions do it (linear, no stack), because 5 MB must take well under two seconds. Escaped quotes
are hidden first, so that a string is a quote, no quotes, and a quote: one step of any length, with
one way to match.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from fetchstash.handlers._charset import long_lines
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


def on_lines(value: Any) -> str:
    """Return ``value`` as JSON, laid out on lines."""
    return "".join(lay_out(write(value)))
