"""A PDF page as blocks: text in pdfium's order, and tables where their first word stands."""

from collections.abc import Callable, Sequence
from ctypes import byref, c_double
from dataclasses import dataclass
from itertools import cycle, pairwise
from typing import TYPE_CHECKING

from fetchstash.handlers._pdf._aligned import aligned_tables
from fetchstash.handlers._pdf._grid import Grid, fill, grids
from fetchstash.handlers._pdf._lines import Row
from fetchstash.handlers._pdf._text import mend
from fetchstash.handlers._pdf._words import (
    Box,
    Rules,
    Word,
    read_chars,
    read_rules,
    read_words,
    turned,
)

if TYPE_CHECKING:
    from pypdfium2 import PdfPage, PdfTextPage

_MAX_CHARS = 40_000
_MAX_RUNS = 5_000
# A page with a table takes some milliseconds of CPU, of which a document has seconds.
_MAX_PAGES = 1_500
# So many gaps are compared with the next.
_MAX_GAPS = 100
# So many short lines in a row may be cells, each written by itself.
_SHORT_LINE = 32
_SHORT_LINES = 6
_MIN_RUNS = 6
_MIN_LINES = 3
_MIN_RULED_LINES = 2
# In points: wider than a space, higher than a mark or an exponent.
_WIDE_GAP = 6.0
_ABOVE = 4.0
_LOW = 2.5
# Lines of a table are no farther apart, and their gaps have this in common.
_FAR = 45.0
_SHARED = 3.0


@dataclass(frozen=True, slots=True)
class PageTable:
    """A table of one page; ``edges`` are where its columns begin and end, in points."""

    rows: tuple[Row, ...]
    edges: tuple[float, ...]


Block = str | PageTable


def columns_seen(text_page: "PdfTextPage", text: str, runs: int, rotation: int) -> int:
    """Return in how many lines, one under the other, the same gap stands between runs of text.

    A few runs are looked at first: most pages have no table, and this costs a tenth of reading
    them. Cells that are written column by column count as many lines.
    """
    has_short_lines = _has_short_lines(text)
    if runs < _MIN_RUNS or (runs < text.count("\n") + 3 and not has_short_lines):
        return 0
    rect = _rects(text_page, rotation)
    steps = cycle((3, 5, 4))
    place = 0
    while not has_short_lines and not _is_beside(rect(place), rect(place + 1)):
        place += next(steps)
        if place >= runs - 1:
            return 0
    most = 0
    gaps: list[tuple[float, float, float, int]] = []  # left, right, height, lines
    for run, following in pairwise(map(rect, range(runs))):
        if has_short_lines and following[1] > run[3] + _ABOVE:
            return _MIN_LINES
        if not _is_beside(run, following):
            continue
        left, right, height, lines = run[2], following[0], run[1], 1
        for place, (start, end, at, count) in enumerate(gaps):
            if at - _FAR < height < at - 1 and min(end, right) - max(start, left) > _SHARED:
                left, right, lines = max(start, left), min(end, right), count + 1
                del gaps[place]
                break
        del gaps[:-_MAX_GAPS]
        gaps.append((left, right, height, lines))
        most = max(most, lines)
    return most


def _has_short_lines(text: str) -> bool:
    streak = 0
    for line in text.split("\n"):
        streak = streak + 1 if len(line) < _SHORT_LINE else 0
        if streak == _SHORT_LINES:
            return True
    return False


def _rects(text_page: "PdfTextPage", rotation: int) -> Callable[[int], Box]:
    """Return what gives the box of a run; pdfium2's own is four times slower."""
    from pypdfium2 import raw  # noqa: PLC0415 - a heavy import

    handle, get = text_page.raw, raw.FPDFText_GetRect
    left, top, right, bottom = c_double(), c_double(), c_double(), c_double()
    addresses = byref(left), byref(top), byref(right), byref(bottom)

    def rect(index: int) -> Box:
        get(handle, index, *addresses)
        box = left.value, bottom.value, right.value, top.value
        return turned(box, rotation) if rotation else box

    return rect


def _is_beside(run: Box, following: Box) -> bool:
    """Return whether a run stands behind a wide gap on the line of the one before.

    Dots that lead to a page number are low, and end no cell.
    """
    return (
        following[0] - run[2] > _WIDE_GAP
        and following[3] > run[1]
        and run[3] > following[1]
        and run[3] - run[1] > _LOW
    )


class PageTables:
    """Reads the pages of a document that have tables, as far as its CPU time may go there."""

    def __init__(self) -> None:
        self._left = _MAX_PAGES

    def blocks(
        self, page: "PdfPage", text_page: "PdfTextPage", text: str, runs: int, *, in_columns: bool
    ) -> list[Block]:
        """Return the blocks of a page with a table, nothing for other pages.

        ``in_columns``: it seems to be prose in columns, and is one only if rules hold most of it.
        """
        rotation = page.get_rotation()
        is_examined = self._left and len(text) <= _MAX_CHARS and runs <= _MAX_RUNS
        seen = columns_seen(text_page, text, runs, rotation) if is_examined else 0
        if seen < _MIN_RULED_LINES:
            return []
        rules = read_rules(page, rotation)
        ruled = grids(rules)
        if not ruled and (in_columns or seen < _MIN_LINES):
            return []
        self._left -= 1
        chars = read_chars(text_page)
        words = read_words(text_page, chars, rotation)
        tables = _tables(words, ruled, rules)
        if in_columns and sum(len(inside) for _, inside in tables) < len(words) / 2:
            return []
        return _blocks(chars, tables)


def _tables(
    words: list[Word], ruled: Sequence[Grid], rules: Rules
) -> list[tuple[PageTable, Sequence[Word]]]:
    """Return the tables that ``words`` make, each with its words."""
    tables: list[tuple[PageTable, Sequence[Word]]] = []
    for grid in ruled:
        inside = [word for word in words if grid.holds(word)]
        if rows := fill(grid, inside):
            tables.append((PageTable(tuple(rows), grid.xs), inside))
            taken = set(inside)
            words = [word for word in words if word not in taken]
    for table in aligned_tables(words, rules.horizontal):
        edges = tuple(edge for column in table.columns for edge in column)
        tables.append((PageTable(table.rows, edges), table.words))
    return tables


def _blocks(chars: str, tables: Sequence[tuple[PageTable, Sequence[Word]]]) -> list[Block]:
    """Return text and tables in order; the words of a table stand in it alone."""
    if not tables:
        return []
    owner: dict[int, PageTable] = {}
    for table, words in tables:
        for word in words:
            owner.update(dict.fromkeys(range(word.first, word.last + 1), table))
    blocks: list[Block] = []
    letters: list[str] = []
    placed: set[int] = set()
    for index, char in enumerate(chars):
        holder = owner.get(index)
        if holder is None:
            letters.append(char)
        elif id(holder) not in placed:
            placed.add(id(holder))
            blocks += [_plain(letters), holder]
            letters = []
    blocks.append(_plain(letters))
    return [block for block in blocks if block]


def _plain(letters: Sequence[str]) -> str:
    return mend("".join(letters).replace("\0", ""))
