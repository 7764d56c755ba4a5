"""Values of CSS and the styles of elements, as far as they hide text.

CSS Syntax 3, Media Queries 4, Color 4. Pure functions over strings.
"""

import colorsys
import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import NamedTuple, TypedDict

from fetchstash.handlers._html._element import names

MAX_SHEET_CHARS = 2_000_000
WIDTHS = (360, 800, 1280, 1920)
"""Pixels. A rule in @media hides an element only if it applies at all these widths of a screen."""
EVERYWHERE = (1 << len(WIDTHS)) - 1  # the mask of a rule that applies at all WIDTHS
_FONT_PIXELS = 16
_MAX_NESTING = 20

_COMMENT = re.compile(r"/\*.*?(?:\*/|\Z)", re.DOTALL)
# A quote behind a backslash begins no string: else each of many would be followed to the end.
_STRING = re.compile(
    r"\"(?<!\\\")[^\"\\\n]*(?:\\.[^\"\\\n]*)*\"|'(?<!\\')[^'\\\n]*(?:\\.[^'\\\n]*)*'"
)
_MARKS = frozenset("{};")
# An address without quotes may hold marks, too. The two classes have no sign in common, so that
# there is one way to match.
_IN_BRACKETS = re.compile(r"\([^(){};]*[{};][^()]*\)")
_AT_STATEMENT = re.compile(r"@[^;{]*;\s*")
_HTML_COMMENT = re.compile(r"(?:<!--|-->|\s)+")
_ESCAPE = re.compile(r"\\(?:([0-9a-fA-F]{1,6})[ \t\n\r\f]?|([^\n\r\f0-9a-fA-F]))")
_WIDTH = re.compile(r"\((min-|max-)?width(:|<=?|>=?)([\d.]+)(px|em|rem)\)")
_WIDTH_LAST = re.compile(r"\(([\d.]+)(px|em|rem)(<=?|>=?)width\)")
_ALWAYS_TRUE = re.compile(
    r"\((?:color|any-hover(?::\w+)?|hover(?::hover)?|scripting:enabled|update:fast|min-height:\d{1,2}px|"
    r"orientation:landscape|prefers-color-scheme:light|min-resolution:[\d.]+\w+)\)"
)
_RGB = re.compile(r"rgba?\(([\d.]+%?)[,/]([\d.]+%?)[,/]([\d.]+%?)(?:[,/]([\d.]+%?))?\)")
_HSL = re.compile(r"hsla?\(([\d.]+)(?:deg)?[,/]([\d.]+)%[,/]([\d.]+)%(?:[,/]([\d.]+%?))?\)")
_HEX = re.compile(r"#(?:[0-9a-f]{3,4}|[0-9a-f]{6}|[0-9a-f]{8})")
_NAMED = {
    "white": "ffffff", "snow": "fffafa", "ivory": "fffff0", "ghostwhite": "f8f8ff",
    "whitesmoke": "f5f5f5", "floralwhite": "fffaf0", "azure": "f0ffff", "mintcream": "f5fffa",
    "honeydew": "f0fff0", "aliceblue": "f0f8ff", "seashell": "fff5ee", "lavenderblush": "fff0f5",
    "lightyellow": "ffffe0", "oldlace": "fdf5e6", "black": "000000", "gray": "808080",
    "grey": "808080", "silver": "c0c0c0", "red": "ff0000", "yellow": "ffff00", "blue": "0000ff",
    "green": "008000", "lime": "00ff00", "navy": "000080", "maroon": "800000", "orange": "ffa500",
    "purple": "800080", "teal": "008080",
}  # fmt: skip


class Colour(NamedTuple):
    """A colour in sRGB: 0 to 255, and alpha from 0 to 1."""

    red: float
    green: float
    blue: float
    alpha: float = 1


WHITE, BLACK = Colour(255, 255, 255), Colour(0, 0, 0)


class Rule(NamedTuple):
    """A style rule. ``widths`` is a mask: bit n is set if the rule applies at ``WIDTHS[n]``."""

    selectors: str
    declarations: str
    widths: int


