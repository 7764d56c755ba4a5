"""The lists and the styles of a document of Word 97 to 2003 ([MS-DOC], sections 2.4.6.3 f.)."""

import struct
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from fetchstash.handlers._office._common import MAX_LABEL
from fetchstash.handlers._office._word_styles import Level, Numbering

# Offsets in the header of the places of the styles, the lists and their overrides.
_STYLES_AT, _LISTS_AT, _OVERRIDES_AT = 0xA2, 0x2E2, 0x2EA
_LIST, _LEVEL, _OVERRIDE = 28, 28, 16  # bytes (sections 2.9.147, 2.9.150 and 2.9.131)
_LEVELS = 9
_MAX_LISTS = 10_000
_MAX_STYLES = 4_000
_FONT = 0x4A4F
_SIMPLE, _LEGAL, _GOES_ON = 0x01, 0x04, 0x08
_STARTS, _REFORMS = 0x10, 0x20
# Formats of numbers ([MS-OSHARED], section 2.2.1.3) by their names in Office Open XML.
_FORMATS = {
    1: "upperRoman",
    2: "lowerRoman",
    3: "upperLetter",
    4: "lowerLetter",
    22: "decimalZero",
    23: "bullet",
    255: "none",
}
Properties = Callable[[bytes], Mapping[int, int]]
"""Reads properties of paragraphs and runs, by number."""


def lists_of(
    stream: bytes, table: bytes, properties: Properties, fonts: Sequence[str]
) -> Numbering:
    """Return the lists of a document, up to any damage. A list's name is its number from 1 on."""
    numbering = Numbering()
    with suppress(struct.error, IndexError):
        place, size = struct.unpack_from("<LL", stream, _LISTS_AT)
        reader = _Reader(table, place, properties, fonts)
        if size:
            _read_lists(reader, numbering)
        place, size = struct.unpack_from("<LL", stream, _OVERRIDES_AT)
        reader = _Reader(table, place, properties, fonts)
        if size:
            _read_overrides(reader, numbering)
    return numbering


class _Reader:
    """Reads levels of lists from a place of the table stream on."""

    def __init__(
        self, data: bytes, place: int, properties: Properties, fonts: Sequence[str]
    ) -> None:
        self._data = data
        self._place = place
        self._properties = properties
        self._fonts = fonts

    def take(self, size: int) -> bytes:
        """Return the next bytes. Raises IndexError behind the end."""
        self._place += size
        if self._place > len(self._data):
            raise IndexError
        return self._data[self._place - size : self._place]

    def take_number(self, form: str) -> int:
        """Return the next number of a format of struct."""
        return int(struct.unpack(form, self.take(struct.calcsize(form)))[0])

    def level(self) -> Level:
        """Return the next level (section 2.9.148)."""
        start, kind, flags, runs, paragraphs = struct.unpack("<lBB18xBB2x", self.take(_LEVEL))
        self.take(paragraphs)
        font = self._properties(self.take(runs)).get(_FONT, -1)
        text = self.take(2 * self.take_number("<H")).decode("utf-16-le", "replace")
        label = "".join(f"%{ord(sign) + 1}" if ord(sign) < _LEVELS else sign for sign in text)
        return Level(
            label[:MAX_LABEL],
            _FORMATS.get(kind, "decimal"),
            self._fonts[font] if 0 <= font < len(self._fonts) else "",
            start,
            is_legal=bool(flags & _LEGAL),
            restarts=not flags & _GOES_ON,
        )


def _read_lists(reader: _Reader, numbering: Numbering) -> None:
    """Read the lists, and behind all of them their levels (section 2.9.195)."""
    count = min(reader.take_number("<H"), _MAX_LISTS)
    found = [struct.unpack("<l22xBx", reader.take(_LIST)) for _ in range(count)]
    for name, flags in found:
        for level in range(1 if flags & _SIMPLE else _LEVELS):
            numbering.levels[str(name), level] = reader.level()


def _read_overrides(reader: _Reader, numbering: Numbering) -> None:
    """Read which list each number of a list means, and how it differs (section 2.9.194)."""
    count = min(reader.take_number("<L"), _MAX_LISTS)
    found = [struct.unpack("<l8xB3x", reader.take(_OVERRIDE)) for _ in range(count)]
    for number, (name, _) in enumerate(found, 1):
        numbering.abstract_of[str(number)] = str(name)
    for number, (_, differing) in enumerate(found, 1):
        reader.take(4)
        for _ in range(min(differing, _LEVELS)):
            start, bits = struct.unpack("<lL", reader.take(8))
            place = str(number), bits & 0xF
            if bits & _REFORMS:
                numbering.own[place] = reader.level()
                start = numbering.own[place].start
            if bits & _STARTS:
                numbering.first_numbers[place] = start


class Style(NamedTuple):
    """A style: its fixed number, the one that it is based on, and its own properties."""

    number: int
    base: int
    properties: Mapping[int, int]


_TITLE, _SUBTITLE, _PARAGRAPH_STYLE = 62, 74, 1
_TITLES = {_TITLE: 1, _SUBTITLE: 2}


class DocStyles:
    """The styles of paragraphs, up to any damage (section 2.9.271)."""

    def __init__(self, stream: bytes, table: bytes, properties: Properties) -> None:
        self._styles: dict[int, Style] = {}
        with suppress(struct.error, IndexError):
            place, size = struct.unpack_from("<LL", stream, _STYLES_AT)
            self._read(table[place : place + size], properties)

    def _read(self, data: bytes, properties: Properties) -> None:
        header, count, fixed = struct.unpack_from("<HHH", data)
        place = 2 + header
        for index in range(min(count, _MAX_STYLES)):
            (size,) = struct.unpack_from("<H", data, place)
            style = data[place + 2 : place + 2 + size]
            place += 2 + size + size % 2
            if size >= fixed:
                number, base = struct.unpack_from("<HH", style)
                if base & 0xF == _PARAGRAPH_STYLE:
                    own = properties(_behind_name(style, fixed))
                    self._styles[index] = Style(number & 0xFFF, base >> 4, own)

    def title_level(self, style: int) -> int:
        """Return the heading level of a title or a subtitle, 0 for any other style."""
        known = self._styles.get(style)
        return _TITLES.get(known.number, 0) if known else 0

    def value(self, style: int, number: int, default: int) -> int:
        """Return the value of a property of a style or its bases, which may form a ring."""
        for _ in range(10):
            known = self._styles.get(style)
            if known is None:
                break
            if number in known.properties:
                return known.properties[number]
            style = known.base
        return default


def _behind_name(style: bytes, fixed: int) -> bytes:
    """Return the properties of a style's paragraphs, which follow its name (section 2.9.260)."""
    (length,) = struct.unpack_from("<H", style, fixed)
    place = fixed + 2 + 2 * length + 2
    (size,) = struct.unpack_from("<H", style, place)
    return style[place + 4 : place + 2 + size]
