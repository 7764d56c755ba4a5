"""Tell data tables from layout, and read their rows and code."""

import re
from collections.abc import Iterator

from fetchstash.handlers._html._element import HEADINGS, Element, is_code

LONGEST_CELL = 1_000
"""Characters; a longer cell is a column of a layout."""
LONGEST_NESTED = 300
"""Characters of a table inside a cell that is written with the cell."""
SHORT_CELL = 200
"""Characters of a cell that headings may stand beside."""
MIN_ROWS_WITH_HEADINGS = 3
_EQUATION = re.compile(r"eqn|equation", re.IGNORECASE)
_CODE = re.compile(r"code|highlight|blob|hljs|diff|source|line", re.IGNORECASE)
_LAYOUT_INSIDE = frozenset(("form", "blockquote", "h1"))


def is_data_table(table: Element) -> bool:
    """Return whether a table holds data and is not the layout of a page."""
    if table.attributes.get("role") in {"presentation", "none"} or is_equation(table):
        return False
    headed = has_heads(table)
    headings = False
    for element in table.descendants():
        tag = element.tag
        if tag in _LAYOUT_INSIDE or (not headed and is_code(element)):
            return False
        if tag == "table" and (not headed or len(element.text()) > LONGEST_NESTED):
            return False
        headings = headings or tag in HEADINGS
    count = columns = 0
    for row in rows(table):
        count += 1
        columns = max(columns, len(row))
        longest = max(sum(map(len, cell.texts())) for cell in row)
        if longest > (SHORT_CELL if headings else LONGEST_CELL) and not headed:
            return False
    if headings and not headed and count < MIN_ROWS_WITH_HEADINGS:
        return False
    return (count > 1 or headed) and columns > 1


def has_heads(table: Element) -> bool:
    """Return whether a table has header cells or a caption."""
    if any(part.tag in {"thead", "caption"} for part in table.elements()):
        return True
    return any(cell.tag == "th" for row in rows(table) for cell in row)


def is_equation(table: Element) -> bool:
    """Return whether a table sets one formula and its number, as LaTeXML does."""
    return _EQUATION.search(table.attributes.get("class", "")) is not None


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


def caption(table: Element) -> Element | None:
    """Return the caption, None if there is none."""
    return next((element for element in table.elements() if element.tag == "caption"), None)


def heading_in(row: Element) -> Element | None:
    """Return the heading that is all of a row, None if the row holds anything else."""
    heading = next((element for element in row.descendants() if element.tag in HEADINGS), None)
    return heading if heading is not None and heading.text() == row.text() else None


def code_lines(table: Element) -> list[str] | None:
    """Return the lines of code that a table shows beside their numbers, None for other tables."""
    lines: list[str] = []
    number = 0
    for row in rows(table):
        if len(row) != 2 or row[0].tag == "th":
            return None
        label = row[0].text() or row[0].attributes.get("data-line-number", "")
        if not label.isdecimal() or len(label) > 7 or (lines and int(label) != number + 1):
            return None
        number = int(label)
        lines.append("".join(row[1].texts()).strip("\r\n").rstrip())
    if len(lines) < 2:
        return None
    first = next(rows(table))
    named = " ".join(element.attributes.get("class", "") for element in (table, *first))
    return lines if _CODE.search(named) else None
