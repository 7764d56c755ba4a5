"""Windows of a text by lines, from any size."""

from itertools import pairwise
from typing import Any

from fetchstash.errors import OutOfRange
from fetchstash.store import TextReader

LINE_CHARS = 2_000
"""Longer lines are cut; the rest is asked for in pieces."""
WINDOW_LINES = 500
_AT_ONCE = 2**18


async def line_window(reader: TextReader, start: int, count: int) -> dict[str, Any]:
    """Return ``count`` lines from ``start`` (from 1), each cut at LINE_CHARS.

    ``cut`` holds the cut ones by their place in ``lines``: where they begin and end, in characters
    of the text.
    """
    start = max(start, 1)
    end = min(start + min(count, WINDOW_LINES), reader.lines + 1)
    lines: list[str] = []
    cut: dict[int, tuple[int, int]] = {}
    if start > reader.lines:
        return {"start": start, "lines": lines, "cut": cut, "total": reader.lines}
    first, last = await reader.char_of_line(start), await reader.char_of_line(end)
    if last - first <= _AT_ONCE:
        at = first
        for line in (await reader.read_chars(first, last)).removesuffix("\n").split("\n"):
            _add(lines, cut, line[: LINE_CHARS + 1], at, len(line))
            at += len(line) + 1
    else:
        bounds = [await reader.char_of_line(line) for line in range(start, end + 1)]
        for at, following in pairwise(bounds):
            line = await reader.read_chars(at, min(following, at + LINE_CHARS + 1))
            _add(lines, cut, line.removesuffix("\n"), at, following - at - 1)
    return {"start": start, "lines": lines, "cut": cut, "total": reader.lines}


def _add(
    lines: list[str], cut: dict[int, tuple[int, int]], line: str, at: int, length: int
) -> None:
    if length > LINE_CHARS:
        cut[len(lines)] = (at, at + length)
    lines.append(line[:LINE_CHARS])


async def lines_of(reader: TextReader, span: list[Any]) -> tuple[int, int] | None:
    """Return a span of the log of calls in lines; None for one that is not in the text any more."""
    match span:
        case ["chars", int(first), int(last)]:
            try:
                end = max(first, min(last, reader.chars) - 1)
                return await reader.line_of_char(first), await reader.line_of_char(end)
            except OutOfRange:
                return None
        case ["lines", int(first), int(last)]:
            return first, last
        case ["pages", int(page), _] if page <= len(reader.ranges.pages):
            return None
        case _:
            return None
