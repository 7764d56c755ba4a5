"""Decide which elements and texts of a page cannot be seen: the usual carrier of instructions.

Attributes, inline styles, the page's own style sheets and the class names of common frameworks
decide. External style sheets are not fetched. What they may change counts as seen.

Declarative shadow trees are opened as a reader sees them (HTML Standard, 4.12.3; DOM, 4.2.2): a
parser keeps the content of a template out of the tree. So the template of a shadow root becomes an
ordinary element before the page is parsed, and what its host holds moves into its slots after.
"""

import re
from enum import Enum, auto
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from fetchstash.handlers._html import _style
from fetchstash.handlers._html._element import Element, names
from fetchstash.handlers._html._sheet import StyleSheet
from fetchstash.handlers._html._style import Colour, Style, colour

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser, LexborNode

MIN_CONTRAST = 1.2
"""Contrast below which a text cannot be seen; readable text has 4.5 or more (WCAG 2.2, 1.4.3)."""
MIN_ALPHA = 0.1
MIN_ARIA_HIDDEN_WORDS = 5
"""Words; less in an aria-hidden element is an icon or a price that is written twice."""
_COLOUR_ATTRIBUTES = {"font": "color", "body": "text"}
_LINK_BLUE = Colour(0, 0, 238)

FOR_READERS = names(
    "sr-only sr_only visually-hidden visuallyhidden screen-reader-text screen-reader-only "
    "screenreader-only screenreader element-invisible show-for-sr a11y-hidden u-visually-hidden "
    "u-hidden-visually"
)
"""Classes for screen readers: Bootstrap, HTML5 Boilerplate, WordPress, GOV.UK, Tailwind,
Foundation."""
_UNSEEN_CLASSES = FOR_READERS | names(
    "offscreen off-screen d-none hide-text w-condition-invisible w-form-done w-form-fail"
)
"""Those of Webflow hide what a condition rules out, and the answers of a form not sent."""
_SHOWN_AGAIN = re.compile(r"d-(?:xs|sm|md|lg|xl|xxl)-(?!none)|(?:sm|md|lg|xl|2xl):(?!hidden)")
_CLOSED = re.compile(
    r"accordion|collaps|expand|(?<![a-z])(?:faq|tab-?(?:pane|panel|content)|toggle)", re.IGNORECASE
)
_ENTERING = names(
    "wow aos-init elementor-invisible animate__animated reveal scroll-reveal js-reveal "
    "reveal-on-scroll animate-on-scroll et-waypoint vc_invisible"
)
"""Classes of WOW, AOS, Elementor, animate.css, ScrollReveal, Divi and WPBakery."""
_SLIDE = re.compile(r"slide|carousel|swiper|splide|glide", re.IGNORECASE)
_OPENER_REACH = 4  # elements before the hidden one in which its opener is searched
_CLOSED_REACH = 3  # elements, from the hidden one up, whose classes may name it a panel
_NOT_PANELS = names("dialog alertdialog menu menubar listbox tooltip alert navigation search tree")
_LISTS = names("ul ol menu")  # beside their opener they are a menu
_CHROME = names("nav header footer form dialog menu")


GUTTERS = names(
    "cm-gutters CodeMirror-gutter-wrapper CodeMirror-gutters ace_gutter crayon-nums "
    "crayon-nums-content margin-view-overlays"
)
"""Classes of what holds the line numbers of CodeMirror, Ace, Crayon and Monaco."""
TELLING = names("hidden style aria-hidden bgcolor color text popover")
"""Attributes that hide or colour an element by themselves."""
_TELLING_NAMES = re.compile(
    rf"editsection|katex|MathJax|{'|'.join(sorted(GUTTERS))}|{'|'.join(sorted(_UNSEEN_CLASSES))}"
)


class HiddenBy(Enum):
    """How an element is hidden. Scripts undo ATTRIBUTE and STYLE; nothing undoes FOR_GOOD.

    ARIA: from screen readers alone. It repeats what stands beside it, if something does.
    """

    ARIA = auto()
    ATTRIBUTE = auto()
    STYLE = auto()
    FOR_GOOD = auto()


class Paint(NamedTuple):
    """The styles that an element's texts inherit. A colour is None where it is not known.

    ``covered``: an element around has a background, under which negative layers are painted.
    """

    colour: Colour | None = _style.BLACK
    background: Colour | None = _style.WHITE
    tiny: bool = False
    invisible: bool = False
    clips_to_text: bool = False
    covered: bool = False


UNKNOWN_PAINT = Paint(None, None)
"""What most texts have on a page whose style sheets are not all known."""


