"""Spreadsheets (XLSX, XLSM, XLSB, XLS, ODS) by calamine: a table of tab-separated rows a sheet."""

import datetime as dt
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import partial
from itertools import chain, count, takewhile
from pathlib import Path
from typing import TYPE_CHECKING

from fetchstash.handlers._contract import Hints, Part
from fetchstash.handlers._data import DataReason
from fetchstash.handlers._data._aggregate import answer
from fetchstash.handlers._data._number_formats import Cell, general
from fetchstash.handlers._data._rows import Table, table_named
from fetchstash.handlers._data._sheet_cells import (
    Book,
    SheetCells,
    look_over,
    open_book,
)
from fetchstash.handlers._data._sheet_looks import Hidden, LooksByRow, column_name
from fetchstash.handlers._data._sheet_tables import Begin, Row, name_of, tables as tables_of
from fetchstash.handlers._data._xls_looks import XlsLooks
from fetchstash.handlers._office._odf import OdfHandler
from fetchstash.handlers._parts import Reading, Streamed, TextParts
from fetchstash.handlers._previews import TableEnds, one_line, table_preview
from fetchstash.handlers._prose import Prose
from fetchstash.handlers._reasons import Reason
from fetchstash.text import PreviewLimits
from fetchstash.text.facts import is_query
from fetchstash.text.ranges import Heading

if TYPE_CHECKING:
    from python_calamine import CalamineSheet, CalamineWorkbook

_ROWS_A_PART = 1_000

HIDDEN_ROW = "(hidden row)"
"""Stands behind the cells of a row that the program does not show."""


class SheetsHandler(Streamed, TextParts):
    """Reads spreadsheets: cached values, dates as ISO 8601, no empty rows."""

    name = "sheets"

    def read(self, source: Path, extracted: Reading) -> Iterator[Part]:
        """Yield the sheets. Raises NoText if the file cannot be read."""
        from python_calamine import CalamineError  # noqa: PLC0415 - an extra

        if not source.stat().st_size:
            raise Reason.EMPTY_FILE.error()
        hidden = look_over(source)
        with open_book(source, hidden) as book:
            try:
                workbook = _open(source)
            except CalamineError:
                with source.open("rb") as file:
                    if b"application/vnd.oasis.opendocument." not in file.read(256):
                        raise DataReason.SHEETS_DAMAGED.error() from None
                # calamine fails on white space between cells; Markdown tables instead
                yield from OdfHandler().read(source, extracted)
                return
            tables: list[TableEnds] = []
            beside = book.cells() if book else {}
            with DataReason.SHEET_DAMAGED.instead_of(CalamineError), closing(workbook):
                yield from _read_sheets(source, workbook, book, tables, beside, extracted)
            rest = [f"{name}!{line}" for name, cells in beside.items() for line in cells.rest()]
            rest += [
                f"{name}: not all of its formulas, errors and links were looked at"
                for name, cells in beside.items()
                if not cells.is_whole
            ]
            if not tables and not rest:
                raise DataReason.SHEETS_EMPTY.error()
            prose = Prose()
            if rest:
                # Of the level of the sheets, so that it is no part of the last one.
                heading = Heading("Other cells", 1, "lines", 1)
                yield Part("## Other cells\n\n", headings=(heading,))
            for line in rest:
                prose.item(line)
            yield from prose.rest()
            if len(tables) == 1:
                extracted.learn(rows=tables[0].rows, columns=tables[0].columns)
            headers = (f"{t.title.strip('# ')}: {', '.join(t.cells(t.header))}" for t in tables)
            extracted.learn(structure_info="; ".join(headers))
            if book:
                yield from book.notes()
        extracted.preview = table_preview(tables, extracted.limits.preview)

    def find(self, source: Path, path: str, hints: Hints) -> str:
        """Return the formulas of all sheets or of one, a cell a line; or answer a query.

        Raises OutOfRange, BadArgument, TooLarge or NoText.
        """
        del hints
        if is_query(path):
            return answer(path, partial(_table, source))
        _, _, wanted = path.partition("/")
        with open_book(source) as book:
            lines = [
                f"{name}!{place}: {formula}\n"
                for name, cells in (book.cells() if book else {}).items()
                if wanted in {"", name}
                for place, formula in cells.formulas.items()
            ]
        if not lines:
            raise DataReason.SHEETS_NO_FORMULA.error(name=path)
        return "".join(lines)


