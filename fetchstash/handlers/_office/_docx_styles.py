"""Styles and numbering of a Word document: heading levels and list marks."""

import re
from collections import defaultdict
from collections.abc import Mapping

from fetchstash.handlers._shared._xml_events import attribute

_HEADING = re.compile(r"heading (\d)", re.IGNORECASE)
_TITLES = {"title": 1, "subtitle": 2}
_LEVELS = 9


class Styles:
    """Reads styles.xml (ECMA-376-1, section 17.7)."""

    def __init__(self) -> None:
        self._levels: dict[str, int] = {}
        self._lists: dict[str, tuple[str, int]] = {}
        self._bases: dict[str, str] = {}
        self._style = ""

    def level(self, style: str) -> int:
        """Return the heading level of a style, 0 for text."""
        return self._levels.get(self._along_bases(style, self._levels), 0)

    def list_of(self, style: str) -> tuple[str, int]:
        """Return the list of a style's paragraphs ("" if none) and their level in it."""
        return self._lists.get(self._along_bases(style, self._lists), ("", 0))

    def _along_bases(self, style: str, known: Mapping[str, object]) -> str:
        """Return the first known style, from ``style`` along its bases, which may form a ring."""
        for _ in range(10):
            if style in known:
                break
            style = self._bases.get(style, "")
        return style

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        """Take a start tag."""
        if name == "style":
            self._style = attribute(attributes, "styleId")
            return
        value = attribute(attributes, "val")
        if name == "name":
            heading = _HEADING.fullmatch(value)
            level = int(heading[1]) if heading else _TITLES.get(value.lower(), 0)
            if level:
                self._levels[self._style] = level
        elif name == "basedOn":
            self._bases[self._style] = value
        elif name == "outlineLvl" and value.isdecimal() and int(value) < _LEVELS:
            self._levels.setdefault(self._style, int(value) + 1)
        elif name == "numId":
            self._lists[self._style] = (value, self._lists.get(self._style, ("", 0))[1])
        elif name == "ilvl" and value.isdecimal():
            self._lists[self._style] = (
                self._lists.get(self._style, ("", 0))[0],
                min(int(value), _LEVELS - 1),
            )

    def end(self, name: str) -> None:
        """Take an end tag."""

    def text(self, data: str) -> None:
        """Take text: there is none."""


class Numbering:
    """Reads numbering.xml (ECMA-376-1, section 17.9), and counts the items of each list."""

    def __init__(self) -> None:
        self._formats: dict[tuple[str, int], str] = {}
        self._abstract_of: dict[str, str] = {}
        self._abstract = ""
        self._list = ""
        self._level = 0
        self._counts: dict[str, list[int]] = defaultdict(lambda: [0] * _LEVELS)

    def mark(self, list_id: str, level: int) -> str:
        """Return the mark of the next item ("-", "3."), "" without a list (id 0: none)."""
        if list_id in {"", "0"}:
            return ""
        abstract = self._abstract_of.get(list_id, "")
        if self._formats.get((abstract, level), "bullet") in {"bullet", "none"}:
            return "-"
        counts = self._counts[abstract]
        counts[level] += 1
        counts[level + 1 :] = [0] * (_LEVELS - level - 1)
        return f"{counts[level]}."

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        """Take a start tag."""
        if name == "abstractNum":
            self._abstract = attribute(attributes, "abstractNumId")
        elif name == "lvl":
            level = attribute(attributes, "ilvl")
            self._level = int(level) if level.isdecimal() else 0
        elif name == "numFmt":
            self._formats[self._abstract, self._level] = attribute(attributes, "val")
        elif name == "num":
            self._list = attribute(attributes, "numId")
        elif name == "abstractNumId":
            self._abstract_of[self._list] = attribute(attributes, "val")

    def end(self, name: str) -> None:
        """Take an end tag."""

    def text(self, data: str) -> None:
        """Take text: there is none."""