@lru_cache(1024)
def is_unseen(text: Paint) -> bool:
    """Return whether a text of this paint cannot be seen."""
    if text.tiny or text.invisible:
        return True
    if text.colour is None or text.clips_to_text:
        return False
    if text.colour.alpha < MIN_ALPHA:
        return True
    return (
        text.background is not None and _style.contrast(text.colour, text.background) < MIN_CONTRAST
    )


def style_of(element: Element, sheet: StyleSheet, identity: int) -> Style | None:
    """Return the style that sheets and attributes give an element, None if none.

    ``identity`` is the element's id for the sheet.
    """
    attributes = element.attributes
    get = attributes.get
    style = sheet.style(element.tag, get("class", ""), get("id", ""), identity)
    inline = sheet.read(attributes["style"]) if "style" in attributes else None
    background = get("bgcolor", "")
    shade = get(_COLOUR_ATTRIBUTES.get(element.tag, ""), "")
    if inline is None and not background and not shade:
        return style
    merged = Style(**style) if style else Style()
    if background:
        merged["background"] = colour(background)
    if shade:
        merged["colour"] = colour(shade)
    if inline is not None:
        merged.update(inline)
        for important in (style and style.get("important"), inline.get("important")):
            merged.update(important or Style())
    return merged


def hidden_by(element: Element, style: Style | None, around: Paint) -> HiddenBy | None:
    """Return how the element with all its content is hidden, None if it is not."""
    attributes = element.attributes
    # A rule of the page overrules those of the browser (HTML Standard, 15.3.1).
    is_displayed = style is not None and style.get("displayed") is True
    if not is_displayed:
        if element.tag == "dialog" and "open" not in attributes:
            return HiddenBy.FOR_GOOD
        if not attributes and style is None:
            return None
        if "popover" in attributes:
            return HiddenBy.FOR_GOOD
        if "hidden" in attributes:
            # Text that a search in the page finds counts as seen (HTML Standard, 6.1).
            return None if attributes["hidden"].lower() == "until-found" else HiddenBy.ATTRIBUTE
    classes = element.classes()
    if not _UNSEEN_CLASSES.isdisjoint(classes) and not any(map(_SHOWN_AGAIN.match, classes)):
        return HiddenBy.FOR_GOOD
    if style is None:
        return None
    if style.get("behind") and style.get("positioned") and around.covered:
        return HiddenBy.FOR_GOOD
    if style.get("displayed") is False and not any(map(_SHOWN_AGAIN.match, classes)):
        return HiddenBy.STYLE
    return HiddenBy.STYLE if "out_of_sight" in style else None


def tells(classes: str) -> bool:
    """Return whether class names alone hide an element or make it a formula."""
    return _TELLING_NAMES.search(classes[:1_000]) is not None


def is_closed_panel(element: Element, controlled: set[str]) -> bool:
    """Return whether a click shows this element: the panel of a tab or of an accordion.

    ``controlled`` are the ids in the page's aria-controls attributes (WAI-ARIA 1.2).
    """
    if any(
        around.get("role") in _NOT_PANELS or (around.tag in _CHROME and around is not element)
        for around in element.outward()
    ):
        return False
    return (
        element.get("role") == "tabpanel"
        or element.get("id") in controlled
        or any(_CLOSED.search(e.get("class")) for e in element.nearest(_CLOSED_REACH))
        or (element.tag not in _LISTS and _stands_behind_opener(element))
    )


def _stands_behind_opener(element: Element) -> bool:
    """Return whether the element before it says that it opens something closed."""
    siblings = element.parent.children if element.parent is not None else ()
    before = next((child for child in reversed(siblings) if not isinstance(child, str)), None)
    return before is not None and any(
        e.get("aria-expanded") == "false" and "aria-haspopup" not in e.attributes
        for e in islice(before.subtree(), _OPENER_REACH)
    )


def enters(element: Element) -> bool:
    """Return whether a library reveals this element when a reader scrolls to it."""
    return "data-aos" in element.attributes or not _ENTERING.isdisjoint(element.classes())


def is_slide(element: Element) -> bool:
    """Return whether this is a slide of a carousel, which a script turns to."""
    classes = element.get("class")
    return _SLIDE.search(classes) is not None and "clone" not in classes


