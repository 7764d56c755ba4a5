"""Write blocks as Markdown, one record a line: a paragraph, an item, a row, a line of code."""

import re
from collections.abc import Iterable, Iterator

from fetchstash.handlers._contract import Part
from fetchstash.handlers._html._blocks import CODE, HEADING, MEDIUM, PARAGRAPH, TABLE, Block
from fetchstash.handlers._html._element import Element
from fetchstash.handlers._html._grid import table_lines
from fetchstash.handlers._html._inline import Inline, code_block
from fetchstash.text.ranges import Heading

PART_CHARS = 65_536
_PERMALINK_SIGNS = " #\u00b6\u00a7\U0001f517"  # pilcrow, section sign, link symbol
_LINK_TO_ITSELF = re.compile(r"\[([^\[\]]*)\]\(#[^()]*\)")
MAX_INDENT = 8
"""Levels of indentation; deeper blocks stand at the last level."""


def parts(blocks: Iterable[Block], inline: Inline) -> Iterator[Part]:
    """Yield the blocks as Markdown in parts of about PART_CHARS, with the headings in each."""
    lines: list[str] = []
    headings: list[Heading] = []
    size = 0
    marks = _Marks()
    before: Block | None = None
    for block in blocks:
        written: Iterable[str] = _lines(block, inline)
        if block.kind == MEDIUM and not (written := list(filter(None, written))):
            continue  # each picture stands there once
        if before is not None and not _follows_closely(before, block):
            lines.append("")
        first, rest = marks.prefixes(block)
        for number, line in enumerate(written):
            if number == 0 and block.kind == HEADING:
                title = block.words.rstrip(_PERMALINK_SIGNS) or block.words
                headings.append(Heading(title, block.level, "lines", len(lines) + 1))
            lines.append(f"{first if number == 0 else rest}{line}".rstrip())
            size += len(lines[-1]) + 1
            if size >= PART_CHARS:
                yield Part("\n".join(lines) + "\n", headings=tuple(headings))
                lines, headings, size = [], [], 0
        before = block
    if lines:
        yield Part("\n".join(lines) + "\n", headings=tuple(headings))


def _lines(block: Block, inline: Inline) -> Iterator[str]:
    if block.kind == CODE:
        yield from code_block(block.parent).split("\n")
    elif block.kind == TABLE:
        yield from table_lines(block.parent, inline)
    elif block.kind == HEADING:
        text = inline.text(block.nodes, breaks=" ", emphasis=False)
        text = _LINK_TO_ITSELF.sub(r"\1", text) or block.words
        yield f"{'#' * block.level} {inline.link(text, block.link) if block.link else text}"
    else:
        is_plain = all(isinstance(node, str) for node in block.nodes)
        text = block.words if is_plain else inline.text(block.nodes)
        if block.link and text and "](" not in text and "\n" not in text:
            text = inline.link(text, block.link)
        yield from text.split("\n")


class _Marks:
    """Item marks, indentation and quotation marks before the lines of a block.

    An item's mark is written once.
    """

    def __init__(self) -> None:
        self._started: set[Element] = set()
        self._unmarked: set[Element] = set()
        self._numbers: dict[Element, int] = {}

    def prefixes(self, block: Block) -> tuple[str, str]:
        """Return the prefix of the first line of a block, and of its other lines."""
        if not block.containers:
            return "", ""
        if block.kind == HEADING:  # it begins a section, not an item
            self._unmarked.update(c for c in block.containers if c.tag != "blockquote")
        elif block.kind != PARAGRAPH:  # a fence or a table's row must begin its line
            items = (c for c in block.containers if c.tag in {"li", "dt"})
            self._unmarked.update(item for item in items if item not in self._started)
        first: list[str] = []
        rest: list[str] = []
        marked = [c for c in block.containers if c not in self._unmarked]
        for container in marked[-MAX_INDENT:]:
            if container.tag == "blockquote":
                mark = indent = "> "
            elif container.tag == "dd":
                mark = indent = "  "
            else:
                mark = "- " if container in self._started else self._mark(container)
                indent = " " * len(mark)
            first.append(indent if container in self._started else mark)
            rest.append(indent)
        self._started.update(block.containers)
        return "".join(first), "".join(rest)

    def _mark(self, item: Element) -> str:
        items = item.parent
        if item.tag != "li" or items is None or items.tag != "ol":
            return "- "
        if item not in self._numbers:
            start = items.attributes.get("start", "1")
            number = int(start) if start.isdecimal() and len(start) < 7 else 1
            for sibling in items.elements():
                self._numbers[sibling] = number
                number += sibling.tag == "li"
        return f"{self._numbers[item]}. "


def _follows_closely(before: Block, block: Block) -> bool:
    """Return whether no blank line separates two blocks, such as items of one list."""
    if HEADING in {block.kind, before.kind} or not before.containers or not block.containers:
        return False
    if TABLE in {block.kind, before.kind}:
        return False
    last = block.containers[-1]
    return last.tag != "blockquote" and last not in before.containers
