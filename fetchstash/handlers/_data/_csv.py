"""Tables as text (RFC 4180): their dialect, columns and rows."""

import csv
import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice, repeat, zip_longest
from pathlib import Path

from fetchstash.errors import OutOfRange
from fetchstash.handlers._charset import read_text
from fetchstash.handlers._contract import Hints, Part, PartRequest, PartText
from fetchstash.handlers._data import DataReason
from fetchstash.handlers._data._aggregate import answer
from fetchstash.handlers._data._rows import Table
from fetchstash.handlers._parts import Reading, Streamed, part_text
from fetchstash.handlers._previews import LINE_FEED, TableEnds, table_preview
from fetchstash.handlers._reasons import Reason
from fetchstash.text import clip, counted
from fetchstash.text.facts import is_query

_TSV = "text/tab-separated-values"

# csv.Sniffer takes seconds on a few KiB of quotes. Counting the cells of the first rows is fast and
# more reliable.
_DELIMITERS = {",": "comma", "\t": "tab", ";": "semicolon", "|": "pipe", ":": "colon"}
_SAMPLE_ROWS = 50

_TYPES = (
    ("integer", re.compile(r"[+-]?\d{1,3}(?:,\d{3})+|[+-]?\d+")),
    ("number", re.compile(r"[+-]?(?:\d+[.,]?\d*|[.,]\d+)(?:[eE][+-]?\d+)?%?")),
    (
        "date",
        re.compile(
            r"\d{4}-\d\d?-\d\d?(?:[T ]\d\d?:\d\d.*)?"
            r"|\d{1,2}[./]\d{1,2}[./]\d{2,4}(?: \d\d?:\d\d.*)?"
        ),
    ),
    ("boolean", re.compile(r"true|false|yes|no", re.IGNORECASE)),
)


@dataclass(frozen=True, slots=True)
class Dialect:
    """The delimiter of cells; ``header``: the first row names the columns.

    ``quoted``: quotes hold delimiters and lines.
    """

    delimiter: str
    header: bool
    quoted: bool = True

    def cells(self, line: str) -> list[str]:
        """Return the cells of a row (RFC 4180, section 2); a malformed row is one cell."""
        return _cells(line, self.delimiter) if self.quoted else line.split(self.delimiter)

    def rows(self, lines: list[str]) -> list[list[str]]:
        """Return the cells of rows, in one step where all are well formed.

        A line holds no line end, so that there are fewer rows only if a quote was left open.
        """
        try:
            rows = list(csv.reader(lines, delimiter=self.delimiter)) if self.quoted else []
        except csv.Error:
            rows = []
        return rows if len(rows) == len(lines) else list(map(self.cells, lines))


def _cells(line: str, delimiter: str) -> list[str]:
    """Return the cells of a row with quotes (RFC 4180, section 2); a malformed row is one cell."""
    try:
        return next(iter(csv.reader([line], delimiter=delimiter)), list[str]())
    except csv.Error:
        return [line]


def find_dialect(lines: Sequence[str], *, tabs: bool = False) -> Dialect:
    """Return the dialect of the first ``lines`` of a table; ``tabs``: its media type is TSV."""
    sample = [line for line in lines[:_SAMPLE_ROWS] if line.strip()]
    if tabs and any("\t" in line for line in sample):
        delimiter = "\t"
    else:
        delimiter = max(_DELIMITERS, key=lambda d: _agreement(sample, d))
    return Dialect(delimiter, _has_header([_cells(line, delimiter) for line in sample]))


def _agreement(lines: Sequence[str], delimiter: str) -> tuple[float, int]:
    """Return the share of rows with the most usual number of cells, and that number (0: one)."""
    widths = [len(_cells(line, delimiter)) for line in lines]
    usual = max(set(widths), key=widths.count, default=1)
    return (round(widths.count(usual) / len(widths), 1), usual) if usual > 1 else (0, 0)


def _has_header(rows: Sequence[Sequence[str]]) -> bool:
    """Return whether the first row names the columns: text alone, and few repeated names."""
    names = [name.strip() for name in rows[0]] if len(rows) > 1 else []
    are_texts = all(cell_type(name) in {"text", "empty"} for name in names)
    return any(names) and are_texts and len(set(names)) * 2 > len(names)


def cell_type(cell: str) -> str:
    """Return the type of a cell: integer, number, date, boolean, text or empty."""
    if not (cell := cell.strip()):
        return "empty"
    return next((name for name, pattern in _TYPES if pattern.fullmatch(cell)), "text")


