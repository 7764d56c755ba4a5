"""Cells of a workbook: their values, notes and comments.

calamine reads the kept values alone. A formula whose program kept none would be an empty cell, and
so would an error (ECMA-376-1, section 18.3.1).
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from fetchstash.errors import NoText
from fetchstash.handlers._contract import Part
from fetchstash.handlers._office._common import write_odf_chart
from fetchstash.handlers._office._ooxml import Package, write_chart
from fetchstash.handlers._shared._prose import Prose
from fetchstash.handlers._shared._xml import attribute
from fetchstash.handlers._shared._zip import MAX_MEMBER, Zip

_MAX_MEMBERS = 20_000
_MAX_CHARTS = 200
_MAX_COMMENTS = 10_000
_CHART = re.compile(r"xl/charts/chart\d{1,5}\.xml")
_OBJECT = re.compile(r"Object \d{1,5}/content\.xml")


def read_notes(source: Path) -> Iterator[Part]:
    """Yield the comments and charts of an XLSX or ODS file, nothing of any other."""
    with source.open("rb") as file:
        if file.read(4) != b"PK\x03\x04":
            return
    prose = Prose()
    with suppress(NoText), Zip(source, is_document=True) as container:
        package = Package(container)
        lines = (
            line
            for name, part in sheets_of(package)
            if package.is_new(part)
            for line in _comments(package, name, part)
        )
        comments = list(islice(lines, _MAX_COMMENTS))
        if comments:
            prose.heading("Comments", 2)
        for line in comments:
            prose.item(line)
        names = [entry.name for entry in islice(container.entries(), _MAX_MEMBERS)]
        for name in sorted(filter(_CHART.fullmatch, names), key=_number)[:_MAX_CHARTS]:
            write_chart(package.tree(name), prose)
        for name in sorted(filter(_OBJECT.fullmatch, names), key=_number)[:_MAX_CHARTS]:
            write_odf_chart(package.tree(name, MAX_MEMBER), prose)
    yield from prose.rest()


def repeated_sheets(source: Path) -> dict[tuple[int, str], str]:
    """Return which sheets of an XLSX file, by number from 0 and name, show the part of an earlier.

    The values are the names of the earlier ones. Thousands of sheets may stand for one part, which
    is read once.
    """
    with source.open("rb") as file:
        if file.read(4) != b"PK\x03\x04":
            return {}
    first, repeated = dict[str, str](), dict[tuple[int, str], str]()
    with suppress(NoText), Zip(source, is_document=True) as container:
        for number, (name, part) in enumerate(sheets_of(Package(container))):
            if part.lower() in first:  # names of parts ignore case (ECMA-376-2, section 6.2.2.3)
                repeated[number, name] = first[part.lower()]
            first.setdefault(part.lower(), name)
    return repeated


def _number(name: str) -> int:
    return int("".join(filter(str.isdecimal, name)))


def sheets_of(package: Package) -> Iterator[tuple[str, str]]:
    """Yield name and part of each sheet (ECMA-376-1, section 18.2.19)."""
    if "xl/workbook.xml" not in package:
        return
    names = _Names()
    package.read_small("xl/workbook.xml", names)
    relations = package.relations("xl/workbook.xml")
    for name, number in names.sheets:
        if number in relations:
            yield name, relations[number].target


def _comments(package: Package, sheet: str, part: str) -> Iterator[str]:
    relations = package.relations(part).values()
    # Threads of 2018 stand in both parts; the older one repeats them as one text.
    threaded = [r for r in relations if r.kind == "threadedComment"]
    for relation in threaded or [r for r in relations if r.kind == "comments"]:
        if not package.is_new(relation.target):
            continue
        reader = _Comments()
        package.read_small(relation.target, reader)
        for cell, author, text in reader.found:
            if text := " ".join(text.split()):
                by = f" ({author})" if author else ""
                yield f"{sheet}!{cell}{by}: {text}"


class _Names:
    """Collects the names of sheets and their relationships."""

    def __init__(self) -> None:
        self.sheets: list[tuple[str, str]] = []

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        if name == "sheet":
            self.sheets.append((attributes.get("name", ""), _relationship(attributes)))

    def end(self, name: str) -> None:
        pass

    def text(self, data: str) -> None:
        pass


def _relationship(attributes: Mapping[str, str]) -> str:
    return next((value for key, value in attributes.items() if key.endswith(":id")), "")


class _Comments:
    """Collects cell, author and text of comments (ECMA-376-1, section 18.7)."""

    def __init__(self) -> None:
        self.found: list[tuple[str, str, str]] = []
        self._authors: list[str] = []
        self._open = ""

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        self._open = name
        if name == "author":
            self._authors.append("")
        elif name in {"comment", "threadedComment"} and len(self.found) < _MAX_COMMENTS:
            number = attribute(attributes, "authorId")
            known = number.isdecimal() and int(number) < len(self._authors)
            author = self._authors[int(number)] if known else ""
            self.found.append((attribute(attributes, "ref"), author, ""))

    def end(self, name: str) -> None:
        del name
        self._open = ""

    def text(self, data: str) -> None:
        if self._open == "author":
            self._authors[-1] += data
        elif self._open in {"t", "text"} and self.found:
            cell, author, before = self.found[-1]
            self.found[-1] = cell, author, before + data


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