def rules(source: str) -> Iterator[Rule]:
    """Yield the style rules of a style sheet, those inside at-rules and nested rules too.

    A rule that a browser ignores is left out, and so is what an open bracket swallows to the end
    of the sheet (CSS Syntax 3, 5.4).
    """
    source = _COMMENT.sub(" ", source[:MAX_SHEET_CHARS])
    # Braces and semicolons in a string or an address would end a rule or a declaration.
    source = _STRING.sub(lambda m: m[0] if _MARKS.isdisjoint(m[0]) else '""', source)
    source = _IN_BRACKETS.sub("()", source)
    may_swallow = source.count("(") != source.count(")")
    open_rules: list[tuple[str, int, list[str]]] = []
    is_ignored = False  # a brace that closes nothing belongs to the next rule, and spoils it
    for piece in source.split("}"):
        *opened, text = piece.split("{")
        if may_swallow and any(part.count("(") > part.count(")") for part in (*opened, text)):
            return
        if len(opened) == 1 and not open_rules and not is_ignored and "@" not in opened[0]:
            if selectors := _prelude(opened[0]):  # as most rules are
                yield Rule(selectors, text, EVERYWHERE)
            continue
        for before in opened:
            if open_rules and open_rules[-1][0]:
                declarations, _, prelude = before.rpartition(";")
                open_rules[-1][2].append(declarations)
                open_rules.append((*_context(prelude.strip(), open_rules), []))
            else:
                prelude = "" if is_ignored else _prelude(before)
                open_rules.append((*_context(prelude, open_rules), []))
            is_ignored = False
        if open_rules:  # the end of the sheet closes the last one, too (CSS Syntax 3, 5.4.8)
            selectors, widths, declared = open_rules.pop()
            if selectors:
                yield Rule(selectors, ";".join((*declared, text)) if declared else text, widths)
        else:
            is_ignored = True


def _prelude(text: str) -> str:
    """Return what stands before the brace of a rule, "" if a browser ignores the rule.

    A semicolon ends an at-rule. In a style rule it is an error (CSS Syntax 3, 5.4.3).
    """
    text = text.strip()
    while text[:1] in {"@", "<", "-"}:
        rest = (_AT_STATEMENT if text.startswith("@") else _HTML_COMMENT).sub("", text, count=1)
        if rest == text:
            break
        text = rest
    return "" if ";" in text else text


def _context(prelude: str, around: list[tuple[str, int, list[str]]]) -> tuple[str, int]:
    """Return the selectors of a rule and the widths at which what is inside it applies."""
    above, widths, _ = around[-1] if around else ("", EVERYWHERE, [])
    if len(around) > _MAX_NESTING:
        return "", 0
    if not prelude.startswith("@"):
        if not above:
            return prelude, widths
        if "," in above or "," in prelude or len(above) > 500:
            return "", 0  # the product of two lists: too rare to be worth its cost
        return (prelude.replace("&", above) if "&" in prelude else f"{above} {prelude}"), widths
    name, _, condition = prelude.partition(" ")
    match name.lower():
        case "@media":
            return above, widths & media(condition)
        case "@layer" | "@scope" | "@container":
            return above, widths
        case "@supports":
            return above, 0 if condition.strip().lower().startswith("not") else widths
        case _:
            return "", 0


def media(query: str) -> int:
    """Return the mask of WIDTHS at which a media query list applies on a light colour screen."""
    mask = 0
    for alternative in query.lower().split(","):
        terms = [term.strip() for term in re.split(r"\band\b", alternative)]
        negated = terms[0].startswith("not ")
        terms[0] = terms[0].removeprefix("not ").removeprefix("only ").strip()
        widths = EVERYWHERE
        for term in terms:
            widths &= _media_term("".join(term.split()))
        mask |= EVERYWHERE & ~widths if negated else widths
    return mask


def _media_term(term: str) -> int:
    if term in {"", "all", "screen"} or _ALWAYS_TRUE.fullmatch(term):
        return EVERYWHERE
    if match := _WIDTH.fullmatch(term):
        prefix, operator, number, unit = match.groups()
        operator = {"min-": ">=", "max-": "<=", None: operator}[prefix]
    elif match := _WIDTH_LAST.fullmatch(term):
        number, unit, operator = match.groups()
        operator = operator.translate({ord("<"): ">", ord(">"): "<"})
    else:
        return 0
    try:
        pixels = float(number) * (1 if unit == "px" else _FONT_PIXELS)
    except ValueError:
        return 0
    comparisons = (
        pixels <= width if operator.startswith(">") else pixels >= width for width in WIDTHS
    )
    return sum(1 << bit for bit, holds in enumerate(comparisons) if holds)