def column_type(cells_of_column: Iterable[str]) -> str:
    """Return the narrowest type that fits all cells of a column."""
    kinds = set(map(cell_type, cells_of_column)) - {"empty"}
    if kinds == {"integer", "number"}:
        return "number"
    return kinds.pop() if len(kinds) == 1 else "text" if kinds else "empty"


# Bounds of a row: an unclosed quote would make one cell of the rest of the file.
_MAX_ROW_LINES, _MAX_ROW_CHARS = 1_000, 4_000_000
_CELL_QUOTE = re.compile(r'(?:^|[,;\t|:])"')
_TYPE_ROWS = 1_000


class CsvHandler(Streamed):
    """Reads tables whose cells are separated by commas, tabs, semicolons or the like."""

    name = "csv"

    def read(self, source: Path, extracted: Reading) -> Iterator[Part]:
        """Yield the header, then the rows unchanged, one a line."""
        before, header, batches, dialect = _opened(source, extracted.hints)
        limits = extracted.limits.preview
        rows = next(batches)
        split, delimiter = dialect.cells, dialect.delimiter
        widths = (len(split(row)) for row in [header, *rows[:_TYPE_ROWS]] if row)
        columns = max(widths, default=0)
        if rows or header or before:
            named = [*before, header] if header else before
            yield Part("".join(f"{line}\n" for line in named), table="", columns=columns)
        first: list[str] = []
        last: deque[str] = deque(maxlen=limits.rows_tail)
        count = 0
        for batch in chain([rows], batches):
            count += len(batch)
            first += batch[: _TYPE_ROWS - len(first)]
            last.extend(batch)
            if batch:
                yield Part("\n".join(batch) + "\n", rows=len(batch), columns=columns)
        names = split(header) if header else [str(n) for n in range(1, columns + 1)]
        types = map(column_type, zip_longest(*map(split, first), fillvalue=""))
        described = zip(names[: limits.max_columns], chain(types, repeat("empty")), strict=False)
        shown = ", ".join(f"{clip(name.strip(), 60)} {kind}" for name, kind in described)
        size = f"{counted(count, 'row')} × {counted(columns, 'column')} ({_DELIMITERS[delimiter]})"
        extracted.learn(rows=count, columns=columns, structure_info=f"{size}: {shown}")
        ends = TableEnds(first, list(last), count, columns, split, delimiter, header)
        extracted.preview = table_preview([ends], limits)

    def part(self, request: PartRequest) -> PartText:
        """Return some columns: the path holds names or numbers (from 1), separated by commas.

        Or it is a query over the rows. Raises OutOfRange, BadArgument or TooLarge.
        """
        if request.render == "image":
            raise Reason.NOT_A_PICTURE.error()
        _, header, batches, dialect = _opened(request.source, request.hints)
        names, delimiter = dialect.cells(header) if header else [], dialect.delimiter
        read = chain.from_iterable(map(dialect.rows, batches))
        first = list(islice(read, 1))
        rows = chain(first, read)

        def opened(name: str) -> Table:
            if name:
                raise DataReason.QUERY_NO_ROWS.error(name=name)
            return Table(rows, names, comma=delimiter == ";")

        try:
            chosen = _chosen_columns(request.path, names or [""] * len(first[0] if first else ()))
        except OutOfRange as error:  # "total(height)": its columns, and a sum that works
            error.excerpt = opened("").hint()
            raise
        if chosen is None:
            return part_text(answer(request.path, opened), request)
        lines = [_joined_cells(row, chosen, delimiter) for row in rows]
        named = [_joined_cells(names, chosen, delimiter)] if names else []
        if request.unit != "rows":
            return part_text("".join(named + lines), request)
        body = part_text("".join(lines), request)
        return PartText("".join(named) + body.text, body.total)


def _joined_cells(row: Sequence[str], chosen: Sequence[int], delimiter: str) -> str:
    return delimiter.join(row[c] if c < len(row) else "" for c in chosen) + "\n"


