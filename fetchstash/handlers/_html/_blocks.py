"""Blocks of a page as Markdown: paragraphs, lists, tables, headings with their outline."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain, islice, pairwise, zip_longest
from typing import NamedTuple

from fetchstash.handlers._contract import Part
from fetchstash.handlers._html import _element, _inline, _tables
from fetchstash.handlers._html._element import CODE_TAGS, HEADINGS, Element, Node
from fetchstash.handlers._html._inline import Inline, code_text
from fetchstash.handlers._html._media import MEDIA, shown
from fetchstash.handlers._html._tables import row_elements, table_lines
from fetchstash.handlers._html._tree import Page
from fetchstash.handlers._prose import fence_for, numeral
from fetchstash.text.hygiene import KANA_AND_HAN, SOUTHEAST
from fetchstash.text.ranges import Heading

PARAGRAPH, HEADING, CODE, TABLE, MEDIUM = "paragraph", "heading", "code", "table", "medium"
MOST_LINES_IN_CELL = 2
"""Lines of code that stand in a cell of a row, parted by ``<br>`` and without their indentation."""
LONGEST_NAMES = 200
"""Characters of a table's column names that are repeated beside each piece of code."""
_ITEMS = frozenset(("li", "dt", "dd", "blockquote"))


@dataclass(eq=False, slots=True)
class Block:
    """A run of inline ``nodes`` in ``parent``, or a whole heading, code block or table.

    A medium is a run without words that shows pictures, films or sounds.

    ``containers`` are the list items, definitions and quotations around it, the outermost first.
    ``link`` is the address of a link around the whole block. ``words`` is its text with white
    space collapsed, ``count`` their number, ``linked`` that of its words inside links, and ``size``
    the letters of all in a script that puts spaces between words.
    """

    kind: str
    nodes: list[Node]
    parent: Element
    containers: tuple[Element, ...]
    words: str
    link: str = ""
    level: int = 0

    count: int = field(init=False)
    linked: int = field(init=False)
    size: int = field(init=False)

    def __post_init__(self) -> None:
        self.count, unspaced = _words_in(self.words)
        self.size = len(self.words) + unspaced * _LETTERS
        self.linked = self.count if self.link else min(_linked_words(self.nodes), self.count)


def _linked_words(nodes: list[Node]) -> int:
    words = 0
    for node in nodes:
        if not isinstance(node, str):
            is_link = node.tag == "a"
            words += _words_in(node.text())[0] if is_link else _linked_words(node.children)
    return words


# How many characters make about one word.
_UNSPACED = (re.compile(f"[{KANA_AND_HAN}]"), 2), (re.compile(f"[{SOUTHEAST}]"), 4)
_LETTERS = 4
"""By which a word of other scripts is longer: two characters of Chinese say what six letters do."""