def _open(source: Path) -> "CalamineWorkbook":
    """Open a workbook. Raises NoText for a known reason, CalamineError for others."""
    from python_calamine import CalamineWorkbook, PasswordError  # noqa: PLC0415 - an extra

    encrypted = DataReason.SHEETS_ENCRYPTED.instead_of(PasswordError)
    with encrypted, DataReason.SHEETS_DAMAGED.instead_of():
        return CalamineWorkbook.from_path(source)  # pyright: ignore[reportUnknownMemberType] - a bare PathLike in its stub


def _read_sheets(
    source: Path,
    workbook: "CalamineWorkbook",
    book: Book | None,
    tables: list[TableEnds],
    beside: dict[str, SheetCells],
    extracted: Reading,
) -> Iterator[Part]:
    """Yield the sheets, with what stands ``beside`` values; add their ends to ``tables``."""
    from python_calamine import SheetVisibleEnum  # noqa: PLC0415 - an extra

    sheets = workbook.sheets_metadata
    looked = book or XlsLooks(source)
    extracted.learn(sheets=len(sheets))
    for number, sheet in enumerate(sheets):
        state = "" if sheet.visible == SheetVisibleEnum.Visible else ", hidden"
        first = book.repeated.get((number, sheet.name)) if book else None
        if first:
            heading = Heading(sheet.name, 1, "lines", 1)
            yield Part(f"## {sheet.name} (as {first}{state})\n\n", headings=(heading,))
        else:
            cells = beside.setdefault(sheet.name, SheetCells(is_whole=True))
            opened = workbook.get_sheet_by_index(number)
            looks, unseen = looked.looks(number, sheet.name)
            limits = extracted.limits.preview
            yield from _read_sheet(opened, state, limits, tables, cells, looks, unseen)


def _read_sheet(
    sheet: "CalamineSheet",
    state: str,
    limits: PreviewLimits,
    tables: list[TableEnds],
    beside: SheetCells,
    looks: LooksByRow,
    hidden: Hidden,
) -> Iterator[Part]:
    """Yield the tables of a sheet: title and header of each, then its rows."""
    (top, left), (bottom, right) = sheet.start or (0, 0), sheet.end or (0, 0)
    heading = Heading(sheet.name, 1, "lines", 1)

    def is_blank(number: int, cells: Sequence[Cell]) -> bool:
        is_empty = not any(cells) and not any(cell != "" for cell in cells)
        return is_empty and not beside.has(number)

    def line(row: Row) -> str:
        cells = row.cells
        for column, look in looks.of(row.number):
            if 0 <= column - left < len(cells) and (shown := look(cells[column - left])):
                cells[column - left] = shown
        texts = _shown(cells)
        if beside.has(row.number):
            beside.apply(row.number, left, texts)
        return "\t".join([*texts, HIDDEN_ROW] if hidden.has_row(row.number) else texts)

    events = tables_of(zip(count(top), sheet.iter_rows()), is_blank)
    first = next(events, None)
    if first is None:
        yield Part(f"## {sheet.name} (empty{state})\n\n", headings=(heading,))
        return
    state += hidden.told(right)
    used = f"{column_name(left)}{top + 1}:{column_name(right)}{bottom + 1}"
    writer = _TableWriter(sheet, tables, limits)
    for event in chain([first], events):
        if isinstance(event, Row):
            yield from writer.row(line(event))
        else:
            yield from writer.end()
            above = [text.strip("\t") for text in map(line, event.above)]
            yield writer.begin(above, line(event.header), f"{used}{state}")
    yield from writer.end()


