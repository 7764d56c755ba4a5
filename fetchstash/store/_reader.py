"""The text of an artifact, open for reading from an event loop."""

from collections.abc import Callable
from typing import TypeVar

from anyio import lowlevel

from fetchstash.store._contract import GrepQuery, Matches
from fetchstash.store._disk import translate_errors
from fetchstash.store._grep import grep
from fetchstash.store._text import (
    ByteSource,
    BytesSource,
    CachedSource,
    NotCached,
    StoredText,
    StrideIndex,
)
from fetchstash.store._threads import Threads
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
        """Read a text that is in memory. Indexes it first: time goes with its size."""
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
        """Return what ``work`` reads: at once if no disk is needed, as a thread takes longer.

        Where one is, ``work`` begins anew in a thread.
        """
        await lowlevel.checkpoint()
        try:
            with translate_errors():
                return work(self._cached)
        except NotCached:
            return await self._threads.run(lambda: work(self.stored))
