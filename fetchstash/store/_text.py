"""A stored text: the index of its characters and lines, and slices of any unit.

With it any line or character costs one look-up and one block, whatever the size of the text. It
takes 16 bytes for each block. A character belongs to the block that holds its first byte.
"""

import codecs
import os
import sys
from array import array
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from threading import Lock
from typing import Protocol

from fetchstash.errors import BadArgument, OutOfRange, StoreError
from fetchstash.store._disk import REPAIR

STRIDE = 64 * 2**10
CONTINUATION_BYTES = bytes(b for b in range(256) if b & 0xC0 == 0x80)


@dataclass(frozen=True, slots=True)
class StrideIndex:
    """Counts before each block of a text, and of all of it.

    ``lines`` counts a last line without a line end, as `grep -n` does.
    """

    size: int
    chars: int
    lines: int
    chars_before: "array[int]"
    feeds_before: "array[int]"

    @classmethod
    def of(cls, text: bytes) -> "StrideIndex":
        """Index a text that is in memory. Raises BadArgument where it is no UTF-8."""
        builder = StrideBuilder()
        try:
            for start in range(0, len(text), STRIDE):
                builder.add(text[start : start + STRIDE])
            return builder.finish()
        except UnicodeDecodeError as error:
            raise BadArgument("The text is no UTF-8.", "Put text as UTF-8.") from error

    def block_of_char(self, char: int) -> int:
        """Return the block in which a character (from 0) begins; past the end the last block."""
        return max(bisect_right(self.chars_before, char) - 1, 0)

    def block_of_line(self, line: int) -> int:
        """Return the block with the line feed before ``line`` (from 1); for line 1 the first."""
        return max(bisect_left(self.feeds_before, line - 1) - 1, 0)

    def pack(self) -> bytes:
        """Return both columns as bytes: unsigned 64-bit, in the byte order of this machine."""
        return self.chars_before.tobytes() + self.feeds_before.tobytes()

    @classmethod
    def unpack(cls, size: int, chars: int, lines: int, packed: bytes) -> "StrideIndex":
        """Parse the output of ``pack``. Raises ValueError on anything else."""
        half = len(packed) // 2
        columns = array("Q", packed[:half]), array("Q", packed[half:])
        if len(columns[0]) != max(-(-size // STRIDE), 1) or len(columns[0]) != len(columns[1]):
            raise ValueError(f"{len(packed)} bytes are no stride index of a text of {size} bytes")
        return cls(size, chars, lines, *columns)


class StrideBuilder:
    """Builds the index out of blocks of STRIDE bytes; the last may be shorter."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._size = self._chars = self._feeds = 0
        self._open_line = False
        self._chars_before = array("Q")
        self._feeds_before = array("Q")

    def add(self, block: bytes) -> None:
        """Count one block. Raises UnicodeDecodeError where the text is no UTF-8."""
        # Whether the first byte of this block's first character was in the block before.
        begun = bool(self._decoder.getstate()[0])
        self._chars_before.append(self._chars + begun)
        self._feeds_before.append(self._feeds)
        self._chars += len(self._decoder.decode(block))
        self._feeds += block.count(b"\n")
        self._size += len(block)
        self._open_line = not block.endswith(b"\n")

    def finish(self) -> StrideIndex:
        """Return the index. Raises UnicodeDecodeError where the text ends inside a character."""
        self._decoder.decode(b"", final=True)
        if not self._chars_before:
            self.add(b"")
            self._open_line = False
        return StrideIndex(
            self._size,
            self._chars,
            self._feeds + self._open_line,
            self._chars_before,
            self._feeds_before,
        )


_NO_WAIT = getattr(os, "RWF_NOWAIT", 0)
MAX_CACHED_READ = 512 * 2**10
"""In bytes: copying and decoding that much takes a fraction of a millisecond."""


class ByteSource(Protocol):
    """Immutable bytes that can be read in ranges, from any thread."""

    def read(self, start: int, end: int) -> bytes:
        """Return the bytes [start, end), fewer at the end of the source. May block."""
        ...

    def close(self) -> None:
        """Release the source. A read that runs meanwhile in another thread ends first."""
        ...


class BytesSource:
    """A ByteSource over bytes in memory."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def read(self, start: int, end: int) -> bytes:
        return self._data[start:end]

    def close(self) -> None:
        """Do nothing: no file is open."""


class NotCached(Exception):
    """The bytes cannot be had without waiting for a disk or a network."""


class FileSource:
    """A ByteSource over an open file, which stays readable after an unlink."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._lock = Lock()  # a read must not meet the number of another file, opened after close

    def read(self, start: int, end: int) -> bytes:
        with self._lock:
            self._check_open()
            data = self._read_at(start, end - start)
            # pread(2) may return less than is there.
            while 0 < len(data) < end - start:
                more = self._read_at(start + len(data), end - start - len(data))
                if not more:
                    break
                data += more
        return data

    def read_cached(self, start: int, end: int) -> bytes:
        """Return the bytes if the page cache has them.

        Raises NotCached otherwise, and for large ranges.

        Only Linux can tell (RWF_NOWAIT, preadv2(2)), and not on every file system.
        """
        if sys.platform != "linux" or not _NO_WAIT or end - start > MAX_CACHED_READ:
            raise NotCached
        data = bytearray(max(end - start, 0))
        if not self._lock.acquire(blocking=False):
            raise NotCached
        try:
            self._check_open()
            count = os.preadv(self._fd, [data], start, _NO_WAIT)
        except OSError as error:
            raise NotCached from error
        finally:
            self._lock.release()
        # The rest is not in the page cache (preadv2(2)), or behind the end: a thread finds out.
        if count < len(data):
            raise NotCached
        return bytes(data)

    def close(self) -> None:
        """Close the file. Closing twice is no error."""
        with self._lock:
            if self._fd >= 0:
                os.close(self._fd)
            self._fd = -1

    def _check_open(self) -> None:
        if self._fd < 0:
            raise StoreError("The text is closed.", "Open it again.")

    def _read_at(self, start: int, count: int) -> bytes:
        if sys.platform != "win32":
            return os.pread(self._fd, max(count, 0), start)
        os.lseek(self._fd, start, os.SEEK_SET)
        return os.read(self._fd, max(count, 0))


class CachedSource:
    """A source as far as its bytes are at hand: a read returns at once or raises NotCached.

    A source that may wait has ``read_cached``. Any other is taken to be in memory.
    """

    def __init__(self, source: ByteSource) -> None:
        self.read = getattr(source, "read_cached", source.read)

    def close(self) -> None:
        """No-op: the source belongs to the caller."""


_KEPT_BYTES = 3 * STRIDE
"""A longer read is part of a scan, which reads nothing twice."""


class StoredText:
    """The bytes of a text and its stride index. All methods may block.

    Offsets count from 0, lines from 1; ranges are [start, end). The last short read stays in
    memory, and where the last line began: a slice looks up one block again and again.
    """

    def __init__(self, source: ByteSource, index: StrideIndex) -> None:
        self.index = index
        self._source = source
        self._last: tuple[int, bytes] = (0, b"")
        self._last_line = (1, 0)

    def close(self) -> None:
        """Close the source."""
        self._last = 0, b""
        self._source.close()

    def read(self, start: int, end: int) -> bytes:
        """Return the bytes [start, end), fewer at the end. Raises StoreError if the file shrank."""
        end = min(end, self.index.size)
        if start >= end:
            return b""
        first, data = self._last
        if not first <= start <= first + len(data):
            first, data = start, b""
        known = first + len(data)
        if known < end:
            data += self._source.read(known, end)
            # The index was made of more: nobody may take half of a text for all of it.
            if len(data) < end - first:
                raise _altered()
            if len(data) <= _KEPT_BYTES:
                self._last = first, data
        return data[start - first : end - first]

    def chars(self, start: int, end: int) -> str:
        """Return the characters [start, end), fewer at the end of the text."""
        start, end = max(start, 0), min(end, self.index.chars)
        if start >= end:
            return ""
        first, last = self.index.block_of_char(start), self.index.block_of_char(end - 1)
        before = self.index.chars_before[first]
        # A character takes four bytes at the most, and the last one may end in the next block.
        most = (end - self.index.chars_before[last]) * 4 + 3
        data = self.read(first * STRIDE, last * STRIDE + min(most, STRIDE + 3))
        return _decode(data)[start - before : end - before]

    def span(self, start: int, end: int) -> str:
        """Return the bytes [start, end) as text, with the characters that the range cuts."""
        start, end = max(start, 0), min(end, self.index.size)
        if start >= end:
            return ""
        # A character has four bytes at the most (RFC 3629): three more on both sides complete any.
        from_ = max(start - 3, 0)
        data = self.read(from_, end + 3)
        left, right = start - from_, end - from_
        while left and data[left] in CONTINUATION_BYTES:
            left -= 1
        while right < len(data) and data[right] in CONTINUATION_BYTES:
            right += 1
        return _decode(data[left:right])

    def byte_of_line(self, line: int) -> int:
        """Return the byte at which ``line`` begins. Raises OutOfRange.

        The line after the last begins at the size.
        """
        if not 1 <= line <= self.index.lines + 1:
            raise OutOfRange(
                f"There is no line {line}: the text has {self.index.lines}.",
                "Ask for a line that is there.",
            )
        if line == 1:
            return 0
        if line > self.index.lines:
            return self.index.size
        block = self.index.block_of_line(line)
        start, feeds = block * STRIDE, line - 1 - self.index.feeds_before[block]
        known, byte = self._last_line
        if known <= line and start <= byte:
            start, feeds = byte, line - known
        start += _after_feeds(self.read(start, (block + 1) * STRIDE), feeds)
        self._last_line = line, start
        return start

    def char_of_line(self, line: int) -> int:
        """Return the character at which ``line`` begins, as ``byte_of_line``. Raises OutOfRange."""
        return self._chars_before(self.byte_of_line(line))

    def char_of_byte(self, byte: int) -> int:
        """Return the character that holds ``byte``; past the end the last character."""
        return max(self._chars_before(min(byte, self.index.size - 1) + 1) - 1, 0)

    def line_of_char(self, char: int) -> int:
        """Return the line of a character, or of the end of the text. Raises OutOfRange."""
        if not 0 <= char <= self.index.chars:
            raise OutOfRange(
                f"There is no character {char}: the text has {self.index.chars}.",
                "Ask for one that is there.",
            )
        if char == 0:
            return 1
        if char == self.index.chars - 1:
            return self.index.lines
        block = self.index.block_of_char(char)
        start = block * STRIDE
        before = _decode(self.read(start, start + STRIDE + 3))[
            : char - self.index.chars_before[block]
        ]
        return self.index.feeds_before[block] + before.count("\n") + 1

    def line_of_byte(self, byte: int) -> int:
        """Return the line of a byte."""
        block = min(byte // STRIDE, len(self.index.feeds_before) - 1)
        return self.index.feeds_before[block] + self.read(block * STRIDE, byte).count(b"\n") + 1

    def _chars_before(self, byte: int) -> int:
        """Return how many characters begin before ``byte``."""
        if byte >= self.index.size:
            return self.index.chars
        block = min(byte // STRIDE, len(self.index.chars_before) - 1)
        return self.index.chars_before[block] + _count(self.read(block * STRIDE, byte))


def text_by_bytes(source: ByteSource, size: int) -> StoredText:
    """Return a text that can be read by bytes: it has no index of its characters and lines."""
    return StoredText(source, StrideIndex(size, 0, 0, array("Q"), array("Q")))


def text_in_memory(text: bytes) -> StoredText:
    """Return such a text over bytes in memory."""
    return text_by_bytes(BytesSource(text), len(text))


def _after_feeds(data: bytes, feeds: int) -> int:
    """Return the length up to and with this many line feeds; all if there are fewer."""
    pieces = data.split(b"\n", feeds)
    return len(data) - len(pieces[-1]) if len(pieces) > feeds else len(data)


def _decode(data: bytes) -> str:
    """Decode bytes, without the halves of characters at both ends."""
    # A block begins and ends where it likes: halves at both ends belong to its neighbours. Anything
    # else that is no UTF-8 is damage, as put refused it.
    text = data.lstrip(CONTINUATION_BYTES)
    try:
        return text.decode("utf-8")
    except UnicodeDecodeError as error:
        if error.end == len(text) and error.reason == "unexpected end of data":
            return text[: error.start].decode("utf-8")
        raise _altered() from error


def _count(data: bytes) -> int:
    """Return how many characters begin in ``data``."""
    # bytes.translate deletes what goes on with a character, without decoding it; what is left are
    # first bytes.
    return len(data) if data.isascii() else len(data.translate(None, CONTINUATION_BYTES))


def _altered() -> StoreError:
    return StoreError(
        "The stored text was altered after it was stored.",
        "Fetch the document again, or {}.",
        REPAIR,
    )
