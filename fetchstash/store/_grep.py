"""Grep: a bounded scan with RE2, whose time is linear in the text whatever the pattern (patterns come from a model).

A match is a matching line, and a pattern never matches across lines. The text goes by in windows of whole lines; only of a line
longer than MAX_LINE a match is missed that is itself longer than OVERLAP and lies across two of its pieces.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

from fetchstash.errors import BadPattern
from fetchstash.hygiene import clean_line
from fetchstash.store._contract import GrepQuery, Line, Matches
from fetchstash.store._text import StoredText
from fetchstash.views import window

WINDOW = 2**20
MAX_LINE = 4 * 2**20
OVERLAP = 64 * 2**10
MAX_SECONDS = 2.0
MAX_PROGRAM_BYTES = 8 * 2**20
LINE_CHARS = 160
_MARGIN = 4 * LINE_CHARS  # bytes that surely hold a window's characters


@dataclass(frozen=True, slots=True)
class Hit:
    """A matching line: its number, and the bytes of the first hit in it."""

    line: int
    start: int
    end: int


@dataclass(slots=True)
class Scan:
    """What a scan found: the hits to show, the count of all, and the matching lines next to those shown (0: none)."""

    hits: list[Hit] = field(default_factory=list["Hit"])
    total: int = 0
    line_before: int = 0
    line_after: int = 0
    stopped: str = ""


def grep(text: StoredText, query: GrepQuery, ref: str) -> Matches:
    """Search one text. Raises BadPattern."""
    found = scan(text, query)
    groups = tuple(_groups(text, found, query.context))
    return Matches(ref, groups, query.offset + 1, len(found.hits), found.total, found.stopped)


class Span(Protocol):
    """Where a match lies."""

    def span(self) -> tuple[int, int]:
        """Return its first byte and the one after its last."""
        ...


Search = Callable[[bytes, int, int], Span | None]
"""Search bytes from one position to another; what lies around them is context."""


def compile_pattern(query: GrepQuery) -> Search:
    """Compile for UTF-8 bytes. Raises BadPattern with RE2's own message."""
    import re2  # noqa: PLC0415 - not needed to start

    if "\n" in query.pattern:
        raise BadPattern("The pattern holds a line feed, and a match is one line.", "Search for a part that stands on one line.")
    pattern = query.pattern.encode("utf-8", "surrogatepass")
    options = re2.Options()
    options.max_mem = MAX_PROGRAM_BYTES
    options.log_errors = False
    options.never_nl = True
    options.never_capture = True
    options.case_sensitive = not query.ignore_case
    try:
        return re2.compile(b"(?m)" + (re2.escape(pattern) if query.literal else pattern), options).search
    except re2.error as error:
        message = clean_line(error.args[0].decode("utf-8", "replace"))
        raise BadPattern(
            f"RE2 does not take this pattern: {message}.",
            "RE2 has no look-around and no back-references; for plain text set literal=true.",
        ) from error
    finally:
        re2.purge()  # its cache would keep 128 patterns of up to 8 MiB


def scan(text: StoredText, query: GrepQuery) -> Scan:
    """Find the matching lines of a text, and count all of them unless MAX_SECONDS stop it."""
    search = compile_pattern(query)
    deadline = time.monotonic() + MAX_SECONDS
    found = Scan()
    line, matched = 1, 0  # the line on which `position` stands, and the last one that matched
    for piece in _pieces(text):
        data, position, stop = piece.data, piece.start, piece.stop
        # The line feed at the end is context, so that RE2 does not take it for the end of the text.
        search_end = stop - data.endswith(b"\n", position, stop)
        while position < stop:
            if time.monotonic() > deadline:
                found.stopped = f"after {MAX_SECONDS:g} s"
                return found
            if line == matched:  # to the next line
                feed = data.find(b"\n", position, stop)
                if feed < 0:
                    break
                position, line = feed + 1, line + 1
                continue
            match = search(data, position, search_end)
            if match is None:
                line += data.count(b"\n", position, stop)
                break
            start, end = match.span()
            line += data.count(b"\n", position, start)
            position, matched = start, line
            _note(found, query, Hit(line, piece.base + start, piece.base + end))
    return found


@dataclass(frozen=True, slots=True)
class _Piece:
    """Bytes to search: data[start:stop]. The bytes around them are context for an anchor; data[0] is the text's byte ``base``."""

    data: bytes
    base: int
    start: int
    stop: int


def _pieces(text: StoredText) -> Iterator[_Piece]:
    """Cut a text into pieces of whole lines; a line longer than MAX_LINE into pieces that overlap."""
    data, base, start = b"", 0, 0
    while (read := base + len(data)) < text.index.size:
        data += text.read(read, read + WINDOW)
        stop = len(data) if base + len(data) >= text.index.size else data.rfind(b"\n", start) + 1
        whole = stop > 0
        if not whole:
            if len(data) < MAX_LINE:
                continue
            stop = len(data)
        yield _Piece(data, base, start, stop)
        keep = stop - 1 if whole else stop - OVERLAP - 1
        data, base, start = data[keep:], base + keep, 1


def _note(found: Scan, query: GrepQuery, hit: Hit) -> None:
    if found.total < query.offset:
        found.line_before = hit.line
    elif len(found.hits) < query.max_matches:
        found.hits.append(hit)
    elif not found.line_after:
        found.line_after = hit.line
    found.total += 1


def _groups(text: StoredText, found: Scan, context: int) -> Iterator[tuple[Line, ...]]:
    """Put lines of context around the hits. Matching lines that are not shown are no context: the next call shows them."""
    hits = {hit.line: hit for hit in found.hits}
    low = found.line_before + 1
    high = (found.line_after or text.index.lines + 1) - 1
    wanted = {n for line in hits for n in range(max(line - context, low), min(line + context, high) + 1)}
    group: list[Line] = []
    for number in sorted(wanted):
        if group and group[-1].number != number - 1:
            yield tuple(group)
            group = []
        group.append(_hit_line(text, hits[number]) if number in hits else _context_line(text, number))
    if group:
        yield tuple(group)


def _context_line(text: StoredText, number: int) -> Line:
    start = text.byte_of_line(number)
    line, _, _ = text.span(start, start + _MARGIN + 1).partition("\n")
    return Line(number, window(line, 0, 0, LINE_CHARS), match=False)


def _hit_line(text: StoredText, hit: Hit) -> Line:
    end = min(hit.end, hit.start + _MARGIN)
    _, _, before = text.span(max(hit.start - _MARGIN, 0), hit.start).rpartition("\n")
    inside = text.span(hit.start, end)
    after, _, _ = text.span(end, end + _MARGIN).partition("\n")
    return Line(hit.line, window(before + inside + after, len(before), len(before) + len(inside), LINE_CHARS), match=True)