def paint(element: Element, style: Style | None, around: Paint, *, complete: bool) -> Paint:
    """Return the paint of an element's texts. ``complete``: all style sheets are known."""
    attributes = element.attributes
    knows = around.colour is not None or around.background is not None
    if knows and not complete and ("class" in attributes or "id" in attributes):
        around = _repainted(around, None, None)
    is_link = element.tag == "a" and "href" in attributes
    if style is None:
        if is_link and around.colour is not None:
            return _repainted(around, _LINK_BLUE, around.background)
        return around
    stacks = style.get("stacks", False)
    covered = around.covered and not stacks
    if "background" in style:
        # The background of the body is painted on the canvas, under all layers (CSS 2, 14.2).
        covered = covered or (not stacks and element.tag not in {"body", "html"})
    return Paint(
        style.get("colour", _LINK_BLUE if is_link else around.colour),
        style.get("background", around.background),
        style.get("tiny", around.tiny),
        not style.get("visible", not around.invisible),
        style.get("clips_to_text", around.clips_to_text),
        covered,
    )


@lru_cache(1024)
def _repainted(around: Paint, colour: Colour | None, background: Colour | None) -> Paint:
    repainted = around._replace(colour=colour, background=background)
    return UNKNOWN_PAINT if repainted == UNKNOWN_PAINT else repainted


MAX_ROOTS = 2_000
ROOT = "shadow-root"
_TOKEN = re.compile(
    r"<!--.*?(?:-->|\Z)|<style\b[^>]*>(?P<rules>.*?)(?:</style\b|\Z)|"
    r"<(?P<raw>script|textarea|title|xmp|iframe|noembed|noframes)\b.*?(?:</(?P=raw)\b|\Z)|"
    r"<template\b(?P<attributes>[^>]*)>|(?P<end></template\s*>)",
    re.IGNORECASE | re.DOTALL,
)
_TEMPLATE = re.compile(r"<template\b", re.IGNORECASE)
_IS_ROOT = re.compile(r"\bshadowroot(?:mode)?\s*=\s*[\"']?(?:open|closed)\b", re.IGNORECASE)
_CSS_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_SELECTORS = re.compile(r"(^|[{};])([^{}@;]+)(?=\{)")
_HOST = re.compile(r":host(?:-context)?(?:\([^()]*\))?")


def opened_roots(source: str) -> str:
    """Return the source with each shadow root's template as an element; its style stays inside."""
    if not _TEMPLATE.search(source):
        return source
    pieces: list[str] = []
    stack: list[str] = []  # of the open templates: the name of a root, "" for any other
    at = roots = 0
    for token in _TOKEN.finditer(source):
        pieces.append(source[at : token.start()])
        at, written = token.end(), token[0]
        around = next(filter(None, reversed(stack)), "")
        if token["attributes"] is not None:
            is_root = roots < MAX_ROOTS and _IS_ROOT.search(token["attributes"]) is not None
            roots += is_root
            stack.append(f"r{roots}" if is_root else "")
            written = f'<{ROOT} class="r{roots}">' if is_root else written
        elif token["end"] and stack:
            written = f"</{ROOT}>" if stack.pop() else written
        elif token["rules"] is not None and around:
            begin, end = (position - token.start() for position in token.span("rules"))
            written = written[:begin] + _scoped(token["rules"], around) + written[end:]
        pieces.append(written)
    return "".join((*pieces, source[at:]))


def _scoped(rules: str, root: str) -> str:
    """Return style rules that hold inside of one shadow root alone (CSS Scoping, 3.1)."""

    def scope(match: re.Match[str]) -> str:
        inside = (_HOST.sub("", selector).strip() for selector in match[2].split(","))
        return match[1] + ", ".join(f"{ROOT}.{root} {selector or '_'}" for selector in inside)

    return _SELECTORS.sub(scope, _CSS_COMMENT.sub("", rules))


def fill_slots(parser: "LexborHTMLParser") -> None:
    """Move what hosts hold into the slots of their shadow roots; drop what has no slot."""
    for root in parser.css(ROOT):
        host = root.parent
        if host is None:
            continue
        light = [child for child in host.iter(include_text=True) if child.mem_id != root.mem_id]
        slots: dict[str, LexborNode] = {}
        for slot in root.css("slot"):
            if _root_around(slot) == root.mem_id:
                slots.setdefault(slot.attributes.get("name") or "", slot)
        filled: set[str] = set()
        for child in light:
            attributes = child.attributes if child.is_element_node else {}
            name = attributes.get("slot") or ""
            is_blank = not child.is_element_node and not (child.text_content or "").strip()
            if name in slots and not is_blank and not child.is_comment_node:
                if name not in filled:
                    for fallback in list(slots[name].iter(include_text=True)):
                        fallback.decompose()
                    filled.add(name)
                slots[name].insert_child(child)
            child.decompose()


def _root_around(slot: "LexborNode") -> int:
    around = slot.parent
    while around is not None and around.tag != ROOT:
        around = around.parent
    return around.mem_id if around is not None else 0
