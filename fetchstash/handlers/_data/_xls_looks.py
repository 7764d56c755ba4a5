"""The formats of the cells of an XLS, and its hidden rows and columns ([MS-XLS])."""

import struct
from collections.abc import Iterator
from pathlib import Path

from fetchstash.errors import NoText
from fetchstash.handlers._data._number_formats import BUILT_IN, Formatter
from fetchstash.handlers._data._sheet_looks import Hidden, LooksByRow, RowLooks, look_of
from fetchstash.handlers._zip import CompoundFile

_MAX_BYTES = 128 * 1024 * 1024
# Numbers of records (section 2.3.1).
_EOF, _FORMAT, _XF, _FONT, _SHEET = 0x000A, 0x041E, 0x00E0, 0x0031, 0x0085
_ROW, _COLUMNS, _MANY = 0x0208, 0x007D, 0x00BD
# With row, column and format at their beginning: FORMULA, NUMBER, RK, LABELSST, LABEL.
_CELLS = {0x0006, 0x0203, 0x027E, 0x00FD, 0x0204}
_NO_FONT = 4  # is the number of none (section 2.4.122)


class XlsLooks:
    """Gives the formats of the cells of each sheet, by its name."""

    def __init__(self, source: Path) -> None:
        self._stream = b""
        self._sheets: dict[str, int] = {}
        self._formatters: dict[int, Formatter] = {}
        try:
            with source.open("rb") as file:
                container = CompoundFile(file.read(_MAX_BYTES))
            self._stream = container.read("Workbook")
            self._read_globals()
        except (NoText, struct.error, IndexError):
            return

    def _read_globals(self) -> None:
        codes = dict(BUILT_IN)
        fonts: list[str] = []
        styles: list[tuple[int, int]] = []
        for kind, record in self._records(0):
            if kind == _FORMAT:
                codes[struct.unpack_from("<H", record)[0]] = _text(record, 2, wide_length=True)
            elif kind == _FONT:
                fonts += [""] * (len(fonts) == _NO_FONT)
                fonts.append(_text(record, 14))
            elif kind == _XF:
                styles.append(struct.unpack_from("<HH", record))
            elif kind == _SHEET:
                (place,) = struct.unpack_from("<L", record)
                self._sheets.setdefault(_text(record, 6), place)
        for number, (font, code) in enumerate(styles):
            name = fonts[font] if font < len(fonts) else ""
            if look := look_of(codes.get(code, ""), name):
                self._formatters[number] = look

    def _records(self, place: int) -> Iterator[tuple[int, bytes]]:
        """Yield the records from a place to the end of their part."""
        while place + 4 <= len(self._stream):
            kind, size = struct.unpack_from("<HH", self._stream, place)
            yield kind, self._stream[place + 4 : place + 4 + size]
            if kind == _EOF:
                return
            place += 4 + size

    def looks(self, _: int, sheet: str) -> tuple[LooksByRow, Hidden]:
        """Return the formats of a sheet's cells, and what it hides."""
        rows = self._rows(sheet) if self._formatters else iter(())
        return LooksByRow(rows), self._hidden(sheet)

    def _hidden(self, sheet: str) -> Hidden:
        hidden = Hidden()
        for kind, record in self._records(self._sheets.get(sheet, len(self._stream))):
            if kind == _ROW and len(record) >= 14 and record[12] & 0x20:
                (row,) = struct.unpack_from("<H", record)
                Hidden.add(hidden.rows, row, row)
            elif kind == _COLUMNS and len(record) >= 10 and record[8] & 1:
                Hidden.add(hidden.columns, *struct.unpack_from("<HH", record))
        return hidden

    def _rows(self, sheet: str) -> Iterator[RowLooks]:
        here = -1
        looks: list[tuple[int, Formatter]] = []
        for kind, record in self._records(self._sheets.get(sheet, len(self._stream))):
            if (kind not in _CELLS and kind != _MANY) or len(record) < 6:
                continue
            row, column, style = struct.unpack_from("<HHH", record)
            if row != here:
                if looks:
                    yield here, looks
                here, looks = row, []
            styles = [style]
            if kind == _MANY:
                styles = [s for s, _ in struct.iter_unpack("<HL", record[4 : len(record) - 2])]
            for place, style in enumerate(styles, start=column):
                if look := self._formatters.get(style):
                    looks.append((place, look))
        if looks:
            yield here, looks


def _text(record: bytes, place: int, *, wide_length: bool = False) -> str:
    """Return a text with its length before it (section 2.5.293 f.)."""
    size = record[place] | (record[place + 1] << 8 if wide_length else 0)
    place += 2 if wide_length else 1
    start = place + 1
    if record[place] & 1:
        return record[start : start + 2 * size].decode("utf-16-le", "replace")
    return record[start : start + size].decode("latin-1")