def _opened(source: Path, hints: Hints) -> tuple[list[str], str, Iterator[list[str]], Dialect]:
    """Return Excel's own line ("sep=;"), the header, the rows in batches, and the dialect.

    The header is "" where there is none.
    """
    batches = filter(None, _one_row_a_line(read_text(source, hints.charset)))
    rows = next(batches, list[str]())
    before = [rows.pop(0)] if rows and rows[0].lower().startswith("sep=") else []
    dialect = find_dialect(rows, tabs=hints.media_type == _TSV)
    if dialect.delimiter == "\t":
        dialect = replace(dialect, quoted=_has_quoted_cells(source, hints))
        parted_by = "\t" if dialect.quoted else ""
        batches = filter(None, _one_row_a_line(read_text(source, hints.charset), parted_by))
        rows = next(batches, list[str]())[len(before) :]
        dialect = replace(dialect, header=_has_header(dialect.rows(rows[:_SAMPLE_ROWS])))
    first = rows.pop(0) if dialect.header else ""
    return before, first, chain([rows], batches), dialect


def _has_quoted_cells(source: Path, hints: Hints) -> bool:
    """Return whether the quotes of a file of tabs hold cells, as Excel writes them.

    IANA's text/tab-separated-values has no quotes: they are signs of the text unless each row is
    well formed with them and as wide as the first, and its lines by themselves are not.
    """
    of_row: list[str] = []
    width = 0

    def lines() -> Iterator[str]:
        for chunk in read_text(source, hints.charset):
            for line in filter(None, chunk.split("\n") if '"' in chunk or not width else ()):
                of_row.append(line)
                yield line

    try:
        for cells in csv.reader(lines(), delimiter="\t", strict=True):
            width = width or len(cells)
            fits = len(cells) == width > 1 or not any('"' in line for line in of_row)
            if not fits or (len(of_row) > 1 and all(n.count("\t") == width - 1 for n in of_row)):
                return False
            of_row.clear()
    except csv.Error:
        return False
    return True


def _one_row_a_line(
    chunks: Iterator[str], delimiters: Iterable[str] = _DELIMITERS
) -> Iterator[list[str]]:
    """Yield the rows of a table in batches, without empty ones, each on one line.

    A quoted cell stands behind one of ``delimiters`` (none: no cell is quoted).
    """
    open_lines: list[str] = []
    for chunk in chunks:
        was_open, lines = bool(open_lines), open_lines + chunk.removesuffix("\n").split("\n")
        open_lines = []
        if was_open or '"' in chunk:
            lines, open_lines = _joined(lines, delimiters)
        yield [line for line in lines if line]
    if open_lines:
        yield [line for line in open_lines if line]


def _joined(lines: list[str], delimiters: Iterable[str]) -> tuple[list[str], list[str]]:
    """Join the lines of each row; return the rows, and the lines of an unfinished last one."""
    rows: list[str] = []
    at = 0
    while at < len(lines):
        end = at + 1
        # Quotes come in pairs (RFC 4180, section 2): an odd number leaves a cell open, or one is a
        # mark of inches.
        if lines[at].count('"') % 2 and _ends_in_cell(lines[at], delimiters):
            reach = range(end, min(len(lines), at + _MAX_ROW_LINES))
            if closing := next((n for n in reach if lines[n].count('"') % 2), 0):
                end = closing + 1
            elif len(lines) - at < _MAX_ROW_LINES and sum(map(len, lines[at:])) < _MAX_ROW_CHARS:
                return rows, lines[at:]
        rows.append(LINE_FEED.join(lines[at:end]))
        at = end
    return rows, []


def _ends_in_cell(line: str, delimiters: Iterable[str]) -> bool:
    """Return whether a quoted cell is open at the end of ``line``, for one of the delimiters."""
    if not _CELL_QUOTE.search(line):  # as a mark of inches
        return False
    for delimiter in (d for d in delimiters if f'{d}"' in d + line):
        try:
            next(csv.reader([line], delimiter=delimiter, strict=True))
        except csv.Error as error:
            if "expected after" not in str(error):  # text behind the quote that ends a cell
                return True
    return False


def _chosen_columns(path: str, header: Sequence[str]) -> list[int] | None:
    """Return the places of the columns that ``path`` lists, None if it is a query instead."""
    names = [name.strip() for name in header]
    chosen: list[int] = []
    for name in (part.strip() for part in path.split(",")):
        if name and name in names:
            chosen.append(names.index(name))
        elif name.isdecimal() and 1 <= int(name) <= len(names):
            chosen.append(int(name) - 1)
        elif is_query(path):
            return None
        else:
            raise DataReason.NO_COLUMN.error(name=name, count=len(names))
    return chosen
