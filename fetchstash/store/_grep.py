"""Grep: a bounded scan with RE2, whose time is linear in the text whatever the pattern (patterns come from a model).

A match is a matching line, and a pattern never matches across lines. The text goes by in windows of
whole lines; only of a line longer than MAX_LINE a match is missed that is itself longer than
OVERLAP and lies across two of its pieces.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from fetchstash.errors import BadPattern
from fetchstash.hygiene import clean_line
from fetchstash.store._contract import GrepQuery, Line, Matches
from fetchstash.store._text import StoredText
from fetchstash.text import window

WINDOW = 256 * 2**10
MAX_LINE = 4 * 2**20
OVERLAP = 64 * 2**10
MAX_SECONDS = 2.0
MAX_PROGRAM_BYTES = 8 * 2**20
LINE_CHARS = 160
_MARGIN = 4 * LINE_CHARS  # bytes that surely hold a window's characters


Span = tuple[int, int]
Search = Callable[[bytes | bytearray, int, int], Span | None]
"""Find the first hit in bytes between two positions; what lies around them is context for an anchor."""


@dataclass(slots=True)
class Scan:
    """What a scan found, in bytes of the text: the first hit in each line to show, and in the matching lines next to those."""

    shown: list[Span] = field(default_factory=list[Span])
    before: Span | None = None
    after: Span | None = None
    total: int = 0
    stopped: str = ""


def grep(text: StoredText, query: GrepQuery, ref: str) -> Matches:
    """Search one text. Raises BadPattern."""
    found = scan(text, query)
    groups = tuple(_groups(text, found, query.context))
    return Matches(ref, groups, query.offset + 1, len(found.shown), found.total, found.stopped)


def compile_pattern(query: GrepQuery) -> Search:
    """Return what finds the pattern in UTF-8 bytes. Raises BadPattern with RE2's own message."""
    import re2  # noqa: PLC0415 - not needed to start

    if "\n" in query.pattern:
        raise BadPattern(
            "The pattern holds a line feed, and a match is one line.",
            "Search for a part that stands on one line.",
        )
    pattern = query.pattern.encode("utf-8", "surrogatepass")
    options = re2.Options()
    options.max_mem = MAX_PROGRAM_BYTES
    options.log_errors = False
    options.never_nl = True
    options.never_capture = True
    options.case_sensitive = not query.ignore_case
    try:
        compiled = re2.compile(
            b"(?m)" + (re2.escape(pattern) if query.literal else pattern), options
        )
    except re2.error as error:
        message = clean_line(error.args[0].decode("utf-8", "replace")).replace(
            "(?m)", "", 1
        )  # that one is ours
        raise BadPattern(
            f"RE2 does not take this pattern: {message}.",
            "RE2 has no look-around and no back-references; for plain text set literal=true.",
        ) from error
    finally:
        re2.purge()  # its cache would keep 128 patterns of up to 8 MiB

    def search(data: bytes | bytearray, start: int, stop: int) -> Span | None:
        match = compiled.search(data, start, stop)
        return match.span() if match else None

    return search


def scan(text: StoredText, query: GrepQuery) -> Scan:
    """Find the matching lines of a text, and count all of them unless MAX_SECONDS stop it."""
    search = compile_pattern(query)
    deadline = time.monotonic() + MAX_SECONDS
    found = Scan()
    matched = False  # inside a line that has matched already
    for piece in _pieces(text):
        data, position, stop = piece.data, piece.start, piece.stop
        while position <= stop:
            if time.monotonic() > deadline:
                found.stopped = f"after {MAX_SECONDS:g} s"
                return found
            if matched:
                feed = data.find(b"\n", position, stop + 1)
                if feed < 0:
                    break
                position, matched = feed + 1, False
                continue
            hit = search(data, position, stop)
            if hit is None:
                break
            position, matched = hit[0], True
            _note(found, query, (piece.base + hit[0], piece.base + hit[1]))
    return found


def _note(found: Scan, query: GrepQuery, hit: Span) -> None:
    if found.total < query.offset:
        found.before = hit
    elif len(found.shown) < query.max_matches:
        found.shown.append(hit)
    elif not found.after:
        found.after = hit
    found.total += 1


@dataclass(frozen=True, slots=True)
class _Piece:
    """Bytes to search: data[start:stop]. data[0] is the text's byte ``base``.

    The bytes around them are context for an anchor: data[stop] is a line feed or the line's next
    byte, and missing only where the text ends without a line feed.
    """

    data: bytes | bytearray
    base: int
    start: int
    stop: int


def _pieces(text: StoredText) -> Iterator[_Piece]:
    """Cut a text into pieces of whole lines; a line longer than MAX_LINE into pieces that overlap.

    The pieces share one buffer, which stays in the processor's cache: a piece is good until the
    next is asked for.
    """
    buffer = bytearray(WINDOW)
    base = held = start = 0
    while base + held < text.index.size:
        held += text.read_into(memoryview(buffer)[held:], base + held)
        if base + held >= text.index.size:
            last = bytes(buffer[:held])
            yield _Piece(last, base, start, held - last.endswith(b"\n"))
            return
        keep = buffer.rfind(b"\n", start, held) + 1
        if keep:
            yield _Piece(buffer, base, start, keep - 1)
        elif held < len(buffer):
            continue
        elif held < MAX_LINE:
            buffer.extend(bytes(held))
            continue
        else:
            yield _Piece(buffer, base, start, held - 1)
            keep = held - OVERLAP
        rest = buffer[keep - 1 : held]
        buffer[: len(rest)] = rest
        base, held, start = base + keep - 1, len(rest), 1


def _groups(text: StoredText, found: Scan, context: int) -> Iterator[tuple[Line, ...]]:
    """Put lines of context around the hits. Matching lines that are not shown are no context: another call shows them."""
    hits = {text.line_of_byte(start): (start, end) for start, end in found.shown}
    low = text.line_of_byte(found.before[0]) + 1 if found.before else 1
    high = text.line_of_byte(found.after[0]) - 1 if found.after else text.index.lines
    wanted = {
        n for line in hits for n in range(max(line - context, low), min(line + context, high) + 1)
    }
    group: list[Line] = []
    for number in sorted(wanted):
        if group and group[-1].number != number - 1:
            yield tuple(group)
            group = []
        group.append(
            _hit_line(text, number, *hits[number])
            if number in hits
            else _context_line(text, number)
        )
    if group:
        yield tuple(group)


def _context_line(text: StoredText, number: int) -> Line:
    start = text.byte_of_line(number)
    line, _, _ = text.span(start, start + _MARGIN + 1).partition("\n")
    return Line(number, window(line, 0, 0, LINE_CHARS), match=False)


def _hit_line(text: StoredText, number: int, start: int, end: int) -> Line:
    end = min(end, start + _MARGIN)
    _, _, before = text.span(max(start - _MARGIN, 0), start).rpartition("\n")
    hit = text.span(start, end)
    after, _, _ = text.span(end, end + _MARGIN).partition("\n")
    return Line(
        number,
        window(before + hit + after, len(before), len(before) + len(hit), LINE_CHARS),
        match=True,
    )
