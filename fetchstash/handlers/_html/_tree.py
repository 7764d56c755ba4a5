"""Parse a page: lexbor reads the HTML, and one walk copies the visible part."""

import re
from base64 import b64decode
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice, repeat
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote_to_bytes

from fetchstash.handlers._html import _hidden, _media, _signs
from fetchstash.handlers._html._element import BLOCKS, Element, check, is_read, names
from fetchstash.handlers._html._hidden import TELLING, UNKNOWN_PAINT, HiddenBy, Paint, paint
from fetchstash.handlers._html._sheet import StyleSheet
from fetchstash.handlers._html._style import Style, hides, media, read_style
from fetchstash.handlers._leads import framed

if TYPE_CHECKING:
    from selectolax.lexbor import LexborNode

MAX_DEPTH = 150
"""Children of deeper elements go to the element at this depth, so that recursion is safe."""
MAX_FRAMES = 20  # frames that hold their page in an attribute
MAX_MARKUP_CHARS = 500  # of markup in a field that is code to copy; more is a script's template
MAX_DECLARING = 1_000  # elements whose styles may declare custom properties
MAX_IMPORTED = 10
MIN_VEILED_CHARS, MOST_SHOWN_CHARS = 150, 400
"""A script is expected to show what is invisible or faded if it is more than this, and more than
what the page shows, and if that is less than this."""
MIN_VEILED_PARAGRAPHS = 3
"""Of an element without a heading of its own that a script is expected to show."""
MIN_FADING_CHARS = 2_000
"""A script is expected to show an element that only a style hides if it holds more text than
this and a third of the page."""

_NEVER_READ = names(
    "script style template svg iframe object embed applet noembed noframes canvas audio video map "
    "datalist select input textarea progress meter frameset frame link meta base title head"
)
_UNREAD = ", ".join(sorted(_NEVER_READ))
_FIELDS = names("input select textarea meter progress")
"""Elements that part the words around them."""
_DRAWINGS = names("svg canvas object")
_VALUED = names("text number email tel url date time month week datetime-local search") | {""}
"""Types of inputs that show their value as text (HTML Standard, 4.10.5.1)."""
_PLAYED = names("video audio iframe")
"""Elements of which a trace is kept: what they play, and where it is."""
_LISTS = names("ul ol")
_COUNTED = names("ol li")
_COMMANDS = "a, button, input, select"
"""Without them, a ``menu`` is a list as ``ul`` is (HTML, 4.4.7)."""
_LABELS = names("aria-label aria-labelledby title aria-checked")
_ICON_NAMES = "class", "data-lucide", "data-feather", "data-icon"
"""Attributes that name an icon: of Font Awesome, Lucide, Feather, Iconify."""
_ID = re.compile(r"[\w-]+")
_ROLES = {
    "table": "table",
    "grid": "table",
    "treegrid": "table",
    "rowgroup": "tbody",
    "row": "tr",
    "columnheader": "th",
    "rowheader": "th",
    "cell": "td",
    "gridcell": "td",
}
"""The tags of tables by the roles that say the same (WAI-ARIA 1.2, 5.3.3)."""
_ROLE_REACH = 4  # elements above a row or a cell in which its table is searched
_TEXTLESS = names("i span em b")  # elements that show a sign by their style
_ICONS = _TEXTLESS | {"td"}
_TABLED = names("table thead tbody tfoot tr th td")
_SPECIAL = names("dialog font img math mjx-container noscript")
"""Elements that need more than a look at their style."""
_TELLING = TELLING.union(_media.MATH_ATTRIBUTES)
_CONTENT = 'main, [role="main"], article, h1'
_ENTERING = '[style*="opacity:0"][style*="transform"], [style*="opacity: 0"][style*="transform"]'
"""Elements that a script fades and moves in when a reader scrolls there."""
_DATA_SHEET = re.compile(r"\s*data:text/css([^,]*),(.*)", re.IGNORECASE | re.DOTALL)
_IMPORTED = re.compile(r"@import\s+(?:url\(\s*)?[\"']?(data:text/css[^\"')]*)", re.IGNORECASE)
_FORMULA_SCRIPT = re.compile(r"mathjax|katex", re.IGNORECASE)
_HEAD = "title, base, meta, link, script, style, frame, iframe, embed, object"
_TEXT, _COMMENT = 2, 4  # lexbor's tag ids


