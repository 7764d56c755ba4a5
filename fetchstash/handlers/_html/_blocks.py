"""Cut a page into blocks: a paragraph, a heading, the text of an item, a ``pre``, a data table."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise, zip_longest

from fetchstash.handlers._html._element import (
    BLOCKS,
    CODE_TAGS,
    HEADINGS,
    Element,
    Node,
    is_code,
    is_read,
)
from fetchstash.handlers._html._inline import code_text, is_gutter
from fetchstash.handlers._html._media import MEDIA, shown
from fetchstash.handlers._html._tables import (
    code_lines,
    heading_in,
    is_data_table,
    is_equation,
    row_elements,
)
from fetchstash.handlers._html._tree import Page

PARAGRAPH, HEADING, CODE, TABLE, MEDIUM = "paragraph", "heading", "code", "table", "medium"
MOST_LINES_IN_CELL = 2
"""Lines of code that stand in a cell of a row, parted by ``<br>`` and without their indentation."""
LONGEST_NAMES = 200
"""Characters of a table's column names that are repeated beside each piece of code."""
_ITEMS = frozenset(("li", "dt", "dd", "blockquote"))


@dataclass(slots=True, eq=False)
class Block:
    """A run of inline ``nodes`` in ``parent``, or a whole heading, code block or table.

    A medium is a run without words that shows pictures, films or sounds.

    ``containers`` are the list items, definitions and quotations around it, the outermost first.
    ``link`` is the address of a link around the whole block. ``words`` is its text with white
    space collapsed.
    """

    kind: str
    nodes: list[Node]
    parent: Element
    containers: tuple[Element, ...]
    words: str
    link: str = ""
    level: int = 0


def cut(page: Page) -> list[Block]:
    """Return the blocks of a page in reading order.

    The noscript elements are used instead if they hold more text than the rest of the page.
    """
    blocks: list[Block] = []
    _cut(page.body, (), "", blocks)
    noscript: list[Block] = []
    for element in page.without_scripts:
        _cut(element, (), "", noscript)
    return noscript + blocks if _size(noscript) > _size(blocks) else blocks


def _size(blocks: list[Block]) -> int:
    return sum(len(block.words) for block in blocks)


def _cut(parent: Element, containers: tuple[Element, ...], link: str, out: list[Block]) -> None:
    """Add the blocks inside an element to ``out``."""
    run: list[Node] = []
    for child in parent.children:
        if isinstance(child, str):
            if run or not child.isspace():
                run.append(child)
        elif not (child.tag in BLOCKS or child.holds_blocks):
            if is_read(child):
                if child.tag == "br" and _ends_with_break(run):
                    _add_paragraph(run, parent, containers, link, out)
                    run = []
                run.append(child)
        else:
            if run:
                _add_paragraph(run, parent, containers, link, out)
                run = []
            _add_element(child, containers, link, out)
    if run:
        _add_paragraph(run, parent, containers, link, out)


def _add_element(
    element: Element, containers: tuple[Element, ...], link: str, out: list[Block]
) -> None:
    tag = element.tag
    if tag == "table" and (is_data_table(element) or code_lines(element) is not None):
        _add_table(element, containers, link, out)
    elif tag in HEADINGS or is_code(element):
        words = " ".join(code_text(element).split()) if tag == "div" else element.text()
        if words and (tag in HEADINGS or not _is_line_numbers(element)):
            kind = HEADING if tag in HEADINGS else CODE
            nodes: list[Node] = element.children if kind == HEADING else [element]
            out.append(Block(kind, nodes, element, containers, words, link, HEADINGS.get(tag, 0)))
    elif tag == "table" and is_equation(element):
        for row in row_elements(element):
            _add_paragraph(list(row.elements()), row, containers, link, out)
    elif is_read(element) and not (tag == "td" and is_gutter(element)):
        if tag in _ITEMS:
            containers = (*containers, element)
        elif tag == "a":
            link = element.attributes.get("href", "") or link
        _cut(element, containers, link, out)


