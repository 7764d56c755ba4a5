"""Grep for a person: every match, each line whole, and read piece by piece.

A model is shown windows of thirty matches (fetchstash.store). Here nothing is left out, and what is
printed is not kept, so that the first lines come at once and memory stays small.
"""

from collections import deque
from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fetchstash.stash import Stash
    from fetchstash.store import GrepQuery, Pattern

PIECE_CHARS = 2**18


@dataclass(frozen=True, slots=True)
class Hit:
    """A line that is printed: its number from 1, its text, and whether it matches.

    ``after_gap``: lines before it were left out.
    """

    number: int
    text: str
    match: bool
    after_gap: bool = False


@dataclass(slots=True)
class Scanner:
    """Searches a text that is handed to it in whole lines.

    ``total`` counts the matching lines, those after ``query.max_matches`` too.
    """

    query: "GrepQuery"
    pattern: "Pattern"
    total: int = 0
    shown: int = 0
    _number: int = 0
    _printed: int = 0
    _follow: int = 0
    _before: deque[tuple[int, str]] = field(default_factory=deque[tuple[int, str]])

    def feed(self, text: str) -> Iterator[Hit]:
        """Go through more lines; the last may lack its line feed where the text ends."""
        lines = text.removesuffix("\n").split("\n")
        if not self._follow and not self._is_match(text):
            skipped = range(self._number + 1, self._number + len(lines) + 1)
            self._number += len(lines)
            context = self.query.context
            self._remember(
                zip(skipped[-context:], lines[-context:], strict=True) if context else ()
            )
            return
        for line in lines:
            self._number += 1
            yield from self._line(line)

    def _line(self, line: str) -> Iterator[Hit]:
        query = self.query
        if self._is_match(line):
            self.total += 1
            if not query.offset < self.total <= query.offset + query.max_matches:
                self._follow = 0
                return
            for number, text in self._before:
                yield self._hit(number, text, match=False)
            self._before.clear()
            self._follow = query.context
            self.shown += 1
            yield self._hit(self._number, line, match=True)
        elif self._follow:
            self._follow -= 1
            yield self._hit(self._number, line, match=False)
        else:
            self._remember([(self._number, line)])

    def _remember(
        self, lines: "Iterator[tuple[int, str]] | list[tuple[int, str]] | tuple[()]"
    ) -> None:
        for item in lines:
            self._before.append(item)
            if len(self._before) > self.query.context:
                self._before.popleft()

    def _hit(self, number: int, text: str, *, match: bool) -> Hit:
        gap = bool(self._printed) and number > self._printed + 1
        self._printed = number
        return Hit(number, text, match, gap)

    def _is_match(self, text: str) -> bool:
        data = text.encode()
        return self.pattern.search(data, 0, len(data)) is not None


def spans(pattern: "Pattern", line: str) -> Iterator[tuple[int, int]]:
    """Go through the characters [start, end) of a line that match, empty matches left out."""
    data = line.encode()
    at = 0
    while at < len(data) and (span := pattern.search(data, at, len(data))):
        start, end = span
        if end > start:
            yield (
                len(data[:start].decode(errors="replace")),
                len(data[:end].decode(errors="replace")),
            )
        at = max(end, at + 1)


async def pieces(stash: "Stash", ref: str, offset: int, chars: int) -> AsyncGenerator[str]:
    """Go through a text from a character on. It is opened once, so that a bucket reads ahead.

    Raises NoText, OutOfRange.
    """
    async with stash.documents.opened(ref) as (facts, reader):
        stash.scans.refuse_scan(facts)
        if reader is None or offset >= reader.chars:
            yield (await stash.read(ref, offset)).text  # which says what is wrong
            return
        for start in range(offset, reader.chars, chars):
            yield await reader.read_chars(start, start + chars)


async def hits(stash: "Stash", ref: str, scanner: Scanner) -> AsyncGenerator[Hit]:
    """Go through what a scanner finds in an artifact. Raises NoText."""
    rest = ""
    async for piece in pieces(stash, ref, 0, PIECE_CHARS):
        lines, feed, tail = piece.rpartition("\n")
        if not feed:
            rest += tail
            continue
        for hit in scanner.feed(rest + lines + feed):
            yield hit
        rest = tail
    for hit in scanner.feed(rest) if rest else ():
        yield hit