@dataclass(slots=True)
class Page:
    """A parsed page.

    ``hidden`` counts the elements with text that nobody would see; ``body`` has none of them.
    ``is_unveiled``: a script is expected to show most of what the page says.
    ``has_tex``: a script writes TeX in the text as formulas. ``without_scripts`` are the noscript
    elements in ``body``, ``media`` the pictures and players, ``signs`` what may say a word.
    ``script_texts`` are the attributes and texts of its scripts. ``meta_without`` is what holds
    where these do not run. ``has_items``: some elements have a type (microdata, RDFa).
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
    has_items: bool = False
    hidden: int = 0
    is_unveiled: bool = False
    without_scripts: list[Element] = field(default_factory=list[Element])
    media: list[Element] = field(default_factory=list[Element])
    signs: list[Element] = field(default_factory=list[Element])


def parse(source: str, level: int = 0) -> Page:
    """Parse the HTML of one page. ``source`` must have passed the safety scan.

    ``level`` is 1 for what a frame of another page holds; its own frames are not read.
    """
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
    page.has_items = body.css_first("[itemtype], [typeof]") is not None
    page.asks_password = body.css_first('input[type="password"]') is not None

    def select(selector: str) -> frozenset[int]:
        try:
            return frozenset(node.mem_id for node in parser.css(selector))
        except SelectolaxError:
            return frozenset()

    # A page without style sheets may be a piece of another.
    complete = bool(sheets) and not any("@import" in sheet for sheet in sheets)
    if any(_is_sheet(link) and not _style_in(link.get("href", "")) for link in page.links):
        complete = False
    size = source.count("<") // 2

    def inline() -> Iterator[str]:
        nodes = islice(parser.css('[style*="--"]'), MAX_DECLARING)
        return (_attributes(node)["style"] for node in nodes)

    sheet = StyleSheet(sheets, select, size, lambda: _depth(root), inline, complete=complete)
    around = Paint()
    for element, node in ((html, root), (page.body, body)):
        style = _hidden.style_of(element, sheet, node.mem_id)
        around = paint(element, style, around, complete=complete)
    copy = _Copy(page, sheet, body, level=level)
    copy.run(around)
    if copy.veils_most():
        page.body = Element("body", page.body.attributes, None)
        page.hidden, page.without_scripts, page.media, page.signs = 0, [], [], []
        _Copy(page, sheet, body, unveils=True, level=level).run(around)
    page.hidden -= _signs.write(page.signs, page.media)
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
        case "title" if around is None or around.tag != "svg":
            page.title = page.title or " ".join(node.text(deep=True).split())
        case "base":
            page.base = page.base or attributes.get("href", "")
        case "meta":
            (page.meta if is_for_scripts else page.meta_without).append(attributes)
        case "link":
            page.links.append(attributes)
            if _is_sheet(attributes) and is_for_scripts:
                sheets.append(_style_in(attributes.get("href", "")))
        case "script":
            page.scripts += 1
            page.has_tex |= _FORMULA_SCRIPT.search(attributes.get("src", "")) is not None
            if attributes.get("type", "").lower() == "application/ld+json":
                page.json_ld.append(node.text(deep=True))
            elif "src" not in attributes:
                page.script_texts.append((attributes, node.text(deep=True)))
        case "frame" | "iframe" | "embed" | "object" if _is_seen_frame(attributes):
            page.frames += framed(node.tag, attributes)
        case "style" if attributes.get("type", "text/css").strip().lower() in {"", "text/css"}:
            condition = attributes.get("media", "")
            if is_for_scripts and (not condition or media(condition)):
                text = node.text(deep=True)
                if "@import" in text:
                    sheets += map(_style_in, islice(_IMPORTED.findall(text), MAX_IMPORTED))
                sheets.append(f"@media {condition} {{{text}}}" if condition else text)
        case _:
            pass


def _is_sheet(link: dict[str, str]) -> bool:
    rel = link.get("rel", "").lower()
    return "stylesheet" in rel and "alternate" not in rel


def _style_in(address: str) -> str:
    """Return the style sheet that an address holds by itself (RFC 2397), "" for any other."""
    match = _DATA_SHEET.match(address)
    if match is None:
        return ""
    encoded = unquote_to_bytes(match[2])
    with suppress(ValueError):
        encoded = b64decode(encoded) if match[1].lower().endswith(";base64") else encoded
    return encoded.decode("utf-8", "replace")


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

    def __init__(
        self,
        page: Page,
        sheet: StyleSheet,
        body: "LexborNode",
        *,
        unveils: bool = False,
        level: int = 0,
    ) -> None:
        self._unveils = unveils
        self._level, self._frames = level, level * MAX_FRAMES
        self._veiled = 0  # characters that a script may unveil
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

    def veils_most(self) -> bool:
        """Return whether next to nothing is shown, and more is hidden that a script may show."""
        if self._veiled < MIN_VEILED_CHARS:
            return False
        shown, pending = 0, [*self._page.body.children]
        while pending and shown < MOST_SHOWN_CHARS:
            node = pending.pop()
            if isinstance(node, str):
                shown += len(node.strip())
            elif node.tag != "a":
                pending += node.children
        return shown < min(self._veiled, MOST_SHOWN_CHARS)

    def run(self, paints: Paint) -> None:
        """Copy the body without recursion: the source decides how deep it is."""
        pending: list[tuple[LexborNode | None, Element, Paint]] = []
        parent, has_tex = self._page.body, self._page.has_tex
        says_code = self._sheet.says_code
        node = self._body.child
        while node is not None or pending:
            if node is None:
                node, parent, paints = pending.pop()
                continue
            kind = node.tag_id
            if kind == _TEXT:
                text = node.text_content or ""
                if paints is self._seen_paint and not has_tex:
                    parent.children.append(text)
                else:
                    self._add_text(text, parent, paints)
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
                    if painted is not None and tag in {"rt", "rp"}:
                        if tag == "rt" and (reading := node.text(deep=True).strip()):
                            self._add_text(f"({reading})", parent, painted)
                    elif painted is not None:
                        pending.append((node.next, parent, paints))
                        paints = painted
                        if len(pending) < MAX_DEPTH:
                            if "role" in attributes and tag not in _TABLED:
                                element.tag = tag = _tag_by_role(element)
                            elif tag == "menu" and node.css_first(_COMMANDS) is None:
                                element.tag = tag = "ul"
                            if says_code and "class" in attributes:
                                said = self._sheet.of_code(tag, attributes["class"])
                                if said:
                                    attributes["style"] = said + attributes.get("style", "")
                            if tag in _COUNTED:
                                self._count(element, node.mem_id)
                            if not parent.holds_blocks and tag in BLOCKS:
                                parent.hold_blocks()
                            if tag in _LISTS and parent.tag in _LISTS:
                                element.parent = parent = _last_item(parent)
                            parent.children.append(element)
                            if tag == "button" or not _LABELS.isdisjoint(attributes):
                                self._note_label(element, node)
                            elif tag in _ICONS and attributes and node.child is None:
                                named = map(attributes.get, _ICON_NAMES, repeat(""))
                                self._add_sign(_signs.drawn(" ".join(named)), element)
                            parent = element
                        node = node.child
                        continue
                elif tag == "template" and (inside := self._streamed_into(node)) is not None:
                    pending.append((node.next, parent, paints))
                    node = inside.child
                    continue
                elif tag in _DRAWINGS:
                    self._add_drawing(node, parent, paints)
                elif tag == "script":
                    self._add_tex(node, parent, paints)
                elif tag == "textarea" and self._add_written(node, parent, paints):
                    pass
                elif tag in _FIELDS:
                    self._add_field(tag, node, parent, paints)
                elif tag == "iframe" and "srcdoc" in node.attributes:
                    self._add_frame(node, parent, paints)
                elif tag in _PLAYED:
                    self._add_player(node, parent, paints)
            node = node.next

    def _count(self, element: Element, mem_id: int) -> None:
        """Write into the style of a list, or of an item, how a sheet says that it counts."""
        if said := self._sheet.counting.get(mem_id):
            element.attributes["style"] = f"{element.get('style')};{said}"

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
            if self._is_invisible(parent, paints, len(text)):
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

    def _is_invisible(self, element: Element, paints: Paint, chars: int = 0) -> bool:
        """Return whether what is drawn in this paint is not seen, and count it if so."""
        if not _hidden.is_unseen(paints):
            return False
        if paints.invisible and not _hidden.is_unseen(paints._replace(invisible=False)):
            self._veiled += chars
            if self._unveils:
                self._page.is_unveiled = True
                return False
        self._page.hidden += element not in self._emptied
        self._emptied.add(element)
        return True

    def _is_seen(self, element: Element, node: "LexborNode", around: Paint) -> bool:
        style = _hidden.style_of(element, self._sheet, node.mem_id)
        painted = paint(element, style, around, complete=self._complete)
        is_hidden = _hidden.hidden_by(element, style, around) is not None
        return not is_hidden and not _hidden.is_unseen(painted)

    def _add_written(self, node: "LexborNode", parent: Element, around: Paint) -> bool:
        """Add the text that stands in a field, as it is; return whether there is any."""
        text = node.text(deep=True).strip("\n")
        field = Element("pre", _attributes(node), parent)
        is_template = len(text) > MAX_MARKUP_CHARS and "<" in text
        if not text.strip() or is_template or not self._is_seen(field, node, around):
            return False
        field.attributes = {}
        field.children.append(text)
        parent.hold_blocks()
        parent.children.append(field)
        return True

    def _add_frame(self, node: "LexborNode", parent: Element, around: Paint) -> None:
        """Add what a frame holds in an attribute of its own (HTML Standard, 4.8.5)."""
        frame = Element("div", {}, parent)
        attributes = _attributes(node)
        seen = Element("iframe", attributes, parent)
        self._frames += 1
        if (
            self._frames > MAX_FRAMES
            or not _is_seen_frame(attributes)
            or not self._is_seen(seen, node, around)
        ):
            return
        held = parse(check(attributes["srcdoc"])[0], self._level + 1)
        frame.children = held.body.children
        for child in frame.elements():
            child.parent = frame
        frame.holds_blocks = held.body.holds_blocks
        parent.hold_blocks()
        parent.children.append(frame)
        self._page.hidden += held.hidden
        self._page.media += held.media

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

    def _note_label(self, element: Element, node: "LexborNode") -> None:
        """Note an element that a label describes, and a button whose text may be content."""
        if element.tag == "button":
            if not is_read(element):
                self._page.signs.append(element)
        elif (
            element.get("role") == "img"
            or (node.child is None and "aria-checked" in element.attributes)
            or (element.tag in _TEXTLESS and not node.text(deep=True).strip())
        ):
            self._add_sign(self._label(node, element), element, **{_signs.OF_ALL: ""})

    def _label(self, node: "LexborNode", element: Element) -> str:
        """Return the label of an element, also one that stands elsewhere or is hidden (accname)."""
        identifier = element.get("aria-labelledby")
        if _ID.fullmatch(identifier):
            named = self._body.css_first(f'[id="{identifier}"]')
            if named is not None and (
                named.parent != node.parent or "hidden" in named.attributes
            ):  # what is seen beside it says it already
                return _signs.as_sign(named.text(deep=True))
        return _signs.label(element.attributes)

    def _add_drawing(self, node: "LexborNode", parent: Element, around: Paint) -> None:
        """Note what a drawing shows (SVG 2, 5.8)."""
        drawing = Element(node.tag or "", _attributes(node), parent)
        label = self._label(node, drawing)
        if drawing.tag != "svg":
            label = label or _signs.as_sign(node.text(deep=True))
        elif not label:
            inside = [e for e in islice(node.iter(), 3) if e.tag in {"title", "use"}]
            title = next((e.text(deep=True) for e in inside if e.tag == "title"), "")
            used = next((_attributes(e) for e in inside if e.tag == "use"), dict[str, str]())
            address = used.get("href") or used.get("xlink:href", "")
            label = _signs.as_sign(title) or _signs.drawn(address.rpartition("#")[2])
        if label and (drawing.get("aria-hidden") != "true" or label in _signs.DRAWN):
            style = _hidden.style_of(drawing, self._sheet, node.mem_id)
            painted = paint(drawing, style, around, complete=self._complete)
            if _hidden.hidden_by(drawing, style, around) is None and not painted.invisible:
                self._add_sign(label, parent)

    def _add_field(self, tag: str, node: "LexborNode", parent: Element, around: Paint) -> None:
        """Add the state of a task in a list, a check box that a reader cannot change; else a space.

        What a field shows is a sign: a cell of a table may hold nothing else.
        """
        attributes = _attributes(node)
        kind = attributes.get("type", "").lower()
        is_box = tag == "input" and kind == "checkbox"
        is_task = is_box and ("disabled" in attributes or "task" in attributes.get("class", ""))
        if is_task and any(around.tag == "li" for around in parent.nearest(3)):
            parent.children.append(f"{_signs.box(is_checked='checked' in attributes)} ")
            return
        if not is_box and parent.children and kind != "hidden":
            parent.children.append(" ")
        label = _shown_in(tag, kind, node, attributes)
        if label and self._is_seen(Element(tag, attributes, parent), node, around):
            self._add_sign(label, parent)

    def _add_sign(self, label: str, parent: Element, **attributes: str) -> None:
        if label:
            sign = Element(_signs.SIGN, {"aria-label": label, **attributes}, parent)
            parent.children.append(sign)
            self._page.signs.append(sign)

    def _is_silent(self, tag: str, attributes: dict[str, str]) -> bool:
        """Return whether no rule and no attribute applies to an element."""
        key = tag, attributes.get("class", "")
        is_silent = self._silent.get(key)
        if is_silent is None:
            is_silent = (
                tag not in _SPECIAL and not _hidden.tells(key[1]) and self._sheet.is_silent(*key)
            )
            self._silent[key] = is_silent
        return (
            is_silent
            and _TELLING.isdisjoint(attributes)
            and ("id" not in attributes or not self._sheet.has_rule_for(attributes["id"]))
        )

    def _painted(
        self, element: Element, node: "LexborNode", parent: Element, around: Paint
    ) -> Paint | None:
        """Return the paint of an element's texts, None if the element is left out."""
        tag, classes = element.tag, element.get("class")
        if "editsection" in classes:  # "[edit]" in MediaWiki
            return None
        if not _hidden.GUTTERS.isdisjoint(element.classes()):
            return None
        if tag == "noscript":
            self._page.without_scripts.append(element)
        inline = _media.rendered(element, node, has_sources=self._has_sources)
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
            if (
                len(words) >= _hidden.MIN_ARIA_HIDDEN_WORDS
                and not _hidden.is_slide(element)
                and not self._is_behind_dialog(node)
            ):
                cause = HiddenBy.ARIA
        if cause is not None and not self._is_shown_by_script(element, node, cause):
            if self._is_veil(element, node, style, cause):
                self._veiled += _readable(node)
                if self._unveils:
                    self._page.is_unveiled |= cause is not HiddenBy.ARIA  # a browser shows that
                    return painted
            if not _hidden.FOR_READERS.isdisjoint(element.classes()):
                label = _signs.as_sign(node.text(deep=True))
                self._add_sign(label, parent, **{_signs.READERS: ""})
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
            if character := _signs.emoji(element):
                parent.children.append(character)
                return None
            self._page.media.append(element)
            if _signs.is_sign(element):
                self._page.signs.append(element)
        # Visibility is inherited; a child may take it back.
        turns_invisible = painted.invisible and not around.invisible
        if turns_invisible and self._is_shown_by_script(element, node, HiddenBy.STYLE):
            painted = painted._replace(invisible=False)
        return painted

    @cached_property
    def _has_dialog(self) -> bool:
        return self._body.css_first('[aria-modal="true"], dialog[open]') is not None

    def _is_behind_dialog(self, node: "LexborNode") -> bool:
        """Return whether this is the page, hidden from screen readers by a dialog over it.

        What aria-hidden hides is seen. Where it holds no content of its own it says again what
        stands beside it, and instructions may stand in it.
        """
        around = node.parent
        if self._has_dialog and around is not None and around.mem_id == self._body.mem_id:
            return True
        return node.css_first(_CONTENT) is not None

    def _is_veil(
        self, element: Element, node: "LexborNode", style: Style | None, cause: HiddenBy
    ) -> bool:
        """Return whether a script probably shows this later: it is faded, or it is the content."""
        if cause is HiddenBy.ARIA:
            return True
        if cause is HiddenBy.FOR_GOOD or element.get("aria-hidden") == "true":
            return False
        if style is not None and "faded" in style and style.get("displayed") is not False:
            return True
        is_content = element.tag in {"main", "article"} or node.css_first(_CONTENT) is not None
        is_text = is_content or len(node.css("p")) >= MIN_VEILED_PARAGRAPHS
        return is_text and "dialog" not in element.get("role")

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
        if cause is HiddenBy.STYLE and self._page.scripts and _hidden.enters(element):
            return True
        is_styled = cause in {HiddenBy.STYLE, HiddenBy.ARIA}
        if is_styled and len(node.text(deep=True)) > MIN_FADING_CHARS:
            size = _readable(node)
            if size > MIN_FADING_CHARS and (node.tag == "main" or size * 3 > self._size):
                self._page.is_unveiled = element.get("aria-hidden") != "true"
                return True
        return cause is not HiddenBy.FOR_GOOD and _hidden.is_closed_panel(element, self._controlled)


