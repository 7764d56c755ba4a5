"""The terminal: its abilities, safe text, cell widths, styles, tables."""

import os
import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TextIO
from unicodedata import category, east_asian_width
from urllib.parse import quote

# Controls but line feed and tab (ECMA-48), and what changes direction (UTS 55, section 3). The
# stored text is free of them; names, messages and stores of others may not be.
_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_MARKS = re.compile("[\u061c\u200e\u200f]")
_OUTSIDE_A_LINK = "".join(chr(code) for code in range(0x21, 0x7F))
_WORDS = re.compile(r"\S+\s*|\s+")
_VARIATION_TO_EMOJI = "\ufe0f"


@dataclass(frozen=True, slots=True)
class Screen:
    """A stream that is printed to.

    ``width`` is in cells. ``styled``: colour and links are wanted, and understood.
    """

    is_terminal: bool
    width: int = 80
    styled: bool = False

    def style(self, text: str, name: str) -> str:
        """Return ``text`` in the style of a role: title, dim, match, key or warning."""
        return f"\x1b[{_STYLES[name]}m{text}\x1b[0m" if self.styled else text

    def link(self, text: str, url: str) -> str:
        """Return ``text`` as a link to a page of the web (OSC 8), where the terminal shows it."""
        if not self.styled or not url.startswith(("http://", "https://")):
            return text
        return f"\x1b]8;;{quote(url, safe=_OUTSIDE_A_LINK)}\x1b\\{text}\x1b]8;;\x1b\\"


# Select Graphic Rendition (ECMA-48, section 8.3.117): bold, faint, and colours.
_STYLES = {
    "title": "1",
    "dim": "2",
    "match": "1;31",
    "key": "32",
    "call": "36",
    "reference": "33",
    "warning": "33",
}


@cache
def screen_of(stream_name: str = "stdout") -> Screen:
    """Return the abilities of stdout or stderr. NO_COLOR (no-color.org) turns colour off."""
    stream: TextIO | None = getattr(sys, stream_name)
    is_terminal = stream is not None and stream.isatty()
    plain = bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"
    width = max(shutil.get_terminal_size((80, 24)).columns, 20)
    return Screen(is_terminal, width, styled=is_terminal and not plain)


def safe(text: str) -> str:
    """Return a text that is safe to print: control characters are spelled out."""
    return _UNSAFE.sub(_spelled, _MARKS.sub("", text))


def safe_line(text: str) -> str:
    """Return a text safe and on one line."""
    return " ".join(safe(text).split())


def _spelled(control: re.Match[str]) -> str:
    code = ord(control[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def cells(text: str) -> int:
    """Return the width of a line in cells: two for a wide character, none for a combining one."""
    return len(text) if text.isascii() else sum(_cells_of_each(text))


def _cells_of_each(text: str) -> list[int]:
    widths: list[int] = []
    for char in text:
        if char == _VARIATION_TO_EMOJI and widths and widths[-1] == 1:
            widths.append(1)  # the symbol before it is drawn as an emoji, two cells wide
        elif category(char) in ("Mn", "Me", "Cf") or "\u1160" <= char <= "\u11ff":
            widths.append(0)
        else:
            widths.append(2 if east_asian_width(char) in "WF" else 1)
    return widths


def wrapped(text: str, width: int) -> str:
    """Wrap long lines of a text between words where possible."""
    return "\n".join(
        line if len(line) * 2 <= width or cells(line) <= width else "\n".join(_rows(line, width))
        for line in text.split("\n")
    )


def _rows(line: str, width: int) -> Iterator[str]:
    row, room = "", width
    for word in _WORDS.findall(line):
        taken = cells(word.rstrip())
        if taken > room and row and taken <= width:
            yield row.rstrip()
            row, room = "", width
        row, room = row + word, room - cells(word)
    yield row


def clip_cells(text: str, width: int) -> str:
    """Return a line cut to ``width`` cells, with an ellipsis where it is cut."""
    if cells(text) <= width:
        return text
    room, kept = max(width - 1, 0), 0
    for kept, taken in enumerate(_cells_of_each(text)):  # noqa: B007 - its last value counts
        room -= taken
        if room < 0:
            break
    return text[:kept].rstrip() + "…" * (width > 0)


def window_cells(line: str, start: int, end: int, width: int) -> str:
    """Return at most ``width`` cells of a line around its characters [start, end)."""
    from fetchstash.text import window  # noqa: PLC0415 - only where it is needed

    chars, shown = width, window(line, start, end, width)
    while chars and (over := cells(shown) - width) > 0:
        chars -= max(over // 2, 1)
        shown = window(line, start, end, chars)
    return shown


_GAP = 2


@dataclass(frozen=True, slots=True)
class Column:
    """A column. One with ``least`` may shrink to that many cells, others keep their width.

    The one that is widest for its ``weight`` shrinks first. ``from_width`` is the narrowest
    terminal that shows the column, ``style`` a role of the screen.
    """

    heading: str
    least: int | None = None
    weight: int = 1
    right: bool = False
    from_width: int = 0
    style: str = ""


@dataclass(frozen=True, slots=True)
class Link:
    """The text of a cell, on one line, and the page that it links to."""

    text: str
    url: str

    def __str__(self) -> str:
        return self.text


def table_or_tabs(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a table for a terminal; for a pipe the same between tabs."""
    rows, screen = [[safe_line(text) for text in row] for row in rows], screen_of()
    if screen.is_terminal:
        return table(screen, columns, rows)
    return ["\t".join(row) for row in rows]


def table(
    screen: Screen, columns: Sequence[Column], rows: Sequence[Sequence[str | Link]]
) -> list[str]:
    """Return the lines of a table under its headings, none wider than the screen."""
    shown = [n for n, column in enumerate(columns) if column.from_width <= screen.width]
    columns = [columns[n] for n in shown]
    rows = [[row[n] for n in shown] for row in rows]
    widths = _widths(screen.width, columns, [[str(cell) for cell in row] for row in rows])
    headings = [column.heading for column in columns]
    lines = [_line(screen, columns, widths, headings, is_heading=True)]
    return lines + [_line(screen, columns, widths, row) for row in rows]


def _widths(room: int, columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> list[int]:
    """Return a width for each column: the widest of the shrinkable ones are cut first."""
    widths = [
        max(cells(text) for text in (column.heading, *(row[n] for row in rows)))
        for n, column in enumerate(columns)
    ]
    over = sum(widths) + _GAP * (len(widths) - 1) - room
    while over > 0:
        flexible = [n for n, column in enumerate(columns) if widths[n] > (column.least or room)]
        if not flexible:
            break
        widths[max(flexible, key=lambda n: widths[n] / columns[n].weight)] -= 1
        over -= 1
    return widths


def _line(
    screen: Screen,
    columns: Sequence[Column],
    widths: Sequence[int],
    row: Sequence[str | Link],
    *,
    is_heading: bool = False,
) -> str:
    pieces: list[str] = []
    for column, width, cell in zip(columns, widths, row, strict=True):
        text = clip_cells(str(cell), width)
        fill = " " * (width - cells(text))
        painted = screen.link(text, cell.url) if isinstance(cell, Link) else text
        if style := "dim" if is_heading else column.style:
            painted = screen.style(painted, style)
        pieces.append(fill + painted if column.right else painted + fill)
    return (" " * _GAP).join(pieces).rstrip()
