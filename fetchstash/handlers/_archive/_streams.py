"""The content of compressed files (gzip, bzip2, xz, Zstandard), in pieces of bounded size.

A file may be several streams, one after the other (RFC 1952, section 2.2), and one of nothing takes
14 to 32 bytes: so many of them that they must be nothing are refused.
"""

import bz2
import lzma
import sys
import zlib
from collections.abc import Callable, Iterator
from typing import IO, Protocol

from fetchstash.errors import NoText
from fetchstash.handlers._shared._reasons import KEPT

STEP = 64 * 1024
_STREAMS_AT_LEAST, _BYTES_A_STREAM = 1_000, 200
_LONGEST_MAGIC = 6
# RFC 8878, section 3.1.2: frames that carry no data, with a magic number of their own.
_SKIPPABLE = tuple(bytes((low, 0x2A, 0x4D, 0x18)) for low in range(0x50, 0x60))


class Unpacker(Protocol):
    """Unpacks one stream. bz2, lzma and zstd have it so."""

    @property
    def eof(self) -> bool:
        """Whether the stream has ended."""
        ...

    @property
    def needs_input(self) -> bool:
        """Whether there is nothing left to give without more data."""
        ...

    @property
    def unused_data(self) -> bytes:
        """What was read behind the end of the stream."""
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
    """Return the content of a compressed file in pieces, None for one that is not compressed.

    ``head`` are its first bytes, ``size`` is its length. Reading raises EOFError for a stream that
    is damaged or cut short, and NoText for too many streams.
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
    while data.startswith(magic):  # anything else behind a stream is padding, or is not read
        count += 1
        if count > limit:
            raise NoText(f"it is more than {limit:,} compressed streams in one file", KEPT)
        stream = unpacker()
        while not stream.eof:
            if stream.needs_input and not data and not (data := file.read(STEP)):
                raise EOFError
            try:
                piece = stream.decompress(data if stream.needs_input else b"", STEP)
            except MemoryError:
                raise
            except Exception as error:  # each library has a class of its own
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
