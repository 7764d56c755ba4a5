"""The content of compressed files (gzip, bzip2, xz, Zstandard), in pieces of bounded size.

A file may hold several streams in a row (RFC 1952, section 2.2). An empty stream takes 14 to 32
bytes, so a file with more streams than it can have content for is refused.
"""

import bz2
import lzma
import sys
import zlib
from collections.abc import Callable, Iterator
from typing import IO, Protocol

from fetchstash.handlers._archive import ArchiveReason

STEP = 64 * 1024
_STREAMS_AT_LEAST, _BYTES_A_STREAM = 1_000, 200
_LONGEST_MAGIC = 6
# RFC 8878, section 3.1.2: frames without data have magic numbers of their own.
_SKIPPABLE = tuple(bytes((low, 0x2A, 0x4D, 0x18)) for low in range(0x50, 0x60))


class Unpacker(Protocol):
    """Unpacks one stream: the interface of bz2, lzma and zstd."""

    @property
    def eof(self) -> bool:
        """Whether the stream has ended."""
        ...

    @property
    def needs_input(self) -> bool:
        """Whether more data are needed before there is more output."""
        ...

    @property
    def unused_data(self) -> bytes:
        """The data behind the end of the stream."""
        ...

    def decompress(self, data: bytes, max_length: int = -1, /) -> bytes:
        """Return at limit ``max_length`` bytes of what ``data`` and the data before it hold."""
        ...


class _Gunzip:
    """An Unpacker for gzip."""

    def __init__(self) -> None:
        self._stream = zlib.decompressobj(16 + zlib.MAX_WBITS)
        self.needs_input = True

    @property
    def eof(self) -> bool:
        return self._stream.eof

    @property
    def unused_data(self) -> bytes:
        return self._stream.unused_data

    def decompress(self, data: bytes, max_length: int = -1, /) -> bytes:
        piece = self._stream.decompress(self._stream.unconsumed_tail + data, max_length)
        self.needs_input = len(piece) < max_length and not self._stream.unconsumed_tail
        return piece


def unpacked(file: IO[bytes], head: bytes, size: int) -> Iterator[bytes] | None:
    """Return the content of a compressed file in pieces, None if it is not compressed.

    ``head`` are its first bytes, ``size`` is its length. Reading raises EOFError if a stream is
    damaged or cut short, NoText if there are too many streams.
    """
    for magic, unpacker in _FORMATS:
        if head.startswith(magic):
            return _streams(file, magic, unpacker, _STREAMS_AT_LEAST + size // _BYTES_A_STREAM)
    return None


def _streams(
    file: IO[bytes], magic: tuple[bytes, ...], unpacker: Callable[[], Unpacker], limit: int
) -> Iterator[bytes]:
    data = file.read(STEP)
    count = 0
    while data.startswith(magic):  # other data behind a stream are ignored
        count += 1
        if count > limit:
            raise ArchiveReason.MANY_STREAMS.error(limit=limit)
        stream = unpacker()
        while not stream.eof:
            if stream.needs_input and not data and not (data := file.read(STEP)):
                raise EOFError
            try:
                piece = stream.decompress(data if stream.needs_input else b"", STEP)
            except MemoryError:
                raise
            except Exception as error:  # each library raises its own class
                raise EOFError from error
            data = b""
            if piece:
                yield piece
        data = stream.unused_data
        if len(data) < _LONGEST_MAGIC:
            data += file.read(STEP)


def _zstd() -> Unpacker:
    if sys.version_info >= (3, 14):
        from compression import zstd  # noqa: PLC0415 - few need it
    else:
        from backports import zstd  # noqa: PLC0415
    return zstd.ZstdDecompressor()


_FORMATS: tuple[tuple[tuple[bytes, ...], Callable[[], Unpacker]], ...] = (
    ((b"\x1f\x8b",), _Gunzip),
    ((b"BZh",), bz2.BZ2Decompressor),
    ((b"\xfd7zXZ\0",), lzma.LZMADecompressor),
    ((b"\x28\xb5\x2f\xfd", *_SKIPPABLE), _zstd),
)
