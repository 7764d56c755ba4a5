"""Write a data table as Markdown, one row a line, each value under its column."""

from collections.abc import Iterator

from fetchstash.handlers._html._element import CODE_TAGS, Element, is_code
from fetchstash.handlers._html._inline import Inline
from fetchstash.handlers._html._tables import caption, rows

MAX_COLSPAN = 8
"""Columns that one cell may span: more cost output and say nothing."""
MAX_COLUMNS_SPANNED = 100
"""Columns in which a cell may span rows."""
LONGEST_REPEATED = 80
"""Characters of a value that is repeated in the rows it spans; a longer one is marked by DITTO."""
DITTO = "\u2033"


def table_lines(table: Element, inline: Inline) -> Iterator[str]:
    """Yield the caption and the rows of a table.

    A cell that spans columns leaves the others empty; one that spans rows is repeated in them.
    """
    title = caption(table)
    if title is not None and (text := inline.text(title.children, breaks=" ")):
        yield text
    grid = _Grid()
    for number, cells in enumerate(rows(table)):
        texts = grid.row(cells, inline)
        yield f"| {' | '.join(texts)} |"
        if number == 0:
            yield f"|{' --- |' * len(texts)}"


class _Grid:
    """Knows which cells of earlier rows reach into the next one."""

    def __init__(self) -> None:
        self._spans: dict[int, tuple[int, str]] = {}  # by column: rows to come, and their text
        self._spare = 0  # characters that may be repeated: no more than were written

    def row(self, cells: list[Element], inline: Inline) -> list[str]:
        """Return the texts of a row, one a column."""
        texts: list[str] = []
        for cell in cells:
            self._take_spans(texts)
            breaks = "<br>" if any(map(_has_lines, cell.descendants())) else " "
            text = inline.text(cell.children, breaks=breaks).replace("|", "\\|")
            self._spare += len(text) + 2
            columns = _span(cell, "colspan", MAX_COLSPAN)
            height = _span(cell, "rowspan", 65_534)
            if height > 1 and len(texts) < MAX_COLUMNS_SPANNED:
                value = text if len(text) <= LONGEST_REPEATED else DITTO
                for column in range(len(texts), len(texts) + columns):
                    self._spans[column] = height - 1, value if column == len(texts) else ""
            texts += [text] + [""] * (columns - 1)
        self._take_spans(texts)
        return texts

    def _take_spans(self, texts: list[str]) -> None:
        """Add the values that reach into this row at its next columns."""
        while (span := self._spans.pop(len(texts), None)) is not None:
            left, value = span
            if left > 1:
                self._spans[len(texts)] = left - 1, value
            self._spare -= len(value) + 3
            if self._spare < 0:
                self._spans.clear()
                return
            texts.append(value)


def _has_lines(element: Element) -> bool:
    """Return whether line breaks beside this element tell one piece of code from the next."""
    return element.tag in CODE_TAGS or is_code(element)


def _span(cell: Element, name: str, most: int) -> int:
    value = cell.attributes.get(name, "").strip()
    if not value.isdecimal() or len(value) > 5:
        return 1
    return max(1, min(int(value), most))
