"""A page cut into blocks: a paragraph, a heading, a list item's text, a whole ``pre``, a whole data table."""

from dataclasses import dataclass

from fetchstash.handlers._html._tables import is_data_table
from fetchstash.handlers._html._tree import BLOCKS, HEADINGS, Element, Node, Page

PARAGRAPH, HEADING, CODE, TABLE = "paragraph", "heading", "code", "table"
_NOT_READ = frozenset(("button", "noscript"))
_ITEMS = frozenset(("li", "dt", "dd", "blockquote"))


@dataclass(slots=True, eq=False)
class Block:
    """What stands together: inline ``nodes`` of ``parent``, or the one element that is the heading, code or table.

    ``containers`` are the list items, definitions and quotations around it, the outermost first;
    ``link`` is the address of a link around the whole block; ``words`` is its text with the white
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

    What is there for browsers without scripts counts only where it is the larger part of the page.
    """
    blocks: list[Block] = []
    _cut(page.body, (), "", blocks)
    instead: list[Block] = []
    for element in page.without_scripts:
        _cut(element, (), "", instead)
    return instead + blocks if _size(instead) > _size(blocks) else blocks


def _size(blocks: list[Block]) -> int:
    return sum(len(block.words) for block in blocks)


def _cut(parent: Element, containers: tuple[Element, ...], link: str, out: list[Block]) -> None:
    """Add the blocks inside an element to ``out``."""
    run: list[Node] = []
    for child in parent.children:
        if isinstance(child, str) or not (child.tag in BLOCKS or child.holds_blocks):
            if isinstance(child, str) or child.tag not in _NOT_READ:
                if _ends_paragraph(run, child):
                    _add_paragraph(run, parent, containers, link, out)
                    run = []
                run.append(child)
            continue
        _add_paragraph(run, parent, containers, link, out)
        run = []
        _add_element(child, containers, link, out)
    _add_paragraph(run, parent, containers, link, out)


def _add_element(
    element: Element, containers: tuple[Element, ...], link: str, out: list[Block]
) -> None:
    tag = element.tag
    whole = (
        HEADING
        if tag in HEADINGS
        else CODE
        if tag == "pre"
        else TABLE
        if tag == "table" and is_data_table(element)
        else ""
    )
    if whole:
        if words := element.text():
            nodes: list[Node] = element.children if whole == HEADING else [element]
            out.append(Block(whole, nodes, element, containers, words, link, HEADINGS.get(tag, 0)))
    elif tag not in _NOT_READ:
        if tag in _ITEMS:
            containers = (*containers, element)
        elif tag == "a":
            link = element.attributes.get("href", "") or link
        _cut(element, containers, link, out)


def _add_paragraph(
    run: list[Node], parent: Element, containers: tuple[Element, ...], link: str, out: list[Block]
) -> None:
    if not run:
        return
    words = " ".join(
        "".join(node if isinstance(node, str) else "".join(node.texts()) for node in run).split()
    )
    if words:
        out.append(Block(PARAGRAPH, run, parent, containers, words, link))


def _ends_paragraph(run: list[Node], child: Node) -> bool:
    """Return whether ``child`` is the second line break in a row: many pages part their paragraphs so."""
    if isinstance(child, str) or child.tag != "br":
        return False
    for node in reversed(run):
        if isinstance(node, str):
            if node.strip():
                return False
        else:
            return node.tag == "br"
    return False
