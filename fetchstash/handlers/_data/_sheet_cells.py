"""Parts of an XLSX that calamine does not read: formulas, errors, links, comments, charts.

calamine reads the kept values alone. A formula whose program kept none would be an empty cell, and
so would an error (ECMA-376-1, section 18.3.1).
"""

import re
from collections import defaultdict
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from itertools import islice
from pathlib import Path

from fetchstash.errors import NoText
from fetchstash.handlers._contract import Part
from fetchstash.handlers._data import DataReason
from fetchstash.handlers._data._ods_looks import OdsLooks
from fetchstash.handlers._data._sheet_looks import (
    Hidden,
    Looks,
    LooksByRow,
    column_index,
    column_name,
)
from fetchstash.handlers._office._common import write_odf_chart
from fetchstash.handlers._office._ooxml import Package, write_chart
from fetchstash.handlers._prose import Prose
from fetchstash.handlers._xml import XmlReader, attribute
from fetchstash.handlers._zip import MAX_MEMBER, Entry, Zip

_MAX_MEMBERS = 20_000
_MAX_CHARTS = 200
_MAX_COMMENTS = 10_000
_CHART = re.compile(r"xl/charts/chart\d{1,5}\.xml")
_OBJECT = re.compile(r"Object \d{1,5}/content\.xml")
_MAX_CELLS = 100_000
_MAX_TARGET = 2_000
# A formula, an error or a link; most sheets have none, and are not parsed.
_MARKS = re.compile(rb"""<(?:\w{1,20}:)?(?:f[\s/>]|hyperlink\b)|\st\s*=\s*["']e["']""")
# What the pattern needs; to look for these is ten times as quick.
_SIGNS_OF_MARKS = (b"<f", b":f", b"hyperlink", b'"e"', b"'e'")
_PLACE = re.compile(r"([A-Z]{1,3})([1-9]\d{0,6})")

# calamine holds the rectangle between the first and the last cell: two far cells take 17 billion.
_MAX_SPAN = 5_000_000
# Larger sheets are not measured: their cells are work in any case, and the worker has its limits.
_SCANNED_BYTES = 4 * 1024 * 1024
_SHEET_PART = re.compile(r"xl/worksheets/[^/]+\.xml")
_CELL = re.compile(rb"""<(?:\w+:)?c\b[^>]{0,200}?\br=["']([A-Z]{1,3})(\d{1,7})["']""")
# A row or a cell behind the last of any sheet (XFD1048576): calamine would count up to it.
_BEYOND = re.compile(rb"""\sr\s*=\s*["'](?:[A-Za-z]{4}|[A-Za-z]{0,3}0*([1-9]\d{6,9}))""")
_MAX_ROW = 1_048_576
# More than a match of these patterns: what two pieces share.
_OVERLAP = 256


