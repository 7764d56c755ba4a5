"""The text of an artifact, open for reading from an event loop, and grep.

Grep is a scan with RE2, whose time is linear in the text (patterns come from a model).

A match is a matching line, and a pattern never matches across lines. RE2 cannot be interrupted, so
it gets at most PIECE bytes at a time, fewer if its program is large, and a program that is too
large is refused. Between two pieces the scan looks at its deadline. A line longer than a piece is
searched in pieces that overlap by a quarter: a match longer than that may be missed there.
"""

import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock
from typing import TypeVar

from anyio import lowlevel

from fetchstash.errors import BadPattern, Call
from fetchstash.store._contract import GrepQuery, Line, Matches
from fetchstash.store._disk import translate_errors
from fetchstash.store._rank import Deadline
from fetchstash.store._text import (
    ByteSource,
    BytesSource,
    CachedSource,
    NotCached,
    StoredText,
    StrideIndex,
)
from fetchstash.store._threads import Threads
from fetchstash.text import window
from fetchstash.text.hygiene import clean_line
from fetchstash.text.ranges import Ranges

T = TypeVar("T")


class TextReader:
    """The stored text of one artifact. It stays readable if the artifact goes meanwhile.

    Every read costs one look-up in the stride index and the bytes that it returns, whatever the
    size of the text. Any store can make one: all it needs is a ByteSource. ``stored`` is the text
    beneath, for code that may block.
    """

    def __init__(
        self,
        ref: str,
        source: ByteSource,
        index: StrideIndex,
        ranges: Ranges,
        threads: Threads | None = None,
    ) -> None:
        self.ref = ref
        self.chars = index.chars
        self.lines = index.lines
        self.bytes = index.size
        self.ranges = ranges
        self.stored = StoredText(source, index)
        self._cached = StoredText(CachedSource(source), index)
        self._threads = threads or Threads()

    @classmethod
    def of(cls, ref: str, text: bytes, ranges: Ranges) -> "TextReader":
        """Return a reader of a text in memory. Indexes it first: the time grows with its size."""
        return cls(ref, BytesSource(text), StrideIndex.of(text), ranges)

    async def read_chars(self, start: int, end: int) -> str:
        """Return the characters [start, end), fewer at the end of the text."""
        return await self.read(lambda text: text.chars(start, end))

    async def char_of_line(self, line: int) -> int:
        """Return the character at which ``line`` (from 1) begins. Raises OutOfRange.

        The line after the last begins at the length of the text.
        """
        return await self.read(lambda text: text.char_of_line(line))

    async def line_of_char(self, char: int) -> int:
        """Return the line (from 1) of a character. Raises OutOfRange."""
        return await self.read(lambda text: text.line_of_char(char))

    async def grep(self, query: GrepQuery) -> Matches:
        """Search with RE2. Raises BadPattern."""
        return await self._threads.grep(
            lambda cancelled: grep(self.stored, query, self.ref, cancelled)
        )

    async def aclose(self) -> None:
        """Close the source."""
        self.stored.close()

    async def read(self, work: Callable[[StoredText], T]) -> T:
        """Return the result of ``work``: run directly if no disk is needed, else in a thread.

        Where one is, ``work`` begins anew in a thread.
        """
        # Reads that never wait would let no other task run, nor be cancelled.
        await lowlevel.checkpoint()
        try:
            with translate_errors():
                return work(self._cached)
        except NotCached:
            return await self._threads.run(lambda: work(self.stored))


WINDOW = 512 * 2**10
PIECE = 64 * 2**10
MAX_SECONDS = 2.0
MAX_MEMORY = 8 * 2**20
SMALL_PROGRAM = 250
MAX_PROGRAM = 30_000
"""In RE2's instructions. A small program takes at most 0.1 s for a PIECE; time grows with it."""
_BYTES_AN_INSTRUCTION = 96
"""Two thirds of RE2's memory are for the program, which may take a quarter of that."""

MIN_PIECE = 2**10
LINE_CHARS = 160
_MARGIN = 4 * LINE_CHARS  # bytes that surely hold the characters of a window

