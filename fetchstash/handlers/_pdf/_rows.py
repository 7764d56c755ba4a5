"""Rows and cells of tables: the lines of words between rules, and what they are rows of."""

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise
from operator import attrgetter
from statistics import median

from fetchstash.handlers._pdf._layout import together
from fetchstash.handlers._pdf._words import RTL, Word

Row = list[str]
# Finding the row of each line takes quadratic time.
_MAX_LINES = 150
_NO_VALUE = {"na", "nil"}
# Words farther apart than this share of their height stand in different phrases.
_PHRASE_GAP = 0.55
# Letters whose widths differ by less than this share are those of a font of fixed width.
_SAME_WIDTH = 0.06
# Lines of one row are nearer to each other than rows are, by this factor.
_ROWS_APART = 1.25
_MIDDLE, _LEFT = attrgetter("middle"), attrgetter("left")


class Phrase:
    """Words of one line that follow each other closely."""

    __slots__ = ("left", "right", "words")

    def __init__(self, words: Sequence[Word]) -> None:
        self.words = words
        self.left = words[0].left
        self.right = max([word.right for word in words])

    @property
    def text(self) -> str:
        """Its words with spaces between them."""
        return " ".join(word.text for word in self.words)


def lines_of(words: Iterable[Word]) -> list[list[Word]]:
    """Return the lines that words stand in, from the top, each from the left."""
    lines: list[list[Word]] = []
    middle = height = 0.0
    for word in sorted(words, key=_MIDDLE, reverse=True):
        if lines and abs(middle - word.middle) < 0.4 * min(height, word.size):
            lines[-1].append(word)
        else:
            lines.append([word])
            middle, height = word.middle, word.size
    for line in lines:
        line.sort(key=_LEFT)
    return lines


def phrases(line: Sequence[Word]) -> list[Phrase]:
    """Return the phrases of a line from the left."""
    groups: list[list[Word]] = []
    right = 0.0
    fixed = _fixed_width(line)
    for word in line:
        if groups and word.left - right < (fixed or _PHRASE_GAP * word.size):
            groups[-1].append(word)
        else:
            groups.append([word])
            right = word.right
        right = max(right, word.right)
    return [Phrase(group) for group in groups]


def _fixed_width(line: Sequence[Word]) -> float:
    """Return the gap that parts phrases in a font of fixed width, 0 for another font.

    There a space is as wide as a letter, and wider than between words of other fonts.
    """
    if len(line) < 2:
        return 0.0
    least, most, letters = math.inf, 0.0, 0
    for word in line:
        width = (word.right - word.left) / len(word.text)
        least, most = min(least, width), max(most, width)
        if most - least >= _SAME_WIDTH * most:  # as soon as most lines show it
            return 0.0
        letters += len(word.text)
    return 1.6 * most if letters >= 6 else 0.0


def cell_text(words: Sequence[Word], right: float = 0.0) -> str:
    """Return the words of a cell on one line; words that a line end breaks are joined.

    Words of one line stand in the order of the file, which is that of their script. ``right`` is
    where the lines of the column end: a word that is wider breaks without a hyphen.
    """
    out = ""
    before: list[Word] = []
    for line in lines_of(words):
        line.sort(key=lambda word: word.first)
        text = " ".join([word.text for word in line])
        if len(before) == 1 and is_cut(before[0], line[0], right):
            out += text
        else:
            out = together(out, text, broken=bool(before) and before[-1].broken)
        before = line
    return out


def is_cut(word: Word, following: Word, right: float) -> bool:
    """Return whether a word was too wide for its column, which ends at ``right``, and goes on.

    Programs that cut such words (LibreOffice does) write the space at which they break a line.
    """
    last, first = word.text[-1], following.text[0]
    if not word.unspaced or not (
        (last.isalpha() and first.islower()) or (last in "0123456789.," and first.isdigit())
    ):
        return False
    letter = (word.right - word.left) / len(word.text)
    return len(word.text) > 2 and word.right + 1.1 * letter > right > 0


