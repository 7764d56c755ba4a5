"""Tables that fit the terminal: columns shrink, then go, and no row wraps."""

from collections.abc import Sequence
from dataclasses import dataclass

from fetchstash.cli._terminal import Screen, cells, clip_cells

_GAP = 2


@dataclass(frozen=True, slots=True)
class Column:
    """A column. One with ``least`` may shrink to that many cells, others are as wide as they are.

    Of those the widest for its ``weight`` does. ``from_width`` is the narrowest terminal that shows
    it, ``style`` a role of the screen.
    """

    heading: str
    least: int | None = None
    weight: int = 1
    right: bool = False
    from_width: int = 0
    style: str = ""


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell: its text on one line, and where it links to ("": nowhere)."""

    text: str
    url: str = ""


def table(screen: Screen, columns: Sequence[Column], rows: Sequence[Sequence[Cell]]) -> list[str]:
    """Return the lines of a table under its headings, none wider than the screen."""
    shown = [n for n, column in enumerate(columns) if column.from_width <= screen.width]
    cells_of_rows = [[row[n].text for n in shown] for row in rows]
    widths = _widths(screen.width, [columns[n] for n in shown], cells_of_rows)
    headings = [Cell(column.heading) for column in columns]
    lines = [_line(screen, columns, shown, widths, headings, heading=True)]
    return lines + [_line(screen, columns, shown, widths, row) for row in rows]


def _widths(room: int, columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> list[int]:
    """Return a width for each column: the widest of those that may shrink gives way."""
    widths = [
        max(cells(text) for text in (column.heading, *(row[n] for row in rows)))
        for n, column in enumerate(columns)
    ]
    over = sum(widths) + _GAP * (len(widths) - 1) - room
    while over > 0:
        flexible = [n for n, column in enumerate(columns) if widths[n] > (column.least or room)]
        if not flexible:
            break
        widths[max(flexible, key=lambda n: widths[n] / columns[n].weight)] -= 1
        over -= 1
    return widths


def _line(
    screen: Screen,
    columns: Sequence[Column],
    shown: Sequence[int],
    widths: Sequence[int],
    row: Sequence[Cell],
    *,
    heading: bool = False,
) -> str:
    pieces: list[str] = []
    for n, width in zip(shown, widths, strict=True):
        cell, column = row[n], columns[n]
        text = clip_cells(cell.text, width)
        fill = " " * (width - cells(text))
        painted = screen.link(text, cell.url)
        if style := "dim" if heading else column.style:
            painted = screen.style(painted, style)
        pieces.append(fill + painted if column.right else painted + fill)
    return (" " * _GAP).join(pieces).rstrip()
