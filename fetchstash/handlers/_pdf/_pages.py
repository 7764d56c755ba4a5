"""PDF pages as blocks of text and tables, and as parts; tables go on over pages."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from ctypes import byref, c_double
from dataclasses import dataclass, field
from itertools import cycle, groupby, pairwise
from typing import TYPE_CHECKING

from fetchstash.handlers._contract import Extracted, Part
from fetchstash.handlers._parts import blank_page
from fetchstash.handlers._pdf import NO_MAPPING, mend
from fetchstash.handlers._pdf._lines import Row
from fetchstash.handlers._pdf._objects import (
    Box,
    Rule,
    Word,
    read_chars,
    read_rules,
    read_words,
    turned,
)
from fetchstash.handlers._pdf._tables import Grid, Table, aligned_tables, fill, grids
from fetchstash.handlers._prose import table_row
from fetchstash.text import counted

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
_MAX_TABLES = 1_000
_MAX_SUMMARY = 900
# A page's first table continues the last one of the page before if nothing but headers and footers
# of so many lines and characters stands between, and their columns stand this near, in points.
_MAX_MARGIN_LINES = 3
_MAX_MARGIN_CHARS = 300
_NEAR = 12.0

Block = str | Table


def columns_seen(text_page: "PdfTextPage", text: str, runs: int, rotation: int) -> int:
    """Return in how many lines, one under the other, the same gap stands between runs of text.

    A few runs are looked at first: most pages have no table, and this costs a tenth of reading
    them. Cells that are written column by column count as many lines.
    """
    streaks = groupby(len(line) < _SHORT_LINE for line in text.split("\n"))
    has_short_lines = any(is_short and len(list(of)) >= _SHORT_LINES for is_short, of in streaks)
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
        horizontal, vertical = read_rules(page, rotation)
        ruled = grids(horizontal, vertical)
        if not ruled and (in_columns or seen < _MIN_LINES):
            return []
        self._left -= 1
        chars = read_chars(text_page)
        words = read_words(text_page, chars, rotation)
        tables = _tables(words, ruled, horizontal)
        if in_columns and sum(len(table.words) for table in tables) < len(words) / 2:
            return []
        return _blocks(chars, tables)


def _tables(words: list[Word], ruled: Sequence[Grid], horizontal: Sequence[Rule]) -> list[Table]:
    tables: list[Table] = []
    for grid in ruled:
        inside = [word for word in words if grid.holds(word)]
        if rows := fill(grid, inside):
            tables.append(Table(tuple(rows), grid.xs, inside))
            taken = set(inside)
            words = [word for word in words if word not in taken]
    return tables + aligned_tables(words, horizontal)


def _blocks(chars: str, tables: Sequence[Table]) -> list[Block]:
    """Return text and tables in order; the words of a table stand in it alone."""
    if not tables:
        return []
    owner: dict[int, Table] = {}
    for table in tables:
        for word in table.words:
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


def page_parts(pages: Iterable[Sequence[Block] | None], extracted: Extracted) -> Iterator[Part]:
    """Yield a part for each page, more for one with tables; nothing if no page has text.

    None stands for a page with nothing on it, which no OCR need look at.
    The rows of a table that goes on over pages follow each other, each page beginning with its
    first row; what else such pages hold comes behind the table.
    """
    writer = _Writer(extracted)
    waiting: list[Part] = []
    for number, blocks in enumerate(pages, start=1):
        if blocks and isinstance(blocks[0], str) and blocks[0].startswith(NO_MAPPING):
            extracted.learn(
                unreadable_pages=extracted.facts.unreadable_pages + 1,
                unreadable_from=extracted.facts.unreadable_from or number,
            )
        if not blocks:
            text = blank_page(number, "an empty page") if blocks is None else blank_page(number)
            waiting.append(Part(text, starts_page=True, blank=blocks is not None))
            continue
        yield from writer.blank(waiting)
        waiting = []
        yield from writer.page(number, list(blocks))
    if writer.pages:
        yield from writer.close()
        yield from writer.blank(waiting)


@dataclass(slots=True)
class _Page:
    """The rest of a page; ``starts_page``: its first part is not written yet."""

    number: int
    blocks: list[Block]
    starts_page: bool


@dataclass(slots=True)
class _Open:
    """A table that goes on over pages, and what stands around its rows on the later ones."""

    table: Table
    header: Row
    beside: list[str] = field(default_factory=list[str])


class _Writer:
    def __init__(self, extracted: Extracted) -> None:
        self.pages = 0
        self._extracted = extracted
        self._tables: list[tuple[str, int]] = []  # names and rows
        # A page that ends in a table, until it is known whether the next page continues it.
        self._held: tuple[_Page, Table] | None = None
        self._open: _Open | None = None

    def blank(self, pages: Sequence[Part]) -> Iterator[Part]:
        """Yield pages without text."""
        if pages:
            yield from self.close()
        yield from pages

    def page(self, number: int, blocks: list[Block]) -> Iterator[Part]:
        """Yield the parts of a page, and what was held of the page before."""
        self.pages += 1
        table = _first_table(blocks)
        last = self._open.table if self._open else self._held and self._held[1]
        if not table or not last or not _continues(last, table):
            yield from self.close()
            yield from self._hold(_Page(number, blocks, starts_page=True))
            return
        if self._held:  # its footer goes before the table, so that rows can follow
            (page, last), self._held = self._held, None
            page.blocks.remove(last)
            page.blocks.append(last)
            *parts, _ = self._blocks(page)  # without the line feed behind the table
            yield from parts
            self._open = _Open(last, list(last.rows[0]))
        assert self._open
        has_header = list(table.rows[0]) == self._open.header
        yield self._rows(table.rows[1:] if has_header else table.rows)
        blocks.remove(table)
        if _is_margin(blocks):
            self._open.table = table
            if text := _texts(blocks):
                self._open.beside.append(f"[Page {number}]\n{text}\n\n")
            return
        yield from self.close()
        yield from self._hold(_Page(number, blocks, starts_page=False))

    def close(self) -> Iterator[Part]:
        """Yield the page that was held, or what stood beside the open table."""
        if self._held:
            (page, _), self._held = self._held, None
            yield from self._blocks(page)
        if self._open:
            yield Part("\n" + "".join(self._open.beside))
            self._open = None

    def _hold(self, page: _Page) -> Iterator[Part]:
        """Hold a page that ends in a table, but for a footer; yield another."""
        places = [n for n, block in enumerate(page.blocks) if not isinstance(block, str)]
        last = page.blocks[places[-1]] if places else ""
        if not isinstance(last, str) and _is_margin(page.blocks[places[-1] + 1 :]):
            self._held = page, last
        else:
            yield from self._blocks(page)

    def _blocks(self, page: _Page) -> Iterator[Part]:
        text, starts_page = f"[Page {page.number}]\n", page.starts_page
        for block in page.blocks:
            if isinstance(block, str):
                text += f"{block}\n\n"
            else:
                yield self._table(text, block, page.number, starts_page=starts_page)
                text, starts_page = "\n", False
        yield Part(text, starts_page=starts_page)

    def _table(self, before: str, table: Table, number: int, *, starts_page: bool) -> Part:
        header, *rows = table.rows
        width = len(header)
        lines = [table_row(header), "|" + " --- |" * width, *map(table_row, rows)]
        text = before + "".join(f"{line}\n" for line in lines)
        if len(self._tables) >= _MAX_TABLES:
            return Part(text, starts_page=starts_page)
        title = f"Table {len(self._tables) + 1} (page {number})"
        self._tables.append((title, len(rows)))
        self._learn()
        return Part(text, starts_page=starts_page, table=title, columns=width, rows=len(rows))

    def _rows(self, rows: Sequence[Row]) -> Part:
        """Return the rows of the next page, which continue the last table."""
        name, count = self._tables[-1]
        self._tables[-1] = name, count + len(rows)
        self._learn()
        text = "".join(f"{table_row(row)}\n" for row in rows)
        return Part(text, starts_page=True, rows=len(rows))

    def _learn(self) -> None:
        names = "; ".join(f"{name}, {counted(rows, 'row')}" for name, rows in self._tables)
        if len(names) <= _MAX_SUMMARY:
            self._extracted.learn(structure_info=f"{counted(len(self._tables), 'table')}: {names}")


def _continues(table: Table, following: Table) -> bool:
    """Return whether two tables have the same columns at the same places."""
    return len(table.rows[0]) == len(following.rows[0]) and all(
        abs(table.edges[place] - following.edges[place]) <= _NEAR for place in (0, -1)
    )


def _first_table(blocks: Sequence[Block]) -> Table | None:
    """Return the table that a page begins with, behind a header at most."""
    for place, block in enumerate(blocks):
        if not isinstance(block, str):
            return block if _is_margin(blocks[:place]) else None
    return None


def _is_margin(blocks: Sequence[Block]) -> bool:
    """Return whether ``blocks`` may be the header or the footer of a page."""
    if not all(isinstance(block, str) for block in blocks):
        return False
    text = _texts(blocks)
    return len(text) <= _MAX_MARGIN_CHARS and text.count("\n") < _MAX_MARGIN_LINES


def _texts(blocks: Sequence[Block]) -> str:
    return "\n".join(block for block in blocks if isinstance(block, str))
