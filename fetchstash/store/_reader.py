"""The text of an artifact, open for reading from an event loop."""

from collections.abc import Callable
from typing import TypeVar

from anyio import CapacityLimiter, lowlevel, to_thread

from fetchstash.ranges import Ranges
from fetchstash.store._contract import GrepQuery, Matches, Passage
from fetchstash.store._disk import told
from fetchstash.store._grep import grep
from fetchstash.store._rank import Ranking, passages
from fetchstash.store._text import CachedText, NotCached, StoredText

T = TypeVar("T")


async def in_thread(limiter: CapacityLimiter, work: Callable[[], T]) -> T:
    """Run blocking work in a thread of the store's own limiter; what the disk and SQLite raise becomes the house's errors."""

    def speaking() -> T:
        with told():
            return work()

    return await to_thread.run_sync(speaking, limiter=limiter)


class LocalReader:
    """A TextReader over a file: what it says stays true even if gc unlinks the file meanwhile."""

    def __init__(
        self, ref: str, text: StoredText, ranges: Ranges, limiter: CapacityLimiter
    ) -> None:
        self.chars = text.index.chars
        self.lines = text.index.lines
        self.bytes = text.index.size
        self.ranges = ranges
        self._ref = ref
        self._text = text
        self._cached = CachedText(text.file, text.index)
        self._limiter = limiter

    async def read_chars(self, start: int, end: int) -> str:
        """Return the characters [start, end), fewer at the end of the text."""
        return await self._read(lambda text: text.chars(start, end))

    async def read_lines(self, first: int, last: int, max_chars: int) -> str:
        """Return lines ``first`` to ``last`` (from 1, both included) with their line ends, at most ``max_chars`` of it."""
        return await self._read(lambda text: text.lines(first, last, max_chars))

    async def char_of_line(self, line: int) -> int:
        """Return the character at which ``line`` begins; the text's length for the line after the last. Raises OutOfRange."""
        return await self._read(lambda text: text.char_of_line(line))

    async def line_of_char(self, char: int) -> int:
        """Return the line on which this character stands. Raises OutOfRange."""
        return await self._read(lambda text: text.line_of_char(char))

    async def char_of_byte(self, byte: int) -> int:
        """Return the character that this byte, or the last one before the end, belongs to."""
        return await self._read(lambda text: text.char_of_byte(byte))

    async def grep(self, query: GrepQuery) -> Matches:
        """Search with RE2. Raises BadPattern."""
        return await in_thread(self._limiter, lambda: grep(self._text, query, self._ref))

    async def rank(self, query: str, max_results: int) -> tuple[Passage, ...]:
        """Return the best-matching passages, best first."""

        def work() -> tuple[Passage, ...]:
            ranking = Ranking(query)
            ranking.add(self._ref, passages(self._text))
            return tuple(ranking.best(max_results))

        return await in_thread(self._limiter, work)

    async def aclose(self) -> None:
        """Close the file."""
        self._text.close()

    async def _read(self, work: Callable[[StoredText], T]) -> T:
        """Read at once what needs no disk: going to a thread and back takes longer than most reads."""
        await lowlevel.checkpoint()
        try:
            with told():
                return work(self._cached)
        except NotCached:
            return await in_thread(self._limiter, lambda: work(self._text))