def unescape(css: str) -> str:
    """Return CSS with its escapes resolved (CSS Syntax 3, 4.3.7)."""
    return _ESCAPE.sub(_character, css) if "\\" in css else css


def _character(escape: re.Match[str]) -> str:
    if escape[2]:
        return escape[2]
    code = int(escape[1], 16)
    return chr(code) if 0 < code < 0xD800 or 0xDFFF < code < 0x110000 else "\ufffd"


def compact(declarations: str) -> str:
    """Return declarations in lower case, escapes resolved. A comma replaces white space."""
    text = ",".join(unescape(_COMMENT.sub("", declarations)).lower().split())
    for mark in ":;,()!/":
        if mark in text:
            text = text.replace(f",{mark}", mark).replace(f"{mark},", mark)
    return text


def colour(value: str) -> Colour | None:
    """Return the colour that a compact value or an attribute names, None for other notations."""
    value = value.strip().lower()
    if value == "transparent":
        return Colour(0, 0, 0, 0)
    value = f"#{_NAMED[value]}" if value in _NAMED else value
    if _HEX.fullmatch(value):
        digits = value[1:] if len(value) > 5 else "".join(digit * 2 for digit in value[1:])
        parts = [int(digits[at : at + 2], 16) for at in range(0, len(digits), 2)]
        return Colour(parts[0], parts[1], parts[2], parts[3] / 255 if len(parts) > 3 else 1)
    if match := _RGB.fullmatch(value):
        red, green, blue = (min(_number(part, 255), 255) for part in match.groups()[:3])
        return Colour(red, green, blue, _number(match[4] or "1", 1))
    if match := _HSL.fullmatch(value):
        hue, saturation, light = (_number(match[group], 1) for group in (1, 2, 3))
        mixed = colorsys.hls_to_rgb(
            hue % 360 / 360, min(light, 100) / 100, min(saturation, 100) / 100
        )
        red, green, blue = (255 * part for part in mixed)
        return Colour(red, green, blue, _number(match[4] or "1", 1))
    return None


def _number(text: str, whole: float) -> float:
    try:
        return float(text[:-1]) / 100 * whole if text.endswith("%") else float(text)
    except ValueError:
        return whole


def contrast(text: Colour, background: Colour) -> float:
    """Return the contrast ratio of a text on an opaque background, from 1 to 21 (WCAG 2.2)."""
    alpha = min(text.alpha, 1)
    pairs = zip(text[:3], background[:3], strict=True)
    blended = (alpha * front + (1 - alpha) * back for front, back in pairs)
    lights = sorted((_luminance(*blended), _luminance(*background[:3])))
    return (lights[1] + 0.05) / (lights[0] + 0.05)


