"""Spreadsheets (XLSX, XLSM, XLSB, XLS, ODS) by calamine: a table of tab-separated rows a sheet."""

import datetime as dt
import re
from collections import deque
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from fetchstash.handlers._contract import Extracted, Hints, Part, PartRequest, PartText
from fetchstash.handlers._data import DataReason
from fetchstash.handlers._data._sheet_cells import (
    SheetCells,
    column_index,
    column_name,
    read_cells,
    read_notes,
    repeated_sheets,
)
from fetchstash.handlers._limits import ExtractLimits
from fetchstash.handlers._office._odf import OdfHandler
from fetchstash.handlers._reasons import Reason
from fetchstash.handlers._shared._parts import part_text
from fetchstash.handlers._shared._previews import TableEnds, table_preview
from fetchstash.handlers._shared._prose import Prose
from fetchstash.handlers._shared._zip import Entry, Zip
from fetchstash.text import PreviewLimits
from fetchstash.text.ranges import Heading

if TYPE_CHECKING:
    from python_calamine import CalamineSheet, CalamineWorkbook

_ROWS_A_PART = 1_000
# calamine holds the rectangle between the first and the last cell: two far cells take 17 billion.
_MAX_CELLS = 5_000_000
# Larger sheets are not measured: their cells are work in any case, and the worker has its limits.
_SCANNED_BYTES = 4 * 1024 * 1024
_MAX_MEMBERS = 20_000
_SHEET_PART = re.compile(r"xl/worksheets/[^/]+\.xml")
_CELL = re.compile(rb"""<(?:\w+:)?c\b[^>]{0,200}?\br=["']([A-Z]{1,3})(\d{1,7})["']""")
_CELL_OVERLAP = 256
# A row or a cell behind the last of any sheet (XFD1048576): calamine would count up to it.
_BEYOND = re.compile(rb"""\sr\s*=\s*["'](?:[A-Za-z]{4}|[A-Za-z]{0,3}0*([1-9]\d{6,9}))""")
_MAX_ROW = 1_048_576
# Replaces a line feed inside of a cell, as in tables of CSV files, so that a row is one line.
_LINE_FEED = "⏎"
_BREAK = re.compile(r"\r\n|\r|\n")

Cell = int | float | str | bool | dt.time | dt.date | dt.datetime | dt.timedelta


class SheetsHandler:
    """Reads spreadsheets: cached values, dates as ISO 8601, no empty rows."""

    name = "sheets"

    def extract(self, source: Path, hints: Hints, limits: ExtractLimits) -> Extracted:  # noqa: ARG002 - the file is enough
        """Return the sheets. Reading the parts raises NoText if the file cannot be read."""
        extracted = Extracted(parts=None)
        extracted.parts = _read(source, limits.preview, extracted)
        return extracted

    def part(self, request: PartRequest) -> PartText:
        """Return the formulas of all sheets or of one, a cell a line. Raises OutOfRange."""
        if request.render == "image":
            raise Reason.NOT_A_PICTURE.error()
        _, _, wanted = request.path.partition("/")
        lines = [
            f"{name}!{place}: {formula}\n"
            for name, cells in read_cells(request.source).items()
            if wanted in {"", name}
            for place, formula in cells.formulas.items()
        ]
        if not lines:
            raise DataReason.SHEETS_NO_FORMULA.error(name=request.path)
        return part_text("".join(lines), request)


def _read(source: Path, limits: PreviewLimits, extracted: Extracted) -> Iterator[Part]:
    from python_calamine import CalamineError, SheetVisibleEnum  # noqa: PLC0415 - an extra

    try:
        workbook = _open(source)
    except CalamineError:
        if not _is_opendocument(source):
            raise DataReason.SHEETS_DAMAGED.error() from None
        yield from OdfHandler().read(
            source, extracted
        )  # calamine fails on white space between cells; Markdown tables instead
        return
    try:
        sheets = workbook.sheets_metadata
        extracted.learn(sheets=len(sheets))
        tables: list[TableEnds] = []
        repeated = repeated_sheets(source)
        beside = read_cells(source)
        for number, sheet in enumerate(sheets):
            state = "" if sheet.visible == SheetVisibleEnum.Visible else ", hidden"
            if first := repeated.get((number, sheet.name)):
                heading = Heading(sheet.name, 1, "lines", 1)
                yield Part(f"## {sheet.name} (as {first}{state})\n\n", headings=(heading,))
                continue
            cells = beside.setdefault(sheet.name, SheetCells(is_whole=True))
            opened = workbook.get_sheet_by_index(number)
            yield from _read_sheet(opened, state, limits, tables, cells)
    except CalamineError:
        raise DataReason.SHEET_DAMAGED.error() from None
    except BaseException as error:
        # A panic in calamine's Rust is a BaseException that no module exports.
        if type(error).__name__ != "PanicException":
            raise
        raise DataReason.SHEET_DAMAGED.error() from None
    finally:
        workbook.close()
    rest = list(_rest(beside))
    yield from rest
    if not tables and not rest:
        raise DataReason.SHEETS_EMPTY.error()
    if len(tables) == 1:
        extracted.learn(rows=tables[0].rows, columns=tables[0].columns)
    headers = (
        f"{table.title.removeprefix('## ')}: {', '.join(_cells(table.header))}" for table in tables
    )
    extracted.learn(structure_info="; ".join(headers))
    yield from read_notes(source)
    extracted.preview = table_preview(tables, limits)


