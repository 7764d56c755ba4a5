"""RTF as Outlook compresses it, with a dictionary of 4,096 bytes ([MS-OXRTFCP])."""

import struct

from fetchstash.errors import FetchstashError
from fetchstash.handlers._reasons import Reason

_COMPRESSED, _PLAIN = 0x75465A4C, 0x414C454D
_HEADER = struct.Struct("<4L")
_MAX_BYTES = 64 * 2**20
_WINDOW = 4_096
# Section 2.1.2.1: the initial content of the dictionary.
_INITIAL = (
    rb"{\rtf1\ansi\mac\deff0\deftab720{\fonttbl;}"
    rb"{\f0\fnil \froman \fswiss \fmodern \fscript \fdecor MS Sans SerifSymbolArial"
    rb"Times New RomanCourier{\colortbl\red0\green0\blue0"
    b"\r\n"
    rb"\par \pard\plain\f0\fs20\b\i\u\tab\tx"
)


def decompress(data: bytes) -> bytes:
    """Return the RTF. Raises NoText if the data are none or are damaged."""
    if len(data) < _HEADER.size:
        raise _damaged()
    _, size, kind, _ = _HEADER.unpack_from(data)
    if size > _MAX_BYTES:
        raise Reason.RTF_LARGE.error(limit=_MAX_BYTES)
    if kind == _PLAIN:
        return data[_HEADER.size : _HEADER.size + size]
    if kind != _COMPRESSED:
        raise _damaged()
    return _decompressed(data, size)


def _decompressed(data: bytes, size: int) -> bytes:
    """Return the output of the tokens (section 2.2.2.1).

    A byte of flags precedes eight tokens: a byte, or place and length in the dictionary. The
    dictionary is a ring of the last output, so references are taken from the end of the output.
    """
    written = bytearray(_INITIAL)
    place = _HEADER.size
    while len(written) - len(_INITIAL) < size and place < len(data):
        flags = data[place]
        place += 1
        for bit in range(8):
            if not flags >> bit & 1:
                written += data[place : place + 1]
                place += 1
                continue
            token = int.from_bytes(data[place : place + 2], "big")
            place += 2
            back = (len(written) - (token >> 4)) % _WINDOW
            if place > len(data) or not back:  # a reference to the current place ends the data
                return bytes(written[len(_INITIAL) :][:size])
            for _ in range((token & 0x0F) + 2):
                written.append(written[-back] if back <= len(written) else 0x20)
    return bytes(written[len(_INITIAL) :][:size])


def _damaged() -> FetchstashError:
    return Reason.RTF_DAMAGED.error()
