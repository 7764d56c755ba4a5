"""DOC: documents of Word 97 to 2003 as Markdown ([MS-DOC]).

Places are of two kinds: a CP counts UTF-16 units of the text, an FC is an offset in the stream. The
piece table maps one to the other. Properties of paragraphs and runs are stored by FC, in pages of
512 bytes.
"""

import datetime as dt
import re
import struct
import sys
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import NamedTuple

from fetchstash.handlers._contract import Extracted, Hints, Part
from fetchstash.handlers._limits import ExtractLimits
from fetchstash.handlers._office import OLD_POWERPOINT, OLD_WORD, OfficeReason, _ppt
from fetchstash.handlers._office._common import item_mark
from fetchstash.handlers._office._doc_comments import CommentLines, comments_of
from fetchstash.handlers._office._doc_lists import DocStyles, lists_of
from fetchstash.handlers._office._fields import CHOSE_NONE, Field, Form
from fetchstash.handlers._office._word_styles import Numbering
from fetchstash.handlers._prose import Prose
from fetchstash.handlers._reasons import Reason
from fetchstash.handlers._symbols import is_symbol_font, seen, without_private
from fetchstash.handlers._zip import CompoundFile

_MAX_BYTES = 128 * 1024 * 1024
# The stream of PowerPoint 4 and 95; those of 97 may keep it beside their own.
_POWERPOINT_95 = ("PP40",)
# Properties of the whole document ([MS-OLEPS], section 3.1).
_CODEPAGE, _TITLE, _AUTHOR, _CREATED = 1, 2, 4, 12
_MAX_PROPERTIES = 1_000

_MAGIC, _WORD_97 = 0xA5EC, 0x00C1
_ENCRYPTED, _SECOND_TABLE = 0x0100, 0x0200
# Offsets in the header of the lengths of the texts (section 2.5.5) and of the places of the tables
# (section 2.5.6).
_LENGTHS_AT, _RUNS_AT, _PARAGRAPHS_AT, _PIECES_AT = 0x4C, 0xFA, 0x102, 0x1A2
_FONTS_AT = 0x112
_PAGE = 512
_MAX_PIECES = 1_000_000
# Properties of paragraphs and runs, by their numbers (section 2.6).
_HIDDEN, _IN_TABLE, _ROW_END = 0x083C, 0x2416, 0x2417
# A symbol with its font, the font of a run, and the place of a form's data.
_SYMBOL, _FONT, _DATA_AT = 0x6A09, 0x4A4F, 0x6A03
_FONT_NAME = 40  # bytes before the name of a font (section 2.9.74)
_MAX_FONTS = 10_000
_FORM_DATA = 68  # bytes before the data of a form (section 2.9.158)
_MAX_FORMS = 10_000
# Stands for the data of a form in the code of its field: one character, as in the document.
_FORM = 0x10_0000
_LIST, _LIST_LEVEL, _OUTLINE = 0x460B, 0x260A, 0x2640
_NO_LIST, _DEEPEST = 0xF801, 8
# Bytes of a property's value, by the upper three bits of its number (section 2.2.5.1); 6: the first
# byte of the value says it.
_SIZES = {0: 1, 1: 1, 2: 2, 3: 4, 4: 2, 5: 2, 7: 3}
# The fixed numbers of the styles "heading 1" to "heading 9" (section 2.9.271).
_HEADINGS = range(1, 10)
# Labels of the texts behind the main one. Macros and text boxes of headers (None) are left out.
_COMMENT = "Comment"
_TEXTS = ("", "Footnote", "Header or footer", None, _COMMENT, "Endnote", "Text box", None)

_CELL_END = "\x07"
_PARAGRAPH_END = re.compile("[\r\x07\x0c]")
_NO_MARK = re.compile("[^\r\x07\x0c\x13-\x15]")
_FIELD_MARK = re.compile("([\x13\x14\x15])")
# Line and page breaks, special hyphens, and marks of objects.
_SIGNS = str.maketrans(
    {"\x0b": "\n", "\x1e": "-", "\x1f": None, "\0": None}
    | dict.fromkeys("\x01\x02\x03\x04\x05\x06\x08")
)


