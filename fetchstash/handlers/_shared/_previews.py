"""Previews of tables and lists."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from fetchstash.text import PreviewLimits, clip, largest, split
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


@dataclass(frozen=True, slots=True)
class _Bounds:
    """Bounds of a preview.

    ``tables`` are shown with rows, ``titles`` more by their titles alone; the others bound each
    table.
    """

    tables: int
    titles: int
    rows: int
    columns: int
    cell: int


def table_preview(tables: Sequence[TableEnds], limits: PreviewLimits) -> Preview:
    """Return headers, first and last rows in at most ``structured_tokens``.

    If a few rows of all tables do not fit, cut their cells; then show the first table and the
    titles of the others; then the first table alone, with fewer columns.
    """
    all_of_it = _Bounds(
        len(tables),
        0,
        limits.rows_head + limits.rows_tail,
        limits.max_columns,
        limits.max_cell_length,
    )
    first = replace(all_of_it, tables=1, titles=len(tables) - 1)

    def fit(bounds: _Bounds) -> bool:
        return fits(_shown(tables, bounds, limits).text, limits.structured_tokens)

    def widest(low: _Bounds, name: str, high: int) -> Preview:
        """Return the preview with the largest bound ``name`` up to ``high`` that fits."""

        def bounds(more: int) -> _Bounds:
            return replace(low, **{name: getattr(low, name) + more})

        return _shown(
            tables,
            bounds(largest(high - getattr(low, name), lambda more: fit(bounds(more)))),
            limits,
        )

    for most in dict.fromkeys((all_of_it, first, replace(first, titles=0))):
        few = replace(most, rows=min(_FEW_ROWS, most.rows))
        short = replace(few, cell=min(_SHORT_CELL, few.cell))
        if fit(few):
            return widest(few, "rows", most.rows)
        if fit(short):
            return widest(short, "cell", most.cell)
        if most.tables == 1 and fit(narrow := replace(short, columns=1)):
            return widest(narrow, "columns", most.columns)
    smallest = _shown(tables, _Bounds(tables=1, titles=0, rows=0, columns=1, cell=1), limits)
    return replace(
        smallest,
        text=smallest.text[
            : largest(
                len(smallest.text), lambda n: fits(smallest.text[:n], limits.structured_tokens)
            )
        ],
    )


def _shown(tables: Sequence[TableEnds], bounds: _Bounds, limits: PreviewLimits) -> Preview:
    """Return the preview within ``bounds``."""
    lines: list[str] = []
    rows_shown = cut = 0
    for table in tables[: bounds.tables]:
        first, last = split(min(bounds.rows, table.rows), limits.rows_head, limits.rows_tail)
        head, tail = table.head[:first], table.tail[len(table.tail) - last :]
        left_out = table.rows - len(head) - len(tail)
        between = [f"… {left_out} more row{'s' if left_out > 1 else ''} …"] if left_out else []
        header = [_row(table, table.header, bounds)] if table.header else []
        begin, end = ([_row(table, row, bounds) for row in rows] for rows in (head, tail))
        title = [clip(table.title, _MAX_TITLE)] if table.title else []
        blank = [""] if lines else []
        lines += [
            *blank,
            *title,
            *(line for line, _ in (*header, *begin)),
            *between,
            *(line for line, _ in end),
        ]
        cut += sum(cells for _, cells in (*header, *begin, *end))
        rows_shown += len(head) + len(tail)
    rest = tables[bounds.tables :]
    lines += [""] * bool(rest) + [clip(table.title, _MAX_TITLE) for table in rest[: bounds.titles]]
    if len(rest) > bounds.titles:
        lines.append(f"… {len(rest) - bounds.titles} more tables …")
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
