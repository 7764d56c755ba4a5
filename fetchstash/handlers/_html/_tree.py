"""A page as a small tree of our own: lexbor reads the HTML, and one walk copies what somebody may read."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fetchstash.handlers._html._hidden import HiddenBy, StyleSheet, hidden_by, is_closed_panel
from fetchstash.handlers._html._names import names

if TYPE_CHECKING:
    from selectolax.lexbor import LexborNode

MAX_DEPTH = 150
"""Elements nested deeper give their children to the one at this depth, so that recursion is safe below."""
MIN_FADING_CHARS = 2_000
"""An element that only styles hide and that holds more, and a third of the page, is taken for a page that a script shows."""

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
    """What was read of a page.

    ``hidden`` counts the elements with text that nobody would see and that are not in ``body``;
    ``without_scripts`` are the noscript elements in it.
    """

    body: Element
    language: str = ""
    title: str = ""
    base: str = ""
    meta: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    links: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    json_ld: list[str] = field(default_factory=list[str])
    scripts: int = 0
    asks_password: bool = False
    hidden: int = 0
    without_scripts: list[Element] = field(default_factory=list[Element])


def parse(source: str) -> Page:
    """Read the HTML of one page; ``source`` has passed the safety scan."""
    from selectolax.lexbor import LexborHTMLParser  # noqa: PLC0415 - loaded where a page is read, never at start

    parser = LexborHTMLParser(source.encode("utf-8", "replace"))
    page = Page(Element("body", {}, None))
    root, body = parser.root, parser.body
    if root is None or body is None:
        return page
    page.language = _attributes(root).get("lang", "")
    page.body.attributes = _attributes(body)
    page.asks_password = body.css_first('input[type="password"]') is not None
    sheets: list[str] = []
    for node in parser.css("title, base, meta, link, script, style"):
        if node.tag == "style":
            sheets.append(node.text(deep=True))
        else:
            _note(node, page)
    _Copy(page, StyleSheet(sheets), body).run()
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
                page.json_ld.append(node.text(deep=True))
        case _:
            pass


def _attributes(node: "LexborNode") -> dict[str, str]:
    attributes = node.attributes
    return {name: value or "" for name, value in attributes.items()} if attributes else {}


class _Copy:
    """The walk that copies the body of a page and leaves out what is never read or never seen."""

    def __init__(self, page: Page, sheet: StyleSheet, body: "LexborNode") -> None:
        self._page = page
        self._sheet = sheet
        self._body = body
        self._controlled = {
            one
            for node in body.css("[aria-controls]")
            for one in _attributes(node)["aria-controls"].split()
        }
        # React streams parts of a page in hidden elements (S:0), which a script puts where their
        # templates (B:0, P:0) stand.
        self._streamed = {(node.id or "")[2:]: node for node in body.css('div[hidden][id^="S:"]')}
        self._placed: set[str] = set()

    def run(self) -> None:
        """Copy all, without recursion: the source decides how deep it is."""
        pending: list[tuple[LexborNode | None, Element]] = [(self._body.child, self._page.body)]
        while pending:
            node, parent = pending.pop()
            while node is not None:
                kind = node.tag_id
                if kind == _TEXT:
                    parent.children.append(node.text_content or "")
                elif kind != _COMMENT and (tag := node.tag):
                    if tag == "template" and (streamed := self._part(node.id or "")) is not None:
                        self._placed.add(streamed.id or "")
                        pending.append((node.next, parent))
                        node = streamed.child
                        continue
                    if (
                        tag not in _NEVER_READ
                        and (element := self._element(tag, node, parent)) is not None
                    ):
                        pending.append((node.next, parent))
                        if len(pending) < MAX_DEPTH:
                            parent.children.append(element)
                            parent = element
                            if tag in BLOCKS:
                                _mark_holders(element)
                        node = node.child
                        continue
                node = node.next

    def _element(self, tag: str, node: "LexborNode", parent: Element) -> Element | None:
        """Return the copy of an element without its children, None if they are not to be read."""
        element = Element(tag, _attributes(node), parent)
        if tag == "noscript":
            self._page.without_scripts.append(element)
        if tag == "math":
            parent.children.append(_formula(node))
            return None
        how = hidden_by(element, self._sheet)
        if how is None or (how is HiddenBy.STYLE and self._is_most_of_the_page(node)):
            return element
        if how is not HiddenBy.FOR_GOOD and is_closed_panel(element, self._controlled):
            return element
        if element.attributes.get("id", "") not in self._placed:
            self._page.hidden += bool(node.text(deep=True, strip=True))
        return None

    def _part(self, template: str) -> "LexborNode | None":
        """Return the streamed part that belongs in the place of a template, once."""
        return self._streamed.pop(template[2:], None) if template[:2] in {"B:", "P:"} else None

    def _is_most_of_the_page(self, node: "LexborNode") -> bool:
        """Return whether this is a page that fades in: so much that it can be nothing else than the content, or named so."""
        size = _readable(node)
        return size > MIN_FADING_CHARS and (node.tag == "main" or size * 3 > _readable(self._body))


def _readable(node: "LexborNode") -> int:
    """Return how many characters of text an element holds, scripts and styles not counted."""
    texts = (one for one in node.traverse(include_text=True) if one.tag_id == _TEXT)
    return sum(
        len(text.text_content or "")
        for text in texts
        if (around := text.parent) is None or around.tag not in _NEVER_READ
    )


def _mark_holders(element: Element) -> None:
    holder = element.parent
    while holder is not None and not holder.holds_blocks:
        holder.holds_blocks = True
        holder = holder.parent


def _formula(node: "LexborNode") -> str:
    """Return a formula as the TeX that it was made from, where it says so (MathML Core, annotation), else as its characters."""
    source = node.css_first('annotation[encoding="application/x-tex"]')
    return f"${source.text(deep=True).strip()}$" if source is not None else node.text(deep=True)
