"""The stride index: how many characters and line feeds are before each 64 KiB of a text. Pure.

With it any line or character costs one look-up and one block, whatever the size of the text. It
takes 16 bytes for each block. A character belongs to the block that holds its first byte.
"""

import codecs
from array import array
from bisect import bisect_left, bisect_right
from dataclasses import dataclass

from fetchstash.errors import BadArgument

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
        """Read what ``pack`` made. Raises ValueError on anything else."""
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