_COMPILING = Lock()
"""Compiling holds the interpreter: who compiles rests as long before the next may."""

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Pattern:
    """A compiled pattern. ``search`` finds the first match between two positions in bytes.

    The bytes around the positions are context for anchors. ``piece`` is how many bytes to search
    at a time.
    """

    search: Callable[[bytes, int, int], Span | None]
    piece: int


@dataclass(slots=True)
class Scan:
    """The result of a scan: the first match of each line to show, as bytes of the text.

    ``before`` and ``after`` are matches in the nearest matching lines that are not shown.
    """

    shown: list[Span] = field(default_factory=list[Span])
    before: Span | None = None
    after: Span | None = None
    total: int = 0
    stopped: str = ""


def grep(text: StoredText, query: GrepQuery, ref: str, cancelled: Callable[[], bool]) -> Matches:
    """Search one text. Raises BadPattern."""
    scan = scan_text(text, query, cancelled)
    groups = tuple(_groups(text, scan, query.context))
    return Matches(ref, groups, query.offset + 1, len(scan.shown), scan.total, scan.stopped)


def count_matches(text: str, query: GrepQuery) -> int:
    """Return the number of lines of ``text`` that match. Raises BadPattern."""
    data = text.encode("utf-8")
    stored = StoredText(BytesSource(data), StrideIndex.of(data))
    return scan_text(stored, query, lambda: False).total


def compile_pattern(query: GrepQuery) -> Pattern:
    """Compile a pattern for UTF-8 bytes. Raises BadPattern with RE2's own message."""
    import re2  # noqa: PLC0415 - not needed to start

    if "\n" in query.pattern:
        raise BadPattern(
            "The pattern holds a line feed, and a match is one line.",
            "Search for a part that stands on one line.",
        )
    pattern = query.pattern.encode("utf-8", "surrogatepass")
    options = re2.Options()
    options.log_errors = False
    # A match within one line: the text may then be searched in pieces that end at line feeds.
    # Groups would cost time, and nobody asks for them.
    options.never_nl = True
    options.never_capture = True
    options.case_sensitive = not query.ignore_case
    expression = b"(?m)" + (re2.escape(pattern) if query.literal else pattern)
    try:
        # RE2 holds the interpreter while it compiles. It gives a large program up early with little
        # memory; searching is quicker with more.
        options.max_mem = MAX_PROGRAM * _BYTES_AN_INSTRUCTION
        with _compiling():
            re2.compile(expression, options)
            options.max_mem = MAX_MEMORY
            compiled = re2.compile(expression, options)
    except re2.error as error:
        if b"too large" in error.args[0]:
            raise _too_large() from error
        message = clean_line(error.args[0].decode("utf-8", "replace"))
        raise BadPattern(
            f"RE2 does not take this pattern: {message.replace('(?m)', '', 1)}.",
            "RE2 has no look-around and no back-references; plain text: {}.",
            Call("grep", {"pattern": query.pattern, "literal": True}),
        ) from error
    finally:
        re2.purge()  # its cache would keep 128 patterns of up to MAX_MEMORY
    if compiled.programsize > MAX_PROGRAM:
        raise _too_large()

    def search(data: bytes, start: int, stop: int) -> Span | None:
        match = compiled.search(data, start, stop)
        return match.span() if match else None

    piece = PIECE * SMALL_PROGRAM // max(compiled.programsize, SMALL_PROGRAM)
    return Pattern(search, max(piece, MIN_PIECE))


@contextmanager
def _compiling() -> Generator[None]:
    """Hold the lock while a pattern is compiled, and for as long again."""
    with _COMPILING:
        began = time.thread_time()
        try:
            yield
        finally:
            time.sleep(time.thread_time() - began)


def _too_large() -> BadPattern:
    return BadPattern(
        "The pattern is too large: repetitions of repetitions or of large classes.",
        "Use smaller repetitions, or * and +.",
    )


