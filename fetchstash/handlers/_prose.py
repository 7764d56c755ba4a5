"""Prose as Markdown: paragraphs, lists, tables, headings."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from fetchstash.errors import NoText
from fetchstash.handlers._contract import Part
from fetchstash.handlers._reasons import Reason
from fetchstash.handlers._xml import XmlReader, walk
from fetchstash.text.ranges import Heading

# ATX headings, fences and setext underlines (CommonMark 0.31, sections 4.2, 4.5 and 4.3).
_MARK = re.compile(
    r"^ {0,3}(?P<level>#{1,6})[ \t]+(?P<title>[^\n]*)$"
    r"|^ {0,3}(?P<fence>`{3,}|~{3,})(?P<info>[^\n`]*)$"
    r"|^(?P<setext>[^\s#>`~|*+-][^\n]*)\n {0,3}(?P<line>=+|-+)[ \t]*$",
    re.MULTILINE,
)
_CLOSING = re.compile(r"(?:^|(?<![ \t])[ \t]+)#+$")
_FENCE = re.compile(r"`{3,}|~{3,}")
_LONG_FENCE = 16
MAX_HEADINGS = 10_000
"""Only hostile documents have more, and an outline shows far fewer."""


def find_headings(
    text: str, fence: str = "", start: int = 0, limit: int = MAX_HEADINGS
) -> tuple[list[Heading], str]:
    """Return the first ``limit`` headings of ``text``, and the fence that is open at its end.

    Lines count from 1. ``fence`` is open at the beginning ("": none is): a heading inside of code
    is none. The search begins at ``start``.
    """
    headings: list[Heading] = []
    line, counted = 1, 0
    for mark in _MARK.finditer(text, start):
        if mark["fence"]:
            if not fence:
                fence = mark["fence"]
            elif mark["fence"].startswith(fence) and not mark["info"].strip():
                fence = ""
        elif not fence:
            if len(headings) >= limit:
                break
            line += text.count("\n", counted, mark.start())
            counted = mark.start()
            title, level = mark["setext"], 1
            if mark["level"]:
                title, level = _CLOSING.sub("", mark["title"].rstrip()), len(mark["level"])
            elif mark["line"][0] == "-":
                level = 2
            headings.append(Heading(title, level, "lines", line))
    return headings, fence


def fence_for(text: str) -> str:
    """Return a fence that no line of ``text`` closes (CommonMark 0.31, section 4.5).

    It is of tildes if it would take many backticks.
    """
    if "```" not in text and "~~~" not in text:
        return "```"
    longest = {"`": 2, "~": 2}
    for run in _FENCE.finditer(text):
        longest[run[0][0]] = max(longest[run[0][0]], len(run[0]))
    mark = "~" if longest["`"] > max(longest["~"], _LONG_FENCE) else "`"
    return mark * (longest[mark] + 1)


_PART_CHARS = 64 * 1024
_DEEPEST = 6


class Prose:
    """Collects blocks of Markdown; ``full``, ``rest`` and finally ``end`` yield them as parts."""

    def __init__(self) -> None:
        self._ready: list[Part] = []
        self._lines: list[str] = []
        self._headings: list[Heading] = []
        self._chars = 0
        self._starts_page = False
        self._in_list = False
        self._is_empty = True

    def heading(self, title: str, level: int) -> None:
        """Add a heading on one line, unless its title is empty."""
        title = " ".join(title.split())
        if title:
            self._gap()
            level = min(max(level, 1), _DEEPEST)
            self._headings.append(Heading(title, level, "lines", len(self._lines) + 1))
            self._add(f"{'#' * level} {title}")

    def paragraph(self, text: str) -> None:
        """Add a paragraph with its line ends, unless it is empty."""
        if text := text.strip():
            self._gap()
            for line in text.split("\n"):
                self._add(line.rstrip())

    def item(self, text: str, level: int = 0, mark: str = "-") -> None:
        """Add a list item; ``level`` 0 is the outermost."""
        if text := text.strip():
            if not self._in_list:
                self._gap()
            self._in_list = True
            indent = "  " * min(level, 8)
            first, *more = text.split("\n")
            self._add(f"{indent}{mark} {first}")
            for line in more:
                self._add(f"{indent}  {line.strip()}")

    def table(self, rows: Sequence[Sequence[str]]) -> None:
        """Add a table whose first row is its header; a single column becomes paragraphs."""
        rows = list(filter(_says_more, rows))
        width = max((n for row in rows for n, cell in enumerate(row, 1) if cell.strip()), default=0)
        if width <= 1:
            for row in rows:
                self.paragraph(row[0])
            return
        self._gap()
        for number, row in enumerate(rows):
            self._add(table_row([*row[:width], *[""] * (width - len(row))]))
            if not number:
                self._add("|" + " --- |" * width)

    def code(self, text: str, language: str = "") -> None:
        """Add a code block, verbatim."""
        fence = fence_for(text)
        self._gap()
        for line in (fence + language, *text.rstrip("\n").split("\n"), fence):
            self._add(line)

    def markdown(self, text: str) -> None:
        """Add Markdown unchanged, without blank lines at its ends."""
        text = text.strip("\n")
        if text.strip():
            self._gap()
            headings, _ = find_headings(text)
            self._headings += [
                Heading(h.title, h.level, "lines", h.start + len(self._lines)) for h in headings
            ]
            for line in text.split("\n"):
                self._add(line)

    def page(self) -> None:
        """Begin a new page."""
        self._close()
        self._starts_page = True

    def full(self) -> Iterator[Part]:
        """Yield the complete pages, and the open one if it is long enough."""
        if self._chars >= _PART_CHARS:
            self._close()
        yield from self._ready
        self._ready.clear()

    def rest(self) -> Iterator[Part]:
        """Yield everything collected so far."""
        self._close()
        yield from self.full()

    def _close(self) -> None:
        """Make a part of the collected lines and an empty one."""
        if self._lines or self._starts_page:
            text = "\n".join([*self._lines, "", ""])
            self._ready.append(
                Part(text, starts_page=self._starts_page, headings=tuple(self._headings))
            )
            self._lines, self._headings, self._chars = [], [], 0
            self._starts_page = self._in_list = False

    def end(self) -> Iterator[Part]:
        """Yield the rest of a document. Raises NoText if the document had no block at all."""
        if self._is_empty:
            raise Reason.NO_TEXT.error()
        yield from self.rest()

    def _gap(self) -> None:
        self._in_list = False
        if self._lines:
            self._lines.append("")

    def _add(self, line: str) -> None:
        self._lines.append(line)
        self._chars += len(line) + 1
        self._is_empty = False


LONGEST_REPEATED = 80
DITTO = "\u2033"


def repeated(text: str) -> str:
    """Return the text for the other rows that a cell spans: the same, or a mark if it is long."""
    return text if len(text) <= LONGEST_REPEATED else DITTO


class Repeated(str):
    """The text of a cell that spans rows, in another row than its first."""

    __slots__ = ()


def _says_more(row: Sequence[str]) -> bool:
    """Return whether a row has a text of its own beside those of cells that span rows."""
    return any(cell.strip() and not isinstance(cell, Repeated) for cell in row)


@dataclass(slots=True)
class Cell:
    """A cell of a table with its paragraphs; ``is_covered``: one above it may reach into it."""

    paragraphs: list[str] = field(default_factory=list[str])
    width: int = 1
    height: int = 1
    is_covered: bool = False


class OpenTables:
    """The open tables, the innermost last; the outermost is written to ``prose`` when it ends.

    ``table``, ``row`` and ``cells`` are the names of the elements; ``cell`` is the open one. As in
    HTML, one that spans columns leaves the others empty, and one that spans rows is repeated in
    those of its column that it covers. Office documents have an element for each covered cell;
    ``leaves_out``: these leave them out, as HTML does.
    """

    def __init__(
        self, prose: Prose, table: str, row: str, *cells: str, leaves_out: bool = False
    ) -> None:
        self.cell = Cell()
        self._prose = prose
        self._names = table, row, cells
        self._leaves_out = leaves_out
        self._rows: list[list[list[str]]] = []
        self._around: list[Cell] = []
        self._spans: list[dict[int, tuple[int, str]]] = []  # by column: rows to come, and the text

    def __bool__(self) -> bool:
        return bool(self._rows)

    def start(self, name: str) -> None:
        """Take a start tag: of a table, which may stand within a cell, a row or a cell."""
        table, row, cells = self._names
        if name == table:
            self._rows.append([])
            self._spans.append({})
            self._around.append(self.cell)
        elif name == row and self._rows:
            self._rows[-1].append([])
        if name in {table, *cells}:
            self.cell = Cell()

    def add(self, text: str) -> None:
        """Add a paragraph to the open cell."""
        self.cell.paragraphs.append(text)

    def skip(self, columns: int) -> None:
        """Leave columns of the open row empty."""
        if self._rows and self._rows[-1]:
            self._rows[-1][-1] += [""] * columns

    def end(self, name: str) -> None:
        """Take an end tag; a table within a cell becomes the text of the cell."""
        table, row, cells = self._names
        if self._leaves_out and name in {row, *cells} and self._rows and self._rows[-1]:
            self._fill(self._rows[-1][-1], self._spans[-1])
        if name in cells:
            if self._rows and self._rows[-1]:
                self._end_cell(self.cell, self._rows[-1][-1], self._spans[-1])
            self.cell = Cell()
        elif name == table and self._rows:
            rows, self.cell = self._rows.pop(), self._around.pop()
            self._spans.pop()
            if self._rows:
                said = filter(_says_more, rows)
                self.cell.paragraphs += [" | ".join(filter(None, row)) for row in said]
            else:
                self._prose.table(rows)

    def _fill(self, row: list[str], spans: dict[int, tuple[int, str]]) -> None:
        """Fill the next columns of a row with the texts of cells above that span it."""
        while len(row) in spans:
            left, above = spans.pop(len(row))
            if left > 1:
                spans[len(row)] = left - 1, above
            row.append(Repeated(above))

    def _end_cell(self, cell: Cell, row: list[str], spans: dict[int, tuple[int, str]]) -> None:
        for text in ("\n".join(cell.paragraphs), *[""] * (cell.width - 1)):
            left, above = spans.pop(len(row), (0, ""))
            is_covered = cell.is_covered and left > 0  # and what it holds is not shown
            if not is_covered:
                left, above = cell.height, repeated(text)
            if left > 1:
                spans[len(row)] = left - 1, above
            row.append(Repeated(above) if is_covered else text)


_ROMAN = (
    *((1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"), (50, "l")),
    *((40, "xl"), (10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i")),
)
_MOST_ROMAN = 4_000


def numeral(number: int, kind: str) -> str:
    """Return a number in letters (kind "a" or "A"), Roman numerals ("i", "I"), else in digits."""
    text = ""
    if kind in {"a", "A"} and number > 0:
        while number:
            number, letter = divmod(number - 1, 26)
            text = chr(ord("a") + letter) + text
    elif kind in {"i", "I"} and 0 < number < _MOST_ROMAN:
        for value, sign in _ROMAN:
            text += sign * (number // value)
            number %= value
    else:
        return str(number)
    return text.upper() if kind.isupper() else text


def table_row(cells: Iterable[str]) -> str:
    """Return a row of a Markdown table, each cell on one line with its bars escaped."""
    return "| " + " | ".join(" ".join(cell.split()).replace("|", "\\|") for cell in cells) + " |"


_MAX_SCRIPT = 30  # characters of what is raised or lowered; more are a note
# What is raised and no exponent: marks of notes and trademarks, endings of ordinals.
_MARKS = "*†‡§®™©()[] "
_ORDINALS = re.compile(r"st|nd|rd|th|er|re|e|i?ème|eme|os?|as?|º|ª", re.IGNORECASE)


def script(mark: str, text: str) -> str:
    """Return ``x^2``, ``10^{-3}``, ``CO_2``; marks and endings of ordinals as they are."""
    plain = text.strip()
    if not plain.strip(_MARKS) or len(plain) > _MAX_SCRIPT or _ORDINALS.fullmatch(plain):
        return text
    trailing = text[len(text.rstrip()) :]
    return (f"{mark}{plain}" if len(plain) == 1 else f"{mark}{{{plain}}}") + trailing


def read_prose(chunks: Iterable[bytes], reader: XmlReader, prose: Prose) -> Iterator[Part]:
    """Read an XML document; yield the parts that ``reader`` writes into ``prose``.

    If the XML is damaged, yield the text before the damage, then raise NoText.
    """
    try:
        for _ in walk(chunks, reader):
            yield from prose.full()
    except NoText:
        yield from prose.rest()
        raise