class Book:
    """An open workbook of XML (XLSX, or ODS for its charts).

    ``repeated`` are the sheets, by number from 0 and name, that show the part of an earlier one,
    and the name of that: thousands may stand for one part, which is read once.
    """

    def __init__(self, package: Package, hidden: Mapping[str, Hidden]) -> None:
        self._package = package
        self._hidden = hidden  # by part
        self._ods: OdsLooks | None = None
        self._parts: dict[str, str] = {}  # names by part
        relations = package.relations("xl/workbook.xml")
        styles = [r.target for r in relations.values() if r.kind == "styles"]
        self._looks = Looks(package, styles[0] if styles else "")
        self.repeated: dict[tuple[int, str], str] = {}
        tags = package.tags("xl/workbook.xml")  # ECMA-376-1, section 18.2.19
        sheets = [(get("name"), relations.get(get("id"))) for tag, get in tags if tag == "sheet"]
        known: dict[str, str] = {}
        for number, (name, part) in enumerate((n, r.target) for n, r in sheets if r):
            folded = part.lower()  # names of parts ignore case (ECMA-376-2, section 6.2.2.3)
            if folded in known:
                self.repeated[number, name] = known[folded]
            else:
                known[folded] = self._parts[part] = name

    def cells(self) -> "dict[str, SheetCells]":
        """Return the cells of each sheet by its name, without sheets of values alone."""
        sheets: dict[str, SheetCells] = {}
        with suppress(NoText):
            for part, name in self._parts.items():
                if any(map(_has_marks, _overlapping(self._package.chunks(part)))):
                    sheets[name] = SheetCells()
                    self._package.read_small(part, sheets[name])
                    sheets[name].resolve_links(self._package, part)
        return sheets

    def looks(self, number: int, sheet: str) -> tuple[LooksByRow, Hidden]:
        """Return the formats of a sheet's cells, and what it hides; asked for in their order."""
        if not self._parts and "content.xml" in self._package:
            self._ods = self._ods or OdsLooks(partial(self._package.chunks, "content.xml"))
            return self._ods.sheet(number)
        part = next((part for part, name in self._parts.items() if name == sheet), "")
        rows = self._looks.rows(self._package.chunks(part))
        return LooksByRow(rows), self._hidden.get(part, Hidden())

    def notes(self) -> Iterator[Part]:
        """Yield comments and charts."""
        prose, package = Prose(), self._package
        with suppress(NoText):
            lines = (line for part, name in self._parts.items() for line in self._notes(part, name))
            for number, line in enumerate(islice(lines, _MAX_COMMENTS)):
                if not number:
                    prose.heading("Comments", 2)
                prose.item(line)
            for name in _numbered(_CHART, package):
                write_chart(package.tree(name), prose)
            for name in _numbered(_OBJECT, package):
                write_odf_chart(package.tree(name, MAX_MEMBER), prose)
        yield from prose.rest()

    def _notes(self, part: str, sheet: str) -> Iterator[str]:
        """Yield the comments of a sheet (ECMA-376-1, section 18.7)."""
        relations = self._package.relations(part).values()
        # Threads of 2018 stand in both parts; the older one repeats them as one text.
        threaded = [r for r in relations if r.kind == "threadedComment"]
        for relation in threaded or [r for r in relations if r.kind == "comments"]:
            if not self._package.is_new(relation.target):
                continue
            tree = self._package.tree(relation.target)
            authors = [author.text() for author in tree.all("author")]
            for comment in tree.all("comment", "threadedComment"):
                number = comment.get("authorId")
                known = number.isdecimal() and int(number) < len(authors)
                by = f" ({authors[int(number)]})" if known and authors[int(number)] else ""
                words = "".join(t.text() for t in comment.all("t")) or comment.text()
                if text := " ".join(words.split()):
                    yield f"{sheet}!{comment.get('ref')}{by}: {text}"


@contextmanager
def open_book(source: Path, hidden: Mapping[str, Hidden] = {}) -> Generator[Book | None]:
    """Open a workbook of XML, None if ``source`` is any other file. Raises NoText.

    ``hidden`` is what its sheets hide, by part.
    """
    if not _is_zip(source):
        yield None
        return
    with Zip(source, is_document=True) as container:
        yield Book(Package(container), hidden)


def _is_zip(source: Path) -> bool:
    with source.open("rb") as file:
        return file.read(4) == b"PK\x03\x04"


def _numbered(pattern: re.Pattern[str], package: Package) -> list[str]:
    """Return the first members whose names fit the pattern, in the order of their numbers."""
    names = filter(pattern.fullmatch, package.entries)
    return sorted(names, key=lambda name: int("".join(filter(str.isdecimal, name))))[:_MAX_CHARTS]


