"""Spreadsheets (XLSX, XLSM, XLSB, XLS, ODS) by calamine: a table of tab-separated rows a sheet."""

import datetime as dt
from collections import deque
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING

from fetchstash.handlers._contract import Hints, Part
from fetchstash.handlers._data import DataReason
from fetchstash.handlers._data._aggregate import answer
from fetchstash.handlers._data._rows import Table, table_named
from fetchstash.handlers._data._sheet_cells import (
    Book,
    SheetCells,
    column_name,
    open_book,
    refuse_far_cells,
)
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
_HEADER_WITHIN = 20

Cell = int | float | str | bool | dt.time | dt.date | dt.datetime | dt.timedelta


class SheetsHandler(Streamed, TextParts):
    """Reads spreadsheets: cached values, dates as ISO 8601, no empty rows."""

    name = "sheets"

    def read(self, source: Path, extracted: Reading) -> Iterator[Part]:
        """Yield the sheets. Raises NoText if the file cannot be read."""
        from python_calamine import CalamineError  # noqa: PLC0415 - an extra

        if not source.stat().st_size:
            raise Reason.EMPTY_FILE.error()
        refuse_far_cells(source)
        with open_book(source) as book:
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
                yield from _read_sheets(workbook, book, tables, beside, extracted)
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
            headers = (f"{t.title[3:]}: {', '.join(t.cells(t.header))}" for t in tables)
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
    workbook: "CalamineWorkbook",
    book: Book | None,
    tables: list[TableEnds],
    beside: dict[str, SheetCells],
    extracted: Reading,
) -> Iterator[Part]:
    """Yield the sheets, with what stands ``beside`` values; add their ends to ``tables``."""
    from python_calamine import SheetVisibleEnum  # noqa: PLC0415 - an extra

    sheets = workbook.sheets_metadata
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
            yield from _read_sheet(opened, state, extracted.limits.preview, tables, cells)


def _read_sheet(
    sheet: "CalamineSheet",
    state: str,
    limits: PreviewLimits,
    tables: list[TableEnds],
    beside: SheetCells,
) -> Iterator[Part]:
    """Yield title and header of a sheet, then its rows."""
    rows = _rows(sheet, beside)
    header = next(rows, None)
    heading = Heading(sheet.name, 1, "lines", 1)
    if header is None:
        yield Part(f"## {sheet.name} (empty{state})\n\n", headings=(heading,))
        return
    (top, left), (bottom, right) = sheet.start or (0, 0), sheet.end or (0, 0)
    used = f"{column_name(left)}{top + 1}:{column_name(right)}{bottom + 1}"
    title = f"## {sheet.name} ({used}{state})"
    head: list[str] = []
    tail: deque[str] = deque(maxlen=limits.rows_tail)
    count = 0
    yield Part(f"{title}\n{header}\n", headings=(heading,), table=sheet.name, columns=sheet.width)
    while batch := list(islice(rows, _ROWS_A_PART)):
        count += len(batch)
        head += batch[: limits.rows_head - len(head)]
        tail.extend(batch)
        yield Part("\n".join(batch) + "\n", rows=len(batch))
    columns = header.count("\t") + 1
    cells = partial(str.split, sep="\t")
    tables.append(TableEnds(head, list(tail), count, columns, cells, "\t", header, title))
    yield Part("\n")


def _rows(sheet: "CalamineSheet", beside: SheetCells) -> Iterator[str]:
    top, left = sheet.start or (0, 0)
    has_marks = bool(beside.shown or beside.links)
    for row, texts in enumerate(_texts(sheet), start=top):
        if has_marks:
            beside.apply(row, left, texts)
        line = "\t".join(texts)
        if line.strip("\t"):
            yield line


def _texts(sheet: "CalamineSheet") -> Iterator[list[str]]:
    for row in sheet.iter_rows():
        yield [_text(cell) for cell in row]


def _table(source: Path, name: str) -> Table:
    """Return the rows of a sheet for a query, of the only one that has rows if no name is given.

    Its header is the first row, but for titles and notes above it, which fill fewer cells.
    """
    from python_calamine import CalamineError  # noqa: PLC0415 - an extra

    refuse_far_cells(source)
    with DataReason.SHEETS_DAMAGED.instead_of(CalamineError):
        workbook = _open(source)
        sheets = {sheet: workbook.get_sheet_by_name(sheet) for sheet in workbook.sheet_names}
    filled = [sheet for sheet, opened in sheets.items() if opened.height > 1]
    rows = filter(any, _texts(sheets[table_named(name, list(sheets), filled)]))
    first = list(islice(rows, _HEADER_WITHIN))
    widths = [sum(map(bool, row)) for row in first]
    at = next((n for n, width in enumerate(widths) if 2 * width > max(widths)), 0)
    return Table(chain(first[at + 1 :], rows), first[at] if first else ())


def _text(cell: Cell) -> str:
    """Return a cell on one line: integers without a point, dates as ISO 8601 without midnight."""
    if isinstance(cell, str):
        return one_line(cell) if "\n" in cell or "\t" in cell or "\r" in cell else cell
    if isinstance(cell, bool):
        return str(cell).upper()
    if isinstance(cell, float):
        return str(int(cell)) if cell.is_integer() and abs(cell) < 1e15 else repr(cell)
    if isinstance(cell, dt.date | dt.time):
        return cell.isoformat().removesuffix("T00:00:00")
    return str(cell)