def rows_of(
    cells: Sequence[Sequence[Word]],
    extents: Sequence[tuple[float, float]],
    *,
    is_only: bool = False,
) -> list[Row]:
    """Return the rows of a band of a table, which is the space between two rules.

    ``extents``: where the text of each column begins, and where it has to end. ``is_only``: the
    band has no others beside it but a header, so that rules part no rows.
    """
    if rows := rows_of_values(cells, extents):
        return rows
    stacks = _stacks(cells, extents)
    filled = [stack for stack in stacks if stack.lines]
    words = [word for stack in filled for word in stack.words]
    fewest = 3 if is_only else 4
    if _are_fused(filled, is_only=is_only):
        lows = [min(word.middle for word in line) for line in lines_of(words)]
    elif _are_even(filled, fewest) and len(bands := row_bands(words)) >= fewest:
        lows = [low for _, low in bands]
    else:
        return [[cell_text(cell) for cell in cells]]
    held = [[list[Word]() for _ in stacks] for _ in lows]
    for column, stack in enumerate(stacks):
        for word in stack.words:
            held[row_at(word, lows)][column].append(word)
    return [[cell_text(cell) for cell in row] for row in held]


def rows_of_values(
    cells: Sequence[Sequence[Word]], extents: Sequence[tuple[float, float]]
) -> list[Row]:
    """Return the rows of a band by its columns of values, none if they do not agree on rows."""
    stacks = _stacks(cells, extents)
    anchors = _anchors([stack for stack in stacks if stack.lines])
    return _by_anchors(stacks, anchors) if anchors else []


def _stacks(
    cells: Sequence[Sequence[Word]], extents: Sequence[tuple[float, float]]
) -> list["_Stack"]:
    return [_Stack(cell, right - left) for cell, (left, right) in zip(cells, extents, strict=True)]


def row_at(word: Word, lows: Sequence[float]) -> int:
    """Return which row a word stands in: the first, from the top, that ends below its middle."""
    return next((row for row, low in enumerate(lows) if word.middle >= low), len(lows) - 1)


def column_at(word: Word, rights: Sequence[float]) -> int:
    """Return which column the middle of a word stands in; behind the last one, the last."""
    across = (word.left + word.right) / 2
    for column, right in enumerate(rights):
        if across <= right:
            return column
    return len(rights) - 1


def _are_even(filled: Sequence["_Stack"], fewest: int) -> bool:
    """Return whether cells of texts have about as many lines, which are not those of one text."""
    most = max((len(stack.lines) for stack in filled), default=0)
    lines = sum(len(stack.lines) for stack in filled)
    return (
        len(filled) > 1
        and most >= fewest
        and lines >= 0.85 * most * len(filled)
        and not all(stack.is_wrapped for stack in filled)
    )


def _are_fused(filled: Iterable["_Stack"], *, is_only: bool) -> bool:
    """Return whether cells hold several rows that cannot be told apart.

    As one row they would read worse than line by line.
    """
    numbers = texts = 0
    for stack in filled:
        numbers += len(stack.lines) > 2 and stack.is_values
        texts += is_only and len(stack.lines) > 5 and not stack.is_wrapped
    return numbers > 1 or texts > 1


