"""Styles and lists of OpenDocument (version 1.3, part 3, sections 16 and 19)."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from fetchstash.handlers._office._common import MAX_LABEL, Look, number
from fetchstash.handlers._symbols import is_symbol_font, telling_bullet

_TITLES = {"Title": 1, "Subtitle": 2}
_MAX_PARENTS = 10
MAX_LEVEL = 10
"""The deepest level of lists and headings that programs know."""
_T = TypeVar("_T")


@dataclass(slots=True)
class _Style:
    """The own values of one style; None and "" are inherited from its parent."""

    parent: str = ""
    look: Look | None = None
    font: str = ""
    hides: bool | None = None
    list_style: str = ""


class TextStyle(NamedTuple):
    """The formatting of a style's text: the look is its own, all else may come from its parents.

    ``level`` is that of a heading, 0 for text; ``font`` is "" for any but a symbol font.
    """

    level: int = 0
    look: Look | None = None
    font: str = ""
    hides: bool | None = None


class ListLevel(NamedTuple):
    """A level of a list: the format of its numbers ("" for bullets), and a meaningful bullet.

    In ``label``, "%2%" stands for a number of the second level.
    """

    form: str = ""
    first: int = 1
    bullet: str = ""
    label: str = ""


OUTLINE = "\0outline"
"""The list style of headings, which has no name (section 16.34)."""


STYLE_TAGS = {
    *("style", "default-style", "text-properties", "drawing-page-properties", "font-face"),
    *("list-style", "outline-style", "list-level-style-number", "outline-level-style"),
    "list-level-style-bullet",
}
"""The tags that ``OdfStyles`` takes; most tags of styles are others."""


class OdfStyles:
    """The styles of a document, of styles.xml first and then of content.xml, by their tags."""

    def __init__(self) -> None:
        self._styles: dict[str, _Style] = {}
        self._texts: dict[str, TextStyle] = {}
        self._families: dict[str, str] = {}  # of fonts, by the name in this document
        self._levels: dict[tuple[str, int], ListLevel] = {}
        self._hidden_pages: set[str] = set()
        self._open: _Style | None = None
        self._name = self._list = ""
        self._bullet: tuple[int, str] | None = None  # the level that is open, and its sign

    def start(self, name: str, get: Callable[[str], str]) -> None:
        """Take a start tag."""
        match name:
            case "style":
                self._name, self._bullet = get("name"), None
                self._open = _Style(get("parent-style-name"), list_style=get("list-style-name"))
                self._styles[self._name] = self._open
                self._texts.clear()
            case "default-style":
                self._open = self._bullet = None
            case "text-properties" if self._bullet:
                level, sign = self._bullet
                told = telling_bullet(sign, self._family(get))
                self._levels[self._list, level] = ListLevel(bullet=told)
            case "text-properties" if self._open:
                self._open.look = _look(get) or self._open.look
                self._open.font = self._family(get)
                if display := get("display"):
                    self._open.hides = display == "none"
            case "drawing-page-properties" if get("visibility") == "hidden":
                self._hidden_pages.add(self._name)
            case "font-face":
                self._families[get("name")] = get("font-family")
            case "list-style":
                self._list, self._open, self._bullet = get("name"), None, None
            case "outline-style":
                self._list, self._open, self._bullet = OUTLINE, None, None
            case "list-level-style-number" | "outline-level-style":
                level = number(get("level"))
                self._levels[self._list, level] = ListLevel(
                    get("num-format"), number(get("start-value"), 1), label=_label(level, get)
                )
                self._bullet = None
            case "list-level-style-bullet":
                self._bullet = number(get("level")), get("bullet-char")
                self._levels.pop((self._list, self._bullet[0]), None)
            case _:
                pass

    def text(self, style: str) -> TextStyle:
        """Return how a style shows text."""
        known = self._texts.get(style)
        if known is None:
            font = self._first(style, lambda known: known.font) or ""
            known = self._texts[style] = TextStyle(
                self._level(style),
                self._styles[style].look if style in self._styles else None,
                font if is_symbol_font(font) else "",
                self._first(style, lambda known: known.hides),
            )
        return known

    def _level(self, style: str) -> int:
        for _ in range(_MAX_PARENTS):
            if style in _TITLES:
                return _TITLES[style]
            known = self._styles.get(style)
            if known is None:
                break
            style = known.parent
        return 0

    def hides_page(self, style: str) -> bool:
        """Return whether the presentation leaves out the slides of a style."""
        return style in self._hidden_pages

    def list_of(self, style: str) -> str:
        """Return the list style that a paragraph's style brings, "" if none."""
        return self._first(style, lambda known: known.list_style) or ""

    def list_level(self, style: str, level: int) -> ListLevel:
        """Return a level (from 1) of a list style."""
        return self._levels.get((style, level), ListLevel())

    def _first(self, style: str, wanted: Callable[[_Style], _T]) -> _T | None:
        """Return the first value that is not empty along the parents, which may form a ring."""
        for _ in range(_MAX_PARENTS):
            known = self._styles.get(style)
            if known is None:
                break
            value = wanted(known)
            if value is not None and value != "":
                return value
            style = known.parent
        return None

    def _family(self, get: Callable[[str], str]) -> str:
        name = get("font-name")
        return self._families.get(name) or get("font-family") or name


def _label(level: int, get: Callable[[str], str]) -> str:
    """Return the label of a numbered level (sections 19.502 f.), or that of LibreOffice."""
    shown = min(number(get("display-levels"), 1), level, MAX_LEVEL)
    numbers = ".".join(f"%{place}%" for place in range(level - shown + 1, level + 1))
    label = get("num-list-format") or f"{get('num-prefix')}{numbers}{get('num-suffix')}"
    return label[:MAX_LABEL]


def _look(get: Callable[[str], str]) -> Look | None:
    """Return how a style lets text look (sections 20.384 and 20.375), None if plain."""
    position = get("text-position").partition(" ")[0]
    script = {"super": "^", "sub": "_"}.get(position, "")
    if not script and position.rstrip("%").lstrip("-").isdecimal() and position.strip("-0%"):
        script = "_" if position.startswith("-") else "^"
    struck = get("text-line-through-style") not in {"", "none"}
    return Look(script, struck) if script or struck else None
