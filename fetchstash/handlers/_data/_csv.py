"""Tables as text (RFC 4180): their dialect, columns and rows."""

import csv
import re
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fetchstash.handlers._charset import read_text
from fetchstash.handlers._contract import Extracted, Hints, Part, PartRequest, PartText
from fetchstash.handlers._data import DataReason
from fetchstash.handlers._limits import ExtractLimits
from fetchstash.handlers._shared._parts import part_text
from fetchstash.handlers._shared._previews import TableEnds, table_preview
from fetchstash.text import PreviewLimits, clip

# csv.Sniffer takes seconds on a few KiB of quotes. Counting the cells of the first rows is fast and
# more reliable.
_DELIMITERS = (",", "\t", ";", "|", ":")
_NAMES = {",": "comma", "\t": "tab", ";": "semicolon", "|": "pipe", ":": "colon"}
_SAMPLE_ROWS = 50

_INTEGER = re.compile(r"[+-]?\d{1,3}(?:,\d{3})+|[+-]?\d+")
_NUMBER = re.compile(r"[+-]?(?:\d+[.,]?\d*|[.,]\d+)(?:[eE][+-]?\d+)?%?")
_DATE = re.compile(
    r"\d{4}-\d\d?-\d\d?(?:[T ]\d\d?:\d\d.*)?|\d{1,2}[./]\d{1,2}[./]\d{2,4}(?: \d\d?:\d\d.*)?"
)
_BOOLEAN = re.compile(r"true|false|yes|no", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Dialect:
    """The delimiter of cells; ``header``: the first row names the columns."""

    delimiter: str
    header: bool

    @property
    def name(self) -> str:
        """The name of the delimiter."""
        return _NAMES.get(self.delimiter, repr(self.delimiter))


def cells(line: str, delimiter: str) -> list[str]:
    """Return the cells of a row (RFC 4180, section 2); a malformed row is one cell."""
    try:
        return next(iter(csv.reader([line], delimiter=delimiter)), list[str]())
    except csv.Error:
        return [line]


def find_dialect(lines: Sequence[str], *, tabs: bool = False) -> Dialect:
    """Return the dialect of the first ``lines`` of a table; ``tabs``: its media type is TSV."""
    sample = [line for line in lines[:_SAMPLE_ROWS] if line.strip()]
    delimiter = (
        "\t"
        if tabs and any("\t" in line for line in sample)
        else max(_DELIMITERS, key=lambda d: _agreement(sample, d))
    )
    rows = [cells(line, delimiter) for line in sample]
    return Dialect(delimiter, _has_header(rows))


def _agreement(lines: Sequence[str], delimiter: str) -> tuple[float, int]:
    """Return the share of rows with the most usual number of cells, and that number (0: one)."""
    widths = [len(cells(line, delimiter)) for line in lines]
    usual = max(set(widths), key=widths.count, default=1)
    if usual < 2:
        return 0, 0
    return round(widths.count(usual) / len(widths), 1), usual


def _has_header(rows: Sequence[Sequence[str]]) -> bool:
    """Return whether the first row names the columns: text alone, and few repeated names."""
    if len(rows) < 2 or not rows[0]:
        return False
    names = [name.strip() for name in rows[0]]
    return (
        all(cell_type(name) in {"text", "empty"} for name in names)
        and any(names)
        and len(set(names)) * 2 > len(names)
    )


def cell_type(cell: str) -> str:
    """Return the type of a cell: integer, number, date, boolean, text or empty."""
    cell = cell.strip()
    if not cell:
        return "empty"
    for name, pattern in (
        ("integer", _INTEGER),
        ("number", _NUMBER),
        ("date", _DATE),
        ("boolean", _BOOLEAN),
    ):
        if pattern.fullmatch(cell):
            return name
    return "text"


def column_types(rows: Sequence[Sequence[str]], columns: int) -> list[str]:
    """Return the narrowest type that fits all cells of each column."""
    types: list[str] = []
    for column in range(columns):
        kinds = {cell_type(row[column]) for row in rows if column < len(row)} - {"empty"}
        if kinds == {"integer", "number"}:
            kinds = {"number"}
        types.append(kinds.pop() if len(kinds) == 1 else "text" if kinds else "empty")
    return types


# Replaces a line feed inside of a cell, so that a row is one line.
LINE_FEED = "⏎"
# Bounds of a row: an unclosed quote would make one cell of the rest of the file.
_MAX_ROW_LINES, _MAX_ROW_CHARS = 1_000, 4_000_000
_TYPE_ROWS = 1_000

_CELL_QUOTE = re.compile(r'(?:^|[,;\t|:])"')
# The rest of a quoted cell, with doubled quotes in it (RFC 4180, section 2). ``re`` keeps some
# hundred bytes for each repetition, so their number is bounded.
_QUOTED = re.compile(r'[^"]*(?:""[^"]*){0,1000}("(?!"))?')


class CsvHandler:
    """Reads tables whose cells are separated by commas, tabs, semicolons or the like."""

    name = "csv"

    def extract(self, source: Path, hints: Hints, limits: ExtractLimits) -> Extracted:
        """Return the rows unchanged, one a line."""
        extracted = Extracted(parts=None)
        table = _Table(limits.preview, tabs=hints.media_type == "text/tab-separated-values")
        extracted.parts = table.parts(extracted, read_text(source, hints.charset))
        return extracted

    def part(self, request: PartRequest) -> PartText:
        """Return some columns: the path holds names or numbers (from 1), separated by commas.

        Raises OutOfRange or BadArgument.
        """
        chunks = one_row_a_line(read_text(request.source, request.hints.charset))
        lines = [line for chunk in chunks for line in chunk]
        dialect = find_dialect(lines)
        names = cells(lines[0], dialect.delimiter) if lines else []
        chosen = _chosen_columns(request.path, names, dialect)
        rows = (cells(line, dialect.delimiter) for line in lines)
        text = "".join(
            dialect.delimiter.join(row[c] if c < len(row) else "" for c in chosen) + "\n"
            for row in rows
        )
        if request.unit == "rows" and dialect.header:
            header, _, text = text.partition("\n")
            body = part_text(text, request)
            return PartText(f"{header}\n{body.text}", body.total)
        return part_text(text, request)


def one_row_a_line(chunks: Iterator[str]) -> Iterator[list[str]]:
    """Yield the rows of a table in batches, without empty ones, each on one line."""
    open_lines: list[str] = []
    for chunk in chunks:
        was_open, lines = bool(open_lines), open_lines + chunk.removesuffix("\n").split("\n")
        open_lines = []
        if was_open or '"' in chunk:
            lines, open_lines = _joined(lines)
        yield [line for line in lines if line]
    if open_lines:
        yield [line for line in open_lines if line]


def _joined(lines: list[str]) -> tuple[list[str], list[str]]:
    """Join the lines of each row; return the rows, and the lines of an unfinished last one."""
    rows: list[str] = []
    at = 0
    while at < len(lines):
        end = at + 1
        # Quotes come in pairs (RFC 4180, section 2): an odd number leaves a cell open, or one is a
        # mark of inches.
        if lines[at].count('"') % 2 and _ends_in_cell(lines[at]):
            last = next(
                (
                    n
                    for n in range(end, min(len(lines), at + _MAX_ROW_LINES))
                    if lines[n].count('"') % 2
                ),
                None,
            )
            if last is not None:
                end = last + 1
            elif len(lines) - at < _MAX_ROW_LINES and sum(map(len, lines[at:])) < _MAX_ROW_CHARS:
                return rows, lines[at:]
        rows.append(LINE_FEED.join(lines[at:end]))
        at = end
    return rows, []


def _ends_in_cell(line: str) -> bool:
    """Return whether a quoted cell is open at the end of ``line``, for any delimiter."""
    at = 0
    while opening := _CELL_QUOTE.search(line, at):
        at = opening.end()
        while (rest := _QUOTED.match(line, at)) and not rest[1]:
            at = rest.end()
            if at == len(line):
                return True
        assert rest is not None
        at = rest.end()
    return False


def _chosen_columns(path: str, header: list[str], dialect: Dialect) -> list[int]:
    names = [name.strip() for name in header] if dialect.header else []
    chosen: list[int] = []
    for name in (part.strip() for part in path.split(",")):
        if name in names:
            chosen.append(names.index(name))
        elif name.isdecimal() and 1 <= int(name) <= len(header):
            chosen.append(int(name) - 1)
        else:
            raise DataReason.NO_COLUMN.error(name=name, count=len(header))
    return chosen


@dataclass(slots=True)
class _Table:
    """The facts of a table, collected while its rows pass."""

    limits: PreviewLimits
    tabs: bool
    dialect: Dialect = field(default=Dialect(",", header=False))
    header: str = ""
    columns: int = 0
    rows: int = 0
    first: list[str] = field(default_factory=list[str])
    last: deque[str] = field(default_factory=deque[str])

    def parts(self, extracted: Extracted, chunks: Iterator[str]) -> Iterator[Part]:
        """Yield the header, then the rows; add the facts at the end."""
        self.last = deque(maxlen=self.limits.rows_tail)
        has_begun = False
        for rows in one_row_a_line(chunks):
            if rows and not has_begun:
                has_begun = True
                yield self._begin(rows)
            self.rows += len(rows)
            self.first += rows[: _TYPE_ROWS - len(self.first)]
            self.last.extend(rows)
            if rows:
                yield Part("\n".join(rows) + "\n", rows=len(rows), columns=self.columns)
        extracted.learn(rows=self.rows, columns=self.columns, structure_info=self._summary())
        delimiter = self.dialect.delimiter
        ends = TableEnds(
            self.first,
            list(self.last),
            self.rows,
            self.columns,
            lambda row: cells(row, delimiter),
            delimiter,
            self.header,
        )
        extracted.preview = table_preview([ends], self.limits)

    def _begin(self, rows: list[str]) -> Part:
        """Return the part before the rows, taken off ``rows``: the header, and Excel's "sep=;"."""
        before = [rows.pop(0)] if rows[0].lower().startswith("sep=") else []
        self.dialect = find_dialect(rows, tabs=self.tabs)
        sample = [cells(row, self.dialect.delimiter) for row in rows[:_TYPE_ROWS]]
        self.columns = max(map(len, sample), default=0)
        if self.dialect.header:
            self.header = rows.pop(0)
            before.append(self.header)
        return Part("".join(f"{line}\n" for line in before), table="", columns=self.columns)

    def _summary(self) -> str:
        delimiter = self.dialect.delimiter
        names = (
            cells(self.header, delimiter)
            if self.header
            else [str(n) for n in range(1, self.columns + 1)]
        )
        types = column_types([cells(row, delimiter) for row in self.first], self.columns)
        shown = [
            f"{clip(name.strip(), 60)} {kind}" for name, kind in zip(names, types, strict=False)
        ][: self.limits.max_columns]
        size = f"{self.rows:,} rows × {self.columns:,} columns ({self.dialect.name})"
        return f"{size}: {', '.join(shown)}"
