"""Styles and lists of Word (ECMA-376-1, sections 17.7 and 17.9)."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping

from fetchstash.handlers._office._common import number
from fetchstash.handlers._symbols import is_symbol_font, telling_bullet
from fetchstash.handlers._xml import Tag

_HEADING = re.compile(r"heading (\d)", re.IGNORECASE)
_TITLES = {"title": 1, "subtitle": 2}
_LEVELS = 9
OUTLINE_LEVELS = {str(level) for level in range(_LEVELS)}
OFF = {"0", "false", "off"}
"""How an attribute says that a property does not hold (section 17.17.4)."""


class Styles:
    """The styles (ECMA-376-1, section 17.7): heading levels, lists, symbol fonts, hidden text."""

    def __init__(self, tags: Iterable[Tag]) -> None:
        self._levels: dict[str, int] = {}
        self._lists: dict[str, tuple[str, int]] = {}
        self._fonts: dict[str, str] = {}
        self._hidden: dict[str, bool] = {}
        self._bases: dict[str, str] = {}
        style = ""
        for name, get in tags:
            value = get("val")
            list_id, list_level = self._lists.get(style, ("", 0))
            if name == "style":
                style = get("styleId")
            elif name == "name":
                heading = _HEADING.fullmatch(value)
                if level := int(heading[1]) if heading else _TITLES.get(value.lower(), 0):
                    self._levels[style] = level
            elif name == "basedOn":
                self._bases[style] = value
            elif name == "outlineLvl" and value in OUTLINE_LEVELS:
                self._levels.setdefault(style, int(value) + 1)
            elif name == "numId":
                self._lists[style] = value, list_level
            elif name == "ilvl":
                self._lists[style] = list_id, min(number(value), _LEVELS - 1)
            elif name == "rFonts" and style:
                self._fonts[style] = get("ascii") or get("hAnsi")
            elif name == "vanish" and style:
                self._hidden[style] = value not in OFF

    def level(self, style: str) -> int:
        """Return the heading level of a style, 0 for text."""
        return self._levels.get(self._along_bases(style, self._levels), 0)

    def list_of(self, style: str) -> tuple[str, int]:
        """Return the list of a style's paragraphs ("" if none) and their level in it."""
        return self._lists.get(self._along_bases(style, self._lists), ("", 0))

    def font(self, style: str) -> str:
        """Return the symbol font of a style's text, "" for any other font."""
        font = self._fonts.get(self._along_bases(style, self._fonts), "")
        return font if is_symbol_font(font) else ""

    def hides(self, style: str) -> bool:
        """Return whether text of a style is hidden."""
        return self._hidden.get(self._along_bases(style, self._hidden), False)

    def _along_bases(self, style: str, known: Mapping[str, object]) -> str:
        """Return the first known style, from ``style`` along its bases, which may form a ring."""
        for _ in range(10):
            if style in known:
                break
            style = self._bases.get(style, "")
        return style


class Numbering:
    """The formats of lists (ECMA-376-1, section 17.9), and the counts of their items."""

    def __init__(self, tags: Iterable[Tag]) -> None:
        self._formats: dict[tuple[str, int], str] = {}
        self._bullets: dict[tuple[str, int], tuple[str, str]] = {}  # and their fonts
        self._starts: dict[tuple[str, int], int] = {}
        self._abstract_of: dict[str, str] = {}
        self._counts: dict[str, list[int]] = defaultdict(lambda: [0] * _LEVELS)
        abstract = list_id = ""
        level = 0
        for name, get in tags:
            if name == "abstractNum":
                abstract = get("abstractNumId")
            elif name == "lvl":
                level = number(get("ilvl"))
            elif name == "numFmt":
                self._formats[abstract, level] = get("val")
            elif name == "start":
                self._starts[abstract, level] = number(get("val"), 1)
            elif name == "lvlText":
                self._bullets[abstract, level] = get("val"), ""
            elif name == "rFonts" and (abstract, level) in self._bullets:
                sign, _ = self._bullets[abstract, level]
                self._bullets[abstract, level] = sign, get("ascii") or get("hAnsi")
            elif name == "num":
                list_id = get("numId")
            elif name == "abstractNumId":
                self._abstract_of[list_id] = get("val")

    def mark(self, list_id: str, level: int) -> str:
        """Return the mark of the next item ("-", "- ✓", "3."), "" without a list (id 0: none)."""
        if list_id in {"", "0"}:
            return ""
        abstract = self._abstract_of.get(list_id, "")
        if self._formats.get((abstract, level), "bullet") in {"bullet", "none"}:
            sign = telling_bullet(*self._bullets.get((abstract, level), ("", "")))
            return f"- {sign}" if sign else "-"
        counts = self._counts[abstract]
        counts[level] += 1
        counts[level + 1 :] = [0] * (_LEVELS - level - 1)
        return f"{counts[level] - 1 + self._starts.get((abstract, level), 1)}."
