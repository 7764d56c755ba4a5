"""Parse a page: lexbor reads the HTML, and one walk copies what a reader may see."""

import re
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from fetchstash.handlers._html import _hidden, _media
from fetchstash.handlers._html._element import BLOCKS, Element, names
from fetchstash.handlers._html._hidden import TELLING, UNKNOWN_PAINT, HiddenBy, Paint, paint
from fetchstash.handlers._html._sheet import StyleSheet
from fetchstash.handlers._html._style import Style, hides, media, read_style
from fetchstash.handlers._leads import framed

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
_FIELDS = names("input select textarea")  # elements that part the words around them
_PLAYED = names("video audio iframe")
"""Elements of which a trace is kept: what they play, and where it is."""
_SPECIAL = names("dialog font img math mjx-container noscript")
"""Elements that need more than a look at their style."""
_ENTERING = '[style*="opacity:0"][style*="transform"], [style*="opacity: 0"][style*="transform"]'
"""Elements that a script fades and moves in when a reader scrolls there."""
_FORMULA_SCRIPT = re.compile(r"mathjax|katex", re.IGNORECASE)
_HEAD = "title, base, meta, link, script, style, frame, iframe, embed, object"
_TEXT, _COMMENT = 2, 4  # lexbor's tag ids


@dataclass(slots=True)
class Page:
    """A parsed page.

    ``hidden`` counts the elements with text that nobody would see; ``body`` has none of them.
    ``has_tex``: a script writes TeX in the text as formulas. ``without_scripts`` are the noscript
    elements in ``body``, ``media`` the pictures and players. ``script_texts`` are the
    attributes and texts of its scripts. ``meta_without`` is what holds where these do not run.
    """

    body: Element
    language: str = ""
    title: str = ""
    base: str = ""
    meta: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    meta_without: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    links: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    json_ld: list[str] = field(default_factory=list[str])
    frames: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    has_tex: bool = False
    scripts: int = 0
    script_texts: list[tuple[dict[str, str], str]] = field(
        default_factory=list[tuple[dict[str, str], str]]
    )
    asks_password: bool = False
    hidden: int = 0
    without_scripts: list[Element] = field(default_factory=list[Element])
    media: list[Element] = field(default_factory=list[Element])


def parse(source: str) -> Page:
    """Parse the HTML of one page. ``source`` must have passed the safety scan."""
    from selectolax.lexbor import LexborHTMLParser, SelectolaxError  # noqa: PLC0415 - heavy

    encoded = source.encode("utf-8", "replace")
    opened = _hidden.opened_roots(source) if b"shadowroot" in encoded.lower() else source
    parser = LexborHTMLParser(encoded if opened is source else opened.encode("utf-8", "replace"))
    if opened is not source:
        _hidden.fill_slots(parser)
    page = Page(Element("body", {}, None))
    sheets: list[str] = []
    for node in parser.css(_HEAD):
        _add_to_head(node, page, sheets)
    root, body = parser.root, parser.body
    if root is None or body is None:  # a frameset has no body
        return page
    html = Element("html", _attributes(root), None)
    page.language = html.get("lang")
    page.body.attributes = _attributes(body)
    page.asks_password = body.css_first('input[type="password"]') is not None

    def select(selector: str) -> frozenset[int]:
        try:
            return frozenset(node.mem_id for node in parser.css(selector))
        except SelectolaxError:
            return frozenset()

    # A page without style sheets may be a piece of another.
    complete = bool(sheets) and not any("@import" in sheet for sheet in sheets)
    if any("stylesheet" in link.get("rel", "").lower() for link in page.links):
        complete = False
    size = source.count("<") // 2
    sheet = StyleSheet(sheets, select, size, lambda: _depth(root), complete=complete)
    around = Paint()
    for element, node in ((html, root), (page.body, body)):
        style = _hidden.style_of(element, sheet, node.mem_id)
        around = paint(element, style, around, complete=complete)
    _Copy(page, sheet, body).run(around)
    return page


def _depth(root: "LexborNode") -> int:
    """Return how deep the elements of a page are nested."""
    depths = {root.mem_id: 1}
    for node in root.traverse():
        if (parent := node.parent) is not None and parent.mem_id in depths:
            depths[node.mem_id] = depths[parent.mem_id] + 1
    return max(depths.values())


def _add_to_head(node: "LexborNode", page: Page, sheets: list[str]) -> None:
    attributes, around = _attributes(node), node.parent
    is_for_scripts = around is None or around.tag != "noscript"
    match node.tag:
        case "title":
            page.title = page.title or " ".join(node.text(deep=True).split())
        case "base":
            page.base = page.base or attributes.get("href", "")
        case "meta":
            (page.meta if is_for_scripts else page.meta_without).append(attributes)
        case "link":
            page.links.append(attributes)
        case "script":
            page.scripts += 1
            page.has_tex |= _FORMULA_SCRIPT.search(attributes.get("src", "")) is not None
            if attributes.get("type", "").lower() == "application/ld+json":
                page.json_ld.append(node.text(deep=True))
            elif "src" not in attributes:
                page.script_texts.append((attributes, node.text(deep=True)))
        case "frame" | "iframe" | "embed" | "object" if _is_seen_frame(attributes):
            page.frames += framed(node.tag, attributes)
        case "style":
            condition = attributes.get("media", "")
            if is_for_scripts and (not condition or media(condition)):
                text = node.text(deep=True)
                sheets.append(f"@media {condition} {{{text}}}" if condition else text)
        case _:
            pass


