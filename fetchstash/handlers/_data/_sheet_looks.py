"""How the cells of an XLSX look: their formats, symbol fonts, and hidden rows and columns.

calamine reads values alone. The cells that have a format of their own are found by a pattern, row
by row beside calamine's, because a parser in Python would take several times its time.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from fetchstash.handlers._data._number_formats import BUILT_IN, Cell, Formatter, formatter
from fetchstash.handlers._office._common import number
from fetchstash.handlers._office._ooxml import Package
from fetchstash.handlers._symbols import is_symbol_font, seen

_MAX_STYLES = 65_000  # Excel's limit of cell formats
_MAX_RANGES = 100_000
_SHOWN_RANGES = 8
_MAX_KEPT = 4_096  # bytes of a tag that a piece cuts
_ROW = re.compile(rb"<(?:\w+:)?row\b[^>]*>")
_COLUMN = re.compile(rb"<(?:\w+:)?col\b[^>]*>")
_HIDDEN = re.compile(rb"""\bhidden\s*=\s*["'](?:1|true)["']|\bwidth\s*=\s*["']0(?:\.0+)?["']""")
_NUMBERS = {
    name: re.compile(rb"""\b%s\s*=\s*["'](\d{1,7})["']""" % name) for name in (b"r", b"min", b"max")
}


RowLooks = tuple[int, list[tuple[int, Formatter]]]
"""A row, and columns with their formatters, all from 0."""


@dataclass(slots=True)
class Hidden:
    """The rows and columns (from 0) that a sheet hides, as ranges with both ends."""

    rows: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    columns: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    _last: int = -1

    def look(self, text: bytes) -> None:
        """Take a piece of a sheet; pieces may overlap."""
        if b"hidden" not in text and b'width="0' not in text:
            return
        for tag in _COLUMN.findall(text):
            if _HIDDEN.search(tag):
                first, last = (_NUMBERS[name].search(tag) for name in (b"min", b"max"))
                if first and last:
                    self.add(self.columns, int(first[1]) - 1, int(last[1]) - 1)
        for tag in _ROW.findall(text) if b"hidden" in text else ():
            if _HIDDEN.search(tag) and (number := _NUMBERS[b"r"].search(tag)):
                self.add(self.rows, int(number[1]) - 1, int(number[1]) - 1)

    @staticmethod
    def add(ranges: list[tuple[int, int]], first: int, last: int) -> None:
        """Add a range behind the others, joined to the last if they touch."""
        if ranges and ranges[-1][0] <= first <= ranges[-1][1] + 1:
            ranges[-1] = ranges[-1][0], max(last, ranges[-1][1])
        elif len(ranges) < _MAX_RANGES and (not ranges or first > ranges[-1][1]):
            ranges.append((first, last))

    def has_row(self, number: int) -> bool:
        """Return whether a row is hidden; asked in ascending order."""
        while self.rows and self._last + 1 < len(self.rows):
            first, last = self.rows[self._last + 1]
            if number < first:
                return False
            if number <= last:
                return True
            self._last += 1
        return False

    def told(self, right: int) -> str:
        """Return the hidden rows and columns in words: ", hidden rows 3-4, hidden columns C"."""
        columns = [(a, min(b, right)) for a, b in self.columns if a <= right]
        texts = (
            _listed("row", self.rows, lambda number: str(number + 1)),
            _listed("column", columns, column_name),
        )
        return "".join(f", {text}" for text in texts if text)


def _listed(what: str, ranges: list[tuple[int, int]], name: Callable[[int], str]) -> str:
    """Return ranges in words, the first of many; "" for none."""
    if not ranges:
        return ""
    count = sum(last - first + 1 for first, last in ranges)
    shown = [name(a) if a == b else f"{name(a)}-{name(b)}" for a, b in ranges[:_SHOWN_RANGES]]
    more = ["…"] if len(ranges) > _SHOWN_RANGES else []
    number = f"{count:,} " if more else ""
    return f"{number}hidden {what}{'s' * (count > 1)} {' '.join([*shown, *more])}"


