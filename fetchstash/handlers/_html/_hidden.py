"""Find hidden text, the usual carrier of instructions for a model. Pure functions over elements.

Attributes, inline styles, the page's own style sheets and the class names of common frameworks
decide. External style sheets are not fetched.
"""

import re
from collections.abc import Iterable
from enum import Enum, auto

from fetchstash.handlers._html._element import Element
from fetchstash.handlers._html._names import names

# Classes for screen readers: Bootstrap, HTML5 Boilerplate, WordPress, GOV.UK, Tailwind, Foundation.
_UNSEEN_CLASSES = names(
    "sr-only sr_only visually-hidden visuallyhidden screen-reader-text screen-reader-only "
    "screenreader-only screenreader element-invisible show-for-sr a11y-hidden u-visually-hidden "
    "u-hidden-visually offscreen off-screen d-none hide-text"
)
_SHOWN_AGAIN = re.compile(r"^(?:d-(?:xs|sm|md|lg|xl|xxl)-(?!none)|(?:sm|md|lg|xl|2xl):(?!hidden))")

_NOTHING = r"(?:0+(?:\.0+)?|0?\.0+[0-9]?)(?:px|em|rem|pt|%|vh|vw|cm|mm|in)?"
_FAR = r"-(?:\d{4,}|[3-9]\d\d)(?:\.\d+)?(?:px|em|rem|pt|vw|vh|%)?"
# Declarations in lower case and without white space that hide an element (CSS Display 3; CSS 2, 11;
# Color 4; Masking 1; Transforms 1).
_HIDES = re.compile(
    r"(?:^|;)(?:"
    r"display:none|visibility:(?:hidden|collapse)|content-visibility:hidden|"
    rf"opacity:(?:{_NOTHING})(?=[;!]|$)|filter:[^;]*opacity\((?:{_NOTHING})\)|"
    r"font-size:(?:0*\.\d+|[01](?:\.\d+)?)(?:px|pt)(?=[;!]|$)|"
    r"font-size:0*\.?0*(?:em|rem|%|vw|vh)?(?=[;!]|$)|font:(?:[^;]*,)?0(?:px|pt|em|%)?[/,]|"
    r"(?:left|right|top|bottom|margin|margin-left|margin-top|margin-right|text-indent|inset|"
    rf"inset-inline-start):{_FAR}|"
    rf"transform:[^;]*(?:scale[xy3d]*\((?:{_NOTHING})[,)]|translate[xy3d]*\((?:[^,)]*,)?{_FAR})|"
    rf"scale:(?:{_NOTHING})(?=[;!]|$)|"
    r"transform:[^;]*rotate[xy]\(90deg\)|"
    r"clip:rect\((?:0(?:px)?|1px)[,)]|clip-path:(?:inset\((?:[5-9]\d|100)%|circle\(0|ellipse\(0|"
    r"polygon\(0(?:px|%)?,0(?:px|%)?,0(?:px|%)?,0)|"
    r"color:transparent|-webkit-text-fill-color:transparent|color:(?:rgb|hsl)a\([^)]*[,/]0?\.?0+\)|"
    r"color:#(?:[0-9a-f]{6}00|[0-9a-f]{3}0)(?=[;!]|$)|"
    r"mask(?:-image)?:linear-gradient\(transparent,transparent\)"
    r")"
)
_NO_SIZE = re.compile(
    r"(?:^|;)(?:max-)?(?:height|width|line-height|block-size|inline-size):"
    rf"(?:{_NOTHING}|1px)(?=[;!]|$)"
)
_COLOUR = re.compile(r"(?:^|;)color:([^;!]+)")
_BACKGROUND = re.compile(r"(?:^|;)background(?:-color)?:([^;!]+)")
_NAMED = {
    "white": "#ffffff",
    "black": "#000000",
    "red": "#ff0000",
    "yellow": "#ffff00",
    "blue": "#0000ff",
    "green": "#008000",
}
_RGB = re.compile(r"rgba?\((\d{1,3})[, ]+(\d{1,3})[, ]+(\d{1,3})")

