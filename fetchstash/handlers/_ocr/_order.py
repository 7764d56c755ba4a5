"""Reading order of the lines that OCR recognised on a page. Pure functions.

Lines are turned upright first. Columns of prose are read one after the other; the cells of a table
stay in their row.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median

Point = tuple[float, float]

_MIN_LINES = 5
"""A column has at least so many lines."""
_MIN_FILLED = 0.6
"""Most lines of prose are at least that full; cells of a table are not."""
_MIN_WIDTH = 8.0
"""Of a column, in heights of a line: numbers in a table are narrower."""
_MAX_CROSSING = 0.25
"""Headings and figures may cross a gutter: at most that share of the lines."""
_MIN_GUTTER = 0.6
"""Of a gutter, in heights of a line."""
_CELL_GAP = 1.5
_MIN_ROOM = 4.0
_MIN_LETTERS = 0.25
"""Of the squares that fit into a line's box: a Chinese character fills one, Latin letters half."""
_PARAGRAPH_GAP = 0.7


@dataclass(frozen=True, slots=True)
class Line:
    """A recognised piece of a line: its text and its box, in pixels from the upper left."""

    text: str
    left: float
    top: float
    right: float
    bottom: float

    @property
    def height(self) -> float:
        """The height of the box."""
        return self.bottom - self.top

    @property
    def middle(self) -> float:
        """The height of its middle on the page."""
        return (self.top + self.bottom) / 2


def slope(corners: Sequence[Sequence[Point]]) -> float:
    """Return the angle of the lines in radians: the median over the wider half of the boxes.

    A box is its corners from the upper left, clockwise.
    """
    edges = sorted(
        ((b[0] - a[0], b[1] - a[1]) for a, b, *_ in corners), key=lambda edge: -math.hypot(*edge)
    )
    wide = edges[: (len(edges) + 1) // 2]
    return median(math.atan2(dy, dx) for dx, dy in wide) if wide else 0.0


def upright(text: str, corners: Sequence[Point], angle: float) -> Line:
    """Return a line with its box turned back by ``angle``."""
    cos, sin = math.cos(-angle), math.sin(-angle)
    turned = [(x * cos - y * sin, x * sin + y * cos) for x, y in corners]
    # The mean of two corners: a skewed box is as high as its line, not as its diagonal.
    (ax, ay), (bx, by), (cx, cy), (dx, dy) = turned
    return Line(text, (ax + dx) / 2, (ay + by) / 2, (bx + cx) / 2, (cy + dy) / 2)


def is_legible(line: Line) -> bool:
    """Return whether a line has about as many letters and digits as its box has room for.

    Of a script that the models do not know they return the punctuation alone, and are sure of it.
    """
    room = (line.right - line.left) / max(line.height, 1.0)
    letters = sum(char.isalnum() for char in line.text)
    return room < _MIN_ROOM or letters >= _MIN_LETTERS * room


def as_text(lines: Sequence[Line]) -> str:
    """Return the text of a page in reading order.

    Pieces of one line are joined by a space, by two where a cell seems to end; an empty line
    separates paragraphs.
    """
    blocks = ["\n".join(_joined(block)) for block in blocks_of(list(lines))]
    return "\n\n".join(block for block in blocks if block)


def blocks_of(lines: list[Line]) -> list[list[Line]]:
    """Return the lines in blocks, in reading order: columns, and what stands across them."""
    gutter = _gutter(lines)
    if gutter is None:
        return [lines] if lines else []
    crossing = sorted((n for n in lines if n.left < gutter < n.right), key=lambda line: line.top)
    edges = [-math.inf, *(line.middle for line in crossing), math.inf]
    blocks: list[list[Line]] = []
    for position, (top, bottom) in enumerate(pairwise(edges)):
        band = [line for line in lines if top < line.middle < bottom and line not in crossing]
        blocks += blocks_of([line for line in band if line.right <= gutter])
        blocks += blocks_of([line for line in band if line.left >= gutter])
        if position < len(crossing):
            blocks.append([crossing[position]])
    return blocks


def _gutter(lines: Sequence[Line]) -> float | None:
    """Return the middle of the widest strip that few lines cross between two columns of prose."""
    if len(lines) < 2 * _MIN_LINES:
        return None
    needed = _MIN_GUTTER * median(line.height for line in lines)
    edges = sorted({edge for line in lines for edge in (line.left, line.right)})
    best: tuple[float, float] | None = None
    for start, end in pairwise(edges):
        if end - start < needed or (best and end - start <= best[1] - best[0]):
            continue
        middle = (start + end) / 2
        left = [line for line in lines if line.right <= middle]
        right = [line for line in lines if line.left >= middle]
        crossing = len(lines) - len(left) - len(right)
        if crossing <= _MAX_CROSSING * len(lines) and _is_prose(left) and _is_prose(right):
            best = start, end
    return None if best is None else (best[0] + best[1]) / 2


def _is_prose(column: Sequence[Line]) -> bool:
    """Return whether a column has many lines, most of them nearly as wide as it is."""
    if len(column) < _MIN_LINES:
        return False
    rows = _rows(column)
    width = max(line.right for line in column) - min(line.left for line in column)
    widths = [sum(line.right - line.left for line in row) for row in rows]
    if width < _MIN_WIDTH * median(line.height for line in column):
        return False
    return len(rows) >= _MIN_LINES and median(widths) >= _MIN_FILLED * width


def _rows(lines: Sequence[Line]) -> list[list[Line]]:
    """Return lines that stand at one height together, from left to right."""
    rows: list[list[Line]] = []
    for line in sorted(lines, key=lambda line: line.middle):
        last = rows[-1][-1] if rows else None
        if last and line.middle - last.middle < min(line.height, last.height) / 2:
            rows[-1].append(line)
        else:
            rows.append([line])
    return [sorted(row, key=lambda line: line.left) for row in rows]


def _joined(lines: Sequence[Line]) -> list[str]:
    """Return the text of a block, line by line, with an empty one between paragraphs."""
    texts: list[str] = []
    above: Line | None = None
    for row in _rows(lines):
        whole = row[0]
        for line in row[1:]:
            gap = "  " if line.left - whole.right > _CELL_GAP * line.height else " "
            whole = replace(whole, text=f"{whole.text}{gap}{line.text}", right=line.right)
        if above and whole.top - above.bottom > _PARAGRAPH_GAP * max(whole.height, above.height):
            texts.append("")
        texts.append(whole.text)
        above = whole
    return texts