class Looks:
    """The formats of a workbook's cells (ECMA-376-1, section 18.8)."""

    def __init__(self, package: Package, part: str) -> None:
        codes = dict(BUILT_IN)
        fonts: list[str] = []
        styles: list[tuple[int, int]] = []  # number format and font
        around = ""
        for name, get in package.tags(part) if part else ():
            if name in {"numFmts", "fonts", "fills", "cellStyleXfs", "cellXfs", "dxfs"}:
                around = name
            elif name == "numFmt" and around == "numFmts":
                codes[number(get("numFmtId"), -1)] = get("formatCode")
            elif name == "font" and around == "fonts":
                fonts.append("")
            elif name == "name" and around == "fonts" and fonts:
                fonts[-1] = get("val")
            elif name == "xf" and around == "cellXfs" and len(styles) < _MAX_STYLES:
                styles.append((number(get("numFmtId")), number(get("fontId"))))
        self._formatters: dict[bytes, Formatter] = {}
        for place, (code, font) in enumerate(styles):
            name = fonts[font] if font < len(fonts) else ""
            if look := look_of(codes.get(code, ""), name):
                self._formatters[b"%d" % place] = look
        numbers = b"|".join(self._formatters)
        # A cell with its place and its style, in any order (section 18.3.1.4).
        self._cell = re.compile(
            rb"""<(?:\w+:)?c\b(?=[^>]*?\br\s*=\s*["']([A-Z]{1,3})(\d{1,7})["'])"""
            rb"""[^>]*?\bs\s*=\s*["'](%s)["']""" % numbers
        )
        # As all known programs write it: found in half the time.
        self._usual = re.compile(
            rb"""<c r="([A-Z]{1,3})(\d{1,7})"[^>]*?\bs\s*=\s*["'](%s)["']""" % numbers
        )

    def rows(self, chunks: Iterable[bytes]) -> Iterator[RowLooks]:
        """Yield the rows that hold cells with a formatter, with the formatters by column."""
        if not self._formatters:
            return
        columns: dict[bytes, int] = {}
        here, kept = b"", b""
        row: list[tuple[int, Formatter]] = []
        for chunk in chunks:
            text = kept + chunk
            end = text.rfind(b"<")
            kept = text[end:] if end >= 0 else text[-_MAX_KEPT:]
            is_usual = 0 < text.count(b"<c") == text.count(b'<c r="')
            pattern = self._usual if is_usual else self._cell
            for column, at, style in pattern.findall(text, 0, max(end, 0)):
                if at != here:
                    if row:
                        yield int(here) - 1, row
                    here, row = at, []
                if column not in columns:
                    columns[column] = column_index(column.decode())
                row.append((columns[column], self._formatters[style]))
        if row:
            yield int(here) - 1, row


def look_of(code: str, font: str) -> Formatter | None:
    """Return the formatter of cells with a format code and a font, None if neither changes them."""
    return _signs(font) if is_symbol_font(font) else formatter(code)


def _signs(font: str) -> Formatter:
    def write(value: Cell) -> str | None:
        return seen(value, font) if isinstance(value, str) else None

    return write


class LooksByRow:
    """Gives the formatters of one row after the other; rows are asked for in ascending order."""

    def __init__(self, rows: Iterator[RowLooks]) -> None:
        self._rows = rows
        self._next = next(rows, None)

    def of(self, row: int) -> Sequence[tuple[int, Formatter]]:
        """Return column and formatter, both from 0, of the cells of a row that have one."""
        while self._next and self._next[0] < row:
            self._next = next(self._rows, None)
        if self._next is None or self._next[0] != row:
            return ()
        found = self._next[1]
        self._next = next(self._rows, None)
        return found


def column_name(index: int) -> str:
    """Return the letters of a column, counted from 0: A, Z, AA, XFD."""
    name = ""
    index += 1
    while index:
        index, letter = divmod(index - 1, 26)
        name = chr(ord("A") + letter) + name
    return name


def column_index(name: str) -> int:
    """Return the number of a column, from 0, by its letters."""
    index = 0
    for letter in name:
        index = index * 26 + ord(letter) - ord("A") + 1
    return index - 1