def _words_in(text: str) -> tuple[int, int]:
    """Return how many words a text has, its white space collapsed, and how many without a space."""
    if not text:
        return 0, 0
    unspaced = 0
    if not text.isascii():
        unspaced = sum(len(script.findall(text)) // size for script, size in _UNSPACED)
    return text.count(" ") + 1 + unspaced, unspaced


def cut(page: Page) -> list[Block]:
    """Return the blocks of a page in reading order.

    The noscript elements are used instead if they hold more text than the rest of the page.
    """
    blocks: list[Block] = []
    _Cutter(blocks, (), "").cut(page.body)
    noscript: list[Block] = []
    for element in page.without_scripts:
        _Cutter(noscript, (), "").cut(element)
    blocks = noscript + blocks if size_of(noscript) > size_of(blocks) else blocks
    _find_title(blocks, page.title)
    return blocks


_BETWEEN = re.compile(r": | [|–—·»:-]+ ")  # noqa: RUF001 - a dash between names


def _find_title(blocks: list[Block], title: str) -> None:
    """Make a heading of the block that repeats the page's title, if none is the main one.

    The name of the site stands before or behind it, and is shorter.
    """
    if not any(block.level == 1 for block in blocks):
        names = title, max(_BETWEEN.split(title), key=len)
        for block in blocks:
            if block.kind == PARAGRAPH and block.words in names and not block.linked:
                block.kind, block.level = HEADING, 1
                return


def size_of(blocks: Iterable[Block]) -> int:
    """Return the letters of blocks."""
    return sum(block.size for block in blocks)


class _Cutter(NamedTuple):
    """Cuts the content of some containers and of a link into blocks, added to ``blocks``."""

    blocks: list[Block]
    containers: tuple[Element, ...]
    link: str

    def cut(self, parent: Element) -> None:
        """Add the blocks inside an element."""
        run: list[Node] = []
        for child in parent.children:
            if isinstance(child, str):
                if run or not child.isspace():
                    run.append(child)
            elif not (child.tag in _element.BLOCKS or child.holds_blocks):
                if _element.is_read(child):
                    if child.tag == "br" and _ends_with_break(run):
                        self._add_paragraph(run, parent)
                        run = []
                    run.append(child)
            else:
                if run:
                    self._add_paragraph(run, parent)
                    run = []
                self._add_element(child)
        if run:
            self._add_paragraph(run, parent)

    def _add(
        self, kind: str, nodes: list[Node], parent: Element, words: str, level: int = 0
    ) -> None:
        self.blocks.append(Block(kind, nodes, parent, self.containers, words, self.link, level))

    def _add_element(self, element: Element) -> None:
        tag = element.tag
        if tag in HEADINGS:
            if words := element.text():
                self._add(HEADING, element.children, element, words, HEADINGS[tag])
        elif _element.is_code(element):
            is_lines = tag == "div" and not _element.is_verbatim(element)
            words = " ".join(code_text(element).split()) if is_lines else element.text()
            if words and not _is_line_numbers(element):
                self._add(CODE, [element], element, words)
        elif tag == "table" and _tables.code_lines(element) is not None:
            self._add(CODE, [element], element, element.text())
        elif tag == "table" and _tables.is_data_table(element):
            self._add_table(element)
        elif tag == "table" and (_tables.is_equation(element) or _tables.is_line(element)):
            for row in row_elements(element):
                self._add_paragraph(list(row.elements()), row)
        elif _element.is_read(element) and not (tag == "td" and _inline.is_gutter(element)):
            inside = self
            if tag in _ITEMS and not (tag == "blockquote" and _is_indent(element)):
                inside = _Cutter(self.blocks, (*self.containers, element), self.link)
            elif answers := _answers(element):
                inside = _Cutter(self.blocks, (*self.containers, *answers), self.link)
            elif tag == "a":
                inside = _Cutter(self.blocks, self.containers, element.get("href") or self.link)
            inside.cut(element)

    def _add_table(self, table: Element) -> None:
        """Add a table of data; a row that is a heading or shows code parts it in two."""
        first = next(row_elements(table))
        names_columns = all(cell.tag == "th" for cell in first.elements())
        is_head = names_columns and len(first.text()) <= LONGEST_NAMES and not _shows_code(first)
        head = first if is_head else None
        part = Element("table", table.attributes, table.parent)
        part.children += [child for child in table.elements() if child.tag == "caption"]
        is_parted = False
        for row in row_elements(table):
            heading = _tables.heading_in(row)
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
            self._add_whole_table(part)
            for element in filter(None, chain.from_iterable(zip_longest(names, cells))):
                self._add_element(element)
            part = Element("table", table.attributes, table.parent)
            part.children += [head] if names and head is not None else []
        if not is_parted or part.children != [head]:
            self._add_whole_table(part if is_parted else table)

    def _add_whole_table(self, table: Element) -> None:
        if words := table.text():
            self._add(TABLE, [table], table, words)

    def _add_paragraph(self, run: list[Node], parent: Element) -> None:
        texts = [node if isinstance(node, str) else node.raw() for node in run]
        words = " ".join("".join(texts).split())
        nodes = [node for node in run if not (isinstance(node, str) and node.isspace())]
        blocks = [node for node in nodes if isinstance(node, Element) and _is_block(node)]
        match nodes:
            case [Element() as code] if _code_lines(code) > 1 or _is_block(code):
                self._add(CODE, [code], code, words)
            case [_, *_] if len(blocks) == len(nodes):
                for block in blocks:
                    self._add_element(block)
            case _ if words:
                self._add(PARAGRAPH, run, parent, words)
            case _ if any(e.tag in MEDIA and shown(e) for e in _element.elements_in(run)):
                self._add(MEDIUM, run, parent, "")
            case _:
                pass


_POST = re.compile(r"(?<![a-z])(?:comment|reply|post|message|answer)(?![a-z])", re.IGNORECASE)
_DEPTHS = ("indent", "data-depth", "data-indent", "data-level")
POST_REACH, MAX_DEPTH = 8, 12


def _answers(element: Element) -> tuple[Element, ...]:
    """Return a quotation for each post of a thread that this one answers, as mail has it.

    The posts stand inside each other, or say how deep they stand.
    """
    if not element.attributes and element.tag != "tr":
        return ()
    if element.tag == "tr":
        cells = islice(element.elements(), 2)
        depth = next((d for cell in cells if (d := _stated_depth(cell))), 0)
    elif not element.attributes.get("class") or not _names_post(element.get("class")):
        return ()
    elif not (depth := _stated_depth(element)):
        own = element.tag, element.classes()[0]
        around = element.nearest(POST_REACH + 1)[1:]
        return (element,) if any((e.tag, *e.classes()[:1]) == own for e in around) else ()
    return tuple(Element("blockquote", {}, None) for _ in range(depth))


@lru_cache(1_000)
def _names_post(classes: str) -> bool:
    return any(map(_POST.search, classes.split()[:1]))


def _stated_depth(element: Element) -> int:
    stated = next((element.get(name) for name in _DEPTHS if name in element.attributes), "")
    return min(int(stated), MAX_DEPTH) if stated.isdecimal() and len(stated) < 3 else 0


def _is_indent(quote: Element) -> bool:
    """Return whether a quotation sets a table, another or all of a cell apart, as Scribble does."""
    around = quote.parent
    held = [child for child in quote.children if not (isinstance(child, str) and child.isspace())]
    is_frame = all(not isinstance(e, str) and e.tag in {"table", "blockquote"} for e in held)
    return is_frame or (around is not None and around.tag == "td" and around.children == [quote])


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
        if _element.is_code(child) or (child.tag in CODE_TAGS and not child.holds_blocks):
            yield child
        else:
            yield from _codes(child)


def _code_lines(element: Element) -> int:
    """Return the lines of an element that is code by itself, 0 for any other."""
    if not _element.is_code(element):
        inside = {inner.tag for inner in element.descendants()} if element.tag in CODE_TAGS else ()
        if "br" not in inside or "a" in inside:  # a block of code has no links
            return 0
    return code_text(element).count("\n") + 1


def _is_block(code: Element) -> bool:
    return code.tag in CODE_TAGS and _element.is_verbatim(code)


def _is_line_numbers(code: Element) -> bool:
    """Return whether this is a column of numbers, one a line, beside the code in a later cell."""
    cell = next((around for around in islice(code.outward(), 1, None) if around.tag != "div"), None)
    if cell is None or cell.tag != "td" or cell.parent is None:
        return False
    lines = [line.strip() for line in code.raw().split("\n") if line.strip()]
    are_numbers = all(line.isdecimal() and len(line) < 8 for line in lines)
    is_last = cell is list(cell.parent.elements())[-1]
    return are_numbers and not is_last and all(int(a) < int(b) for a, b in pairwise(lines))


def texts(blocks: list[Block]) -> list[Block]:
    """Return the blocks that have words."""
    return [block for block in blocks if block.kind != MEDIUM]


def _ends_with_break(run: list[Node]) -> bool:
    """Return whether a run ends with a line break; a second one ends the paragraph."""
    last = next((n for n in reversed(run) if not isinstance(n, str) or n.strip()), "")
    return not isinstance(last, str) and last.tag == "br"


PART_CHARS = 65_536
_PERMALINK_SIGNS = " #\u00b6\u00a7\U0001f517"  # pilcrow, section sign, link symbol
_LINK_TO_ITSELF = re.compile(r"\[([^\[\]]*)\]\(#[^()]*\)")
MAX_INDENT = 8  # levels of indentation; deeper blocks stand at the last level


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
        text = code_text(block.parent)
        fence = fence_for(text)
        yield f"{fence}{_inline.language(block.parent)}"
        yield from text.split("\n")
        yield fence
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
        self._widths: dict[Element, int] = {}  # of the marks of items

    def prefixes(self, block: Block) -> tuple[str, str]:
        """Return the prefix of the first line of a block, and of its other lines."""
        if not block.containers:
            return "", ""
        if block.kind == HEADING:  # it begins a section, not an item
            self._unmarked.update(c for c in block.containers if c.tag in {"li", "dt", "dd"})
        elif block.kind != PARAGRAPH:  # a fence or a table's row must begin its line
            items = (c for c in block.containers if c.tag in {"li", "dt"})
            self._unmarked.update(item for item in items if item not in self._started)
        first: list[str] = []
        rest: list[str] = []
        marked = [c for c in block.containers if c not in self._unmarked]
        for container in marked[-MAX_INDENT:]:
            if container.tag not in {"li", "dt", "dd"}:  # a quotation, or an answer to a post
                mark = indent = "> "
            elif container.tag == "dd":
                mark = indent = "  "
            else:
                mark = "" if container in self._started else self._mark(container)
                width = self._widths.setdefault(container, len(mark) or len("- "))
                indent = " " * width  # else a list in it stands beside it (CommonMark 0.31, 5.2)
            first.append(indent if container in self._started else mark)
            rest.append(indent)
        self._started.update(block.containers)
        return "".join(first), "".join(rest)

    def _mark(self, item: Element) -> str:
        items = item.parent
        if item.tag != "li" or items is None or items.tag != "ol":
            return "- "
        if item not in self._numbers:
            self._number(items)
        return f"{_counter(self._numbers[item], items, item)}. "

    def _number(self, items: Element) -> None:
        """Give the items of a list their numbers (HTML Standard, 4.4.5 and 4.4.8)."""
        listed = [sibling for sibling in items.elements() if sibling.tag == "li"]
        is_reversed = "reversed" in items.attributes
        number = _integer(items.get("start"), len(listed) if is_reversed else 1)
        for sibling in listed:
            number = _integer(sibling.get("value"), number)
            self._numbers[sibling] = number
            number += -1 if is_reversed else 1


def _integer(text: str, otherwise: int) -> int:
    return int(text) if _INTEGER.fullmatch(text.strip()) else otherwise


def _counter(number: int, items: Element, item: Element) -> str:
    """Return the number of an item as the list counts: in letters or Roman numerals, too."""
    kind = item.get("type") or items.get("type")
    styles = map(_LIST_STYLE.search, (item.get("style"), items.get("style")))
    if match := next(filter(None, styles), None):
        kind = {"al": "a", "la": "a", "ro": "i"}[match[2].lower()[:2]]
        kind = kind.upper() if match[1].lower() == "upper" else kind
    return numeral(number, kind)


_INTEGER = re.compile(r"-?\d{1,6}")
_LIST_STYLE = re.compile(
    r"list-style[\w-]*\s*:[^;]*\b(lower|upper)-(alpha|latin|roman)", re.IGNORECASE
)


def _follows_closely(before: Block, block: Block) -> bool:
    """Return whether no blank line separates two blocks, such as items of one list."""
    kinds = {block.kind, before.kind}
    if kinds & {HEADING, TABLE} or not before.containers or not block.containers:
        return False
    last = block.containers[-1]
    return last.tag in {"li", "dt", "dd"} and last not in before.containers
