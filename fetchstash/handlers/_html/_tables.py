"""Tables of a page: which hold data, their rows, and how they are written."""

import re
from collections.abc import Iterator
from itertools import islice, takewhile, zip_longest
from typing import Protocol

from fetchstash.handlers._html import _element
from fetchstash.handlers._html._element import CODE_TAGS, HEADINGS, Element, Node, is_code
from fetchstash.handlers._prose import DITTO, repeated

LONGEST_CELL = 1_000  # characters; a longer cell is a column of a layout
LONGEST_NESTED = 300  # characters of a table inside a cell that is written with the cell
SHORT_CELL = 200  # characters of a cell that headings may stand beside
MIN_ROWS_WITH_HEADINGS = 3
LEAST_OF_LINE, LONGEST_LINE = 3, 300  # cells, and characters, of a line of text
_EQUATION = re.compile(r"eqn|equation", re.IGNORECASE)
_CODE = re.compile(r"code|highlight|blob|hljs|diff|source|line", re.IGNORECASE)
_LAYOUT_INSIDE = frozenset(("form", "blockquote", "h1"))


class InlineText(Protocol):
    """Writes the inline nodes of a cell as Markdown."""

    def text(self, nodes: list[Node], *, breaks: str = "\n") -> str:
        """Return the nodes as Markdown, with ``breaks`` for each line break."""
        ...


def is_data_table(table: Element) -> bool:
    """Return whether a table holds data and is not the layout of a page."""
    if table.get("role") in {"presentation", "none"} or is_equation(table):
        return False
    headed = has_heads(table)
    headings = False
    for element in table.descendants():
        tag = element.tag
        if tag in _LAYOUT_INSIDE or (not headed and (tag == "details" or is_code(element))):
            return False
        if tag == "table" and (not headed or len(element.text()) > LONGEST_NESTED):
            return False
        headings = headings or tag in HEADINGS
    count = columns = 0
    most = SHORT_CELL if headings else LONGEST_CELL
    for row in rows(table):
        count += 1
        columns = max(columns, len(row))
        if not headed and any(len(cell.raw()) > most for cell in row):
            return False
    least = 1 if headed else MIN_ROWS_WITH_HEADINGS if headings else 2
    return count >= least and columns > 1


def has_heads(table: Element) -> bool:
    """Return whether a table has header cells or a caption."""
    if any(part.tag in {"thead", "caption"} for part in table.elements()):
        return True
    return any(cell.tag == "th" for row in rows(table) for cell in row)


def is_equation(table: Element) -> bool:
    """Return whether a table sets one formula and its number, as LaTeXML does."""
    return _EQUATION.search(table.get("class")) is not None


def is_line(table: Element) -> bool:
    """Return whether a table sets a line of text in cells, as Doxygen does with a prototype."""
    cells = next(rows(table), list[Element]())
    links = (inner for inner in table.descendants() if inner.tag == "a")
    return (
        len(cells) >= LEAST_OF_LINE
        and len(list(rows(table))) == 1
        and not any(cell.holds_blocks for cell in cells)
        and 2 * sum(len(link.text()) for link in links) < len(table.text()) <= LONGEST_LINE
    )


def rows(table: Element) -> Iterator[list[Element]]:
    """Yield the cells of each row that has cells."""
    for row in row_elements(table):
        cells = [cell for cell in row.elements() if cell.tag in {"td", "th"}]
        if cells:
            yield cells


def row_elements(table: Element) -> Iterator[Element]:
    """Yield the rows of a table, not those of tables inside it."""
    for element in table.elements():
        if element.tag == "tr":
            yield element
        elif element.tag in {"thead", "tbody", "tfoot"}:
            yield from row_elements(element)


def heading_in(row: Element) -> Element | None:
    """Return the heading that is all of a row, None if the row holds anything else."""
    heading = next((element for element in row.descendants() if element.tag in HEADINGS), None)
    return heading if heading is not None and heading.text() == row.text() else None


def code_lines(table: Element) -> list[str] | None:
    """Return the lines of code that a table shows beside their numbers, None for other tables."""
    lines: list[str] = []
    number = 0
    is_numbered = True  # by an attribute, as code alone is
    for row in rows(table):
        if len(row) != 2 or row[0].tag == "th":
            return None
        label = row[0].text()
        is_numbered = is_numbered and not label
        label = label or _line_number(row[0])
        if not label.isdecimal() or len(label) > 7 or (lines and int(label) != number + 1):
            return None
        number = int(label)
        lines.append(row[1].raw().strip("\r\n").rstrip())
    if len(lines) < 2:
        return None
    first = next(rows(table))
    named = " ".join(element.get("class") for element in (table, *first))
    return lines if is_numbered or _CODE.search(named) else None


def _line_number(cell: Element) -> str:
    """Return the number that an attribute in an empty cell states; a style shows it."""
    for element in islice(cell.subtree(), 2):
        if number := element.get("data-line-number") or element.get("data-line"):
            return number
    return ""