def _tag_by_role(element: Element) -> str:
    """Return the tag of the part of a table that an element says it is, else its own."""
    tag = _ROLES.get(element.get("role"), "")
    if tag == "table":
        return tag
    is_inside = tag and any(e.tag == "table" for e in element.nearest(_ROLE_REACH + 1)[1:])
    return tag if is_inside else element.tag


def _last_item(items: Element) -> Element:
    """Return the last item of a list, in which a list that stands beside it is shown."""
    last = next((child for child in reversed(items.children) if not isinstance(child, str)), items)
    return last if last.tag == "li" else items


def _readable(node: "LexborNode") -> int:
    """Return the characters of text in an element, without scripts and styles."""
    unread = sum(len(inside.text(deep=False)) for inside in node.css(_UNREAD))
    return len(node.text(deep=True)) - unread


def _shown_in(tag: str, kind: str, node: "LexborNode", attributes: dict[str, str]) -> str:
    """Return the text that a field shows, "" if it is empty or longer than a sign."""
    if tag == "input" and kind == "checkbox":
        return _signs.box(is_checked="checked" in attributes)
    if tag == "input" and kind == "image":
        return _signs.as_sign(attributes.get("alt", ""))
    if tag == "input":
        return _signs.as_sign(attributes.get("value", "")) if kind in _VALUED else ""
    if tag == "select":
        chosen = node.css_first("option[selected]") or node.css_first("option")
        return _signs.as_sign(chosen.text(deep=True)) if chosen is not None else ""
    if tag == "textarea":
        return ""
    said = _signs.as_sign(node.text(deep=True))
    most = " of " + attributes["max"] if "max" in attributes else ""
    return said or _signs.as_sign(attributes.get("value", "") + most)