class OldOfficeHandler:
    """Reads documents and presentations of Office 97 to 2003."""

    name = "old_office"

    def extract(self, source: Path, hints: Hints, limits: ExtractLimits) -> Extracted:  # noqa: ARG002 - the file is enough
        """Return the document (other containers: no text). Raises NoText if it cannot be read."""
        with source.open("rb") as file:
            data = file.read(_MAX_BYTES)
        if data.startswith(OLD_WORD):
            raise OfficeReason.OLD_WORD.error()
        if data.startswith(OLD_POWERPOINT):
            raise OfficeReason.OLD_SLIDES.error()
        container = CompoundFile(data)
        if ("EncryptedPackage",) in container.streams:  # [MS-OFFCRYPTO], section 2.3.4.4
            raise Reason.ENCRYPTED.error()
        properties = _document_properties(container.read("\x05SummaryInformation"))
        extracted = Extracted(parts=None)
        extracted.learn(
            title=str(properties.get(_TITLE, "")),
            author=str(properties.get(_AUTHOR, "")),
            published=str(properties.get(_CREATED, "")),
        )
        if ("WordDocument",) in container.streams:
            extracted.parts = _read(container, extracted)
        elif ("PowerPoint Document",) in container.streams:
            extracted.parts = _ppt.read(container, extracted)
        elif _POWERPOINT_95 in container.streams:
            raise OfficeReason.OLD_SLIDES.error()
        return extracted


def _document_properties(data: bytes) -> dict[int, str | int]:
    """Return the values of the first property set, with dates for times, up to any damage."""
    properties: dict[int, str | int] = {_CODEPAGE: 1252}
    with suppress(struct.error, OverflowError):
        (start,) = struct.unpack_from("<L", data, 44)
        (count,) = struct.unpack_from("<L", data, start + 4)
        places = dict(
            struct.unpack_from("<LL", data, start + 8 + 8 * n)
            for n in range(min(count, _MAX_PROPERTIES))
        )
        for number in sorted(places.keys() & {_CODEPAGE, _TITLE, _AUTHOR, _CREATED}):
            properties[number] = _value(data, start + places[number], f"cp{properties[_CODEPAGE]}")
    return properties


