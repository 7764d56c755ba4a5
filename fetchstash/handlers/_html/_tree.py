"""A page as a small tree of our own: lexbor reads the HTML, and one walk copies what somebody may read."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fetchstash.handlers._html._hidden import StyleSheet, is_hidden
from fetchstash.handlers._html._names import names

if TYPE_CHECKING:
    from selectolax.lexbor import LexborNode

MAX_DEPTH = 150
"""Elements nested deeper give their children to the one at this depth, so that recursion is safe below."""

BLOCKS = names(
    "address article aside blockquote body caption center dd details dialog dir div dl dt fieldset figcaption figure footer form "
    "h1 h2 h3 h4 h5 h6 header hgroup hr legend li main menu nav ol p pre search section summary "
    "table tbody td tfoot th thead tr ul"
)
HEADINGS = {f"h{level}": level for level in range(1, 7)}

_NEVER_READ = names(
    "script style template svg iframe object embed applet noembed noframes canvas audio video map datalist select input textarea "
    "progress meter frameset frame link meta base title head"
)
_TEXT, _COMMENT = 2, 4  # lexbor's tag ids


class Element:
    """An element; ``children`` are elements and texts in document order. ``holds_blocks``: a block-level element is inside."""

    __slots__ = ("attributes", "children", "holds_blocks", "parent", "tag")

    def __init__(self, tag: str, attributes: dict[str, str], parent: "Element | None") -> None:
        self.tag = tag
        self.attributes = attributes
        self.parent = parent
        self.children: list[Element | str] = []
        self.holds_blocks = False

    def elements(self) -> Iterator["Element"]:
        """Yield the child elements."""
        return (child for child in self.children if not isinstance(child, str))

    def descendants(self) -> Iterator["Element"]:
        """Yield all elements inside, in document order."""
        for child in self.elements():
            yield child
            yield from child.descendants()

    def ancestors(self) -> Iterator["Element"]:
        """Yield the elements around this one, the nearest first."""
        element = self.parent
        while element is not None:
            yield element
            element = element.parent

    def texts(self) -> Iterator[str]:
        """Yield all texts inside as they stand, in document order."""
        for child in self.children:
            if isinstance(child, str):
                yield child
            else:
                yield from child.texts()

    def text(self) -> str:
        """Return the text inside, its white space collapsed."""
        return " ".join("".join(self.texts()).split())


Node = Element | str


@dataclass(slots=True)
class Page:
    """What was read of a page; ``hidden`` counts the elements with text that nobody would see and that are not in ``body``."""

    body: Element
    language: str = ""
    title: str = ""
    base: str = ""
    meta: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    links: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    json_ld: list[str] = field(default_factory=list[str])
    scripts: int = 0
    hidden: int = 0


def parse(source: str) -> Page:
    """Read the HTML of one page; ``source`` has passed the safety scan."""
    from selectolax.lexbor import LexborHTMLParser  # noqa: PLC0415 - loaded where a page is read, never at start

    parser = LexborHTMLParser(source.encode("utf-8", "replace"))
    page = Page(Element("body", {}, None))
    root = parser.root
    if root is None:
        return page
    page.language = _attributes(root).get("lang", "")
    for node in parser.css("title, base, meta, link, script, style"):
        _note(node, page)
    body = parser.body
    if body is not None:
        sheet = StyleSheet(node.text_content or "" for node in parser.css("style"))
        page.body.attributes = _attributes(body)
        _copy(body, page, sheet)
    return page


def _note(node: "LexborNode", page: Page) -> None:
    attributes = _attributes(node)
    match node.tag:
        case "title":
            page.title = page.title or " ".join(node.text(deep=True).split())
        case "base":
            page.base = page.base or attributes.get("href", "")
        case "meta":
            page.meta.append(attributes)
        case "link":
            page.links.append(attributes)
        case "script":
            page.scripts += 1
            if attributes.get("type", "").lower() == "application/ld+json":
                page.json_ld.append(node.text_content or "")
        case _:
            pass


def _attributes(node: "LexborNode") -> dict[str, str]:
    return {name: value or "" for name, value in node.attributes.items()}


def _copy(body: "LexborNode", page: Page, sheet: StyleSheet) -> None:
    pending: list[tuple[LexborNode | None, Element]] = [(body.child, page.body)]
    while pending:
        node, parent = pending.pop()
        while node is not None:
            kind = node.tag_id
            if kind == _TEXT:
                parent.children.append(node.text_content or "")
            elif kind != _COMMENT and (tag := node.tag) and tag not in _NEVER_READ:
                attributes = _attributes(node)
                element = Element(tag, attributes, parent)
                if attributes and is_hidden(element, sheet):
                    page.hidden += 1
                elif tag == "math":
                    parent.children.append(_formula(node))
                elif len(pending) >= MAX_DEPTH:
                    pending.append((node.next, parent))
                    node = node.child
                    continue
                else:
                    parent.children.append(element)
                    if tag in BLOCKS:
                        _mark_holders(element)
                    pending.append((node.next, parent))
                    node, parent = node.child, element
                    continue
            node = node.next


def _mark_holders(element: Element) -> None:
    holder = element.parent
    while holder is not None and not holder.holds_blocks:
        holder.holds_blocks = True
        holder = holder.parent


def _formula(node: "LexborNode") -> str:
    """Return a formula as the TeX that it was made from, where it says so (MathML Core, annotation), else as its characters."""
    source = node.css_first('annotation[encoding="application/x-tex"]')
    return f"${source.text(deep=True).strip()}$" if source is not None else node.text(deep=True)
