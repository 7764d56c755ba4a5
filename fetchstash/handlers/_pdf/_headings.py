"""Headings and running heads of a PDF, decided over many pages. Pure functions."""

import re
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from fetchstash.handlers._pdf._layout import Line, Paragraph, paragraph_of
from fetchstash.handlers._pdf._tables import Table

_LARGER = 1.12
_MAX_LINES, _MAX_CHARS, _MAX_BOLD_CHARS = 4, 240, 120
_CAPTION = re.compile(
    r"(table|figure|fig|tab|abb|tabelle|listing|algorithm)\.?\s*\d", re.IGNORECASE
)
_ENDING = re.compile(r"[.,;:…]$")
_NUMBERED = re.compile(r"(\d{1,2}(\.\d{1,2}){0,4}\.?|[A-Z]\.|[IVX]{1,5}\.)\s+[^\W\d_]")
_LETTER = re.compile(r"[^\W\d_]")
_DIGITS = re.compile(r"\d+")
_PLAIN = re.compile(r"[\W_]+")
_DEEPEST = 6
_MAX_NUMBER = 8
_MAX_BOOKMARKS = 200
_MAX_MARGIN_LINES = 3
_REPEATED = 3
_REMEMBERED = 100
_FEW_PAGES = 5
# A running head stands this far from the text, in sizes.
_APART = 1.75
_SAME_PLACE = 3.0


@dataclass(slots=True)
class Page:
    """The content of a page: its blocks in reading order, and what stands apart from them.

    ``marks`` are lines behind the text (pictures). ``is_blank``: nothing is drawn on it.
    ``margins`` are its running heads, ``bookmarks`` those that lead to no line of it.
    """

    number: int
    blocks: list[Paragraph | Table | str] = field(default_factory=list["Paragraph | Table | str"])
    marks: str = ""
    is_blank: bool = False
    margins: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    bookmarks: list["Bookmark"] = field(default_factory=list["Bookmark"])

    def paragraphs(self) -> list[Paragraph]:
        """Return its paragraphs."""
        return [block for block in self.blocks if isinstance(block, Paragraph)]


class Bookmark(NamedTuple):
    """An entry of the document's own outline."""

    title: str
    level: int


