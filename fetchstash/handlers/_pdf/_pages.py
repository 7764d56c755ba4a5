"""The pages of a PDF as parts of a text; a table that goes on over pages is one table."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from fetchstash.handlers._contract import Extracted, Part
from fetchstash.handlers._pdf._garbage import NO_MAPPING
from fetchstash.handlers._pdf._lines import Row
from fetchstash.handlers._pdf._tables import Block, PageTable
from fetchstash.handlers._shared._pages import blank_page
from fetchstash.handlers._shared._prose import table_row
from fetchstash.handlers._shared._words import counted

_MAX_TABLES = 1_000
_MAX_SUMMARY = 900
# A page's first table continues the last one of the page before if nothing but headers and footers
# of so many lines and characters stands between, and their columns stand this near, in points.
_MAX_MARGIN_LINES = 3
_MAX_MARGIN_CHARS = 300
_NEAR = 12.0


def page_parts(pages: Iterable[Sequence[Block]], extracted: Extracted) -> Iterator[Part]:
    """Yield a part for each page, more for one with tables; nothing if no page has text.

    The rows of a table that goes on over pages follow each other, each page beginning with its
    first row; what else such pages hold comes behind the table.
    """
    writer = _Writer(extracted)
    waiting = number = 0
    for blocks in pages:
        number += 1
        if blocks and isinstance(blocks[0], str) and blocks[0].startswith(NO_MAPPING):
            extracted.learn(
                unreadable_pages=extracted.facts.unreadable_pages + 1,
                unreadable_from=extracted.facts.unreadable_from or number,
            )
        if not blocks:
            waiting += 1
            continue
        yield from writer.blank(number - waiting, waiting)
        waiting = 0
        yield from writer.page(number, list(blocks))
    if writer.pages:
        yield from writer.close()
        yield from writer.blank(number + 1 - waiting, waiting)


@dataclass(slots=True)
class _Held:
    """A page that ends in a table, until it is known whether the next page continues it."""

    number: int
    blocks: list[Block]
    starts_page: bool


@dataclass(slots=True)
class _Open:
    """A table that goes on over pages, and what stands around its rows on the later ones."""

    table: PageTable
    header: Row
    beside: list[str] = field(default_factory=list[str])


class _Writer:
    def __init__(self, extracted: Extracted) -> None:
        self.pages = 0
        self._extracted = extracted
        self._tables: list[tuple[str, int]] = []  # names and rows
        self._held: _Held | None = None
        self._open: _Open | None = None

    def blank(self, first: int, count: int) -> Iterator[Part]:
        """Yield ``count`` pages without text."""
        if count:
            yield from self.close()
        for number in range(first, first + count):
            yield Part(blank_page(number), starts_page=True, blank=True)

    def page(self, number: int, blocks: list[Block]) -> Iterator[Part]:
        """Yield the parts of a page, and what was held of the page before."""
        self.pages += 1
        table, last = _first_table(blocks), self._last_table()
        if not table or not last or not _continues(last, table):
            yield from self.close()
            yield from self._hold(_Held(number, blocks, starts_page=True))
            return
        yield from self._open_held()
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
        yield from self._hold(_Held(number, blocks, starts_page=False))

    def close(self) -> Iterator[Part]:
        """Yield the page that was held, or what stood beside the open table."""
        if self._held:
            held, self._held = self._held, None
            yield from self._blocks(held)
        if self._open:
            yield Part("\n" + "".join(self._open.beside))
            self._open = None

    def _hold(self, page: _Held) -> Iterator[Part]:
        """Hold a page that ends in a table, but for a footer; yield another."""
        last = _last_table(page.blocks)
        if last is not None and _is_margin(page.blocks[last + 1 :]):
            self._held = page
        else:
            yield from self._blocks(page)

    def _last_table(self) -> PageTable | None:
        if self._open:
            return self._open.table
        if self._held:
            table = self._held.blocks[_last_table(self._held.blocks) or 0]
            return None if isinstance(table, str) else table
        return None

    def _open_held(self) -> Iterator[Part]:
        """Yield the held page so that rows can follow: its footer goes before the table."""
        if not self._held:
            return
        held, self._held = self._held, None
        last = _last_table(held.blocks) or 0
        table = held.blocks[last]
        held.blocks = [*held.blocks[:last], *held.blocks[last + 1 :], table]
        *parts, _ = self._blocks(held)  # without the line feed behind the table
        yield from parts
        if not isinstance(table, str):
            self._open = _Open(table, list(table.rows[0]))

    def _blocks(self, page: _Held) -> Iterator[Part]:
        text, starts_page = f"[Page {page.number}]\n", page.starts_page
        for block in page.blocks:
            if isinstance(block, str):
                text += f"{block}\n\n"
            else:
                yield self._table(text, block, page.number, starts_page=starts_page)
                text, starts_page = "\n", False
        yield Part(text, starts_page=starts_page)

    def _table(self, before: str, table: PageTable, number: int, *, starts_page: bool) -> Part:
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


def _continues(table: PageTable, following: PageTable) -> bool:
    """Return whether two tables have the same columns at the same places."""
    if len(table.rows[0]) != len(following.rows[0]):
        return False
    outer = zip(
        (table.edges[0], table.edges[-1]), (following.edges[0], following.edges[-1]), strict=True
    )
    return all(abs(edge - other) <= _NEAR for edge, other in outer)


def _first_table(blocks: Sequence[Block]) -> PageTable | None:
    """Return the table that a page begins with, behind a header at most."""
    for place, block in enumerate(blocks):
        if not isinstance(block, str):
            return block if _is_margin(blocks[:place]) else None
    return None


def _last_table(blocks: Sequence[Block]) -> int | None:
    places = [place for place, block in enumerate(blocks) if not isinstance(block, str)]
    return places[-1] if places else None


def _is_margin(blocks: Sequence[Block]) -> bool:
    """Return whether ``blocks`` may be the header or the footer of a page."""
    if not all(isinstance(block, str) for block in blocks):
        return False
    text = _texts(blocks)
    return len(text) <= _MAX_MARGIN_CHARS and text.count("\n") < _MAX_MARGIN_LINES


def _texts(blocks: Sequence[Block]) -> str:
    return "\n".join(block for block in blocks if isinstance(block, str))