_COMMENT = re.compile(r"/\*.*?(?:\*/|\Z)", re.DOTALL)
_RULE = re.compile(r"([^{}]*)\{([^{}]*)\}")
_SIMPLE = re.compile(r"^([a-z][a-z0-9-]*)?((?:[.#][\w-]+)*)$", re.IGNORECASE)
_NAME = re.compile(r"[.#][\w-]+")
_SHOWS = re.compile(r"display\s*:(?!\s*none)|opacity\s*:|visibility\s*:\s*visible", re.IGNORECASE)
_CLOSED = re.compile(
    r"accordion|collaps|expand|(?<![a-z])(?:faq|tab-?(?:pane|panel|content)|toggle-content)",
    re.IGNORECASE,
)
_NOT_PANELS = names("dialog alertdialog menu menubar listbox tooltip alert navigation search")
_CHROME = names("nav header footer form dialog menu")
MAX_SHEET_CHARS = 2_000_000
MAX_RULES_ALIKE = 50
"""Hiding rules looked up by one class, id or tag; a real sheet has a few."""


class HiddenBy(Enum):
    """How an element is hidden. Scripts undo ATTRIBUTE and STYLE; nothing undoes FOR_GOOD."""

    ATTRIBUTE = auto()
    STYLE = auto()
    FOR_GOOD = auto()


def hidden_by(element: Element, sheet: "StyleSheet") -> HiddenBy | None:
    """Return how the element with all its content is hidden, None if it is not."""
    attributes = element.attributes
    if not attributes and element.tag != "dialog" and element.tag not in sheet.tags:
        return None
    if "hidden" in attributes and attributes["hidden"].lower() != "until-found":
        return HiddenBy.ATTRIBUTE
    if element.tag == "dialog" and "open" not in attributes:
        return HiddenBy.FOR_GOOD
    style = attributes.get("style")
    if style and hides(style):
        return HiddenBy.STYLE
    if (style or "color" in attributes) and _same_colour(element):
        return HiddenBy.FOR_GOOD
    return sheet.hidden_by_name(element.tag, attributes.get("class", ""), attributes.get("id", ""))


def is_closed_panel(element: Element, controlled: set[str]) -> bool:
    """Return whether a click shows this element: the panel of a tab or of an accordion.

    ``controlled`` are the ids in the page's aria-controls attributes (WAI-ARIA 1.2).
    """
    role = element.attributes.get("role", "")
    if role in _NOT_PANELS or any(
        ancestor.tag in _CHROME or ancestor.attributes.get("role") in _NOT_PANELS
        for ancestor in element.ancestors()
    ):
        return False
    return (
        role == "tabpanel"
        or element.attributes.get("id", "") in controlled
        or _CLOSED.search(element.attributes.get("class", "")) is not None
    )


def hides(declarations: str) -> bool:
    """Return whether CSS declarations hide an element."""
    compact = _compact(declarations)
    if _HIDES.search(compact):
        return True
    return ("overflow:hidden" in compact or "overflow:clip" in compact) and _NO_SIZE.search(
        compact
    ) is not None


def _compact(declarations: str) -> str:
    """Return declarations in lower case. A comma replaces white space between values."""
    text = ",".join(_COMMENT.sub("", declarations).lower().split())
    for mark in ":;,()!/":
        if mark in text:
            text = text.replace(f",{mark}", mark).replace(f"{mark},", mark)
    return text


def _same_colour(element: Element) -> bool:
    """Return whether the text has the colour of its background, by the page's own attributes.

    White without a background counts only if no class or id around it could set one.
    """
    colour = _declared(_COLOUR, element) or _hex(element.attributes.get("color", ""))
    if not colour:
        return False
    styled = False
    for around in (element, *element.ancestors()):
        attributes = around.attributes
        background = _declared(_BACKGROUND, around) or _hex(attributes.get("bgcolor", ""))
        if background:
            return background == colour
        styled = styled or "class" in attributes or "id" in attributes
        styled = styled or "background" in attributes.get("style", "")
    return colour == "#ffffff" and not styled