class Headings:
    """Finds the headings of pages: by bookmarks, by tags, then by size and weight."""

    def __init__(self, bookmarks: Mapping[int, Sequence[Bookmark]]) -> None:
        self._bookmarks = bookmarks
        self._sizes: Counter[float] = Counter()
        self._bold: Counter[bool] = Counter()
        self._known: dict[tuple[float, bool], Counter[int]] = defaultdict(Counter)
        self._ranks: list[tuple[float, bool]] = []

    def learn(self, pages: Iterable[Page]) -> None:
        """Mark headings on ``pages``, which come in order."""
        pages = list(pages)
        for page in pages:
            for block in page.blocks:
                if isinstance(block, Paragraph):
                    count = len(block.text)
                    self._sizes[_size(block)] += count
                    self._bold[block.bold] += count
                elif isinstance(block, Table):
                    for word in block.words:
                        self._sizes[round(2 * word.size) / 2] += len(word.text)
        if not self._sizes:
            return
        body = self._sizes.most_common(1)[0][0]
        for page in pages:
            self._by_bookmarks(page)
            self._by_tags(page)
        found = [
            p
            for page in pages
            for p in page.paragraphs()
            if not p.level and self._is_heading(p, body)
        ]
        styles = {(_size(p), p.bold) for p in found} | set(self._ranks) | set(self._known)
        self._ranks = sorted(styles, reverse=True)
        for paragraph in found:
            paragraph.level = self._level(paragraph)
        for page in pages:
            _split_off(page)

    def _by_bookmarks(self, page: Page) -> None:
        place = 0
        firsts: list[str] | None = None
        for title, level in self._bookmarks.get(page.number, ())[:_MAX_BOOKMARKS]:
            wanted = _plain(title)
            if firsts is None:
                firsts = [_first(block) for block in page.blocks]
            order = [*range(place, len(firsts)), *range(place)] if wanted else []
            for at in order:
                if not _starts(firsts[at], wanted) or not (
                    count := _lines_of_title(page, at, wanted)
                ):
                    continue
                heading = _cut(page, at, count)
                heading.level, heading.title = level, " ".join(title.split())
                self._known[_size(heading), heading.bold][level] += 1
                place, firsts = at + 1, None
                break
            else:
                page.bookmarks.append(Bookmark(title, level))
        page.bookmarks += self._bookmarks.get(page.number, ())[_MAX_BOOKMARKS:]

    def _by_tags(self, page: Page) -> None:
        for paragraph in page.paragraphs():
            level = paragraph.lines[0].level
            if level and not paragraph.level and len(paragraph.text) <= _MAX_CHARS:
                paragraph.level = level
                self._known[_size(paragraph), paragraph.bold][level] += 1

    def _is_heading(self, paragraph: Paragraph, body: float) -> bool:
        text = paragraph.text
        if (
            paragraph.is_code
            or len(paragraph.lines) > _MAX_LINES
            or len(text) > _MAX_CHARS
            or len(_LETTER.findall(text)) < 2
            or _CAPTION.match(text)
            or _is_entry(paragraph)
            or (paragraph.mark and not paragraph.mark[0].isalnum())
        ):
            return False
        size = _size(paragraph)
        if size >= _LARGER * body:
            return not (_ENDING.search(text) and len(text) > _MAX_BOLD_CHARS)
        if not paragraph.bold or size < 0.93 * body or self._bold[True] > self._bold[False]:
            return False
        is_plain = len(paragraph.lines) <= 2 and len(text) <= _MAX_BOLD_CHARS
        return is_plain and not _ENDING.search(text) and paragraph.space > 1.1

    def _level(self, paragraph: Paragraph) -> int:
        style = _size(paragraph), paragraph.bold
        if style in self._known:
            return self._known[style].most_common(1)[0][0]
        if self._known:
            larger = [s for s in self._known if s > style]
            if not larger:
                return 1
            return min(max(level for s in larger for level in self._known[s]) + 1, _DEEPEST)
        return min(self._ranks.index(style) + 1, _DEEPEST)


def _is_entry(paragraph: Paragraph) -> bool:
    """Return whether a paragraph is a line of a table of contents: a title, a gap and the page."""
    last = paragraph.lines[-1]
    return bool(last.stops) and last.words[-1].text.isdigit()


def _size(paragraph: Paragraph) -> float:
    return round(2 * paragraph.size) / 2


def _plain(text: str) -> str:
    return _PLAIN.sub("", text).lower()


def _first(block: Paragraph | Table | str) -> str:
    """Return the letters of the first line of a paragraph that is no heading yet."""
    return _plain(block.lines[0].text) if isinstance(block, Paragraph) and not block.level else ""


def _starts(plain: str, wanted: str) -> bool:
    core = plain.lstrip("0123456789")
    return any(wanted.startswith(text) or text.startswith(wanted) for text in (plain, core) if text)


def _lines_of_title(page: Page, at: int, wanted: str) -> int:
    """Return how many lines, from the first of block ``at``, make a title; 0 if none do."""
    text = ""
    count = 0
    for block in page.blocks[at : at + 3]:
        if not isinstance(block, Paragraph):
            break
        for line in block.lines:
            text += _plain(line.text)
            count += 1
            before, found, after = text.partition(wanted)
            if found and not after:
                return (
                    count
                    if (len(before) <= _MAX_NUMBER and not before.isalpha()) or not before
                    else 0
                )
            if len(text) > len(wanted) + _MAX_NUMBER:
                return 0
    return 0


def _cut(page: Page, at: int, count: int) -> Paragraph:
    """Make one paragraph of ``count`` lines from block ``at``; return it."""
    lines: list[Line] = []
    end = at
    space = 9.0
    while len(lines) < count:
        block = page.blocks[end]
        assert isinstance(block, Paragraph)
        space = block.space if end == at else space
        lines += block.lines
        end += 1
    rest = lines[count:]
    heading = paragraph_of(lines[:count], space)
    new: list[Paragraph | Table | str] = [heading]
    if rest:
        new.append(paragraph_of(rest, 1.0))
    page.blocks[at:end] = new
    return heading


