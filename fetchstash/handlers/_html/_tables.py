"""Tell data tables from layout, and read their rows."""

from collections.abc import Iterator

from fetchstash.handlers._html._element import Element

_NO_DATA_INSIDE = frozenset(("table", "pre", "h1", "h2", "h3", "form", "blockquote"))
LONGEST_CELL = 1_000
"""Characters; a longer cell is a column of a layout."""


def is_data_table(table: Element) -> bool:
    """Return whether a table holds data and is not the layout of a page."""
    if table.attributes.get("role") == "presentation":
        return False
    headed = False
    for element in table.descendants():
        if element.tag in _NO_DATA_INSIDE:
            return False
        headed = headed or element.tag in {"th", "thead", "caption"}
    several_rows = several_columns = False
    for number, row in enumerate(rows(table)):
        several_rows = several_rows or number > 0
        several_columns = several_columns or len(row) > 1
        if not headed and any(sum(map(len, cell.texts())) > LONGEST_CELL for cell in row):
            return False
    return (several_rows or headed) and several_columns


def rows(table: Element) -> Iterator[list[Element]]:
    """Yield the cells of each row that has cells."""
    for element in table.elements():
        if element.tag == "tr":
            cells = [cell for cell in element.elements() if cell.tag in {"td", "th"}]
            if cells:
                yield cells
        elif element.tag in {"thead", "tbody", "tfoot"}:
            yield from rows(element)


def caption(table: Element) -> Element | None:
    """Return the caption, None if there is none."""
    return next((element for element in table.elements() if element.tag == "caption"), None)