def _declared(colours: re.Pattern[str], element: Element) -> str:
    values = colours.findall(element.attributes.get("style", "").lower().replace(" ", ""))
    return _hex(values[-1]) if values else ""


def _hex(colour: str) -> str:
    """Return a colour as #rrggbb, "" for other notations (CSS Color 4, section 4)."""
    colour = colour.strip().lower()
    colour = _NAMED.get(colour, colour)
    if match := _RGB.match(colour):
        return "#" + "".join(f"{min(int(part), 255):02x}" for part in match.groups())
    if re.fullmatch(r"#[0-9a-f]{3}", colour):
        return "#" + "".join(digit * 2 for digit in colour[1:])
    return colour if re.fullmatch(r"#[0-9a-f]{6}", colour) else ""


class StyleSheet:
    """The rules of the page's own style sheets that hide elements.

    Only selectors of one element count: ``p``, ``.a``, ``#b``, ``p.a.b``. ``tags`` are the tags
    that a rule hides whatever their class. A rule that shows an element of the same class or id in
    any context cancels the hiding: it is a tab or a menu that opens. Rules inside at-rules such as
    @media can only show.
    """

    def __init__(self, sources: Iterable[str]) -> None:
        self._hiding: dict[str, list[tuple[str, frozenset[str]]]] = {}
        self._known: dict[tuple[str, str, str], HiddenBy | None] = {}
        self._ids: set[str] = set()
        self.tags: set[str] = set()
        hiding: list[str] = []
        shown: set[str] = set()
        for source in sources:
            for depth, selectors, declarations in _rules(
                _COMMENT.sub("", source[:MAX_SHEET_CHARS])
            ):
                if depth == 0 and hides(declarations):
                    hiding += selectors.split(",")
                elif _SHOWS.search(declarations):
                    shown.update(
                        name
                        for selector in selectors.split(",")
                        for name in _NAME.findall(selector.rsplit(" ", 1)[-1])
                    )
        for selector in hiding:
            match = _SIMPLE.match(selector.strip())
            if match is None:
                continue
            tag, required = (match[1] or "").lower(), frozenset(_NAME.findall(match[2]))
            if not required & shown and tag not in {"html", "body"} and (tag or required):
                alike = self._hiding.setdefault(min(required, default=tag), [])
                if len(alike) < MAX_RULES_ALIKE:
                    alike.append((tag, required))
                if not required:
                    self.tags.add(tag)
                self._ids.update(name for name in required if name.startswith("#"))

    def hidden_by_name(self, tag: str, classes: str, identifier: str) -> HiddenBy | None:
        """Return how its class names or a rule hide an element, None if nothing does."""
        name = f"#{identifier}" if identifier and f"#{identifier}" in self._ids else ""
        key = (tag, classes, name)
        if key not in self._known:
            self._known[key] = self._look_up(tag, classes.split(), name)
        return self._known[key]

    def _look_up(self, tag: str, classes: list[str], name: str) -> HiddenBy | None:
        if not _UNSEEN_CLASSES.isdisjoint(classes) and not any(map(_SHOWN_AGAIN.match, classes)):
            return HiddenBy.FOR_GOOD
        own = {f".{class_name}" for class_name in classes} | {name}
        rules = (rule for key in (tag, *own) for rule in self._hiding.get(key, ()))
        return (
            HiddenBy.STYLE
            if any(rule_tag in {"", tag} and required <= own for rule_tag, required in rules)
            else None
        )


def _rules(source: str) -> Iterable[tuple[int, str, str]]:
    """Yield depth, selectors and declarations of each rule; depth 0 is outside any at-rule."""
    depth = start = 0
    selectors = ""
    for brace in re.finditer(r"[{}]", source):
        text = source[start : brace.start()]
        if brace[0] == "{":
            depth += 1
            selectors = text.rsplit(";", 1)[-1].strip()
        else:
            if selectors and not selectors.startswith("@"):
                yield max(depth - 1, 0), selectors, text
            depth = max(depth - 1, 0)
            selectors = ""
        start = brace.end()
