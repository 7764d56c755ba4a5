"""A stored text, open for reading: any part of it costs one look-up in the stride index and the blocks that it lies in."""

import os
import sys
from io import FileIO
from threading import Lock

from fetchstash.errors import OutOfRange, StoreError
from fetchstash.store._stride import CONTINUATION_BYTES, STRIDE, StrideIndex

_NO_WAIT = getattr(os, "RWF_NOWAIT", 0)
MAX_CACHED_READ = 8 * STRIDE
"""In bytes: what copies and decodes in a fraction of a millisecond."""


class StoredText:
    """The file of a text and its index. All methods block; offsets count from 0, lines from 1; ranges are [start, end)."""

    def __init__(self, file: FileIO, index: StrideIndex) -> None:
        self.file = file
        self.index = index
        self._position = Lock()  # between seek and read: not every system has pread

    def close(self) -> None:
        """Close the file."""
        self.file.close()

    def read(self, start: int, end: int) -> bytes:
        """Return the bytes [start, end), fewer at the end of the file."""
        data = bytearray(max(min(end, self.index.size) - start, 0))
        filled = 0
        while filled < len(data):
            filled += self.read_into(memoryview(data)[filled:], start + filled)
        return bytes(data)

    def read_into(self, buffer: memoryview, start: int) -> int:
        """Read what fits from byte ``start`` on, and return how much that is. Raises StoreError if the file became shorter."""
        with self._position:
            self.file.seek(start)
            count = self.file.readinto(buffer)
        if not count and len(buffer):
            raise _altered()
        return count or 0

    def chars(self, start: int, end: int) -> str:
        """Return the characters [start, end), fewer at the end of the text."""
        start, end = max(start, 0), min(end, self.index.chars)
        if start >= end:
            return ""
        first, last = self.index.block_of_char(start), self.index.block_of_char(end - 1)
        data = self.read(
            first * STRIDE, (last + 1) * STRIDE + 3
        )  # the last character may end in the next block
        before = self.index.chars_before[first]
        return _decode(data)[start - before : end - before]

    def lines(self, first: int, last: int, max_chars: int) -> str:
        """Return lines ``first`` to ``last``, both included, with their line ends, at most ``max_chars`` of it."""
        first, last = max(first, 1), min(last, self.index.lines)
        if first > last or max_chars <= 0:
            return ""
        start = self.byte_of_line(first)
        end = (self.index.block_of_line(last + 1) + 1) * STRIDE
        data = self.read(
            start, min(end, start + 4 * max_chars)
        )  # a character has four bytes at the most
        return _decode(data[: _after_feeds(data, last - first + 1)])[:max_chars]

    def span(self, start: int, end: int) -> str:
        """Return the bytes [start, end) as text; characters that the range cuts are there whole."""
        start, end = max(start, 0), min(end, self.index.size)
        if start >= end:
            return ""
        from_ = max(start - 3, 0)
        data = self.read(from_, end + 3)
        left, right = start - from_, end - from_
        while left and data[left] in CONTINUATION_BYTES:
            left -= 1
        while right < len(data) and data[right] in CONTINUATION_BYTES:
            right += 1
        return _decode(data[left:right])

    def byte_of_line(self, line: int) -> int:
        """Return the byte at which ``line`` begins; the size for the line after the last. Raises OutOfRange beyond that."""
        if not 1 <= line <= self.index.lines + 1:
            raise OutOfRange(
                f"There is no line {line}: the text has {self.index.lines}.",
                "Ask for a line that is there.",
            )
        if line == 1:
            return 0
        block = self.index.block_of_line(line)
        data = self.read(block * STRIDE, (block + 1) * STRIDE)
        return block * STRIDE + _after_feeds(data, line - 1 - self.index.feeds_before[block])

    def char_of_line(self, line: int) -> int:
        """Return the character at which ``line`` begins; the length for the line after the last. Raises OutOfRange beyond that."""
        return self._chars_before(self.byte_of_line(line))

    def char_of_byte(self, byte: int) -> int:
        """Return the character that ``byte``, or the last one before the end, belongs to."""
        return max(self._chars_before(min(byte, self.index.size - 1) + 1) - 1, 0)

    def line_of_char(self, char: int) -> int:
        """Return the line on which character ``char`` stands; the text's length is taken, too. Raises OutOfRange beyond that."""
        if not 0 <= char <= self.index.chars:
            raise OutOfRange(
                f"There is no character {char}: the text has {self.index.chars}.",
                "Ask for one that is there.",
            )
        block = self.index.block_of_char(char)
        start = block * STRIDE
        before = _decode(self.read(start, start + STRIDE + 3))[
            : char - self.index.chars_before[block]
        ]
        return self.index.feeds_before[block] + before.count("\n") + 1

    def line_of_byte(self, byte: int) -> int:
        """Return the line on which ``byte`` stands."""
        block = min(byte // STRIDE, len(self.index.feeds_before) - 1)
        return self.index.feeds_before[block] + self.read(block * STRIDE, byte).count(b"\n") + 1

    def _chars_before(self, byte: int) -> int:
        """Return how many characters begin before ``byte``."""
        block = min(byte // STRIDE, len(self.index.chars_before) - 1)
        return self.index.chars_before[block] + _count(self.read(block * STRIDE, byte))


class NotCached(Exception):
    """What was asked for cannot be had without waiting for the disk."""


class CachedText(StoredText):
    """The same text, as far as the system's page cache has it: every read returns at once, or raises NotCached.

    Only Linux can tell (RWF_NOWAIT, preadv2(2)), and not on every file system.
    """

    def read(self, start: int, end: int) -> bytes:
        """Return the bytes [start, end), fewer at the end of the file; nothing over MAX_CACHED_READ."""
        size = max(min(end, self.index.size) - start, 0)
        if sys.platform != "linux" or not _NO_WAIT or size > MAX_CACHED_READ:
            raise NotCached
        data = bytearray(size)
        try:
            count = os.preadv(self.file.fileno(), [data], start, _NO_WAIT)
        except OSError as error:
            raise NotCached from error
        if count < size:
            raise NotCached
        return bytes(data)


def _after_feeds(data: bytes, feeds: int) -> int:
    """Return how many bytes there are up to and with this many line feeds; all where there are not so many."""
    pieces = data.split(b"\n", feeds)
    return len(data) - len(pieces[-1]) if len(pieces) > feeds else len(data)


def _decode(data: bytes) -> str:
    """Decode what was read between two bytes: halves of characters at both ends are left out."""
    text = data.lstrip(CONTINUATION_BYTES)
    try:
        return text.decode("utf-8")
    except UnicodeDecodeError as error:
        if error.end == len(text) and error.reason == "unexpected end of data":
            return text[: error.start].decode("utf-8")
        raise _altered() from error


def _count(data: bytes) -> int:
    """Return how many characters begin in ``data``."""
    return len(data) if data.isascii() else len(data.translate(None, CONTINUATION_BYTES))


def _altered() -> StoreError:
    return StoreError(
        "The stored text was altered after it was stored.",
        "Fetch the document again, or run `fetchstash doctor --repair` to remove what is damaged.",
    )