class _Stack:
    """The lines of one cell, which may be rows; a line is about ``width`` wide at the most."""

    def __init__(self, words: Sequence[Word], width: float) -> None:
        self.words = words
        self.lines = lines_of(words)
        self.middles = [median(word.middle for word in line) for line in self.lines]
        self._width = width

    @property
    def is_values(self) -> bool:
        """Whether each line is a number or a dash; the first of many may be a header."""
        texts = [" ".join(word.text for word in line) for line in self.lines]
        values = texts[len(texts) > 3 :]
        numbers = sum(any(map(str.isdigit, text)) for text in values)
        return 2 * numbers >= len(texts) > 1 and all(map(_is_value, values))

    @property
    def is_wrapped(self) -> bool:
        """Whether lines end where the next word has no room, as in one text."""
        breaks = range(1, len(self.lines))
        return 4 * sum(map(self._is_forced, breaks)) >= 3 * len(breaks)

    @property
    def is_bracketed(self) -> bool:
        """Whether brackets stand below the first line, as errors do below an estimate."""
        return all(line[0].text[0] in "([" for line in self.lines[1:])

    def line_at(self, height: float) -> int | None:
        """Return which line stands at a height."""
        near = (
            number
            for number, middle in enumerate(self.middles)
            if abs(middle - height) < 0.4 * self.lines[number][0].size
        )
        return next(near, None)

    def goes_on(self, number: int, *, surely: bool = False) -> bool:
        """Return whether a line goes on with the text of the one before."""
        if not 0 < number < len(self.lines):
            return False
        before, first = self.lines[number - 1][-1].text, self.lines[number][0].text
        signs = first[0].islower(), self._is_forced(number)
        return all(signs) if surely else any(signs) and not before.endswith(":")

    def row_of(self, number: int, anchors: Sequence[float]) -> int | None:
        """Return the row, of those at ``anchors``, that a line belongs to, None for its own."""
        height = self.middles[number]
        above = sum(anchor > height for anchor in anchors) - 1
        sides = [
            (abs(anchors[row] - height), row, line)
            for row, line in ((above, number), (above + 1, number + 1))
            if 0 <= row < len(anchors)
        ]
        nearest, row, _ = min(sides)
        if nearest < 0.4 * self.lines[number][0].size:
            return row
        if len(sides) == 2 and nearest > 0.85 * max(sides)[0]:
            # As far from both: values stand beside the last lines of labels if the first has none.
            sides = sides[:: -1 if self.middles[0] > anchors[0] + 1 else 1]
        else:
            sides.sort()
        if len(sides) == 2 and all(self.line_at(anchors[row]) is not None for _, row, _ in sides):
            # Values stand beside the first line of a cell, or beside its last: more signs decide.
            sides.sort(key=lambda side: -self._signs(side[2]))
        # Of a row without a line in this column it may be any line.
        fitting = (r for _, r, n in sides if self.goes_on(n) or self.line_at(anchors[r]) is None)
        return next(fitting, None)

    def _signs(self, number: int) -> int:
        """Return how many signs show that a line continues the one before."""
        if not 0 < number < len(self.lines):
            return 0
        widest = max(line[-1].right - line[0].left for line in self.lines)
        used = self._used(number)
        return self.lines[number][0].text[0].islower() + (used > self._width) + (used > widest)

    def _is_forced(self, number: int) -> bool:
        return self._used(number) > self._width

    def _used(self, number: int) -> float:
        """Return how wide the line before would be with the first word of this line."""
        before, first = self.lines[number - 1], self.lines[number][0]
        end = max(word.right for word in before) + 0.3 * first.size
        return end - before[0].left + first.right - first.left


def _is_value(text: str) -> bool:
    """Return whether a text is a number with at most a unit or a mark, a dash, or says "none"."""
    letters = [char for char in text if char.isalpha()]
    digits = sum(map(str.isdigit, text))
    return len(letters) <= min(digits, 3) or "".join(letters).lower() in _NO_VALUE


def _anchors(filled: Sequence[_Stack]) -> list[float]:
    """Return the heights of the rows that columns of values agree on, none if they do not.

    It is one row where a label goes on from line to line beside one column of values or beside
    values with their errors in brackets, or has one line beside two.
    """
    values = [stack for stack in filled if stack.is_values]
    if len(filled) < 2 or max(len(stack.lines) for stack in filled) > _MAX_LINES:
        return []
    lines = lines_of(word for stack in values for line in stack.lines for word in line)
    anchors = [median(word.middle for word in line) for line in lines]
    if len(anchors) < 2 or any(len(stack.lines) < 0.6 * len(anchors) for stack in values):
        return []
    texts = [stack for stack in filled if not stack.is_values]
    for text in texts:
        places = [text.row_of(number, anchors) for number in range(len(text.lines))]
        rows = len(set(places) - {None})
        if rows > 1 and rows >= 0.6 * len(anchors):
            parted = [number for number, (a, b) in enumerate(pairwise(places), 1) if a != b]
            wrapped = sum(text.goes_on(number, surely=len(values) < 2) for number in parted)
            is_sure = len(values) > 1 and not all(stack.is_bracketed for stack in values)
            return anchors if is_sure or 2 * wrapped < rows - 1 else []
    return anchors if len(values) > 1 and (not texts or len(anchors) > 2) else []


