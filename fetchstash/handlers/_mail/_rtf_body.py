"""The compressed RTF that Outlook keeps of a body ([MS-OXRTFCP]), and HTML in it ([MS-OXRTFEX])."""

import re
import struct
from dataclasses import dataclass, replace

from fetchstash.handlers._office._rtf import CHARSETS, SIGNS, SKIPPED, TOKEN, codec

_MAX_BYTES = 64 * 1024 * 1024
_MAX_DEPTH = 1_000
_HEADER = struct.Struct("<3L4x")  # sizes packed and unpacked, the kind, and a checksum
_COMPRESSED, _PLAIN = 0x75465A4C, 0x414C454D
_WINDOW = 4_096
# What the window holds at first (section 2.1.2.1).
_WINDOW_START = (
    rb"{\rtf1\ansi\mac\deff0\deftab720{\fonttbl;}{\f0\fnil \froman \fswiss \fmodern \fscript "
    rb"\fdecor MS Sans SerifSymbolArialTimes New RomanCourier{\colortbl\red0\green0\blue0"
    b"\r\n" + rb"\par \pard\plain\f0\fs20\b\i\u\tab\tx"
)


def unpacked(data: bytes) -> bytes:
    """Return the RTF of a compressed body up to the first damage, b"" if it is none at all."""
    if len(data) < _HEADER.size:
        return b""
    _, size, kind = _HEADER.unpack_from(data)
    if kind == _PLAIN:
        return data[_HEADER.size :][:size]
    return _inflated(data, min(size, _MAX_BYTES)) if kind == _COMPRESSED else b""


def _inflated(data: bytes, size: int) -> bytes:
    """Return ``size`` bytes: each bit of a control byte says whether a reference follows."""
    out = bytearray(_WINDOW_START)
    end = len(_WINDOW_START) + size
    place = _HEADER.size
    while place < len(data) and len(out) < end:
        control = data[place]
        place += 1
        for bit in range(8):
            if not control >> bit & 1:
                out += data[place : place + 1]
                place += 1
                continue
            if place + 2 > len(data):
                return bytes(out[len(_WINDOW_START) : end])
            reference = data[place] << 8 | data[place + 1]
            place += 2
            distance = (len(out) - (reference >> 4)) % _WINDOW
            length = (reference & 0xF) + 2
            if not distance or distance > len(out):
                return bytes(out[len(_WINDOW_START) : end])
            copied = bytes(out[-distance:][:length])
            # A copy may reach into what it writes.
            out += (copied * (length // len(copied) + 1))[:length]
    return bytes(out[len(_WINDOW_START) : end])


@dataclass(frozen=True, slots=True)
class _State:
    """The state that a group inherits; ``is_tag``: within what is HTML alone."""

    skipped: bool = False
    is_tag: bool = False
    for_rtf: bool = False
    lists_fonts: bool = False
    font: int = -1
    fallback_chars: int = 1


def html_within(rtf: bytes) -> str:
    """Return the HTML that an RTF document was made of (section 2.1.3), "" if it was not."""
    if not re.search(rb"\\fromhtml1?\b", rtf[:1_024]):
        return ""
    found = re.search(rb"\\ansicpg(\d{1,5})", rtf[:1_024])
    charset = codec(int(found[1])) if found else "cp1252"
    charsets: dict[int, str] = {}
    states = [_State()]
    pieces: list[str] = []
    coded = bytearray()
    is_optional = False
    to_skip = too_deep = 0

    def write(text: str) -> None:
        state = states[-1]
        if not state.skipped and (state.is_tag or not state.for_rtf):
            pieces.append(text)

    for token in TOKEN.finditer(rtf):
        word, number, code, symbol, brace, text = token.groups()
        state = states[-1]
        own = charset if state.is_tag else charsets.get(state.font, charset)
        if code is None and coded:
            write(coded.decode(own, "replace"))
            coded.clear()
        if code is not None:
            if to_skip:
                to_skip -= 1
            else:
                coded.append(int(code, 16))
        elif brace == b"{" and len(states) < _MAX_DEPTH:
            states.append(state)
        elif brace == b"{":
            too_deep += 1
        elif brace == b"}":
            to_skip, is_optional = 0, False
            if too_deep:
                too_deep -= 1
            elif len(states) > 1:
                states.pop()
        elif symbol == b"*":
            is_optional = True
        elif symbol is not None:
            write(SIGNS.get(symbol.decode("latin-1"), ""))
        elif text is not None:
            write(text[to_skip:].decode(own, "replace"))
            to_skip = max(to_skip - len(text), 0)
        elif word is not None:
            name, value = word.decode("ascii"), None if number is None else int(number)
            match name:
                case "htmltag":
                    states[-1] = replace(state, is_tag=True)
                case "htmlrtf":
                    states[-1] = replace(state, for_rtf=value != 0)
                case "fonttbl":
                    states[-1] = replace(state, skipped=True, lists_fonts=True)
                case "f" if value is not None:
                    states[-1] = replace(state, font=value)
                case "fcharset" if state.lists_fonts and value is not None and value in CHARSETS:
                    charsets[state.font] = codec(CHARSETS[value])
                case "uc" if value is not None:
                    states[-1] = replace(state, fallback_chars=max(value, 0))
                case "u" if value is not None:
                    write(chr(value % 65_536))
                    to_skip = state.fallback_chars
                case "par" | "line":
                    write("\r\n")
                case _ if is_optional or name in SKIPPED:
                    states[-1] = replace(state, skipped=True)
                case _:
                    write(SIGNS.get(name, ""))
            is_optional = False
    joined = "".join(pieces)
    return joined.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
