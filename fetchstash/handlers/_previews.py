"""Previews of tables and lists."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from fetchstash.text import PreviewLimits, clip, counted, largest, split
from fetchstash.text.ranges import Preview
from fetchstash.text.tokens import count

# Drop columns before showing fewer rows or shorter cells than these.
_FEW_ROWS = 3
_SHORT_CELL = 20
_MAX_TITLE = 200


LINE_FEED = "⏎"
"""Replaces a line end within a cell, so that a row is one line."""

_BREAK = re.compile(r"\r\n|\r|\n")


def one_line(cell: str) -> str:
    """Return a cell on one line, without tabs."""
    return _BREAK.sub(LINE_FEED, cell.replace("\t", " "))


def fits(text: str, max_tokens: int) -> bool:
    """Return whether ``text`` costs at most ``max_tokens``."""
    # A token is at least one byte and a character at most four, so a long text is not counted.
    return 4 * len(text) <= max_tokens or (
        len(text) < 20 * max_tokens and count(text).tokens <= max_tokens
    )


@dataclass(frozen=True, slots=True)
class TableEnds:
    """The first and the last rows of a table of ``rows``, with its ``title`` and ``header``.

    Each row is a line; ``cells`` splits it, ``delimiter`` joins it.
    """

    head: Sequence[str]
    tail: Sequence[str]
    rows: int
    columns: int
    cells: Callable[[str], list[str]]
    delimiter: str
    header: str = ""
    title: str = ""


class _Bounds(NamedTuple):
    """Bounds of a preview.

    ``tables`` are shown with rows, ``titles`` more by their titles alone; the others bound each
    table.
    """

    tables: int = 1
    titles: int = 0
    rows: int = 0
    columns: int = 1
    cell: int = 1


def table_preview(tables: Sequence[TableEnds], limits: PreviewLimits) -> Preview:
    """Return headers, first and last rows in at most ``structured_tokens``.

    If a few rows of all tables do not fit, cut their cells; then show the first table and the
    titles of the others; then the first table alone, with fewer columns.
    """

    def shown(bounds: _Bounds) -> Preview:
        return _shown(tables, bounds, limits)

    def fit(bounds: _Bounds) -> bool:
        return fits(shown(bounds).text, limits.structured_tokens)

    def widest(low: _Bounds, name: str, high: int) -> Preview:
        """Return the preview with the largest bound ``name`` up to ``high`` that fits."""
        least = getattr(low, name)
        more = largest(high - least, lambda more: fit(low._replace(**{name: least + more})))
        return shown(low._replace(**{name: least + more}))

    rows = limits.rows_head + limits.rows_tail
    every = _Bounds(len(tables), 0, rows, limits.max_columns, limits.max_cell_length)
    first = every._replace(tables=1, titles=len(tables) - 1)
    for most in dict.fromkeys((every, first, first._replace(titles=0))):
        few = most._replace(rows=min(_FEW_ROWS, most.rows))
        short = few._replace(cell=min(_SHORT_CELL, few.cell))
        if fit(few):
            return widest(few, "rows", most.rows)
        if fit(short):
            return widest(short, "cell", most.cell)
        if most.tables == 1 and fit(narrow := short._replace(columns=1)):
            return widest(narrow, "columns", most.columns)
    smallest = shown(_Bounds())
    text = smallest.text
    most_chars = largest(len(text), lambda n: fits(text[:n], limits.structured_tokens))
    return replace(smallest, text=text[:most_chars])


def _shown(tables: Sequence[TableEnds], bounds: _Bounds, limits: PreviewLimits) -> Preview:
    """Return the preview within ``bounds``."""
    lines: list[str] = []
    rows_shown = cut = 0
    for table in tables[: bounds.tables]:
        first, last = split(min(bounds.rows, table.rows), limits.rows_head, limits.rows_tail)
        head, tail = table.head[:first], table.tail[len(table.tail) - last :]
        left_out = table.rows - len(head) - len(tail)
        rows_shown += len(head) + len(tail)
        lines += [""] if lines else []
        lines += [clip(table.title, _MAX_TITLE)] if table.title else []
        begin = [row for row in (table.header, *head) if row]
        shown = [_row(table, row, bounds) for row in (*begin, *tail)]
        cut += sum(cells for _, cells in shown)
        rows = [row for row, _ in shown]
        if left_out:
            rows.insert(len(begin), f"… {counted(left_out, 'more row', digits='d')} …")
        lines += rows
    rest = tables[bounds.tables :]
    lines += [""] * bool(rest) + [clip(table.title, _MAX_TITLE) for table in rest[: bounds.titles]]
    if len(rest) > bounds.titles:
        lines.append(f"… {counted(len(rest) - bounds.titles, 'more table')} …")
    columns = tables[0].columns if len(tables) == 1 else None
    return Preview(
        "\n".join(lines),
        rows_shown=rows_shown,
        total_rows=sum(table.rows for table in tables),
        columns_shown=None if columns is None else min(columns, bounds.columns),
        total_columns=columns,
        cells_truncated=cut,
    )


def _row(table: TableEnds, line: str, bounds: _Bounds) -> tuple[str, int]:
    """Return a row within ``bounds``, and how many of its cells were cut."""
    row = table.cells(line)
    shown = row[: bounds.columns]
    cut = sum(len(cell) > bounds.cell for cell in shown)
    if not cut and len(shown) == len(row):
        return line, 0
    return table.delimiter.join(clip(cell, bounds.cell) for cell in shown), cut


def list_preview(lines: Sequence[str], total: int, limits: PreviewLimits) -> Preview:
    """Return as many of the first ``lines`` as fit ``structured_tokens``; ``total`` counts all."""

    def text(count: int) -> str:
        more = [f"… {total - count:,} more …"] if total > count else []
        return "\n".join([*lines[:count], *more])

    shown = largest(len(lines), lambda count: fits(text(count), limits.structured_tokens))
    return Preview(text(shown), lines_shown=shown) if shown else Preview()
