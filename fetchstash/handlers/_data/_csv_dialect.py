"""How a table of text is written: its delimiter, whether it has a header, and what its columns hold. Pure functions on a sample."""

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass

# csv.Sniffer takes seconds on a few KiB of quotes; counting cells in the first rows tells more and
# costs nothing.
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
    """How the cells of a row are parted; ``header``: the first row names the columns."""

    delimiter: str
    header: bool

    @property
    def name(self) -> str:
        """What the delimiter is called."""
        return _NAMES.get(self.delimiter, repr(self.delimiter))


def cells(line: str, delimiter: str) -> list[str]:
    """Return the cells of one row (RFC 4180, section 2); a row that is no good comes back as one cell."""
    try:
        return next(iter(csv.reader([line], delimiter=delimiter)), list[str]())
    except csv.Error:
        return [line]


def find_dialect(lines: Sequence[str], *, tabs: bool = False) -> Dialect:
    """Return how ``lines``, the first of a table, are written. ``tabs``: its media type says that tabs part the cells."""
    sample = [line for line in lines[:_SAMPLE_ROWS] if line.strip()]
    delimiter = (
        "\t"
        if tabs and any("\t" in line for line in sample)
        else max(_DELIMITERS, key=lambda d: _agreement(sample, d))
    )
    rows = [cells(line, delimiter) for line in sample]
    return Dialect(delimiter, _has_header(rows))


def _agreement(lines: Sequence[str], delimiter: str) -> tuple[float, int]:
    """Return in how many rows this delimiter gives the most usual number of cells, and that number; nothing for one cell."""
    widths = [len(cells(line, delimiter)) for line in lines]
    usual = max(set(widths), key=widths.count, default=1)
    if usual < 2:
        return 0, 0
    return round(widths.count(usual) / len(widths), 1), usual


def _has_header(rows: Sequence[Sequence[str]]) -> bool:
    """Return whether the first row names the columns: it has names and no data, and nobody repeats it."""
    if len(rows) < 2 or not rows[0]:
        return False
    names = [name.strip() for name in rows[0]]
    return (
        all(cell_type(name) in {"text", "empty"} for name in names)
        and any(names)
        and len(set(names)) * 2 > len(names)
    )


def cell_type(cell: str) -> str:
    """Return what one cell holds: integer, number, date, boolean, text or empty."""
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
