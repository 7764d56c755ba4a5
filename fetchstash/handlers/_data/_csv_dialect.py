"""Delimiter, header and column types of a table of text, found in a sample. Pure functions."""

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass

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
