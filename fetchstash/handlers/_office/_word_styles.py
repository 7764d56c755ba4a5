"""Styles and lists of Word (ECMA-376-1, sections 17.7 and 17.9)."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from fetchstash.handlers._office._common import MAX_LABEL, number
from fetchstash.handlers._prose import numeral
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


@dataclass(slots=True)
class Level:
    """A level of a list; ``label`` is its text, in which "%2" stands for a number of level 1."""

    label: str
    format: str = "decimal"
    font: str = ""
    start: int = 1
    is_legal: bool = False  # numbers of the levels above are in digits
    restarts: bool = True


@dataclass(slots=True)
class Numbering:
    """The formats of lists (ECMA-376-1, section 17.9), and the counts of their items.

    ``abstract_of`` is the abstract list of each list. ``levels`` are by abstract list and level,
    ``own`` and ``first_numbers`` by list and level, where they differ from those.
    """

    levels: dict[tuple[str, int], Level] = field(default_factory=dict[tuple[str, int], Level])
    own: dict[tuple[str, int], Level] = field(default_factory=dict[tuple[str, int], Level])
    first_numbers: dict[tuple[str, int], int] = field(default_factory=dict[tuple[str, int], int])
    abstract_of: dict[str, str] = field(default_factory=dict[str, str])
    _counts: dict[str, list[int]] = field(
        default_factory=lambda: defaultdict[str, list[int]](lambda: [0] * _LEVELS)
    )

    def mark(self, list_id: str, level: int) -> str:
        """Return the label of the next item ("-", "- ✓", "3.", "b)", "§ 1.2").

        "" is that of a paragraph without a list (id 0: none).
        """
        if list_id in {"", "0"}:
            return ""
        opened = self._level(list_id, level)
        if opened.format in {"bullet", "none"}:
            sign = telling_bullet(opened.label, opened.font)
            return f"- {sign}" if sign else "-"
        counts = self._counts[self.abstract_of.get(list_id, "")]
        # A list that starts anew does so at its first item; lists of one kind count on otherwise.
        if (first := self.first_numbers.pop((list_id, level), None)) is not None:
            counts[level] = first - opened.start
        counts[level] += 1
        for below in range(level + 1, _LEVELS):
            if self._level(list_id, below).restarts:
                counts[below] = 0

        def shown(place: re.Match[str]) -> str:
            level = int(place[1]) - 1
            wanted = self._level(list_id, level)
            count = wanted.start - 1 + max(counts[level], 1)
            # In legal style "Article II" is counted as 2.01 (section 17.9.4).
            is_plain = opened.is_legal and wanted.format != "decimalZero"
            return _counted(count, "decimal" if is_plain else wanted.format)

        return _NUMBER.sub(shown, opened.label).strip() or "-"

    def _level(self, list_id: str, level: int) -> Level:
        own = self.own.get((list_id, level))
        abstract = self.abstract_of.get(list_id, "")
        return own or self.levels.get((abstract, level), _NO_LEVEL)


def numbering_of(tags: Iterable[Tag]) -> Numbering:
    """Return the lists of a numbering part (section 17.9)."""
    numbering = Numbering()
    abstract = list_id = ""
    level = 0
    opened = Level("")  # what stands within no level of a list says nothing
    for name, get in tags:
        match name:
            case "abstractNum":
                abstract, list_id = get("abstractNumId"), ""
            case "lvl":
                level = number(get("ilvl"))
                opened = Level(f"%{level + 1}.")
                levels = numbering.own if list_id else numbering.levels
                levels[list_id or abstract, level] = opened
            case "numFmt":
                opened.format = get("val")
            case "start":
                opened.start = number(get("val"), 1)
            case "lvlText":
                opened.label = get("val")[:MAX_LABEL]
            case "isLgl":
                opened.is_legal = get("val") not in OFF
            case "lvlRestart":
                opened.restarts = get("val") != "0"
            case "rFonts":
                opened.font = get("ascii") or get("hAnsi")
            case "num":
                list_id = get("numId")
            case "abstractNumId":
                numbering.abstract_of[list_id] = get("val")
            case "lvlOverride":
                level = number(get("ilvl"))
            case "startOverride":
                numbering.first_numbers[list_id, level] = number(get("val"), 1)
            case _:
                pass
    return numbering


_NO_LEVEL = Level("", format="bullet")
_NUMBER = re.compile("%([1-9])")
_KINDS = {"lowerRoman": "i", "upperRoman": "I", "lowerLetter": "a", "upperLetter": "A"}


def _counted(count: int, form: str) -> str:
    """Return a number in a format (section 17.18.59); in digits for those of other scripts."""
    kind = _KINDS.get(form, "1")
    if kind in {"a", "A"} and count > 0:  # z is followed by aa, bb
        return numeral((count - 1) % 26 + 1, kind) * min((count - 1) // 26 + 1, 9)
    return f"{count:02d}" if form == "decimalZero" else numeral(count, kind)