def _add_table(
    table: Element, containers: tuple[Element, ...], link: str, out: list[Block]
) -> None:
    """Add a table of data or code; a row that is a heading or shows code parts it in two."""
    if code_lines(table) is not None:
        out.append(Block(CODE, [table], table, containers, table.text(), link))
        return
    head = _column_names(table)
    part = Element("table", table.attributes, table.parent)
    part.children += [child for child in table.elements() if child.tag == "caption"]
    is_parted = False
    for row in row_elements(table):
        heading = heading_in(row)
        if heading is None and not _shows_code(row):
            part.children.append(row)
            continue
        is_parted = True
        cells = [heading] if heading is not None else list(row.elements())
        names = list(head.elements()) if head is not None and heading is None else []
        if len(names) != len(cells):
            names = []
        elif part.children[-1:] == [head]:  # its names stand before each cell
            part.children.pop()
        _add_whole_table(part, containers, link, out)
        for pair in zip_longest(names, cells):
            for element in filter(None, pair):
                _add_element(element, containers, link, out)
        part = Element("table", table.attributes, table.parent)
        part.children += [head] if names and head is not None else []
    if not is_parted or part.children != [head]:
        _add_whole_table(part if is_parted else table, containers, link, out)


def _column_names(table: Element) -> Element | None:
    """Return the first row if it names the columns in few words."""
    row = next(row_elements(table))
    is_head = all(cell.tag == "th" for cell in row.elements())
    return row if is_head and len(row.text()) <= LONGEST_NAMES and not _shows_code(row) else None


def _shows_code(row: Element) -> bool:
    """Return whether a row shows code that needs lines of its own."""
    return any(
        lines > MOST_LINES_IN_CELL or (lines > 1 and code.text() == cell.text())
        for cell in row.elements()
        for code in _codes(cell)
        if (lines := _code_lines(code))
    )


def _codes(element: Element) -> Iterator[Element]:
    """Yield the elements of code inside, not those inside of another."""
    for child in element.elements():
        if is_code(child) or (child.tag in CODE_TAGS and not child.holds_blocks):
            yield child
        else:
            yield from _codes(child)


def _code_lines(element: Element) -> int:
    """Return the lines of an element that is code by itself, 0 for any other."""
    if not is_code(element):
        inside = {inner.tag for inner in element.descendants()} if element.tag in CODE_TAGS else ()
        if "br" not in inside or "a" in inside:  # a block of code has no links
            return 0
    return code_text(element).count("\n") + 1


def _add_whole_table(
    table: Element, containers: tuple[Element, ...], link: str, out: list[Block]
) -> None:
    if words := table.text():
        out.append(Block(TABLE, [table], table, containers, words, link))


def _is_line_numbers(code: Element) -> bool:
    """Return whether this is a column of numbers, one a line, beside the code in a later cell."""
    cell = code.parent
    while cell is not None and cell.tag == "div":
        cell = cell.parent
    if cell is None or cell.tag != "td" or cell.parent is None:
        return False
    if cell is list(cell.parent.elements())[-1]:
        return False
    lines = [line.strip() for line in "".join(code.texts()).split("\n") if line.strip()]
    if not all(line.isdecimal() and len(line) < 8 for line in lines):
        return False
    return all(int(line) < int(below) for line, below in pairwise(lines))


def _add_paragraph(
    run: list[Node], parent: Element, containers: tuple[Element, ...], link: str, out: list[Block]
) -> None:
    if len(run) == 1 and isinstance(run[0], str):
        words = " ".join(run[0].split())
    else:
        texts = (node if isinstance(node, str) else "".join(node.texts()) for node in run)
        words = " ".join("".join(texts).split())
        match [node for node in run if not (isinstance(node, str) and node.isspace())]:
            case [Element() as code] if _code_lines(code) > 1:
                out.append(Block(CODE, [code], code, containers, words, link))
                return
            case _:
                pass
    if words:
        out.append(Block(PARAGRAPH, run, parent, containers, words, link))
    elif any(not isinstance(node, str) and _shows_medium(node) for node in run):
        out.append(Block(MEDIUM, run, parent, containers, "", link))


def _shows_medium(node: Element) -> bool:
    inside = (node, *node.descendants()) if node.children else (node,)
    return any(element.tag in MEDIA and shown(element) for element in inside)


def texts(blocks: list[Block]) -> list[Block]:
    """Return the blocks that have words."""
    return [block for block in blocks if block.kind != MEDIUM]


def _ends_with_break(run: list[Node]) -> bool:
    """Return whether a run ends with a line break; a second one ends the paragraph."""
    for node in reversed(run):
        if isinstance(node, str):
            if node.strip():
                return False
        else:
            return node.tag == "br"
    return False