MAX_COLUMNS_SPANNED = 100  # columns that one cell may span, or in which one may span rows
MAX_HEAD_ROWS = 4  # rows of column names; more are data


def table_lines(table: Element, inline: InlineText) -> Iterator[str]:
    """Yield the caption and the rows of a table, which have the same number of cells.

    A cell that spans columns leaves the others empty; one that spans rows is repeated in them.
    Several rows of names become one: "Sales 2024", "Sales 2025".
    """
    titles = [element.children for element in table.elements() if element.tag == "caption"][:1]
    cells = list(rows(table))
    heads = list(takewhile(_is_head, cells))
    if not 1 < len(heads) <= min(MAX_HEAD_ROWS, len(cells) - 1):
        heads = []
    if heads and len(heads[0]) == 1:  # a title over all columns
        titles.append(heads.pop(0)[0].children)
        del cells[0]
    if not any(_span(cell) > 1 for row in heads[:-1] for cell in row):
        heads = []  # they name no groups of columns
    yield from filter(None, (inline.text(nodes, breaks=" ") for nodes in titles))
    grid = _Grid(cells)
    lines = [grid.row(row, inline, is_head=n < len(heads)) for n, row in enumerate(cells)]
    if heads:
        columns = zip_longest(*lines[: len(heads)], fillvalue="")
        names = [" ".join(dict.fromkeys(n for n in c if n not in {"", DITTO})) for c in columns]
        lines[: len(heads)] = [names]
    lines[1:] = [texts for texts in lines[1:] if any(texts)]  # others keep rows apart
    width = max(map(len, lines), default=0)
    for number, texts in enumerate(lines):
        texts.extend([""] * grid.take(width - len(texts)))
        yield f"| {' | '.join(texts)} |"
        if number == 0:
            yield f"|{' --- |' * len(texts)}"


def _is_head(cells: list[Element]) -> bool:
    """Return whether a row names columns."""
    in_head = any(element.tag == "thead" for element in islice(cells[0].outward(), 3))
    return in_head or all(cell.tag == "th" for cell in cells)


class _Grid:
    """Knows which cells of earlier rows reach into the next one."""

    def __init__(self, rows: list[list[Element]]) -> None:
        self._spans: dict[int, tuple[int, str]] = {}  # by column: rows to come, and their text
        # A cell that is all of a row may say that it spans a hundred.
        self._width = max((sum(map(_span, row)) for row in rows if len(row) > 1), default=1)
        # Characters of empty cells and of repeated values: some for each cell that was written.
        count = sum(map(len, rows))
        self._spare, self._spare_values = 3 * count, 48 * count
        self._reserve = 20 * count  # of the second, for marks in place of values

    def row(self, cells: list[Element], inline: InlineText, *, is_head: bool) -> list[str]:
        """Return the texts of a row, one a column; names of columns are repeated in all."""
        texts: list[str] = []
        for cell in cells:
            self._take_spans(texts)
            # Line breaks tell one piece of code from the next.
            has_code = any(e.tag in CODE_TAGS or _element.is_code(e) for e in cell.descendants())
            breaks = "<br>" if has_code else " "
            text = inline.text(cell.children, breaks=breaks).replace("|", "\\|")
            self._spare += len(text) + 2
            more = self.take(min(_span(cell), self._width) - 1)
            height = _span(cell, "rowspan", 65_534)
            value = repeated(text)
            is_named = is_head and len(value) * more <= self._spare_values - self._reserve
            self._spare_values -= len(value) * more if is_named else 0
            values = [value] + [value if is_named else ""] * more
            if height > 1 and len(texts) < MAX_COLUMNS_SPANNED:
                self._spans |= {n: (height - 1, v) for n, v in enumerate(values, len(texts))}
            texts += [text, *values[1:]]
        self._take_spans(texts)
        return texts

    def take(self, cells: int) -> int:
        """Return how many empty cells may be added, at most ``cells``."""
        cells = max(min(cells, self._spare // 3), 0)
        self._spare -= 3 * cells
        return cells

    def _take_spans(self, texts: list[str]) -> None:
        """Add the values that reach into this row at its next columns."""
        while (span := self._spans.pop(len(texts), None)) is not None:
            left, value = span
            if left > 1:
                self._spans[len(texts)] = left - 1, value
            is_short = len(value) < self._spare_values - self._reserve
            shown = value if is_short else DITTO  # no column may move
            self._spare_values -= len(shown) + 3
            if self._spare_values < 0:
                self._spans.clear()
                return
            texts.append(shown)


def _span(cell: Element, name: str = "colspan", most: int = MAX_COLUMNS_SPANNED) -> int:
    """Return how many columns a cell spans, or rows by ``name``."""
    value = cell.get(name).strip()
    return max(1, min(int(value), most)) if value.isdecimal() and len(value) < 6 else 1
