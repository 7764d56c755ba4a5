"""What the cells of an XLSX sheet hold beside values: formulas, errors and links.

calamine reads the kept values alone. A formula whose program kept none would be an empty cell, and
so would an error (ECMA-376-1, section 18.3.1).
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from fetchstash.errors import NoText
from fetchstash.handlers._data._sheet_notes import sheets_of
from fetchstash.handlers._office._ooxml import Package
from fetchstash.handlers._shared._xml_events import attribute
from fetchstash.handlers._shared._zip import Zip

_MAX_CELLS = 100_000
_MAX_TARGET = 2_000
# A formula, an error or a link; most sheets have none, and are not parsed.
_MARKS = re.compile(rb"""<(?:\w{1,20}:)?(?:f[\s/>]|hyperlink\b)|\st\s*=\s*["']e""")
_OVERLAP = 64
_PLACE = re.compile(r"([A-Z]{1,3})([1-9]\d{0,6})")


@dataclass(slots=True)
class SheetCells:
    """The formulas of a sheet by cell, and what is shown instead of values.

    ``shown`` and ``links`` are by row and column, both from 0. ``is_whole``: all of the sheet was
    looked at.
    """

    formulas: dict[str, str] = field(default_factory=dict[str, str])
    shown: dict[int, dict[int, str]] = field(default_factory=dict[int, dict[int, str]])
    links: dict[int, dict[int, str]] = field(default_factory=dict[int, dict[int, str]])
    is_whole: bool = False

    def apply(self, row: int, left: int, texts: list[str]) -> None:
        """Write what is shown into the texts of a row whose first cell is in column ``left``."""
        for column in [c for c in self.shown.get(row, ()) if 0 <= c - left < len(texts)]:
            texts[column - left] = self.shown[row].pop(column)
        for column in [c for c in self.links.get(row, ()) if 0 <= c - left < len(texts)]:
            text, target = texts[column - left], self.links[row].pop(column)
            texts[column - left] = f"[{text}]({target})" if text not in {"", target} else target

    def rest(self) -> Iterator[tuple[str, str]]:
        """Yield cell and text of what no row of values had a place for."""
        for cells in (self.shown, self.links):
            for row in sorted(cells):
                for column in sorted(cells[row]):
                    yield f"{column_name(column)}{row + 1}", cells[row][column]


def read_cells(source: Path) -> dict[str, SheetCells]:
    """Return the cells of each sheet of an XLSX file by its name, none of any other file."""
    with source.open("rb") as file:
        if file.read(4) != b"PK\x03\x04":
            return {}
    sheets: dict[str, SheetCells] = {}
    with suppress(NoText), Zip(source, is_document=True) as container:
        package = Package(container)
        for name, part in sheets_of(package):
            if not package.is_new(part) or not _has_marks(package.chunks(part)):
                continue
            reader = _Reader()
            package.read_small(part, reader)
            sheets[name] = reader.cells
            relations = package.relations(part) if reader.links else {}
            for place, (number, location) in reader.links.items():
                base = relations[number].target if number in relations else ""
                target = f"{base}#{location}" if location else base
                _put(reader.cells.links, place, "%20".join(target.split())[:_MAX_TARGET])
    return sheets


def _has_marks(chunks: Iterable[bytes]) -> bool:
    kept = b""
    for chunk in chunks:
        if _MARKS.search(kept + chunk):
            return True
        kept = chunk[-_OVERLAP:]
    return False


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


def _put(cells: dict[int, dict[int, str]], place: str, text: str) -> None:
    match = _PLACE.fullmatch(place.partition(":")[0])
    if match and text:
        cells.setdefault(int(match[2]) - 1, {})[column_index(match[1])] = text


class _Reader:
    """Collects formulas, errors and links of a sheet, some of each."""

    def __init__(self) -> None:
        self.cells = SheetCells()
        self.links: dict[str, tuple[str, str]] = {}
        self._place = self._kind = self._open = ""
        self._formula: str | None = None
        self._value = ""
        self._row = self._column = 0
        self._shared: dict[str, str] = {}
        self._number = ""
        self._is_full = False

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        self._open = name
        if name == "row":
            number = attributes.get("r", "")
            self._row = int(number) if number.isdecimal() and len(number) < 8 else self._row + 1
            self._column = 0
        elif name == "c":
            # A cell that names no place stands behind the one before.
            here = f"{column_name(self._column)}{self._row}"
            self._place, self._kind = attributes.get("r", here), attributes.get("t", "")
            if match := _PLACE.fullmatch(self._place):
                self._column, self._row = column_index(match[1]) + 1, int(match[2])
            else:
                self._place = ""
            self._formula, self._value = None, ""
        elif name == "f":
            self._formula = ""
            self._number = attributes.get("si", "") if attributes.get("t") == "shared" else ""
        elif name == "hyperlink":
            if len(self.links) >= _MAX_CELLS:
                self._is_full = True
                return
            location = attributes.get("location", "")
            self.links[attributes.get("ref", "")] = attribute(attributes, "id"), location

    def end(self, name: str) -> None:
        self._open = ""
        if name == "c":
            self._end_cell()
        elif name == "worksheet":
            self.cells.is_whole = not self._is_full

    def text(self, data: str) -> None:
        if self._open == "f" and self._formula is not None:
            self._formula += data
        elif self._open == "v":
            self._value += data

    def _end_cell(self) -> None:
        cells = self.cells
        if not self._place:
            return
        if max(len(cells.formulas), len(cells.shown)) >= _MAX_CELLS:
            self._is_full = True
        elif self._formula is not None:
            formula = f"={' '.join(self._formula.split())}"
            if self._number and formula != "=":
                self._shared[self._number] = self._place
            elif self._number in self._shared:
                formula = f"as {self._shared[self._number]}, moved"
            # An empty text is a value.
            if self._value or self._kind == "str":
                cells.formulas[self._place] = f"{formula} → {self._value}"
            else:
                cells.formulas[self._place] = f"{formula} (no value kept)"
                _put(cells.shown, self._place, cells.formulas[self._place])
        if self._kind == "e" and not self._is_full:
            _put(cells.shown, self._place, self._value)