def _rest(sheets: Mapping[str, SheetCells]) -> Iterator[Part]:
    """Yield the formulas, errors and links that stand in no row of values."""
    prose = Prose()
    lines = [f"{name}!{place}: {text}" for name, c in sheets.items() for place, text in c.rest()]
    lines += [
        f"{name}: not all of its formulas, errors and links were looked at"
        for name, cells in sheets.items()
        if not cells.is_whole
    ]
    if lines:
        prose.heading("Other cells", 2)
    for line in lines:
        prose.item(line)
    yield from prose.rest()


def _open(source: Path) -> "CalamineWorkbook":
    """Open a workbook. Raises NoText for a known reason, CalamineError for others."""
    from python_calamine import CalamineWorkbook, PasswordError  # noqa: PLC0415 - an extra

    if not source.stat().st_size:
        raise Reason.EMPTY_FILE.error()
    _refuse_far_cells(source)
    try:
        return CalamineWorkbook.from_path(source)  # pyright: ignore[reportUnknownMemberType] - a bare PathLike in its stub
    except PasswordError:
        raise DataReason.SHEETS_ENCRYPTED.error() from None
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        raise DataReason.SHEETS_DAMAGED.error() from None


def _is_opendocument(source: Path) -> bool:
    with source.open("rb") as file:
        return b"application/vnd.oasis.opendocument." in file.read(256)


def _read_sheet(
    sheet: "CalamineSheet",
    state: str,
    limits: PreviewLimits,
    tables: list[TableEnds],
    beside: SheetCells,
) -> Iterator[Part]:
    """Yield title and header of a sheet, then its rows, with what stands there beside values."""
    rows = _rows(sheet, beside)
    header = next(rows, None)
    heading = Heading(sheet.name, 1, "lines", 1)
    if header is None:
        yield Part(f"## {sheet.name} (empty{state})\n\n", headings=(heading,))
        return
    title = f"## {sheet.name} ({_used_range(sheet)}{state})"
    head: list[str] = []
    tail: deque[str] = deque(maxlen=limits.rows_tail)
    count = 0
    yield Part(f"{title}\n{header}\n", headings=(heading,), table=sheet.name, columns=sheet.width)
    while batch := list(islice(rows, _ROWS_A_PART)):
        count += len(batch)
        head += batch[: limits.rows_head - len(head)]
        tail.extend(batch)
        yield Part("\n".join(batch) + "\n", rows=len(batch))
    tables.append(
        TableEnds(head, list(tail), count, len(_cells(header)), _cells, "\t", header, title)
    )
    yield Part("\n")


def _rows(sheet: "CalamineSheet", beside: SheetCells) -> Iterator[str]:
    top, left = sheet.start or (0, 0)
    has_marks = bool(beside.shown or beside.links)
    for row, cells in enumerate(sheet.iter_rows(), start=top):
        texts = [_text(cell) for cell in cells]
        if has_marks:
            beside.apply(row, left, texts)
        line = "\t".join(texts)
        if line.strip("\t"):
            yield line


def _cells(row: str) -> list[str]:
    return row.split("\t")


def _used_range(sheet: "CalamineSheet") -> str:
    (top, left), (bottom, right) = sheet.start or (0, 0), sheet.end or (0, 0)
    return f"{column_name(left)}{top + 1}:{column_name(right)}{bottom + 1}"


def _text(cell: Cell) -> str:
    """Return a cell on one line: integers without a point, dates as ISO 8601 without midnight."""
    if isinstance(cell, str):
        return (
            _BREAK.sub(_LINE_FEED, cell).replace("\t", " ")
            if "\n" in cell or "\t" in cell or "\r" in cell
            else cell
        )
    if isinstance(cell, bool):
        return str(cell).upper()
    if isinstance(cell, float):
        return str(int(cell)) if cell.is_integer() and abs(cell) < 1e15 else repr(cell)
    if isinstance(cell, dt.date | dt.time):
        return cell.isoformat().removesuffix("T00:00:00")
    return str(cell)


def _refuse_far_cells(source: Path) -> None:
    """Raise NoText if far cells of an XLSX sheet would cost calamine too much."""
    with source.open("rb") as file:
        if file.read(4) != b"PK\x03\x04":
            return
    with Zip(source) as container:
        for entry in islice(container.entries(), _MAX_MEMBERS):
            if not _SHEET_PART.fullmatch(entry.name):
                continue
            cells = _spanned_cells(container, entry)
            if cells > _MAX_CELLS:
                raise DataReason.SHEET_SPAN.error(cells=cells, limit=_MAX_CELLS)


def _spanned_cells(container: Zip, entry: Entry) -> int:
    """Return the size of the rectangle around all cells with a reference, 0 for a large sheet.

    Raises NoText for a cell that no sheet can have (ECMA-376-1, section 18.3.1.4).
    """
    columns: set[bytes] = set()
    first_row, last_row = _MAX_ROW, 0
    kept = b""
    for chunk in container.chunks(entry):
        text = kept + chunk
        if any(not row or int(row) > _MAX_ROW for row in _BEYOND.findall(text)):
            raise DataReason.SHEET_ROW.error(limit=_MAX_ROW)
        for column, row in _CELL.findall(text) if entry.size <= _SCANNED_BYTES else ():
            columns.add(column)
            number = int(row)
            first_row, last_row = min(first_row, number), max(last_row, number)
        kept = text[-_CELL_OVERLAP:]
    if not columns:
        return 0
    indexes = [column_index(name.decode()) for name in columns]
    return (max(indexes) - min(indexes) + 1) * (last_row - first_row + 1)
