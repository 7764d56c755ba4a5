"""A stored text: slices by characters, lines and units, out of any source of bytes."""

from fetchstash.errors import OutOfRange, StoreError
from fetchstash.store._disk import REPAIR
from fetchstash.store._stride import CONTINUATION_BYTES, STRIDE, ByteSource, StrideIndex

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


def _after_feeds(data: bytes, feeds: int) -> int:
    """Return the length up to and with this many line feeds; all if there are fewer."""
    pieces = data.split(b"\n", feeds)
    return len(data) - len(pieces[-1]) if len(pieces) > feeds else len(data)


def _decode(data: bytes) -> str:
    """Decode bytes, without the halves of characters at both ends."""
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
        "Fetch the document again, or {}.",
        REPAIR,
    )