def scan_text(text: StoredText, query: GrepQuery, cancelled: Callable[[], bool]) -> Scan:
    """Find the matching lines of a text, and count all of them unless MAX_SECONDS pass before.

    In a line that is longer than a window each place counts that the window before does not show.
    These are seconds of CPU, as Deadline counts: the same text is scanned on a busy machine.
    """
    expired = Deadline(cancelled, MAX_SECONDS)
    pattern = compile_pattern(query)
    scan = Scan()
    searched = window_end = 0  # the latter of the last place, as long as its line may go on
    for piece in _pieces(text, pattern.piece):
        data, stop = piece.data, piece.stop
        position = max(piece.start, searched - piece.base)  # pieces of a long line overlap
        while position <= stop:
            if expired():
                scan.stopped = f"after {MAX_SECONDS:g} s"
                return scan
            if window_end:
                behind = max(window_end - piece.base, position)
                feed = data.find(b"\n", position, min(behind, stop + 1))
                if feed < 0 and behind > stop:
                    break
                position, window_end = feed + 1 if feed >= 0 else behind, 0
                searched = piece.base + position
                continue
            match = pattern.search(data, position, stop)
            if match is None:
                break
            position, searched = match[0], piece.base + match[0]
            window_end = piece.base + match[1] + LINE_CHARS
            _record(scan, query, (searched, piece.base + match[1]))
    return scan


def _record(scan: Scan, query: GrepQuery, match: Span) -> None:
    if scan.total < query.offset:
        scan.before = match
    elif len(scan.shown) < query.max_matches:
        scan.shown.append(match)
    elif not scan.after:
        scan.after = match
    scan.total += 1


@dataclass(frozen=True, slots=True)
class _Piece:
    """Bytes to search: data[start:stop]. data[0] is byte ``base`` of the text.

    The bytes around them are context for anchors: data[stop] is a line feed or the next byte of the
    line. It is missing only where the text ends without a line feed.
    """

    data: bytes
    base: int
    start: int
    stop: int


def _pieces(text: StoredText, length: int) -> Iterator[_Piece]:
    """Cut a text into pieces of whole lines, and a longer line into pieces that overlap."""
    position, size = 0, text.index.size
    base, data = 0, b""
    while position < size:
        if base + len(data) < min(position + length + 1, size):
            # One byte before the piece is its context: ^ and \b look at it.
            base = max(position - 1, 0)
            data = text.read(base, base + max(WINDOW, length + 2))
        start = position - base
        limit = start + length
        if limit >= len(data):
            yield _Piece(data, base, start, len(data) - data.endswith(b"\n"))
            return
        feed = data.rfind(b"\n", start, limit)
        yield _Piece(data, base, start, limit if feed < 0 else feed)
        # Pieces of a long line overlap, so that a match across a cut is whole in the next one.
        position = base + (limit - length // 4 if feed < 0 else feed + 1)


def _groups(text: StoredText, scan: Scan, context: int) -> Iterator[tuple[Line, ...]]:
    """Put lines of context around the matches.

    A matching line that is not shown is no context: another call shows it.
    """
    matches: dict[int, list[Span]] = {}
    for span in scan.shown:
        matches.setdefault(text.line_of_byte(span[0]), []).append(span)
    low = text.line_of_byte(scan.before[0]) + 1 if scan.before else 1
    high = text.line_of_byte(scan.after[0]) - 1 if scan.after else text.index.lines
    numbers = matches.keys() | {
        n
        for line in matches
        for n in range(max(line - context, low), min(line + context, high) + 1)
    }
    group: list[Line] = []
    for number in sorted(numbers):
        if group and group[-1].number != number - 1:
            yield tuple(group)
            group = []
        places = matches.get(number, ())
        group += [_match_line(text, number, *place) for place in places] or [
            _context_line(text, number)
        ]
    if group:
        yield tuple(group)


def _context_line(text: StoredText, number: int) -> Line:
    start = text.byte_of_line(number)
    line, _, _ = text.span(start, start + _MARGIN + 1).partition("\n")
    return Line(number, window(line, 0, 0, LINE_CHARS), match=False)


def _match_line(text: StoredText, number: int, start: int, end: int) -> Line:
    end = min(end, start + _MARGIN)
    _, _, before = text.span(max(start - _MARGIN, 0), start).rpartition("\n")
    match = text.span(start, end)
    after, _, _ = text.span(end, end + _MARGIN).partition("\n")
    return Line(
        number,
        window(before + match + after, len(before), len(before) + len(match), LINE_CHARS),
        match=True,
    )
