"""Read the effect of CSS declarations on whether text can be seen. Pure functions over strings."""

import re
from dataclasses import dataclass, fields

from fetchstash.handlers._html._css import Colour, colour, compact

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
    rf"opacity:{_ZERO}{_END}|filter:[^;]*opacity\({_ZERO}\)|"
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
_NO_SIZE = re.compile(
    r"(?:^|;)(?:max-)?(?:height|width|line-height|block-size|inline-size):"
    rf"(?:{_ZERO}|1px){_END}"
)
_CLIPS_TEXT = re.compile(r"background-clip:[^;]*text")
_TINY = re.compile(r"(?:0*\.\d+|[01](?:\.\d+)?)(?:px|pt)|0*\.?0*(?:em|rem|%|vw|vh)?")
_FONT_OF_ZERO = re.compile(r"(?:[^;]*,)?0(?:px|pt|em|%)?[/,]")
_RELATIVE = re.compile(r"[\d.]+(?:em|%)|inherit|smaller|larger")
MAY_MATTER = re.compile(
    r"display|visib|opacity|colo|backgr|font|-\d\d|\d{4}|calc|100%|\d{3}vw|overflow|scale|rotate|"
    r"clip|filter|mask|text-security|z-index|position|isolation|\\",
    re.IGNORECASE,
)
"""Found in all declarations that decide whether text is seen."""
_MAY_HIDE = re.compile(
    r"display|visib|opacity|font-size\s*:\s*[01.]|font\s*:[^;]*\b0|-\d\d|\d{4}|calc\(\s*-|indent|"
    r"\d{3}vw|overflow[^;]*(?:hidden|clip)|scale|rotate|clip-path|clip\s*:|mask|fill-color|"
    r"text-security|\\",
    re.IGNORECASE,
)
# One of these words or numbers stands in whatever _MAY_HIDE matches; looking for them
# takes a quarter of its time.
_HIDING_WORDS = (
    "display", "visib", "opacity", "indent", "scale", "rotate", "clip", "mask", "fill-color",
    "text-security", "overflow", "font", "calc(", "\\",
)  # fmt: skip
_FAR_NUMBER = re.compile(r"-[0-9][0-9]|[0-9]{4}|[0-9]{3}vw")


def may_hide(declarations: str) -> bool:
    """Return whether declarations may hide text by themselves, whatever other rules say."""
    lower = declarations.lower()
    for word in _HIDING_WORDS:
        if word in lower:
            break
    else:
        if not _FAR_NUMBER.search(lower):
            return False
    return _MAY_HIDE.search(declarations) is not None


@dataclass(slots=True)
class Style:
    """What declarations say of an element; None where they say nothing.

    ``colour`` and ``background`` are None, too, where the value is in no plain notation; the flags
    beside them say whether there is one. ``behind``: the element stands behind others.
    ``stacks``: it begins a stacking context (CSS 2, appendix E).
    """

    displayed: bool | None = None
    visible: bool | None = None
    out_of_sight: bool | None = None
    tiny: bool | None = None
    has_colour: bool | None = None
    colour: Colour | None = None
    has_background: bool | None = None
    background: Colour | None = None
    clips_to_text: bool | None = None
    positioned: bool | None = None
    behind: bool | None = None
    stacks: bool | None = None

    @property
    def hides(self) -> bool:
        """Whether nothing of the element and its content is seen."""
        return self.displayed is False or bool(self.out_of_sight)

    def update(self, other: "Style") -> None:
        """Take over what ``other`` says."""
        for name in _FIELDS:
            value = getattr(other, name)
            if value is not None:
                setattr(self, name, value)
        if other.has_colour:
            self.colour = other.colour
        if other.has_background:
            self.background = other.background


_FIELDS = tuple(field.name for field in fields(Style))
_EMPTY = Style()


def read_style(declarations: str) -> Style | None:
    """Return what declarations say, None if they say nothing of whether text is seen."""
    if not MAY_MATTER.search(declarations):
        return None
    text = compact(declarations)
    style = Style()
    style.out_of_sight = _is_out_of_sight(text) or None
    for declaration in text.split(";"):
        name, _, value = declaration.partition(":")
        if name in _READERS:
            _READERS[name](style, value.removesuffix("!important"))
    return None if style == _EMPTY else style


def _is_out_of_sight(text: str) -> bool:
    if _OUT_OF_SIGHT.search(text) and not _CLIPS_TEXT.search(text):
        return True
    cuts_off = "overflow:hidden" in text or "overflow:clip" in text
    return cuts_off and _NO_SIZE.search(text) is not None


def _display(style: Style, value: str) -> None:
    style.displayed = value != "none"


def _visibility(style: Style, value: str) -> None:
    if value not in {"inherit", "unset"}:
        style.visible = value not in {"hidden", "collapse"}


def _colour(style: Style, value: str) -> None:
    if value not in {"inherit", "currentcolor", "unset"}:
        style.has_colour, style.colour = True, colour(value)


def _background(style: Style, value: str) -> None:
    shade = colour(value)
    if value in {"none", "initial", "unset", "inherit", "0", "0,0"} or (shade and not shade.alpha):
        return
    style.has_background = True
    style.background = shade if shade is not None and shade.alpha == 1 else None


def _background_clip(style: Style, value: str) -> None:
    style.clips_to_text = "text" in value


def _font_size(style: Style, value: str) -> None:
    if _TINY.fullmatch(value):
        style.tiny = True
    elif not _RELATIVE.fullmatch(value):  # a share of nothing is nothing
        style.tiny = False


def _font(style: Style, value: str) -> None:
    style.tiny = bool(_FONT_OF_ZERO.match(value)) if "," in value else None


def _position(style: Style, value: str) -> None:
    style.positioned = value != "static"


def _z_index(style: Style, value: str) -> None:
    style.behind = value.startswith("-")
    style.stacks = value != "auto"


def _stacking(style: Style, value: str) -> None:
    if value not in {"none", "auto", "1"}:
        style.stacks = True


_READERS = {
    "display": _display,
    "visibility": _visibility,
    "color": _colour,
    "background": _background,
    "background-color": _background,
    "background-image": _background,
    "background-clip": _background_clip,
    "-webkit-background-clip": _background_clip,
    "font-size": _font_size,
    "font": _font,
    "position": _position,
    "z-index": _z_index,
    "opacity": _stacking,
    "transform": _stacking,
    "filter": _stacking,
    "isolation": _stacking,
}
