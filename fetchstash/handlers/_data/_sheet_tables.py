"""The tables of one sheet: blank rows part them, and titles stand above their headers."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from fetchstash.handlers._data._number_formats import Cell

_LOOKED_AT = 20  # rows, to tell a title from a header
_MOST_TITLES = 3  # above a table that is not the first of its sheet


class Row(NamedTuple):
    """A row with its number from 0; ``is_apart``: there are blank rows above it."""

    number: int
    cells: list[Cell]
    is_apart: bool = False


class Begin(NamedTuple):
    """The beginning of a table: titles and notes above its header, and the header."""

    above: list[Row]
    header: Row


def tables(
    rows: Iterator[tuple[int, list[Cell]]], is_blank: Callable[[int, Sequence[Cell]], bool]
) -> Iterator[Begin | Row]:
    """Yield the beginning of each table of a sheet, and its rows.

    Blank rows begin another table only where a header stands below them, with values of another
    type under it: in many sheets they part nothing.
    """
    source = _filled(rows, is_blank)
    ahead: deque[Row] = deque(islice(source, _LOOKED_AT))
    is_first = True
    while ahead:
        at = _first_header(ahead) if is_first else _next_header(ahead)
        if at is not None:
            is_first = False
            above = [ahead.popleft() for _ in range(at)]
            yield Begin(above, ahead.popleft())
            ahead.extend(islice(source, at + 1))
        else:
            yield ahead.popleft()
            ahead.extend(islice(source, 1))


def name_of(sheet: str, number: int) -> str:
    """Return the name of a table of a sheet, counted from 1."""
    return sheet if number == 1 else f"{sheet}, table {number}"


def _filled(
    rows: Iterator[tuple[int, list[Cell]]], is_blank: Callable[[int, Sequence[Cell]], bool]
) -> Iterator[Row]:
    """Yield the rows that are not blank."""
    is_apart = False
    for number, cells in rows:
        if is_blank(number, cells):
            is_apart = True
        else:
            yield Row(number, cells, is_apart)
            is_apart = False


def _width(row: Row) -> int:
    return sum(cell != "" for cell in row.cells)


def _first_header(ahead: Sequence[Row]) -> int:
    """Return the place of the header: the first row that fills half of the table's columns."""
    table: list[Row] = []
    for row in ahead:
        if row.is_apart and len(table) > 1 and _width(table[-1]) > 1:
            break
        table.append(row)
    widths = list(map(_width, table))
    return next((n for n, width in enumerate(widths) if 2 * width > max(widths)), 0)


def _next_header(ahead: Sequence[Row]) -> int | None:
    """Return the place of the header of another table that begins here, None if none does."""
    if not ahead[0].is_apart:
        return None
    for place, row in enumerate(islice(ahead, _MOST_TITLES + 1)):
        if _width(row) > 1:
            below = ahead[place + 1] if place + 1 < len(ahead) else None
            return place if below and not below.is_apart and _heads(row, below) else None
    return None


def _heads(row: Row, below: Row) -> bool:
    """Return whether a row is of texts alone, and the one below it is not."""
    pairs = [pair for pair in zip(row.cells, below.cells, strict=False) if pair[0] != ""]
    is_text = all(isinstance(name, str) for name, _ in pairs)
    return is_text and any(not isinstance(value, str) for _, value in pairs)