def _luminance(red: float, green: float, blue: float) -> float:
    linear = [
        part / 3294.6 if part <= 10.31 else ((part / 255 + 0.055) / 1.055) ** 2.4
        for part in (red, green, blue)
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


_ZERO = r"(?:0+(?:\.0+)?|0?\.0+[0-9]?)(?:px|em|rem|pt|%|vh|vw|cm|mm|in)?"
# Lengths that leave the screen, in a calc() too. Percentages move carousels and menus: only 300 %
# and more counts.
_FAR = (
    r"(?:calc\([^;]*?)?-(?:\d{4,}|[3-9]\d\d)(?:\.\d+)?(?:px|pt|%)?(?![\d.\w%])|"
    r"(?:calc\([^;]*?)?-(?:\d{3,}|9\d)(?:\.\d+)?(?:vw|vh|vmax|em|rem|ch)"
)
_FAR_RIGHT = r"(?:calc\([^;]*?)?(?:\d{5,}|[3-9]\d{3})(?:\.\d+)?(?:px|pt)?(?![\d.\w%])|\d{3,}vw"
_END = r"(?=[;!]|$)"
# Compact declarations that leave nothing of an element to see (CSS 2, 11; Color 4; Masking 1;
# Transforms 1; Containment 2). Its children cannot undo them.
_OUT_OF_SIGHT = re.compile(
    r"(?:^|;)(?:content-visibility:hidden|"
    rf"filter:[^;]*opacity\({_ZERO}\)|"
    r"(?:left|right|top|bottom|margin|margin-left|margin-top|margin-right|text-indent|inset|"
    rf"inset-inline-start):(?:{_FAR})|(?:left|text-indent|margin-left):(?:{_FAR_RIGHT})|"
    rf"text-indent:100%{_END}|"
    rf"transform:[^;]*(?:scale[xy3d]*\({_ZERO}[,)]|translate[xy3d]*\((?:[^,)]*,)?(?:{_FAR}))|"
    rf"translate:(?:[^;]*,)?(?:{_FAR})|scale:{_ZERO}{_END}|transform:[^;]*rotate[xy]\(90deg\)|"
    r"clip:rect\((?:0(?:px)?|1px)[,)]|"
    r"clip-path:(?:inset\((?:[5-9]\d|100)%|circle\(0|ellipse\(0|"
    r"polygon\(0(?:px|%)?,0(?:px|%)?,0(?:px|%)?,0)|"
    r"-webkit-text-fill-color:transparent|(?:-webkit-)?text-security:(?!none)|"
    r"mask(?:-image)?:linear-gradient\(transparent,transparent\))"
)
_FADED = re.compile(rf"(?:^|;)opacity:{_ZERO}{_END}")
_NO_SIZE = re.compile(
    r"(?:^|;)(?:max-)?(?:height|width|line-height|block-size|inline-size):"
    rf"(?:{_ZERO}|1px){_END}"
)
_CLIPS_TEXT = re.compile(r"background-clip:[^;]*text")
_TINY = re.compile(r"(?:0*\.\d+|[01](?:\.\d+)?)(?:px|pt)|0*\.?0*(?:em|rem|%|vw|vh)?")
_FONT_OF_ZERO = re.compile(r"(?:[^;]*,)?0(?:px|pt|em|%)?[/,]")
_RELATIVE = re.compile(r"[\d.]+(?:em|%)|inherit|smaller|larger")
_NO_BACKGROUND = frozenset(("none", "initial", "unset", "inherit", "0", "0,0"))
# The first letters alone pass over most of a text: that halves the time.
_MAY_MATTER = re.compile(
    r"(?=[dvocbf0-9rmtsipz\-\\])(?:"
    r"display|visib|opacity|colo|backgr|font|-\d\d|\d{4}|calc|100%|\d{3}vw|overflow|scale|rotate|"
    r"clip|filter|mask|text-security|z-index|position|isolation|\\)"
)
_MAY_HIDE = re.compile(
    r"(?=[dvofict0-9srm\-\\])(?:"
    r"display|visib|opacity|font-size\s*:\s*[01.]|font\s*:[^;]*\b0|-\d\d|\d{4}|calc\(\s*-|indent|"
    r"\d{3}vw|overflow[^;]*(?:hidden|clip)|scale|rotate|clip-path|clip\s*:|mask|fill-color|"
    r"text-security|\\)"
)


def may_matter(declarations: str) -> bool:
    """Return whether declarations may decide whether text is seen."""
    return _MAY_MATTER.search(declarations.lower()) is not None


def may_hide(declarations: str) -> bool:
    """Return whether declarations may hide text by themselves, whatever other rules say."""
    return _MAY_HIDE.search(declarations.lower()) is not None


class Style(TypedDict, total=False):
    """The style that declarations give an element.

    ``colour`` and ``background`` are None where the value is in no plain notation. ``behind``: the
    element stands behind others. ``stacks``: it begins a stacking context (CSS 2, appendix E).
    ``faded``: it is out of sight because it is transparent. ``important`` repeats what is declared
    ``!important``.
    """

    displayed: bool
    visible: bool
    out_of_sight: bool
    faded: bool
    tiny: bool
    colour: Colour | None
    background: Colour | None
    clips_to_text: bool
    positioned: bool
    behind: bool
    stacks: bool
    important: "Style"


def hides(style: Style) -> bool:
    """Return whether nothing of the element and its content is seen."""
    return style.get("displayed") is False or "out_of_sight" in style


_DISPLAYS = names(
    "none contents block inline flow flow-root inline-block list-item flex inline-flex grid "
    "inline-grid table inline-table table-row table-cell table-row-group table-header-group "
    "table-footer-group table-column table-column-group table-caption run-in ruby ruby-base "
    "ruby-text ruby-base-container ruby-text-container math -webkit-box -webkit-inline-box "
    "-webkit-flex -webkit-inline-flex inherit initial unset revert revert-layer"
)
_VALID: dict[str, Callable[[str], object]] = {
    "display": lambda value: _DISPLAYS.issuperset(value.split(",")),
    "visibility": re.compile(
        r"visible|hidden|collapse|inherit|initial|unset|revert(?:-layer)?"
    ).fullmatch,
    "opacity": re.compile(
        r"[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?%?|calc\(.*|inherit|initial|unset|revert(?:-layer)?"
    ).fullmatch,
}  # a browser ignores any other value (CSS Syntax 3, 2.2)


_VARIABLE = re.compile(r"var\((--[^(),;]+)(?:,([^()]*))?\)")

Variables = Callable[[str], str | None]
"""Returns the value of a custom property: "" if none is declared, None if it is not certain."""


def with_variables(declarations: str, variables: Variables) -> str:
    """Return compact declarations with the values of custom properties (Variables 1, 3)."""

    def value(match: re.Match[str]) -> str:
        known = variables(match[1])
        return match[0] if known is None else known or match[2] or match[0]

    return _VARIABLE.sub(value, declarations)


@lru_cache(2_048)
def read_style(declarations: str) -> Style | None:
    """Return the style of declarations, None if they do not matter for visibility.

    The style is shared, and must not be changed.
    """
    if not may_matter(declarations):
        return None
    declared: dict[str, str] = {}
    important: dict[str, str] = {}
    for declaration in compact(declarations).split(";"):
        name, _, value = declaration.partition(":")
        value = value.removesuffix("!important")
        is_valid = _VALID.get(name)
        if is_valid is not None and not is_valid(value) and "var(" not in value:
            continue
        if declaration.endswith("!important"):
            important[name] = value
        elif name in important:
            continue
        declared.pop(name, None)  # the last one comes last
        declared[name] = value
    style = _interpreted(declared)
    if important and (insisted := _interpreted(important)):
        style["important"] = insisted
    return style or None


def _interpreted(declared: dict[str, str]) -> Style:
    """Return the style of a rule's declarations, each property once."""
    text = ";".join(f"{name}:{value}" for name, value in declared.items())
    style: Style = {}
    cuts_off = "overflow:hidden" in text or "overflow:clip" in text
    if (_OUT_OF_SIGHT.search(text) and not _CLIPS_TEXT.search(text)) or (
        cuts_off and _NO_SIZE.search(text)
    ):
        style["out_of_sight"] = True
    elif _FADED.search(text):
        style["out_of_sight"] = style["faded"] = True
    for name, value in declared.items():
        match name:
            case "display":
                style["displayed"] = value != "none"
            case "visibility" if value not in {"inherit", "unset"}:
                style["visible"] = value not in {"hidden", "collapse"}
            case "color" if value not in {"inherit", "currentcolor", "unset"}:
                style["colour"] = colour(value)
            case "background" | "background-color" | "background-image":
                shade = colour(value)
                if value not in _NO_BACKGROUND and (shade is None or shade.alpha):
                    style["background"] = shade if shade and shade.alpha == 1 else None
            case "background-clip" | "-webkit-background-clip":
                style["clips_to_text"] = "text" in value
            case "font-size":
                is_tiny = _TINY.fullmatch(value) is not None
                if is_tiny or not _RELATIVE.fullmatch(value):  # a share of nothing is nothing
                    style["tiny"] = is_tiny
            case "font":
                style.pop("tiny", None)
                if "," in value:
                    style["tiny"] = _FONT_OF_ZERO.match(value) is not None
            case "position":
                style["positioned"] = value != "static"
            case "z-index":
                style["behind"] = value.startswith("-")
                style["stacks"] = value != "auto"
            case "opacity" | "transform" | "filter" | "isolation":
                if value not in {"none", "auto", "1"}:
                    style["stacks"] = True
            case _:
                pass
    return style