class _TableWriter:
    """Writes the tables of a sheet, and adds their ends to ``tables``."""

    def __init__(
        self, sheet: "CalamineSheet", tables: list[TableEnds], limits: PreviewLimits
    ) -> None:
        self._sheet = sheet
        self._tables = tables
        self._limits = limits
        self._count = self._rows = 0
        self._title = self._header = ""
        self._batch: list[str] = []
        self._head: list[str] = []
        self._tail: deque[str] = deque(maxlen=limits.rows_tail)

    def begin(self, above: list[str], header: str, used: str) -> Part:
        """Return title, notes and header of the next table. The first stands for the sheet."""
        self._count += 1
        self._rows = 0
        self._head, self._tail = [], deque(maxlen=self._limits.rows_tail)
        name = name_of(self._sheet.name, self._count)
        marks = "##" if self._count == 1 else "###"
        self._title = f"{marks} {name} ({used})" if self._count == 1 else f"{marks} {name}"
        self._header = header
        return Part(
            "\n".join([self._title, *above, header]) + "\n",
            headings=(Heading(name, len(marks) - 1, "lines", 1),),
            table=name,
            columns=self._sheet.width,
        )

    def row(self, line: str) -> Iterator[Part]:
        """Take a row; yield those that are enough for a part."""
        self._batch.append(line)
        if len(self._batch) == _ROWS_A_PART:
            yield self._written()

    def _written(self) -> Part:
        batch, self._batch = self._batch, []
        self._rows += len(batch)
        self._head += batch[: self._limits.rows_head - len(self._head)]
        self._tail.extend(batch)
        return Part("\n".join(batch) + "\n", rows=len(batch))

    def end(self) -> Iterator[Part]:
        """Yield the rest of the open table."""
        if not self._count:
            return
        if self._batch:
            yield self._written()
        columns = self._header.count("\t") + 1
        cells = partial(str.split, sep="\t")
        ends = (self._head, list(self._tail), self._rows, columns, cells, "\t")
        self._tables.append(TableEnds(*ends, self._header, self._title))
        yield Part("\n")


def _table(source: Path, name: str) -> Table:
    """Return the rows of a table for a query, as they are kept: 0.25 for 25 %.

    It is the only one that has rows if no name is given.
    """
    from python_calamine import CalamineError  # noqa: PLC0415 - an extra

    look_over(source)
    with DataReason.SHEETS_DAMAGED.instead_of(CalamineError):
        workbook = _open(source)
        sheets = {sheet: workbook.get_sheet_by_name(sheet) for sheet in workbook.sheet_names}
    names: dict[str, tuple[str, int]] = {}
    filled: list[str] = []
    for sheet, opened in sheets.items():
        begins = sum(isinstance(event, Begin) for event in _events(opened))
        for number in range(1, max(begins, 1) + 1):
            names[name_of(sheet, number)] = sheet, number
            filled += [name_of(sheet, number)] if opened.height > 1 else []
    sheet, number = names[table_named(name, list(names), filled)]
    events = _events(sheets[sheet])
    header: Row | None = None
    for event in events:
        if isinstance(event, Begin):
            number -= 1
            header = event.header
            if not number:
                break
    rows = (_plain(event) for event in takewhile(lambda event: isinstance(event, Row), events))
    return Table(rows, _plain(header) if header else ())


def _events(sheet: "CalamineSheet") -> Iterator[Begin | Row]:
    """Yield the tables of a sheet by its cells' values, without their formats."""

    def is_blank(_: int, cells: Sequence[Cell]) -> bool:
        return not any(cells) and not any(cell != "" for cell in cells)

    return tables_of(enumerate(sheet.iter_rows()), is_blank)


def _plain(row: Begin | Row) -> list[str]:
    """Return the cells of a row as they are kept."""
    cells = row.cells if isinstance(row, Row) else row.header.cells
    return [_kept(cell) if type(cell) is float else _text(cell) for cell in cells]


def _kept(value: float) -> str:
    """Return all digits of a number."""
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)


def _shown(cells: Sequence[Cell]) -> list[str]:
    """Return cells on one line each. Most are short texts and numbers, and there are many."""
    return [
        cell
        if type(cell) is str and cell.isprintable()
        else f"{cell + 0.0:.15g}"  # as ``general`` does
        if type(cell) is float
        else _text(cell)
        for cell in cells
    ]


def _text(cell: Cell) -> str:
    """Return a cell without a format on one line; dates as ISO 8601 without midnight."""
    if isinstance(cell, str):
        return one_line(cell) if "\n" in cell or "\t" in cell or "\r" in cell else cell
    if isinstance(cell, bool):
        return str(cell).upper()
    if isinstance(cell, float):
        return general(cell)
    if isinstance(cell, dt.date | dt.time):
        return cell.isoformat().removesuffix("T00:00:00")
    return str(cell)