def _overlapping(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield chunks that begin with the end of the one before, so that no match is cut."""
    kept = b""
    for chunk in chunks:
        yield kept + chunk
        kept = (kept + chunk)[-_OVERLAP:]


def _has_marks(text: bytes) -> bool:
    return any(sign in text for sign in _SIGNS_OF_MARKS) and _MARKS.search(text) is not None


class SheetCells(XmlReader):
    """Reads the formulas of a sheet, and the errors and links that its cells show.

    ``shown`` and ``links`` are by row and column, both from 0. ``is_whole``: all of the sheet was
    looked at.
    """

    def __init__(self, *, is_whole: bool = False) -> None:
        self.is_whole = is_whole
        self.formulas: dict[str, str] = {}
        self.shown: defaultdict[int, dict[int, str]] = defaultdict(dict)
        self.links: defaultdict[int, dict[int, str]] = defaultdict(dict)
        self._targets: dict[str, tuple[str, str]] = {}  # relationship and location by cell
        self._place = self._kind = self._open = self._number = self._value = ""
        self._formula: str | None = None
        self._row = self._column = 0
        self._shared: dict[str, str] = {}
        self._is_full = False

    def apply(self, row: int, left: int, texts: list[str]) -> None:
        """Replace the texts of a row by what its cells show; the first is in column ``left``."""
        for column in [c for c in self.shown.get(row, ()) if 0 <= c - left < len(texts)]:
            texts[column - left] = self.shown[row].pop(column)
        for column in [c for c in self.links.get(row, ()) if 0 <= c - left < len(texts)]:
            text, target = texts[column - left], self.links[row].pop(column)
            texts[column - left] = f"[{text}]({target})" if text not in {"", target} else target

    def has(self, row: int) -> bool:
        """Return whether anything is shown in a row that may hold no values."""
        return row in self.shown or row in self.links

    def rest(self) -> Iterator[str]:
        """Yield the texts outside of all rows of values, each with the name of its cell."""
        for cells in (self.shown, self.links):
            for row, columns in sorted(cells.items()):
                for column, text in sorted(columns.items()):
                    yield f"{column_name(column)}{row + 1}: {text}"

    def resolve_links(self, package: Package, part: str) -> None:
        """Look up the targets of the links in the relationships of the sheet."""
        relations = package.relations(part) if self._targets else {}
        for place, (number, location) in self._targets.items():
            base = relations[number].target if number in relations else ""
            target = f"{base}#{location}" if location else base
            _put(self.links, place, "%20".join(target.split())[:_MAX_TARGET])

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        """Take a start tag."""
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
            self._is_full = self._is_full or len(self._targets) >= _MAX_CELLS
            if len(self._targets) < _MAX_CELLS:
                place, location = attributes.get("ref", ""), attributes.get("location", "")
                self._targets[place] = attribute(attributes, "id"), location

    def end(self, name: str) -> None:
        """Take an end tag."""
        self._open = ""
        if name == "c" and self._place:
            self._end_cell()
        elif name == "worksheet":
            self.is_whole = not self._is_full

    def text(self, data: str) -> None:
        """Take character data."""
        if self._open == "f" and self._formula is not None:
            self._formula += data
        elif self._open == "v":
            self._value += data

    def _end_cell(self) -> None:
        if max(len(self.formulas), len(self.shown)) >= _MAX_CELLS:
            self._is_full = True
        elif self._formula is not None:
            formula = f"={' '.join(self._formula.split())}"
            if self._number and formula != "=":
                self._shared[self._number] = self._place
            elif self._number in self._shared:
                formula = f"as {self._shared[self._number]}, moved"
            # An empty text is a value.
            if self._value or self._kind == "str":
                self.formulas[self._place] = f"{formula} → {self._value}"
            else:
                self.formulas[self._place] = f"{formula} (no value kept)"
                _put(self.shown, self._place, self.formulas[self._place])
        if self._kind == "e" and not self._is_full:
            _put(self.shown, self._place, self._value)


def _put(cells: dict[int, dict[int, str]], place: str, text: str) -> None:
    match = _PLACE.fullmatch(place.partition(":")[0])
    if match and text:
        cells[int(match[2]) - 1][column_index(match[1])] = text


def look_over(source: Path) -> dict[str, Hidden]:
    """Return the hidden rows and columns of the sheets of an XLSX, by part.

    Raises NoText if far cells would cost calamine too much.
    """
    hidden: dict[str, Hidden] = {}
    if not _is_zip(source):
        return hidden
    with Zip(source) as container:
        for entry in islice(container.entries(), _MAX_MEMBERS):
            if not _SHEET_PART.fullmatch(entry.name):
                continue
            cells = _spanned_cells(container, entry, hidden.setdefault(entry.name, Hidden()))
            if cells > _MAX_SPAN:
                raise DataReason.SHEET_SPAN.error(cells=cells, limit=_MAX_SPAN)
    return hidden


def _spanned_cells(container: Zip, entry: Entry, hidden: Hidden) -> int:
    """Return the size of the rectangle around all cells with a reference, 0 for a large sheet.

    Raises NoText for a cell that no sheet can have (ECMA-376-1, section 18.3.1.4).
    """
    columns: set[bytes] = set()
    rows: set[bytes] = set()
    for text in _overlapping(container.chunks(entry)):
        hidden.look(text)
        if any(not row or int(row) > _MAX_ROW for row in _BEYOND.findall(text)):
            raise DataReason.SHEET_ROW.error(limit=_MAX_ROW)
        if entry.size <= _SCANNED_BYTES and (cells := _CELL.findall(text)):
            of_cells = zip(*cells, strict=True)  # a third of the time of a loop
            columns.update(next(of_cells))
            rows.update(next(of_cells))
    if not columns:
        return 0
    across = [column_index(name.decode()) for name in columns]
    down = list(map(int, rows))
    return (max(across) - min(across) + 1) * (max(down) - min(down) + 1)
