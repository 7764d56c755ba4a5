"""Cut a page into blocks: a paragraph, a heading, the text of an item, a ``pre``, a data table."""

from dataclasses import dataclass

from fetchstash.handlers._html._element import BLOCKS, HEADINGS, Element, Node
from fetchstash.handlers._html._tables import is_data_table
from fetchstash.handlers._html._tree import Page

PARAGRAPH, HEADING, CODE, TABLE = "paragraph", "heading", "code", "table"
_NOT_READ = frozenset(("button", "noscript"))
_ITEMS = frozenset(("li", "dt", "dd", "blockquote"))


@dataclass(slots=True, eq=False)
class Block:
    """A run of inline ``nodes`` in ``parent``, or a whole heading, code block or table.

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
    kind = _whole_kind(element)
    if kind:
        if words := element.text():
            nodes: list[Node] = element.children if kind == HEADING else [element]
            out.append(Block(kind, nodes, element, containers, words, link, HEADINGS.get(tag, 0)))
    elif tag not in _NOT_READ:
        if tag in _ITEMS:
            containers = (*containers, element)
        elif tag == "a":
            link = element.attributes.get("href", "") or link
        _cut(element, containers, link, out)


def _whole_kind(element: Element) -> str:
    """Return the kind of an element that is one block as a whole, "" for any other."""
    if element.tag in HEADINGS:
        return HEADING
    if element.tag == "pre":
        return CODE
    return TABLE if element.tag == "table" and is_data_table(element) else ""


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
    """Return whether ``child`` is the second line break in a row, which ends a paragraph."""
    if isinstance(child, str) or child.tag != "br":
        return False
    for node in reversed(run):
        if isinstance(node, str):
            if node.strip():
                return False
        else:
            return node.tag == "br"
    return False
