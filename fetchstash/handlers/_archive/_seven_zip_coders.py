"""Decompressors and filters of 7z archives, as streams (Methods.txt of the LZMA SDK)."""

import bz2
import lzma
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from fetchstash.handlers._reasons import Reason
from fetchstash.handlers._shared._zip import inflated

# Each filter for machine code has an old and a new number.
_FILTERS = {
    b"\3\3\1\3": lzma.FILTER_X86, b"\4": lzma.FILTER_X86,
    b"\3\3\2\5": lzma.FILTER_POWERPC, b"\5": lzma.FILTER_POWERPC,
    b"\3\3\4\1": lzma.FILTER_IA64, b"\6": lzma.FILTER_IA64,
    b"\3\3\5\1": lzma.FILTER_ARM, b"\7": lzma.FILTER_ARM,
    b"\3\3\7\1": lzma.FILTER_ARMTHUMB, b"\x08": lzma.FILTER_ARMTHUMB,
    b"\3\3\x08\5": lzma.FILTER_SPARC, b"\x09": lzma.FILTER_SPARC,
}  # fmt: skip
_AES = b"\6\xf1\7\1"
_REASONS = {
    b"\3\4\1": Reason.BY_PPMD,
    b"\3\3\1\x1b": Reason.BY_BCJ2,
    b"\4\1\x09": Reason.BY_DEFLATE64,
    b"\x0a": Reason.BY_ARM64,
}
_STEP = 64 * 1024
_SMALLEST_DICTIONARY = 4_096
# Each step of a chain may read one piece ahead.
_AHEAD = 32 * _STEP


@dataclass(frozen=True, slots=True)
class Coder:
    """A step of unpacking: the method, its properties, and its numbers of inputs and outputs."""

    method: bytes
    properties: bytes
    inputs: int = 1
    outputs: int = 1


class _Engine(Protocol):
    """The interface of lzma's and bz2's decompressors."""

    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    def decompress(self, data: bytes, max_length: int = -1) -> bytes: ...


def unread(coders: Sequence[Coder]) -> Reason | None:
    """Return the reason why a block of these coders is not read, None if it is."""
    if any(coder.method == _AES for coder in coders):
        return Reason.IS_ENCRYPTED
    strange = next((coder for coder in coders if coder.method not in _DECODERS), None)
    return _REASONS.get(strange.method, Reason.BY_UNKNOWN) if strange else None


def unpacked(coders: Sequence[Coder], packed: Iterator[bytes], size: int) -> Iterator[bytes]:
    """Yield the unpacked data in pieces. Raises NoText if they are damaged.

    ``size`` is how many bytes the caller reads; it bounds the dictionaries.
    """
    pieces = packed
    try:
        for coder in coders:
            pieces = _DECODERS[coder.method](coder.properties, size, pieces)
        yield from pieces
    except (lzma.LZMAError, zlib.error, OSError, EOFError, ValueError, IndexError, struct.error):
        raise Reason.DAMAGED_ARCHIVE.error() from None


def _lzma1(properties: bytes, size: int, pieces: Iterator[bytes]) -> Iterator[bytes]:
    number, dictionary = struct.unpack("<BL", properties)
    own = {"lc": number % 9, "lp": number // 9 % 5, "pb": number // 45}
    return _pumped(
        _decompressor({"id": lzma.FILTER_LZMA1, "dict_size": _dictionary(dictionary, size), **own}),
        pieces,
    )


def _lzma2(properties: bytes, size: int, pieces: Iterator[bytes]) -> Iterator[bytes]:
    dictionary = (2 | properties[0] & 1) << properties[0] // 2 + 11
    return _pumped(
        _decompressor({"id": lzma.FILTER_LZMA2, "dict_size": _dictionary(dictionary, size)}), pieces
    )


def _dictionary(stated: int, size: int) -> int:
    """Return the size of a dictionary: no reference reaches back beyond the unpacked bytes."""
    return max(min(stated, size + _AHEAD), _SMALLEST_DICTIONARY)


def _decompressor(*filters: dict[str, int]) -> _Engine:
    return lzma.LZMADecompressor(lzma.FORMAT_RAW, filters=filters)


def _filtered(pieces: Iterator[bytes], **name: int) -> Iterator[bytes]:
    """Run a filter alone.

    liblzma takes one only before a compressor, so the data are wrapped in uncompressed LZMA2.
    """
    return _pumped(
        _decompressor(name, {"id": lzma.FILTER_LZMA2, "dict_size": _SMALLEST_DICTIONARY}),
        _stored(pieces),
    )


def _code_filtered(
    number: int, _properties: bytes, _size: int, pieces: Iterator[bytes]
) -> Iterator[bytes]:
    return _filtered(pieces, id=number)


def _stored(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Yield uncompressed LZMA2 chunks; the first resets the dictionary, and 0 ends them."""
    control = 1
    for piece in pieces:
        for at in range(0, len(piece), _STEP):
            data = piece[at : at + _STEP]
            yield struct.pack(">BH", control, len(data) - 1) + data
            control = 2
    yield b"\0"


def _pumped(engine: _Engine, pieces: Iterator[bytes]) -> Iterator[bytes]:
    for piece in pieces:
        data = piece
        while not engine.eof:
            yield engine.decompress(data, _STEP)
            data = b""
            if engine.needs_input:
                break


_Decoder = Callable[[bytes, int, Iterator[bytes]], Iterator[bytes]]
_DECODERS: Mapping[bytes, _Decoder] = {
    b"\0": lambda _, __, pieces: pieces,
    b"\3\1\1": _lzma1,
    b"\x21": _lzma2,
    b"\4\1\x08": lambda _, __, pieces: inflated(pieces),
    b"\4\2\2": lambda _, __, pieces: _pumped(bz2.BZ2Decompressor(), pieces),
    b"\3": lambda properties, _, pieces: _filtered(
        pieces, id=lzma.FILTER_DELTA, dist=properties[0] + 1
    ),
    **{method: partial(_code_filtered, number) for method, number in _FILTERS.items()},
}
