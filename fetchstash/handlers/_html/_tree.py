"""Parse a page: lexbor reads the HTML, and one walk copies what a reader may see."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fetchstash.handlers._html._element import BLOCKS, Element
from fetchstash.handlers._html._hidden import HiddenBy, StyleSheet, hidden_by, is_closed_panel
from fetchstash.handlers._html._names import names

if TYPE_CHECKING:
    from selectolax.lexbor import LexborNode

MAX_DEPTH = 150
"""Children of deeper elements go to the element at this depth, so that recursion is safe."""
MIN_FADING_CHARS = 2_000
"""A script is expected to show an element that only a style hides if it holds more text than
this and a third of the page."""

_NEVER_READ = names(
    "script style template svg iframe object embed applet noembed noframes canvas audio video map "
    "datalist select input textarea progress meter frameset frame link meta base title head"
)
_TEXT, _COMMENT = 2, 4  # lexbor's tag ids


@dataclass(slots=True)
class Page:
    """A parsed page.

    ``hidden`` counts the elements with text that nobody would see; ``body`` has none of them.
    ``without_scripts`` are the noscript elements in ``body``.
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
    """Parse the HTML of one page. ``source`` must have passed the safety scan."""
    from selectolax.lexbor import LexborHTMLParser  # noqa: PLC0415 - heavy

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
            _add_to_head(node, page)
    _Copy(page, StyleSheet(sheets), body).run()
    return page


def _add_to_head(node: "LexborNode", page: Page) -> None:
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
    """Copies the body of a page without what is never read or never seen."""

    def __init__(self, page: Page, sheet: StyleSheet, body: "LexborNode") -> None:
        self._page = page
        self._sheet = sheet
        self._body = body
        self._controlled = {
            identifier
            for node in body.css("[aria-controls]")
            for identifier in _attributes(node)["aria-controls"].split()
        }
        # React streams parts of a page in hidden elements (S:0). A script moves them to where
        # their templates (B:0, P:0) stand.
        self._streamed = {(node.id or "")[2:]: node for node in body.css('div[hidden][id^="S:"]')}
        self._placed: set[str] = set()

    def run(self) -> None:
        """Copy the body without recursion: the source decides how deep it is."""
        pending: list[tuple[LexborNode | None, Element]] = [(self._body.child, self._page.body)]
        while pending:
            node, parent = pending.pop()
            while node is not None:
                kind = node.tag_id
                if kind == _TEXT:
                    parent.children.append(node.text_content or "")
                elif kind != _COMMENT and (tag := node.tag):
                    if (
                        tag == "template"
                        and (streamed := self._take_streamed(node.id or "")) is not None
                    ):
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
        """Return the copy of an element without its children, None if it is left out."""
        element = Element(tag, _attributes(node), parent)
        if tag == "noscript":
            self._page.without_scripts.append(element)
        if tag == "math":
            parent.children.append(_formula(node))
            return None
        cause = hidden_by(element, self._sheet)
        if cause is None or (cause is HiddenBy.STYLE and self._is_most_of_the_page(node)):
            return element
        if cause is not HiddenBy.FOR_GOOD and is_closed_panel(element, self._controlled):
            return element
        if element.attributes.get("id", "") not in self._placed:
            self._page.hidden += bool(node.text(deep=True, strip=True))
        return None

    def _take_streamed(self, template: str) -> "LexborNode | None":
        """Return the streamed part that replaces a template; each part is returned once."""
        return self._streamed.pop(template[2:], None) if template[:2] in {"B:", "P:"} else None

    def _is_most_of_the_page(self, node: "LexborNode") -> bool:
        """Return whether an element must be the content of a page that fades in."""
        size = _readable(node)
        return size > MIN_FADING_CHARS and (node.tag == "main" or size * 3 > _readable(self._body))


def _readable(node: "LexborNode") -> int:
    """Return the characters of text in an element, without scripts and styles."""
    texts = (child for child in node.traverse(include_text=True) if child.tag_id == _TEXT)
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
    """Return a formula as the TeX in its annotation (MathML Core), else as its characters."""
    source = node.css_first('annotation[encoding="application/x-tex"]')
    return f"${source.text(deep=True).strip()}$" if source is not None else node.text(deep=True)
