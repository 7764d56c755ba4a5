"""Text that a page holds and nobody sees: the usual carrier of instructions for a model. Pure functions over elements.

Only what the page itself says counts: attributes, inline styles, its own style sheets, and the
class names by which the great frameworks hide. Style sheets that would have to be fetched are not
known here.
"""

import re
from collections.abc import Iterable
from enum import Enum, auto
from typing import TYPE_CHECKING

from fetchstash.handlers._html._names import names

if TYPE_CHECKING:
    from fetchstash.handlers._html._tree import Element

# Hidden from sight, and there for screen readers: Bootstrap, HTML5 Boilerplate, WordPress, GOV.UK,
# Tailwind, Foundation.
_UNSEEN_CLASSES = names(
    "sr-only sr_only visually-hidden visuallyhidden screen-reader-text screen-reader-only screenreader-only screenreader "
    "element-invisible show-for-sr a11y-hidden u-visually-hidden u-hidden-visually offscreen off-screen d-none hide-text"
)
_SHOWN_AGAIN = re.compile(r"^(?:d-(?:xs|sm|md|lg|xl|xxl)-(?!none)|(?:sm|md|lg|xl|2xl):(?!hidden))")

_NOTHING = r"(?:0+(?:\.0+)?|0?\.0+[0-9]?)(?:px|em|rem|pt|%|vh|vw|cm|mm|in)?"
_FAR = r"-(?:\d{4,}|[3-9]\d\d)(?:\.\d+)?(?:px|em|rem|pt|vw|vh|%)?"
# Declarations, in lower case and without white space, that leave nothing to see (CSS Display 3; CSS
# 2, 11; Color 4; Masking 1; Transforms 1).
_HIDES = re.compile(
    r"(?:^|;)(?:"
    r"display:none|visibility:(?:hidden|collapse)|content-visibility:hidden|"
    rf"opacity:(?:{_NOTHING})(?=[;!]|$)|filter:[^;]*opacity\((?:{_NOTHING})\)|"
    r"font-size:(?:0*\.\d+|[01](?:\.\d+)?)(?:px|pt)(?=[;!]|$)|font-size:0*\.?0*(?:em|rem|%|vw|vh)?(?=[;!]|$)|font:(?:[^;]*,)?0(?:px|pt|em|%)?[/,]|"
    rf"(?:left|right|top|bottom|margin|margin-left|margin-top|margin-right|text-indent|inset|inset-inline-start):{_FAR}|"
    rf"transform:[^;]*(?:scale[xy3d]*\((?:{_NOTHING})[,)]|translate[xy3d]*\((?:[^,)]*,)?{_FAR})|scale:(?:{_NOTHING})(?=[;!]|$)|"
    r"transform:[^;]*rotate[xy]\(90deg\)|"
    r"clip:rect\((?:0(?:px)?|1px)[,)]|clip-path:(?:inset\((?:[5-9]\d|100)%|circle\(0|ellipse\(0|polygon\(0(?:px|%)?,0(?:px|%)?,0(?:px|%)?,0)|"
    r"color:transparent|-webkit-text-fill-color:transparent|color:(?:rgb|hsl)a\([^)]*[,/]0?\.?0+\)|color:#(?:[0-9a-f]{6}00|[0-9a-f]{3}0)(?=[;!]|$)|"
    r"mask(?:-image)?:linear-gradient\(transparent,transparent\)"
    r")"
)
_NO_SIZE = re.compile(
    rf"(?:^|;)(?:max-)?(?:height|width|line-height|block-size|inline-size):(?:{_NOTHING}|1px)(?=[;!]|$)"
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
"""Of hiding rules that one class, id or tag calls up for each element; a real sheet has a few."""


class HiddenBy(Enum):
    """What hides an element: an attribute or a style, which scripts take back, or a way that is for good."""

    ATTRIBUTE = auto()
    STYLE = auto()
    FOR_GOOD = auto()


def hidden_by(element: "Element", sheet: "StyleSheet") -> HiddenBy | None:
    """Return what keeps all inside the element from being seen, None if nothing does."""
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


def is_closed_panel(element: "Element", controlled: set[str]) -> bool:
    """Return whether this is part of the text that a click opens: the panel of a tab or of an accordion.

    ``controlled`` are the ids that some element of the page says it controls (WAI-ARIA 1.2,
    aria-controls).
    """
    role = element.attributes.get("role", "")
    if role in _NOT_PANELS or any(
        one.tag in _CHROME or one.attributes.get("role") in _NOT_PANELS
        for one in element.ancestors()
    ):
        return False
    return (
        role == "tabpanel"
        or element.attributes.get("id", "") in controlled
        or _CLOSED.search(element.attributes.get("class", "")) is not None
    )


def hides(declarations: str) -> bool:
    """Return whether CSS declarations leave nothing of an element to see."""
    compact = _compact(declarations)
    if _HIDES.search(compact):
        return True
    return ("overflow:hidden" in compact or "overflow:clip" in compact) and _NO_SIZE.search(
        compact
    ) is not None


def _compact(declarations: str) -> str:
    """Return declarations in lower case, without white space where it means nothing, and with a comma where it parts values."""
    text = ",".join(_COMMENT.sub("", declarations).lower().split())
    for mark in ":;,()!/":
        if mark in text:
            text = text.replace(f",{mark}", mark).replace(f"{mark},", mark)
    return text


def _same_colour(element: "Element") -> bool:
    """Return whether the text has the colour of what is behind it, as far as the page's own attributes say.

    White without any background counts only where no class or id around it could give one.
    """
    colour = _declared(_COLOUR, element) or _hex(element.attributes.get("color", ""))
    if not colour:
        return False
    around = [element, *element.ancestors()]
    for one in around:
        background = _declared(_BACKGROUND, one) or _hex(one.attributes.get("bgcolor", ""))
        if background:
            return background == colour
    styled = any(
        "class" in one.attributes
        or "id" in one.attributes
        or "background" in one.attributes.get("style", "")
        for one in around
    )
    return colour == "#ffffff" and not styled


def _declared(what: re.Pattern[str], element: "Element") -> str:
    found = what.findall(element.attributes.get("style", "").lower().replace(" ", ""))
    return _hex(found[-1]) if found else ""


def _hex(colour: str) -> str:
    """Return a colour as #rrggbb, "" for what is none of the plain notations (CSS Color 4, section 4)."""
    colour = colour.strip().lower()
    colour = _NAMED.get(colour, colour)
    if found := _RGB.match(colour):
        return "#" + "".join(f"{min(int(part), 255):02x}" for part in found.groups())
    if re.fullmatch(r"#[0-9a-f]{3}", colour):
        return "#" + "".join(digit * 2 for digit in colour[1:])
    return colour if re.fullmatch(r"#[0-9a-f]{6}", colour) else ""


class StyleSheet:
    """What the page's own style sheets hide, by selectors of one element: ``p``, ``.a``, ``#b``, ``p.a.b``.

    ``tags`` are those that a rule hides whatever their class. A rule that shows what has the same
    class or id, in whatever context, takes the hiding back: tabs and menus that open. Rules inside
    @media and the like count for showing only.
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
            found = _SIMPLE.match(selector.strip())
            if found is None:
                continue
            tag, wanted = (found[1] or "").lower(), frozenset(_NAME.findall(found[2]))
            if not wanted & shown and tag not in {"html", "body"} and (tag or wanted):
                alike = self._hiding.setdefault(min(wanted, default=tag), [])
                if len(alike) < MAX_RULES_ALIKE:
                    alike.append((tag, wanted))
                if not wanted:
                    self.tags.add(tag)
                self._ids.update(one for one in wanted if one.startswith("#"))

    def hidden_by_name(self, tag: str, classes: str, identifier: str) -> HiddenBy | None:
        """Return what the class names alone say, or a rule about such an element."""
        name = f"#{identifier}" if identifier and f"#{identifier}" in self._ids else ""
        key = (tag, classes, name)
        if key not in self._known:
            self._known[key] = self._look_up(tag, classes.split(), name)
        return self._known[key]

    def _look_up(self, tag: str, classes: list[str], name: str) -> HiddenBy | None:
        if not _UNSEEN_CLASSES.isdisjoint(classes) and not any(map(_SHOWN_AGAIN.match, classes)):
            return HiddenBy.FOR_GOOD
        own = {f".{one}" for one in classes} | {name}
        rules = (rule for key in (tag, *own) for rule in self._hiding.get(key, ()))
        return (
            HiddenBy.STYLE
            if any(wanted_tag in {"", tag} and wanted <= own for wanted_tag, wanted in rules)
            else None
        )


def _rules(source: str) -> Iterable[tuple[int, str, str]]:
    """Yield depth, selectors and declarations of each rule; depth 0 is outside of any at-rule."""
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
