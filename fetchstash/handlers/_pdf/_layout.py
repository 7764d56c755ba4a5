"""Lines of a PDF page, their reading order, and the paragraphs they make. Pure functions."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median

from fetchstash.handlers._pdf._words import RTL, Box, Style, Word

# Words farther apart than this share of their size stand in different pieces of a line.
_APART = 1.0
# A raised or lowered word stands no farther from the baseline than this share of the size.
_RAISED = 0.6
_SAME_BASE = 0.2
# More pieces are no prose, and ordering them takes quadratic time.
_MAX_CHAINS = 400
# Lines of one column follow each other within this many sizes.
_FOLLOWS = 2.6
# Space above a paragraph, as a multiple of the distance of lines within one.
_WIDER = 1.22
_INDENT = 0.8
_SAME_SIZE = 0.08
# Values stand this far behind their labels, in sizes, and under each other this exactly, in points.
_STOP, _SAME_STOP = 1.5, 1.0

BULLETS = "•◦▪▸▹►‣●○■□◆◇\u2013—∙·✓✔✗✘☐☑☒❑❒⧫➢➤❖\uf0b7\uf0a7\uf0d8\uf076\uf06e"
_BULLET = re.compile(rf"[{BULLETS}*\-]")
_NUMBERED = re.compile(r"(\(?(?:\d{1,3}|[a-zA-Z]|[ivxIVX]{1,5})[.)]|\[\d{1,3}\])$")
_CJK = re.compile(r"[\u2e80-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff00-\uffef]")
ENDS_SENTENCE = re.compile(r"[.!?:;\u3002\uff01\uff1f]['\"”\u2019)]*$")
# A word breaks between two lower-case letters where a line ends in a hyphen.
_HYPHEN = re.compile(r"\w[-\u2010]$")
HYPHENATED = re.compile(r"[a-zß-ÿа-яα-ω][-\u2010]$")
# TeX breaks a word that has a hyphen only at its hyphens: state-of-the-art keeps the third.
_COMPOUND = re.compile(r"\w[-\u2010]\w+[-\u2010]?$")
_LONG_WORD = 60


class Line:
    """Words that follow each other on one line, in reading order.

    ``level`` is that of the heading that the document's tags make it, 0 for none. ``stops`` are
    the ends of its pieces behind wide gaps, as tabs and columns leave them.
    """

    __slots__ = (
        "base",
        "first",
        "is_rtl",
        "left",
        "level",
        "right",
        "size",
        "stops",
        "style",
        "text",
        "words",
    )

    def __init__(self, words: list[Word]) -> None:
        self.words = words
        self.first = words[0].first
        if len(words) == 1:
            word = words[0]
            self.left, self.right, self.base, self.size = (
                word.left,
                word.right,
                word.base,
                word.size,
            )
        else:
            self.left = min([word.left for word in words])
            self.right = max([word.right for word in words])
            main = words[0]
            self.base, self.size = main.base, main.size
            places = {(word.base, word.size) for word in words}
            if len(places) > 1:
                main = max(words, key=lambda word: (word.last - word.first + 1) * word.size)
                self.base, self.size = main.base, main.size
                for word in words:  # what is raised or lowered stands on the line, too
                    word.middle = main.middle
        self.text = " ".join([word.text for word in words])
        self.style = Style()
        self.is_rtl = False
        self.level = 0
        self.stops: Sequence[tuple[float, float]] = ()

    @property
    def box(self) -> Box:
        """Where it stands."""
        return self.left, self.base - self.size / 4, self.right, self.base + 0.75 * self.size


def pieces_of(words: Iterable[Word]) -> list[Line]:
    """Return the pieces of lines that words make, in the order of the file."""
    pieces: list[list[Word]] = []
    before: Word | None = None
    base = size = 0.0
    for word in words:
        if before is not None:
            larger = max(word.size, size)
            gap = word.left - before.right
            if gap < 0:
                gap = max(gap, before.left - word.right)
            off = abs(word.base - base)
            if gap < _APART * larger and (
                off < _SAME_BASE * larger
                or (
                    off < _RAISED * larger
                    and -0.3 * larger < gap
                    and (abs(word.size - before.size) > 0.1 * larger or word.base == before.base)
                )
            ):
                pieces[-1].append(word)
                if word.size >= size and off < _SAME_BASE * larger:
                    size, base = word.size, word.base
                before = word
                continue
        pieces.append([word])
        before, base, size = word, word.base, word.size
    return [Line(piece) for piece in pieces]


def joined(pieces: Sequence[Line], *, may_overlap: bool = False) -> list[Line]:
    """Return lines: pieces that follow each other in the file on one baseline.

    ``may_overlap``: the words of a piece may stand on both sides of another piece, as pdfium has
    those of a line in two directions.
    """
    lines: list[list[Line]] = []
    for piece in pieces:
        if lines:
            before = lines[-1][-1]
            is_on = abs(before.base - piece.base) < _SAME_BASE * max(before.size, piece.size)
            is_beside = piece.left >= before.right or piece.right <= before.left
            if is_on and (is_beside or may_overlap):
                lines[-1].append(piece)
                continue
        lines.append([piece])
    out: list[Line] = []
    for line in lines:
        if len(line) > 1:
            out.append(Line([word for piece in line for word in piece.words]))
            out[-1].stops = [
                (piece.left, piece.right)
                for before, piece in pairwise(line)
                if max(piece.left - before.right, before.left - piece.right) > _STOP * piece.size
            ]
        else:
            out.append(line[0])
    return out


def in_order(blocks: Sequence["Chain"]) -> list["Chain"]:
    """Return blocks in reading order: that of the file, but none above a block that stands over it.

    A footer that a program draws first comes last (after T. Breuel, High performance document
    layout analysis, 2003: a block stands before those below it that overlap it horizontally).
    """
    if len(blocks) > _MAX_CHAINS:
        return list(blocks)
    waiting = list(blocks)
    above: list[set[int]] = [
        {
            other
            for other, upper in enumerate(waiting)
            if other != place and _is_over(upper.box, lower.box)
        }
        for place, lower in enumerate(waiting)
    ]
    placed: set[int] = set()
    order: list[Chain] = []
    left = list(range(len(waiting)))
    while left:
        place = next((place for place in left if above[place] <= placed), left[0])
        left.remove(place)
        placed.add(place)
        order.append(waiting[place])
    return order


def _is_over(upper: Box, lower: Box) -> bool:
    """Return whether a box stands over another, at least in part."""
    shared = min(upper[2], lower[2]) - max(upper[0], lower[0])
    return shared > 1 and upper[1] >= lower[3] - 0.35 * min(
        upper[3] - upper[1], lower[3] - lower[1]
    )


@dataclass(slots=True)
class Chain:
    """Lines that follow each other down a column, or a table (``held``), and their box."""

    box: Box
    lines: list[Line] = field(default_factory=list[Line])
    held: object | None = None


def chains_of(lines: Sequence[Line]) -> list[Chain]:
    """Return the runs of lines in the file that go down a column."""
    chains: list[Chain] = []
    for line in lines:
        if chains:
            chain = chains[-1]
            last = chain.lines[-1]
            gap = last.base - line.base
            shared = min(last.right, line.right) - max(last.left, line.left)
            if 0.2 * line.size < gap < _FOLLOWS * max(last.size, line.size) and shared > 0:
                chain.lines.append(line)
                left, bottom, right, top = line.box
                box = chain.box
                chain.box = (
                    min(box[0], left),
                    min(box[1], bottom),
                    max(box[2], right),
                    max(box[3], top),
                )
                continue
        chains.append(Chain(line.box, [line]))
    return chains


@dataclass(slots=True)
class Paragraph:
    """Lines that read as one text.

    ``mark`` is that of a list item, ``space`` the room above in sizes (a large number at the top of
    a page), ``is_code``: its lines stay apart. ``level`` is that of a heading, 0 for none,
    ``title`` what the outline calls it. ``depth`` is where the first line begins.
    """

    lines: list[Line]
    text: str
    size: float
    bold: bool
    mark: str = ""
    space: float = 9.0
    is_code: bool = False
    level: int = 0
    title: str = ""
    depth: float = 0.0

    @property
    def left(self) -> float:
        """Where it begins."""
        return min(line.left for line in self.lines)

    @property
    def base(self) -> float:
        """The baseline of its first line."""
        return self.lines[0].base


def paragraphs_of(lines: Sequence[Line]) -> list[Paragraph]:
    """Return the paragraphs of lines in reading order."""
    paragraphs: list[Paragraph] = []
    for run in _runs(lines):
        paragraphs += _of_run(run)
    return paragraphs


def _runs(lines: Sequence[Line]) -> list[list[Line]]:
    """Return the runs of lines that go down one column."""
    runs: list[list[Line]] = []
    for line in lines:
        if runs:
            last = runs[-1][-1]
            gap = last.base - line.base
            shared = min(last.right, line.right) - max(last.left, line.left)
            if 0.2 * line.size < gap < 4 * max(last.size, line.size) and shared > 0:
                runs[-1].append(line)
                continue
        runs.append([line])
    return runs


def _of_run(lines: Sequence[Line]) -> list[Paragraph]:
    if len(lines) == 1:
        return [paragraph_of(lines, 9.0)]
    left, right = _margins(lines)
    gaps = [above.base - below.base for above, below in pairwise(lines)]
    leading = _leading(lines, gaps)
    groups: list[list[Line]] = [[lines[0]]]
    spaces = [9.0]
    for line, gap in zip(lines[1:], gaps, strict=True):
        usual = leading.get(round(line.size), 1.3 * line.size)
        if _begins(groups[-1], line, gap > _WIDER * usual, left, right):
            groups.append([line])
            spaces.append(gap / max(usual, 1.0))
        else:
            groups[-1].append(line)
    return [paragraph_of(group, space) for group, space in zip(groups, spaces, strict=True)]


def _margins(lines: Sequence[Line]) -> tuple[float, float]:
    return min(line.left for line in lines), max(line.right for line in lines)


def _leading(lines: Sequence[Line], gaps: Sequence[float]) -> dict[int, float]:
    """Return the line spacing within paragraphs by font size: the smallest common one."""
    seen: dict[int, list[float]] = {}
    for (above, below), gap in zip(pairwise(lines), gaps, strict=True):
        if abs(above.size - below.size) < _SAME_SIZE * below.size:
            seen.setdefault(round(below.size), []).append(gap)
    usual: dict[int, float] = {}
    for size, found in seen.items():
        counts = Counter(round(2 * gap) for gap in found)
        common = [gap for gap, count in counts.items() if count >= 0.2 * len(found)]
        usual[size] = min(max(min(common, default=0) / 2, 0.9 * size), 1.9 * size)
    return usual


def _begins(group: Sequence[Line], line: Line, is_apart: bool, left: float, right: float) -> bool:
    """Return whether ``line`` begins a paragraph behind the lines of ``group``."""
    before = group[-1]
    if (
        is_apart
        or abs(line.size - before.size) > _SAME_SIZE * max(line.size, before.size)
        or line.style.bold != before.style.bold
        or line.style.mono != before.style.mono
        or line.level != before.level
    ):
        return True
    if line.style.mono:
        return False
    if before.words[-1].broken or _HYPHEN.search(before.text):
        return False
    if mark_of(line) or (line.stops and before.stops and _are_aligned(line, before)):
        return True
    if line.is_rtl:
        room, start = before.left - left, line.words[0]
        return room > start.right - start.left + 0.8 * line.size
    start = line.words[0]
    wide = line.size if _CJK.match(start.text) else start.right - start.left
    is_short = before.right + 0.3 * line.size + wide < right - 0.6 * line.size
    step = line.left - before.left
    if step > _INDENT * line.size:
        # Behind a full line, the rest of a paragraph whose first line stands out.
        return is_short or len(group) > 1 or bool(ENDS_SENTENCE.search(before.text))
    if step < -_INDENT * line.size and len(group) > 1 and not mark_of(group[0]):
        return True
    return is_short


def _are_aligned(line: Line, before: Line) -> bool:
    """Return whether lines go on at one place behind wide gaps: labels and their values."""
    return len(line.stops) == len(before.stops) and all(
        min(abs(left - other[0]), abs(right - other[1])) < _SAME_STOP
        for (left, right), other in zip(line.stops, before.stops, strict=True)
    )


def mark_of(line: Line) -> str:
    """Return the mark that a list item begins with, "" for another line."""
    if len(line.words) < 2:
        return ""
    word = line.words[0].text
    if _BULLET.fullmatch(word) or _NUMBERED.fullmatch(word):
        return word
    return ""


def paragraph_of(lines: Sequence[Line], space: float) -> Paragraph:
    first = lines[0]
    is_code = all(line.style.mono for line in lines) and (
        len(lines) > 1 or sum(line.right - line.left for line in lines) > 4 * first.size
    )
    mark = "" if is_code else mark_of(first)
    texts = [line.text for line in lines]
    if mark:
        texts[0] = texts[0][len(mark) :].strip()
    text = "\n".join(_indented(lines)) if is_code else as_one(texts, lines)
    size = max(lines, key=lambda line: len(line.text)).size
    bold = all(line.style.bold for line in lines)
    paragraph = Paragraph(list(lines), text, size, bold, mark, space, is_code)
    paragraph.depth = first.left
    return paragraph


def as_one(texts: Sequence[str], lines: Sequence[Line]) -> str:
    """Return lines as one text, with words joined that a line end broke."""
    out = [texts[0]]
    for (before, _), text in zip(pairwise(lines), texts[1:], strict=True):
        end, glue = _joint(out[-1], text, broken=before.words[-1].broken)
        out[-1] = out[-1][:end]
        out += [glue, text] if text else []
    return "".join(out)


def together(out: str, text: str, *, broken: bool = False) -> str:
    """Return two lines as one; ``broken``: pdfium says that a hyphen was between them."""
    end, glue = _joint(out, text, broken=broken)
    return f"{out[:end]}{glue}{text}"


def _joint(before: str, text: str, *, broken: bool) -> tuple[int, str]:
    """Return how much of a line to keep before the next one, and what to put between."""
    whole = len(before)
    if not before or not text:
        return whole, ""
    if broken:
        is_part = text[0].islower() and not _is_compound(before)
        return whole, "" if is_part else "-"
    if before[-1] == "\u00ad":
        return whole - 1, ""
    if _HYPHEN.search(before) and text[0].isalnum():
        # Jean-Paul and pages 12-14 keep it.
        is_part = bool(HYPHENATED.search(before)) and text[0].islower()
        return whole - (is_part and not _is_compound(before)), ""
    if _CJK.match(before[-1]) and _CJK.match(text[0]):
        return whole, ""
    return whole, " "


def _is_compound(before: str) -> bool:
    """Return whether the word that a line breaks has a hyphen further in front."""
    return bool(_COMPOUND.search(before[-_LONG_WORD:]))


def _indented(lines: Sequence[Line]) -> list[str]:
    """Return lines of code with the spaces before them."""
    wide = median(
        [(word.right - word.left) / len(word.text) for line in lines for word in line.words]
    )
    left = min(line.left for line in lines)
    texts: list[str] = []
    for line in lines:
        text, place = "", left
        for word in line.words:
            spaces = round((word.left - place) / wide) if wide > 0 else 1
            text += " " * max(spaces, 1 if text else 0) + word.text
            place = word.right
        texts.append(text)
    return texts


def is_rtl(text: str) -> bool:
    """Return whether most letters of a text are written from right to left."""
    if not RTL.search(text):
        return False
    count = len(RTL.findall(text))
    return 2 * count >= sum(map(str.isalpha, text))


_RUNS_A_LINE = 1.7
_MIN_LINES = 12
_SAMPLES = 9
_MIN_GUTTER = 6.0
_MIN_WIDTH = 100.0
# The place of a gutter and the runs that may cross it (headings, figures), as shares of the width
# of the text and of all runs.
_MIDDLE = (0.35, 0.65)
_MAX_CROSSING = 0.15
_MIN_FILLED = 0.7
_SAME_LINE = 3.0


def column_regions(box_of: Callable[[int], Box], runs: int, lines: int) -> list[Box]:
    """Return the regions of a two-column page in reading order, none for other pages.

    ``box_of`` is asked for few of the ``runs`` of text: most pages have no columns.
    """
    if lines < _MIN_LINES or runs < _RUNS_A_LINE * lines:
        return []
    # They are an odd number apart, because left and right alternate on such pages.
    samples = range(0, runs - 1, -(-runs // _SAMPLES) | 1)
    beside = sum(_are_side_by_side(box_of(index), box_of(index + 1)) for index in samples)
    return reading_order([*map(box_of, range(runs))]) if 5 * beside >= len(samples) else []


def _are_side_by_side(run: Box, following: Box) -> bool:
    """Return whether two runs of column length share a line, with a gutter between them."""
    return (
        abs(run[1] - following[1]) < _SAME_LINE
        and following[0] - run[2] >= _MIN_GUTTER
        and min(run[2] - run[0], following[2] - following[0]) >= _MIN_WIDTH
    )


def reading_order(runs: Sequence[Box]) -> list[Box]:
    """Return the regions of a page in reading order, none if the page is in order already.

    Runs across the gutter cut the page into bands; in each the left column comes first.
    """
    gutter = _gutter(runs)
    if gutter is None:
        return []
    left = [run for run in runs if run[2] <= gutter]
    right = [run for run in runs if run[0] >= gutter]
    # The runs change sides at most lines; else the page is in order.
    sides = [run[0] >= gutter for run in runs if run[2] <= gutter or run[0] >= gutter]
    changes = sum(side != following for side, following in pairwise(sides))
    if not _fills(left) or not _fills(right) or changes < min(len(left), len(right)) / 2:
        return []
    crossing = sorted((run for run in runs if run[0] < gutter < run[2]), key=lambda run: -run[3])
    x0, y0 = min(run[0] for run in runs) - 1, min(run[1] for run in runs) - 1
    x1, top = max(run[2] for run in runs) + 1, max(run[3] for run in runs) + 1
    regions: list[Box] = []
    for run in crossing:
        if run[3] < top - 1:
            regions += [(x0, run[3], gutter, top), (gutter, run[3], x1, top)]
        regions.append((x0, run[1], x1, min(run[3], top)))
        top = min(top, run[1])
    if y0 < top:
        regions += [(x0, y0, gutter, top), (gutter, y0, x1, top)]
    return regions


def _gutter(runs: Sequence[Box]) -> float | None:
    """Return the middle of the widest strip in the middle of the page that few runs cross."""
    if not runs:
        return None
    first, last = min(run[0] for run in runs), max(run[2] for run in runs)
    low, high = (first + share * (last - first) for share in _MIDDLE)
    edges = (edge for run in runs for edge in (run[0], run[2]) if low < edge < high)

    def is_free(x: float) -> bool:
        return sum(run[0] < x < run[2] for run in runs) <= _MAX_CROSSING * len(runs)

    return widest_gap([low, high, *edges], _MIN_GUTTER, is_free)


def widest_gap(
    places: Iterable[float], least: float, is_free: Callable[[float], bool]
) -> float | None:
    """Return the middle of the widest free gap between two places, of at least ``least``."""
    gaps = sorted(pairwise(sorted(set(places))), key=lambda gap: gap[0] - gap[1])
    middles = ((start + end) / 2 for start, end in gaps if end - start >= least)
    return next(filter(is_free, middles), None)


def _fills(column: Sequence[Box]) -> bool:
    """Return whether a column has many lines, most of them full: prose has, cells have not."""
    lines: dict[int, list[Box]] = {}
    for run in column:
        lines.setdefault(round(run[1] / _SAME_LINE), []).append(run)
    if len(lines) < _MIN_LINES:
        return False
    width = max(run[2] for run in column) - min(run[0] for run in column)
    filled = median(sum(run[2] - run[0] for run in line) for line in lines.values())
    return filled >= _MIN_FILLED * width