def _by_anchors(stacks: Sequence[_Stack], anchors: Sequence[float]) -> list[Row]:
    """Return a row for each anchor, and for lines between them that belong to none."""
    first = next(number for number, stack in enumerate(stacks) if stack.lines)
    label = stacks[first]
    off = (label.middles[0] + label.middles[-1] - anchors[0] - anchors[-1]) / 2
    leading = (anchors[0] - anchors[-1]) / (len(anchors) - 1)
    # A label in the middle of its rows is repeated in them.
    is_shared = (
        2 * len(label.lines) <= len(anchors)
        and label.line_at(anchors[0]) is None
        and abs(off) < 0.3 * leading
    )
    rows: dict[float, list[list[Word]]] = {
        anchor: [list[Word]() for _ in stacks] for anchor in anchors
    }
    places = [[stack.row_of(n, anchors) for n in range(len(stack.lines))] for stack in stacks]
    # Rows without a value: what stands beside their lines belongs to them.
    others = [
        stack.middles[n]
        for stack, found in zip(stacks, places, strict=True)
        for n, place in enumerate(found)
        if place is None
    ]
    for column, stack in enumerate(stacks):
        for number, line in enumerate(stack.lines):
            if is_shared and column == first:
                for row in rows.values():
                    row[column] += line
                continue
            place, middle = places[column][number], stack.middles[number]
            own = next((other for other in others if abs(other - middle) < 2), None)
            height = middle if place is None else own or anchors[place]
            key = next((known for known in rows if abs(known - height) < 2), height)
            rows.setdefault(key, [[] for _ in stacks])[column] += line
    return [[cell_text(cell) for cell in rows[height]] for height in sorted(rows, reverse=True)]


def row_bands(words: Sequence[Word]) -> list[tuple[float, float]]:
    """Return top and bottom of each row that words without rules form.

    Lines of one row stand closer than rows do; where all stand alike each line is a row.
    """
    lines = lines_of(words)
    middles = [median(word.middle for word in line) for line in lines]
    gaps = [above - below for above, below in pairwise(middles)]
    # Lines that overlap stand in one row, beside each other in cells of unequal length.
    height = median(word.size for word in words) if words else 0.0
    bound = _bound([gap for gap in gaps if gap >= 0.9 * height])
    bound = max(bound, 0.75 * height)
    bands: list[tuple[float, float]] = []
    high = middles[0] + 1 if middles else 0.0
    for place, gap in enumerate(gaps):
        if gap > bound:
            bands.append((high, middles[place] - 1))
            high = middles[place + 1] + 1
    if middles:
        bands.append((high, middles[-1] - 1))
    return bands


def _bound(gaps: Sequence[float]) -> float:
    """Return the distance of lines above which a row begins: the widest step between distances."""
    steps = sorted(gaps)
    jumps = [(wide / max(narrow, 0.1), narrow, wide) for narrow, wide in pairwise(steps)]
    if not jumps:
        return 0.0
    ratio, narrow, wide = max(jumps)
    return (narrow + wide) / 2 if ratio >= _ROWS_APART else 0.0


def is_from_right(rows: Sequence[Row]) -> bool:
    """Return whether the columns of a table are read from the right."""
    text = "".join(cell for row in rows for cell in row)
    letters = len(RTL.findall(text))
    return letters > 0 and 2 * letters > sum(map(str.isalpha, text))


def follow(lines: Iterable[Sequence[Word]]) -> bool:
    """Return whether each line follows those before it in the file."""
    last = -1
    for line in lines:
        places = [word.first for word in line]
        if places and min(places) < last:
            return False
        last = max([last, *places])
    return True


def is_in_order(cell: Sequence[Word]) -> bool:
    """Return whether the lines of a cell stand, down the page, in the order of the file."""
    return follow(lines_of(cell))