def _value(data: bytes, place: int, charset: str) -> str | int:
    kind, size = struct.unpack_from("<LL", data, place)
    match kind:
        case 0x02:  # VT_I2
            return int(size & 0xFFFF)
        case 0x1E:  # VT_LPSTR
            raw = data[place + 8 : place + 8 + size]
            charset = charset.replace("cp65001", "utf-8")
            try:
                return raw.decode(charset, "replace").rstrip("\0")
            except LookupError:
                return raw.decode("cp1252", "replace").rstrip("\0")
        case 0x1F:  # VT_LPWSTR
            wide = data[place + 8 : place + 8 + 2 * size]
            return wide.decode("utf-16-le", "replace").rstrip("\0")
        case 0x40:  # VT_FILETIME, tenths of microseconds
            (ticks,) = struct.unpack_from("<Q", data, place + 4)
            date = dt.date(1601, 1, 1) + dt.timedelta(microseconds=ticks // 10)
            return date.isoformat() if ticks else ""
        case _:
            return ""


class _Piece(NamedTuple):
    """Characters [start, end) of the text, at ``fc`` in the stream, of one or two bytes each."""

    start: int
    end: int
    fc: int
    width: int


class _Look(NamedTuple):
    """Style and properties (by number) of the FCs from ``start`` to the start of the next."""

    start: int
    style: int = 0
    properties: Mapping[int, int] = {}


def _read(file: CompoundFile, extracted: Extracted) -> Iterator[Part]:
    """Yield the parts of a document; count hidden runs. Raises NoText if it cannot be read."""
    stream = file.read("WordDocument")
    try:
        magic, version, flags = struct.unpack_from("<HH6xH", stream)
        if magic != _MAGIC or version < _WORD_97:
            raise OfficeReason.OLD_WORD.error()
        if flags & _ENCRYPTED:
            raise Reason.ENCRYPTED.error()
        table = file.read("1Table" if flags & _SECOND_TABLE else "0Table")
        pieces = _pieces(_at(stream, table, _PIECES_AT), len(stream))
        paragraphs = _looks(stream, _at(stream, table, _PARAGRAPHS_AT), of_paragraphs=True)
        runs = _looks(stream, _at(stream, table, _RUNS_AT), of_paragraphs=False)
        lengths = struct.unpack_from("<8l", stream, _LENGTHS_AT)
        fonts = _fonts(_at(stream, table, _FONTS_AT))
        signs = _Signs(fonts, file.read("Data"))
    except (struct.error, IndexError):
        raise OfficeReason.DAMAGED_DOCUMENT.error() from None
    text, hidden = _text(stream, pieces, runs, signs)
    extracted.learn(hidden_removed=hidden)
    writer = _Writer(
        styles=DocStyles(stream, table, _properties),
        numbering=lists_of(stream, table, _properties, fonts),
        forms=signs.forms,
    )
    of_comments = sum(max(length, 0) for length in lengths[: _TEXTS.index(_COMMENT)])
    comments = CommentLines(comments_of(stream, table), text, of_comments)
    start = 0
    for label, length in zip(_TEXTS, lengths, strict=True):
        end = start + max(length, 0)
        if label is not None and not (label == _COMMENT and comments.are_told):
            for place, content, mark in _split(text, start, min(end, len(text))):
                piece = pieces[max(bisect_right(pieces, place, key=_start) - 1, 0)]
                fc = piece.fc + (place - piece.start) * piece.width
                at = bisect_right(paragraphs, fc, key=_start) - 1
                look = paragraphs[at] if at >= 0 else _Look(0)
                beside = partial(comments.until, place) if not label else None
                writer.take(content, mark, look, label, beside)
                yield from writer.prose.full()
        start = end
    writer.end_table()
    yield from writer.prose.end()


def _at(stream: bytes, table: bytes, place: int) -> bytes:
    """Return the bytes of the table stream that ``place`` in the header points to."""
    offset, length = struct.unpack_from("<LL", stream, place)
    return table[offset : offset + length]


def _pieces(clx: bytes, size: int) -> list[_Piece]:
    """Return the piece table (section 2.9.38), without the saved changes before it (type 1).

    Raises IndexError if the pieces are larger than the stream, whose ``size`` they share.
    """
    place = 0
    while clx[place] == 1:
        place += 3 + struct.unpack_from("<H", clx, place + 1)[0]
    count = (struct.unpack_from("<L", clx, place + 1)[0] - 4) // 12
    if clx[place] != 2 or not 0 < count <= _MAX_PIECES:
        raise IndexError
    bounds = struct.unpack_from(f"<{count + 1}L", clx, place + 5)
    descriptors = struct.iter_unpack("<HLH", clx[place + 5 + 4 * (count + 1) :][: 8 * count])
    pieces: list[_Piece] = []
    for start, end, (_, fc, _) in zip(bounds, bounds[1:], descriptors, strict=False):
        is_narrow = bool(fc & 0x40000000)
        pieces.append(
            _Piece(start, end, (fc & 0x3FFFFFFF) // 2 if is_narrow else fc, 1 if is_narrow else 2)
        )
    if sum(max(piece.end - piece.start, 0) * piece.width for piece in pieces) > size:
        raise IndexError
    return pieces


def _looks(stream: bytes, plc: bytes, *, of_paragraphs: bool) -> list[_Look]:
    """Return the properties in the pages that ``plc`` lists (sections 2.9.52 and 2.9.175)."""
    count = max(len(plc) - 4, 0) // 8
    looks: list[_Look] = []
    numbers = struct.unpack_from(f"<{count}L", plc, 4 * (count + 1)) if count else ()
    for number in dict.fromkeys(number & 0x3FFFFF for number in numbers):
        page = stream[number * _PAGE : (number + 1) * _PAGE]
        if len(page) < _PAGE:
            break
        filed = page[-1]
        if filed * 5 + 4 >= _PAGE:
            continue
        for index, start in enumerate(struct.unpack_from(f"<{filed}L", page)):
            place = 2 * page[4 * (filed + 1) + (13 if of_paragraphs else 1) * index]
            size = page[place]
            if not place:
                looks.append(_Look(start))
            elif not of_paragraphs:
                looks.append(_Look(start, 0, _properties(page[place + 1 : place + 1 + size])))
            else:  # lengths count two bytes (section 2.9.176)
                begin = place + 1 if size else place + 2
                size = 2 * size - 1 if size else 2 * page[min(place + 1, _PAGE - 1)]
                own = page[begin : begin + size]
                style = int.from_bytes(own[:2], "little") if len(own) >= 2 else 0
                looks.append(_Look(start, style, _properties(own[2:])))
    return sorted(looks, key=_start)


def _properties(data: bytes) -> dict[int, int]:
    """Return the properties whose values have one, two or four bytes, by number."""
    properties: dict[int, int] = {}
    place = 0
    while place + 3 <= len(data):
        (number,) = struct.unpack_from("<H", data, place)
        size = _SIZES.get(number >> 13) or data[place + 2] + 1
        if size <= 4:
            properties[number] = int.from_bytes(data[place + 2 : place + 2 + size], "little")
        place += 2 + size
    return properties


def _start(item: _Piece | _Look) -> int:
    return item.start


def _fonts(table: bytes) -> list[str]:
    """Return the names of the fonts (section 2.9.286)."""
    (count,) = struct.unpack_from("<H", table) if len(table) >= 4 else (0,)
    fonts: list[str] = []
    place = 4
    for _ in range(min(count, _MAX_FONTS)):
        if place >= len(table):
            break
        end = place + 1 + table[place]
        name = table[place + _FONT_NAME : end].decode("utf-16-le", "replace")
        fonts.append(name.partition("\0")[0])
        place = end
    return fonts


class _Signs:
    """Characters that depend on their run: those of symbol fonts, and the data of form fields."""

    def __init__(self, fonts: Sequence[str], data: bytes) -> None:
        self.forms: list[Form] = []
        self._fonts = fonts
        self._data = data

    def read(self, text: str, properties: Mapping[int, int]) -> str:
        """Return the text of a run, with as many characters."""
        if _SYMBOL in properties:
            value = properties[_SYMBOL]
            return "".join(
                self._sign(chr(value >> 16), value & 0xFFFF) if c == "(" else c for c in text
            )
        if text == "\x01" and _DATA_AT in properties and len(self.forms) < _MAX_FORMS:
            try:
                self.forms.append(_form(self._data, properties[_DATA_AT] + _FORM_DATA))
            except (struct.error, IndexError):
                return text
            return chr(_FORM + len(self.forms) - 1)
        if is_symbol_font(self._name(properties.get(_FONT, -1))):
            return "".join(self._sign(c, properties[_FONT]) if c >= " " else c for c in text)
        return text

    def _name(self, font: int) -> str:
        return self._fonts[font] if 0 <= font < len(self._fonts) else ""

    def _sign(self, sign: str, font: int) -> str:
        shown = seen(sign, self._name(font))
        return shown if len(shown) == 1 else sign  # else it is told by its number at last


def _form(data: bytes, place: int) -> Form:
    """Return a form field ([MS-DOC], section 2.9.78)."""
    (bits,) = struct.unpack_from("<4xH", data, place)
    kind, chosen = bits & 3, bits >> 2 & 0x1F
    place = _behind_text(data, place + 10)
    if kind not in {1, 2}:
        return Form()
    (default,) = struct.unpack_from("<H", data, place)
    form = Form(kind == 1, default=default, chosen=None if chosen == CHOSE_NONE else chosen)
    place += 2
    for _ in range(5 if kind == 2 else 0):  # its format, helps and macros
        place = _behind_text(data, place)
    (count,) = struct.unpack_from("<2xH", data, place) if kind == 2 else (0,)
    place += 6
    for _ in range(min(count, _MAX_FONTS)):
        (size,) = struct.unpack_from("<H", data, place)
        form.add_entry(data[place + 2 : place + 2 + 2 * size].decode("utf-16-le", "replace"))
        place += 2 + 2 * size
    return form


def _behind_text(data: bytes, place: int) -> int:
    """Return the place behind a text with its length and a NUL (section 2.9.355)."""
    (size,) = struct.unpack_from("<H", data, place)
    return int(place + 2 + 2 * size + 2)


def _text(
    stream: bytes, pieces: Sequence[_Piece], runs: Sequence[_Look], signs: _Signs
) -> tuple[str, int]:
    """Return the text, one character for each UTF-16 unit, and the number of hidden runs.

    Hidden characters become NULs.
    """
    telling = {_HIDDEN, _SYMBOL, _FONT, _DATA_AT}
    written: list[str] = []
    hidden = 0
    for piece in pieces:
        raw = stream[piece.fc : piece.fc + piece.width * max(piece.end - piece.start, 0)]
        if piece.width == 1:
            text = raw.decode("cp1252", "replace")
        else:
            units = array("H", raw[: len(raw) // 2 * 2])
            if sys.byteorder == "big":
                units.byteswap()
            text = "".join(map(chr, units))
        at = 0
        for first, end, properties in _ranges(runs, piece, len(text)):
            if telling.isdisjoint(properties):
                continue
            begin = max(first, at)
            shown = text[begin:end]
            if properties.get(_HIDDEN) == 1:
                hidden += 1
                shown = _NO_MARK.sub("\0", shown)
            else:
                shown = signs.read(shown, properties)
            written += [text[at:begin], shown]
            at = max(at, end)
        written.append(text[at:])
    return "".join(written), hidden


def _ranges(
    runs: Sequence[_Look], piece: _Piece, length: int
) -> Iterator[tuple[int, int, Mapping[int, int]]]:
    """Yield beginning, end and properties of the runs in a piece of ``length`` characters."""
    last = piece.fc + length * piece.width
    index = max(bisect_right(runs, piece.fc, key=_start) - 1, 0)
    while index < len(runs) and runs[index].start < last:
        begin = max(runs[index].start - piece.fc, 0) // piece.width
        end = min(runs[index + 1].start, last) if index + 1 < len(runs) else last
        yield begin, (end - piece.fc) // piece.width, runs[index].properties
        index += 1


def _split(text: str, start: int, end: int) -> Iterator[tuple[int, str, str]]:
    """Yield the paragraphs of a text, each with the place and the mark of its end."""
    while start < end:
        mark = _PARAGRAPH_END.search(text, start, end)
        stop = mark.start() if mark else end
        yield min(stop, end - 1), text[start:stop], mark[0] if mark else "\r"
        start = stop + 1


@dataclass(slots=True)
class _Writer:
    """Writes paragraphs into ``prose``. A field may span several of them."""

    styles: DocStyles
    numbering: Numbering
    prose: Prose = field(default_factory=Prose)
    forms: Sequence[Form] = ()
    _noted: set[str] = field(default_factory=set[str])
    _fields: list[Field] = field(default_factory=list[Field])
    _rows: list[list[str]] = field(default_factory=list[list[str]])
    _row: list[str] = field(default_factory=list[str])
    _cell: list[str] = field(default_factory=list[str])

    def take(
        self,
        content: str,
        mark: str,
        look: _Look,
        label: str,
        beside: Callable[[str], Sequence[str]] | None = None,
    ) -> None:
        """Write a paragraph that ends with ``mark``, and what ``beside`` says of its text."""
        properties = look.properties
        text = self._shown(content)
        in_table = bool(properties.get(_IN_TABLE)) or mark == _CELL_END
        is_row_end = in_table and bool(properties.get(_ROW_END))
        item, place = self._item(look) if text and not is_row_end else ("", 0)
        sign = item.removeprefix("-").strip()
        lines = beside(text) if beside else ()
        if in_table:
            labelled = f"{sign} {text}".strip()
            self._take_cell("\n".join([labelled, *lines]), mark, is_row_end=is_row_end)
            return
        self.end_table()
        level = self._level(look)
        if label:
            labelled = f"{label}: {text}" if text else ""
            if labelled not in self._noted:  # each section repeats the headers
                self._noted.add(labelled)
                self.prose.paragraph(labelled)
        elif level in _HEADINGS:
            self.prose.heading(f"{sign} {text}", level)
        elif item:
            self.prose.item(text, place, item_mark(item))
        else:
            self.prose.paragraph(text)
        for line in lines:
            self.prose.paragraph(line)

    def _level(self, look: _Look) -> int:
        """Return the level of a heading; for text one that no heading has."""
        if look.style in _HEADINGS:
            return look.style
        outline = look.properties.get(_OUTLINE)
        if outline is None:
            outline = self.styles.value(look.style, _OUTLINE, 9)
        return self.styles.title_level(look.style) or outline + 1

    def _item(self, look: _Look) -> tuple[str, int]:
        """Return the label of an item of a list ("" for other text), and the level in its list."""
        of_style = self.styles.value
        number = look.properties.get(_LIST)
        place = look.properties.get(_LIST_LEVEL)
        if number is None:
            number = of_style(look.style, _LIST, 0)
        if place is None:
            place = of_style(look.style, _LIST_LEVEL, 0)
        place = min(place, _DEEPEST)
        # Negative numbers were taken out of their list (section 2.6.2, sprmPIlfo).
        return ("", 0) if number >= _NO_LIST else (self.numbering.mark(str(number), place), place)

    def end_table(self) -> None:
        """Write the open table."""
        if self._row:
            self._rows.append(self._row)
        self.prose.table(self._rows)
        self._rows, self._row, self._cell = [], [], []

    def _take_cell(self, text: str, mark: str, *, is_row_end: bool) -> None:
        if is_row_end:
            self._rows.append(self._row)
            self._row, self._cell = [], []
            return
        self._cell.append(text)
        if mark == _CELL_END:
            self._row.append("\n".join(filter(None, self._cell)))
            self._cell = []

    def _shown(self, content: str) -> str:
        """Return the visible text: results of fields, and addresses of links (section 2.8.25)."""
        pieces: list[str] = []
        for piece in _FIELD_MARK.split(content):
            if piece == "\x13":
                self._fields.append(Field())
            elif piece == "\x14" and self._fields:
                self._fields[-1].has_result = True
                pieces.append("[" if self._fields[-1].target() else "")
            elif piece == "\x15" and self._fields:
                pieces.append(self._end(self._fields.pop(), pieces))
            elif not self._fields or all(field.has_result for field in self._fields):
                pieces.append(piece)
            else:
                self._fields[-1].add_code(piece)
        text = "".join(pieces).translate(_SIGNS).strip()
        return without_private(
            text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        )

    def _end(self, ended: Field, pieces: Sequence[str]) -> str:
        """Return the text after a field: the target of a link, or what it shows itself."""
        if target := ended.target():
            return f"]({target})" if ended.has_result else ""
        if ended.has_result and pieces and pieces[-1].strip():
            return ""
        places = [ord(sign) - _FORM for sign in ended.code if ord(sign) >= _FORM]
        if places and places[0] < len(self.forms):
            ended.form = self.forms[places[0]]
        return ended.without_result()
