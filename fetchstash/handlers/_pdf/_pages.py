"""PDF pages as blocks of text and tables, and as parts; tables go on over pages."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from fetchstash.handlers._contract import Extracted, Part
from fetchstash.handlers._parts import Beside, blank_page
from fetchstash.handlers._pdf import NO_MAPPING, is_garbage, mend
from fetchstash.handlers._pdf._columns import over_columns
from fetchstash.handlers._pdf._forms import Field, placed
from fetchstash.handlers._pdf._grids import fill, grids
from fetchstash.handlers._pdf._headings import Bookmark, Headings, Margins, Page
from fetchstash.handlers._pdf._hidden import hidden_chars, hidden_texts
from fetchstash.handlers._pdf._layout import (
    BULLETS,
    ENDS_SENTENCE,
    HYPHENATED,
    Chain,
    Line,
    Paragraph,
    chains_of,
    column_regions,
    in_order,
    is_rtl,
    joined,
    paragraphs_of,
    pieces_of,
)
from fetchstash.handlers._pdf._objects import Item, read_rules
from fetchstash.handlers._pdf._rows import Row
from fetchstash.handlers._pdf._rtl import in_reading_order
from fetchstash.handlers._pdf._tables import Table, open_tables
from fetchstash.handlers._pdf._tags import heading_levels
from fetchstash.handlers._pdf._tex import compose_accents, with_tex
from fetchstash.handlers._pdf._words import (
    Box,
    Glyphs,
    Style,
    Word,
    name_symbols,
    read_chars,
    read_words,
    straightened,
)
from fetchstash.handlers._prose import table_row
from fetchstash.handlers._symbols import telling_bullet
from fetchstash.text import counted
from fetchstash.text.ranges import Heading

if TYPE_CHECKING:
    from pypdfium2 import PdfPage, PdfTextPage

# A page with a table takes some milliseconds of CPU, of which a document has seconds.
_MAX_PAGES = 1_500
_MAX_WORDS = 10_000
# A page of more characters is none that is printed: it is shown line by line.
_MAX_CHARS = 200_000
_MIN_RULED_LINES = 2
_MAX_TABLES = 1_000
_MAX_SUMMARY = 900
# A page's first table continues the last one of the page before if nothing but headers and footers
# of so many lines and characters stands between, and their columns stand this near, in points.
_MAX_MARGIN_LINES = 3
_MAX_MARGIN_CHARS = 300
_NEAR = 12.0
# Headings and running heads are decided over so many pages at a time.
_BATCH = 32


class Title(NamedTuple):
    """A heading in the text, and what the outline calls it."""

    text: str
    level: int
    title: str


Block = str | Title | Heading | Table
"""Text, a heading in it, a bookmark that no line of the page is, a table."""


class PageReader:
    """Reads pages as blocks in reading order; ``hidden`` counts the texts that nobody sees.

    ``layers_off`` returns the names of the layers that are off. ``layered_forms``: forms may be in
    layers. ``tagged``: the document may name its headings.
    """

    def __init__(
        self, layers_off: Callable[[], frozenset[str]], *, layered_forms: bool, tagged: bool
    ) -> None:
        self.hidden = 0
        self._layers_off, self._layered_forms, self._tagged = layers_off, layered_forms, tagged
        self._left = _MAX_PAGES
        self._chars = self._mono = 0

    def read(
        self,
        page: "PdfPage",
        items: Sequence[Item],
        text_page: "PdfTextPage",
        number: int,
        fields: Sequence[Field] = (),
    ) -> Page:
        """Return the content of a page, by its objects, with the ``fields`` of its form."""
        chars = with_tex(text_page, read_chars(text_page))
        if is_garbage(chars):
            text = mend(text_page.get_text_bounded())
            return Page(number, [f"{NO_MAPPING}\n{text}"])
        if len(chars) > _MAX_CHARS:
            return Page(number, [mend(text_page.get_text_bounded())])
        glyphs = Glyphs(text_page, chars)
        beside = straightened(glyphs)
        words = read_words(glyphs, beside)
        hidden = hidden_texts(page, items, self._layers_off, has_layered_forms=self._layered_forms)
        if hidden:
            starts = [*(word.first for word in words), *(first for first, _ in beside)]
            gone = hidden_chars(text_page, hidden, starts)
            self.hidden += len(hidden) if gone else 0
            words = [word for word in words if word.first not in gone]
            beside = [span for span in beside if span[0] not in gone]
        name_symbols(words, glyphs)
        words = compose_accents(words, glyphs)
        if glyphs.is_rtl:
            words = in_reading_order(words, glyphs)
        words, alone = placed(words, fields, glyphs.rotation) if fields else (words, [])
        found = Page(number)
        pieces = pieces_of(words)
        lines = joined(pieces)
        boxes = [piece.box for piece in pieces]
        regions = column_regions(boxes.__getitem__, len(boxes), len(lines))
        tables = self._tables(page, items, glyphs, words, pieces, fields)
        if regions and sum(len(table.words) for table in tables) < len(words) / 2:
            tables = []
        elif tables:
            regions = []
            held = {id(word) for table in tables for word in table.words}
            pieces = pieces_of([word for word in words if id(word) not in held])
            lines = joined(pieces)
        flows = list(_flows(pieces, lines, regions))
        self._finish([line for flow in flows for line in flow], glyphs)
        if self._tagged and (levels := heading_levels(page)):
            for line in (line for flow in flows for line in flow):
                line.level = levels.get(glyphs.mark(line.first), 0)
        for flow in flows:
            self._add(found, flow, tables)
        found.blocks += [f"{field.name}: {field.text}" for field in alone]
        for first, last in beside:
            if text := " ".join(glyphs.chars[first:last].replace("\0", "").split()):
                found.blocks.append(text)
        return found

    def _tables(
        self,
        page: "PdfPage",
        items: Sequence[Item],
        glyphs: Glyphs,
        words: list[Word],
        pieces: Sequence[Line],
        fields: Sequence[Field],
    ) -> list[Table]:
        rows = Counter(round(piece.base / 2) for piece in pieces)
        if (
            not self._left
            or len(words) > _MAX_WORDS
            or sum(count > 1 for count in rows.values()) < _MIN_RULED_LINES
        ):
            return []
        self._left -= 1
        horizontal, vertical = read_rules(page, items, glyphs.rotation)
        tables: list[Table] = []
        for grid in grids(horizontal, vertical):
            inside = [word for word in words if grid.holds(word)]
            if made := fill(grid, inside):
                tables.append(Table(tuple(made), grid.xs, inside))
                taken = set(map(id, inside))
                words = [word for word in words if id(word) not in taken]
        # A form looks like a table, and only rules make it one.
        return tables if fields else tables + open_tables(words, horizontal)

    def _finish(self, lines: Sequence[Line], glyphs: Glyphs) -> None:
        """Give lines their styles, and the order of their script."""
        for line in lines:
            style = glyphs.style(line.first)
            if style.bold or style.mono:
                end = glyphs.style(line.words[-1].last)
                style = Style(style.bold and end.bold, style.mono and end.mono)
            line.style = style
            self._chars += len(line.text)
            self._mono += len(line.text) if style.mono else 0
            line.is_rtl = glyphs.is_rtl and is_rtl(line.text)
        if 2 * self._mono > self._chars:  # as a typewriter does, which shows no code by it
            for line in lines:
                line.style = Style(line.style.bold)

    @staticmethod
    def _add(found: Page, lines: list[Line], tables: list[Table]) -> None:
        """Add lines, and tables that stand among them, to the blocks of a page."""
        chains = chains_of(lines)
        chains += [Chain(_box_of(table.words), held=table) for table in tables]
        if tables:
            chains = _cut(chains)
            chains.sort(key=lambda chain: chain.lines[0].first if chain.lines else _first(chain))
        del tables[:]
        waiting: list[Line] = []
        for chain in in_order(chains):
            if isinstance(chain.held, Table):
                found.blocks += paragraphs_of(waiting)
                waiting = []
                found.blocks.append(chain.held)
            else:
                waiting += chain.lines
        found.blocks += paragraphs_of(waiting)


def _first(chain: Chain) -> int:
    assert isinstance(chain.held, Table)
    return min(word.first for word in chain.held.words)


def _cut(chains: Sequence[Chain]) -> list[Chain]:
    """Return chains cut where a table stands between their lines."""
    tables = [chain.box for chain in chains if chain.held]
    out: list[Chain] = []
    for chain in chains:
        pieces: list[list[Line]] = []
        for line in chain.lines:
            if pieces and not any(
                line.base < box[3] and pieces[-1][-1].base > box[1] for box in tables
            ):
                pieces[-1].append(line)
            else:
                pieces.append([line])
        if chain.held:
            out.append(chain)
        for piece in pieces:
            boxes = [line.box for line in piece]
            out.append(Chain(_around(boxes), piece))
    return out


def _around(boxes: Sequence[Box]) -> Box:
    lefts, bottoms, rights, tops = zip(*boxes, strict=True)
    return min(lefts), min(bottoms), max(rights), max(tops)


def _box_of(words: Sequence[Word]) -> Box:
    return _around([(word.left, word.bottom, word.right, word.top) for word in words])


def _flows(
    pieces: Sequence[Line], lines: list[Line], regions: Sequence[Box]
) -> Iterator[list[Line]]:
    """Yield the lines of a page, or those of each of its regions."""
    if not regions:
        yield lines
        return
    inside: list[list[Line]] = [[] for _ in regions]
    for piece in pieces:
        x, y = (piece.left + piece.right) / 2, piece.base + piece.size / 4
        place = next(
            (n for n, r in enumerate(regions) if r[0] <= x <= r[2] and r[1] <= y <= r[3]), -1
        )
        inside[place].append(piece)
    for region in inside:
        yield joined(region)


class PageWriter:
    """Writes pages as parts, with what only many pages show: headings and running heads."""

    def __init__(self, bookmarks: dict[int, list[Bookmark]], beside: Beside) -> None:
        self._headings = Headings(bookmarks)
        self._margins = Margins()
        self._beside = beside

    def finished(self, pages: Iterable[Page]) -> Iterator[tuple[int, Sequence[Block] | None]]:
        """Yield number and blocks of each page, None of an empty one."""
        batch: list[Page] = []
        for page in pages:
            batch.append(page)
            if len(batch) == _BATCH:
                yield from self._batch(batch)
                batch = []
        yield from self._batch(batch)

    def _batch(self, batch: list[Page]) -> Iterator[tuple[int, Sequence[Block] | None]]:
        self._margins.take(batch)
        self._headings.learn(batch)
        for page in batch:
            for side, lines in page.margins.items():
                for line in lines:
                    self._beside.leave_out(side, line)
            blocks: list[Block] = [
                Heading(title, level, "pages", page.number) for title, level in page.bookmarks
            ]
            blocks += _written(over_columns(page.blocks))
            if page.blocks and page.marks:
                blocks.append(page.marks)
            yield page.number, None if page.is_blank and not blocks else blocks


def _written(blocks: Sequence[Paragraph | Table | str]) -> Iterator[Block]:
    """Yield blocks as they are written; items of one list stand line by line."""
    items: list[str] = []
    lefts: list[float] = []
    for block in blocks:
        if isinstance(block, Paragraph) and block.mark and not block.level:
            if not items:
                lefts = []
            while lefts and block.depth < lefts[-1] - 2:
                lefts.pop()
            if not lefts or block.depth > lefts[-1] + 2:
                lefts.append(block.depth)
            mark = block.mark
            if mark in BULLETS:
                mark = f"- {telling_bullet(mark, '')}".rstrip()
            items.append(f"{'  ' * (len(lefts) - 1)}{mark} {block.text}")
            continue
        if items:
            yield "\n".join(items)
            items = []
        if isinstance(block, Table | str):
            yield block
        elif block.level:
            yield Title(block.text, block.level, block.title or block.text)
        elif block.is_code:
            yield f"```\n{block.text}\n```"
        elif block.text:
            yield block.text
    if items:
        yield "\n".join(items)


def page_parts(
    pages: Iterable[tuple[int, Sequence[Block] | None]], extracted: Extracted
) -> Iterator[Part]:
    """Yield a part for each page, more for one with tables; nothing if no page has text.

    None stands for a page with nothing on it, which no OCR need look at.
    The rows of a table that goes on over pages follow each other, each page beginning with its
    first row; what else such pages hold comes behind the table.
    """
    writer = _Writer(extracted)
    waiting: list[Part] = []
    for number, blocks in pages:
        if blocks and isinstance(blocks[0], str) and blocks[0].startswith(NO_MAPPING):
            extracted.learn(
                unreadable_pages=extracted.facts.unreadable_pages + 1,
                unreadable_from=extracted.facts.unreadable_from or number,
            )
        if not blocks or all(isinstance(block, Heading) for block in blocks):
            text = blank_page(number, "an empty page") if blocks is None else blank_page(number)
            headings = tuple(_bookmarks(blocks or ()))
            is_blank = blocks is not None
            waiting.append(Part(text, starts_page=True, headings=headings, blank=is_blank))
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
    """A table that goes on over pages, and what stands around its rows on the later ones.

    ``rows`` are those of the last page, which are not written yet: the last of them may go on.
    """

    table: Table
    header: Row
    beside: list[str] = field(default_factory=list[str])
    rows: Sequence[Row] = ()
    bookmarks: tuple[Heading, ...] = ()


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
        header = self._open.header if self._open else list(last.rows[0])
        above: Sequence[Row] = self._open.rows if self._open else last.rows[1:]
        rows: Sequence[Row] = table.rows[1:] if list(table.rows[0]) == header else table.rows
        if whole := _whole_row(above, rows):
            above, rows = [*above[:-1], whole], rows[1:]
        if self._held:  # its footer goes before the table, so that rows can follow
            (page, _), self._held = self._held, None
            page.blocks.remove(last)
            page.blocks.append(replace(last, rows=(last.rows[0], *above)))
            *parts, _ = self._blocks(page)  # without the line feed behind the table
            yield from parts
            self._open = _Open(last, header)
        elif self._open:
            yield self._rows(self._open, above)
        assert self._open
        self._open.rows, self._open.bookmarks = rows, tuple(_bookmarks(blocks))
        blocks = [block for block in blocks if not isinstance(block, Heading)]
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
            yield self._rows(self._open, self._open.rows)
            yield Part("\n" + "".join(self._open.beside))
            self._open = None

    def _hold(self, page: _Page) -> Iterator[Part]:
        """Hold a page that ends in a table, but for a footer; yield another."""
        places = [n for n, block in enumerate(page.blocks) if isinstance(block, Table)]
        last = page.blocks[places[-1]] if places else ""
        if isinstance(last, Table) and _is_margin(page.blocks[places[-1] + 1 :]):
            self._held = page, last
        else:
            yield from self._blocks(page)

    def _blocks(self, page: _Page) -> Iterator[Part]:
        text, starts_page = f"[Page {page.number}]\n", page.starts_page
        headings: list[Heading] = []
        for block in page.blocks:
            if isinstance(block, str):
                text += f"{block}\n\n"
            elif isinstance(block, Heading):
                headings.append(block)
            elif isinstance(block, Title):
                headings.append(Heading(block.title, block.level, "lines", text.count("\n") + 1))
                text += f"{'#' * block.level} {block.text}\n\n"
            else:
                part = self._table(text, block, page.number, starts_page=starts_page)
                yield replace(part, headings=tuple(headings))
                text, starts_page, headings = "\n", False, []
        yield Part(text, starts_page=starts_page, headings=tuple(headings))

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

    def _rows(self, table: _Open, rows: Sequence[Row]) -> Part:
        """Return the rows of a later page, which continue the last table."""
        name, count = self._tables[-1]
        self._tables[-1] = name, count + len(rows)
        self._learn()
        text = "".join(f"{table_row(row)}\n" for row in rows)
        return Part(text, starts_page=True, headings=table.bookmarks, rows=len(rows))

    def _learn(self) -> None:
        names = "; ".join(f"{name}, {counted(rows, 'row')}" for name, rows in self._tables)
        if len(names) <= _MAX_SUMMARY:
            self._extracted.learn(structure_info=f"{counted(len(self._tables), 'table')}: {names}")


def _continues(table: Table, following: Table) -> bool:
    """Return whether two tables have the same columns at the same places."""
    return len(table.rows[0]) == len(following.rows[0]) and all(
        abs(table.edges[place] - following.edges[place]) <= _NEAR for place in (0, -1)
    )


def _whole_row(above: Sequence[Row], rows: Sequence[Row]) -> Row | None:
    """Return the last row of a page with the rest of it that begins the next, None if it is whole.

    The first of ``rows`` is such a rest if it alone has no first cell, and each of its cells goes
    on with what the cell above it says.
    """
    if not above or not rows:
        return None
    row, rest = above[-1], rows[0]
    is_rest = (
        any(rest)
        and not rest[0]
        and all(other[0] for other in (*above, *rows[1:]))
        and all(
            before and (after[0].islower() or not ENDS_SENTENCE.search(before))
            for before, after in zip(row, rest, strict=True)
            if after
        )
        and not any(after[0].isdigit() for after in rest if after)
    )
    if not is_rest:
        return None
    return [
        before[:-1] + after
        if after[:1].islower() and HYPHENATED.search(before)
        else f"{before} {after}".rstrip()
        for before, after in zip(row, rest, strict=True)
    ]


def _bookmarks(blocks: Sequence[Block]) -> list[Heading]:
    return [block for block in blocks if isinstance(block, Heading)]


def _first_table(blocks: Sequence[Block]) -> Table | None:
    """Return the table that a page begins with, behind a header at most."""
    for place, block in enumerate(blocks):
        if isinstance(block, Table):
            return block if _is_margin(blocks[:place]) else None
    return None


def _is_margin(blocks: Sequence[Block]) -> bool:
    """Return whether ``blocks`` may be the header or the footer of a page."""
    if not all(isinstance(block, str | Heading) for block in blocks):
        return False
    text = _texts(blocks)
    return len(text) <= _MAX_MARGIN_CHARS and text.count("\n") < _MAX_MARGIN_LINES


def _texts(blocks: Sequence[Block]) -> str:
    return "\n".join(block for block in blocks if isinstance(block, str))