def _split_off(page: Page) -> None:
    """Write the number or mark of headings into their text, because they are not list items."""
    for paragraph in page.paragraphs():
        if paragraph.level:
            if paragraph.mark:
                paragraph.text = f"{paragraph.mark} {paragraph.text}"
                paragraph.mark = ""
            paragraph.is_code = False
            paragraph.text = " ".join(paragraph.text.split())


class Margins:
    """Takes running heads and page numbers out of pages: lines that repeat at the same place."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, str], deque[tuple[int, float, tuple[int, ...]]]] = defaultdict(
            lambda: deque(maxlen=_REMEMBERED)
        )

    def take(self, pages: Sequence[Page]) -> None:
        """Move the lines that repeat on ``pages``, and on those before, to their margins."""
        edges = [
            (page, side, *_edge(page, side)) for page in pages for side in ("header", "footer")
        ]
        for page, side, lines, outer in edges:
            for line in lines[:outer]:
                numbers = tuple(map(int, _DIGITS.findall(line.text)[:8]))
                self._seen[side, _key(line)].append((page.number, line.base, numbers))
        least = 2 if len(pages) <= _FEW_PAGES else _REPEATED
        for page, side, lines, outer in edges:
            taken: list[Line] = []
            for line in lines[:outer]:
                if not self._repeats(side, line, page.number, least):
                    break
                taken.append(line)
            while taken and not _is_apart(taken, lines, page):
                taken.pop()
            if taken:
                _remove(page, taken)
                taken.sort(key=lambda line: -line.base)
                page.margins[side] = [line.text for line in taken]

    def _repeats(self, side: str, line: Line, number: int, least: int) -> bool:
        numbers = tuple(map(int, _DIGITS.findall(line.text)[:8]))
        same = 0
        for other, base, values in self._seen[side, _key(line)]:
            if other == number or abs(base - line.base) > _SAME_PLACE:
                continue
            # A number that is another on each page is that of the page, or says something.
            if all(
                a == b or a - b == number - other for a, b in zip(numbers, values, strict=False)
            ):
                same += 1
        return same + 1 >= least


def _key(line: Line) -> str:
    return _DIGITS.sub("#", line.text)


def _edge(page: Page, side: str) -> tuple[list[Line], int]:
    """Return the lines of a page from an edge inwards, and how many of them may be its margin."""
    lines = [line for paragraph in page.paragraphs() for line in paragraph.lines]
    bases = [line.base for line in lines]
    bases += [
        word.base for block in page.blocks if isinstance(block, Table) for word in block.words
    ]
    if not bases:
        return [], 0
    middle = (min(bases) + max(bases)) / 2
    way = 1 if side == "footer" else -1
    lines.sort(key=lambda line: way * line.base)
    outer = sum(way * line.base < way * middle for line in lines[:_MAX_MARGIN_LINES])
    return lines, outer


def _is_apart(taken: Sequence[Line], lines: Sequence[Line], page: Page) -> bool:
    """Return whether the lines taken stand apart from the next one, and are not all of a page."""
    if len(taken) == len(lines):
        return any(not isinstance(block, Paragraph) for block in page.blocks)
    following = lines[len(taken)]
    size = max(taken[-1].size, following.size)
    return abs(following.base - taken[-1].base) > _APART * size


def _remove(page: Page, taken: Sequence[Line]) -> None:

    gone = set(map(id, taken))
    blocks: list[Paragraph | Table | str] = []
    for block in page.blocks:
        if isinstance(block, Paragraph) and any(id(line) in gone for line in block.lines):
            if left := [line for line in block.lines if id(line) not in gone]:
                blocks.append(paragraph_of(left, block.space))
        else:
            blocks.append(block)
    page.blocks = blocks