def _is_seen_frame(attributes: dict[str, str]) -> bool:
    """Return whether a frame is for a reader, and not for scripts and counters."""
    style = read_style(attributes.get("style", "")) or Style()
    if hides(style) or style.get("visible") is False or "hidden" in attributes:
        return False
    return {attributes.get("width", ""), attributes.get("height", "")}.isdisjoint({"0", "1"})


def _attributes(node: "LexborNode") -> dict[str, str]:
    attributes: dict[str, Any] = node.attributes
    if None in attributes.values():
        return {name: value or "" for name, value in attributes.items()}
    return attributes


class _Copy:
    """Copies the body of a page without what is never read or never seen."""

    def __init__(self, page: Page, sheet: StyleSheet, body: "LexborNode") -> None:
        self._page = page
        self._sheet = sheet
        self._complete = sheet.complete
        self._body = body
        self._controlled = {
            identifier
            for node in body.css("[aria-controls]")
            for identifier in _attributes(node)["aria-controls"].split()
        }
        # React streams parts of a page in hidden elements (S:0). A script moves them to where
        # their templates (B:0, P:0) stand.
        self._streamed = {(node.id or "")[2:]: node for node in body.css('div[hidden][id^="S:"]')}
        self._seen_paint: Paint | None = None  # the paint of the last text that is seen
        self._has_sources = body.css_first('script[type^="math/tex"]') is not None
        self._placed: set[str] = set()
        self._silent: dict[tuple[str, str], bool] = {}  # by tag and classes: no rule applies
        self._emptied: set[Element] = set()

    def run(self, paints: Paint) -> None:
        """Copy the body without recursion: the source decides how deep it is."""
        pending: list[tuple[LexborNode | None, Element, Paint]] = []
        parent = self._page.body
        node = self._body.child
        while node is not None or pending:
            if node is None:
                node, parent, paints = pending.pop()
                continue
            kind = node.tag_id
            if kind == _TEXT:
                self._add_text(node.text_content or "", parent, paints)
            elif kind != _COMMENT and (tag := node.tag):
                if tag not in _NEVER_READ:
                    attributes = _attributes(node)
                    element = Element(tag, attributes, parent)
                    if not self._is_silent(tag, attributes):
                        painted = self._painted(element, node, parent, paints)
                    elif paints is UNKNOWN_PAINT:
                        painted = paints
                    else:
                        painted = paint(element, None, paints, complete=self._complete)
                    if painted is not None:
                        pending.append((node.next, parent, paints))
                        paints = painted
                        if len(pending) < MAX_DEPTH:
                            if not parent.holds_blocks and tag in BLOCKS:
                                parent.hold_blocks()
                            parent.children.append(element)
                            parent = element
                        node = node.child
                        continue
                elif tag == "template" and (inside := self._streamed_into(node)) is not None:
                    pending.append((node.next, parent, paints))
                    node = inside.child
                    continue
                elif tag == "script":
                    self._add_tex(node, parent, paints)
                elif tag in _FIELDS:
                    _add_field(tag, node, parent)
                elif tag in _PLAYED:
                    self._add_player(node, parent, paints)
            node = node.next

    def _streamed_into(self, template: "LexborNode") -> "LexborNode | None":
        """Return the hidden element whose content a script moves to a template's place."""
        name = template.id or ""
        streamed = self._streamed.pop(name[2:], None) if name[:2] in {"B:", "P:"} else None
        if streamed is not None:
            self._placed.add(streamed.id or "")
        return streamed

    def _add_text(self, text: str, parent: Element, paints: Paint) -> None:
        # White space tells nothing of its paint: hidden elements are indented, too.
        if paints is not self._seen_paint and not text.isspace():
            if self._is_invisible(parent, paints):
                return
            self._seen_paint = paints
        if self._page.has_tex and parent.tag not in {"code", "pre", "tt"}:
            text = _media.with_dollars(text)
        parent.children.append(text)

    def _add_tex(self, script: "LexborNode", parent: Element, paints: Paint) -> None:
        """Add the formula that a script element holds for MathJax."""
        is_tex = (script.attributes.get("type") or "").startswith("math/tex")
        if is_tex and not self._is_invisible(parent, paints):
            parent.children.append(_media.marked(script.text(deep=True)))

    def _is_invisible(self, element: Element, paints: Paint) -> bool:
        """Return whether what is drawn in this paint is not seen, and count it if so."""
        if not _hidden.is_unseen(paints):
            return False
        self._page.hidden += element not in self._emptied
        self._emptied.add(element)
        return True

    def _add_player(self, node: "LexborNode", parent: Element, around: Paint) -> None:
        """Add a film or a sound, without what stands inside for old browsers."""
        player = Element(node.tag or "", _attributes(node), parent)
        style = _hidden.style_of(player, self._sheet, node.mem_id)
        if paint(player, style, around, complete=self._complete).invisible:
            return
        if player.tag == "iframe" and not (
            _media.is_player(player) and _is_seen_frame(player.attributes)
        ):
            return
        source = node.css_first("source[src]")
        if source is not None:
            player.attributes.setdefault("src", _attributes(source)["src"])
        parent.children.append(player)
        self._page.media.append(player)

    def _is_silent(self, tag: str, attributes: dict[str, str]) -> bool:
        """Return whether no rule and no attribute says anything of an element."""
        key = tag, attributes.get("class", "")
        is_silent = self._silent.get(key)
        if is_silent is None:
            is_silent = (
                tag not in _SPECIAL and not _hidden.tells(key[1]) and self._sheet.is_silent(*key)
            )
            self._silent[key] = is_silent
        return (
            is_silent
            and TELLING.isdisjoint(attributes)
            and ("id" not in attributes or not self._sheet.has_rule_for(attributes["id"]))
        )

    def _painted(
        self, element: Element, node: "LexborNode", parent: Element, around: Paint
    ) -> Paint | None:
        """Return the paint of an element's texts, None if the element is left out."""
        tag, classes = element.tag, element.get("class")
        if "editsection" in classes:  # "[edit]" in MediaWiki
            return None
        if tag == "noscript":
            self._page.without_scripts.append(element)
        inline = _media.rendered(tag, classes, node, has_sources=self._has_sources)
        if tag == "img":
            inline = _media.picture(element) or None
        style = _hidden.style_of(element, self._sheet, node.mem_id)
        painted = paint(element, style, around, complete=self._complete)
        if inline is not None:
            if not self._is_invisible(element, painted):
                parent.children.append(inline)
            return None
        cause = _hidden.hidden_by(element, style, around)
        if cause is None and element.get("aria-hidden") == "true":
            words = node.text(deep=True, separator=" ").split()
            if len(words) >= _hidden.MIN_ARIA_HIDDEN_WORDS and not _hidden.is_slide(element):
                cause = HiddenBy.STYLE
        if cause is not None and not self._is_shown_by_script(element, node, cause):
            if element.get("id") not in self._placed:
                # The MathML of a formula whose picture is seen is no hidden text.
                is_formula = node.css_first("math") is not None
                self._page.hidden += not is_formula and bool(node.text(deep=True, strip=True))
            return None
        if tag == "math":
            if not self._is_invisible(element, painted):
                parent.children.append(_media.formula(node))
            return None
        if tag == "img":
            if painted.invisible:
                return None
            self._page.media.append(element)
        # Visibility is inherited; a child may take it back.
        turns_invisible = painted.invisible and not around.invisible
        if turns_invisible and self._is_shown_by_script(element, node, HiddenBy.STYLE):
            painted = painted._replace(invisible=False)
        return painted

    @cached_property
    def _size(self) -> int:
        return _readable(self._body)

    @cached_property
    def _entering(self) -> frozenset[int]:
        """The elements that enter one by one, if they are as much of a page as one that fades."""
        nodes = self._body.css(_ENTERING)
        size = sum(map(_readable, nodes))
        is_much = size > MIN_FADING_CHARS and size * 3 > self._size
        return frozenset(node.mem_id for node in nodes) if is_much else frozenset()

    def _is_shown_by_script(self, element: Element, node: "LexborNode", cause: HiddenBy) -> bool:
        """Return whether this is a closed panel, or must be the content of a page that fades in."""
        style = element.get("style")
        if "opacity" in style and "display" not in style and node.mem_id in self._entering:
            return True
        if cause is HiddenBy.STYLE and len(node.text(deep=True)) > MIN_FADING_CHARS:
            size = _readable(node)
            if size > MIN_FADING_CHARS and (node.tag == "main" or size * 3 > self._size):
                return True
        return cause is not HiddenBy.FOR_GOOD and _hidden.is_closed_panel(element, self._controlled)


def _readable(node: "LexborNode") -> int:
    """Return the characters of text in an element, without scripts and styles."""
    texts = (child for child in node.traverse(include_text=True) if child.tag_id == _TEXT)
    return sum(
        len(text.text_content or "")
        for text in texts
        if (around := text.parent) is None or around.tag not in _NEVER_READ
    )


def _add_field(tag: str, node: "LexborNode", parent: Element) -> None:
    """Add the state of a task in a list, a check box that a reader cannot change; else a space."""
    attributes = _attributes(node)
    kind = attributes.get("type", "").lower()
    if tag != "input" or kind != "checkbox":
        if parent.children and kind != "hidden":
            parent.children.append(" ")
        return
    is_task = "disabled" in attributes or "task" in attributes.get("class", "")
    if is_task and any(around.tag == "li" for around in parent.nearest(3)):
        parent.children.append("[x] " if "checked" in attributes else "[ ] ")
