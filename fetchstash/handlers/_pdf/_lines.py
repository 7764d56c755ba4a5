"""Words of a PDF page as lines, phrases, cells and rows. Pure functions."""

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from statistics import median

from fetchstash.handlers._pdf._text import mend
from fetchstash.handlers._pdf._words import Word

Row = list[str]
_MARKED = re.compile("([\ufffe\x02])\n")
# Words farther apart than this share of their height stand in different phrases.
_PHRASE_GAP = 0.55
# Lines of one row are nearer to each other than rows are, by this factor.
_ROWS_APART = 1.25


class Phrase:
    """Words of one line that follow each other closely."""

    __slots__ = ("left", "right", "words")

    def __init__(self, words: Sequence[Word]) -> None:
        self.words = words
        self.left = words[0].left
        self.right = max(word.right for word in words)

    @property
    def text(self) -> str:
        """Its words with spaces between them."""
        return " ".join(word.text for word in self.words)


def lines_of(words: Iterable[Word]) -> list[list[Word]]:
    """Return the lines that words stand in, from the top, each from the left."""
    lines: list[list[Word]] = []
    middle = height = 0.0
    for word in sorted(words, key=lambda word: -word.middle):
        if lines and abs(middle - word.middle) < 0.4 * min(height, word.height):
            lines[-1].append(word)
        else:
            lines.append([word])
            middle, height = word.middle, word.height
    return [sorted(line, key=lambda word: word.left) for line in lines]


def phrases(line: Sequence[Word]) -> list[Phrase]:
    """Return the phrases of a line from the left."""
    groups: list[list[Word]] = []
    right = 0.0
    fixed = _fixed_width(line)
    for word in line:
        if groups and word.left - right < (fixed or _PHRASE_GAP * word.height):
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
    widths = [(word.right - word.left) / len(word.text) for word in line]
    if len(line) < 2 or sum(len(word.text) for word in line) < 6:
        return 0.0
    width = median(widths)
    return 1.6 * width if max(widths) - min(widths) < 0.06 * width else 0.0


def cell_text(words: Sequence[Word]) -> str:
    """Return the words of a cell on one line; words that a line end breaks are joined."""
    lines = (" ".join(word.text for word in line) for line in lines_of(words))
    # pdfium's own mark of a broken word replaces hyphen and line end.
    text = _MARKED.sub(r"\1", "\n".join(lines))
    return " ".join(mend(text).split())


def split_rows(cells: Sequence[Sequence[Word]], *, is_only: bool) -> list[Row]:
    """Return the rows that one band of a table holds, none if it is one row of longer cells.

    ``is_only``: the band has no others beside it but a header, so that rules part no rows.
    """
    filled = [cell for cell in cells if cell]
    if len(filled) < 2:
        return []
    lines = [lines_of(cell) for cell in filled]
    most = max(map(len, lines))
    fewest = 3 if is_only else 4
    if most < fewest or sum(map(len, lines)) < 0.85 * most * len(lines):
        return []
    bands = row_bands([word for cell in filled for word in cell])
    if len(bands) < fewest:
        return []
    return [
        [cell_text([word for word in cell if low <= word.middle <= high]) for cell in cells]
        for high, low in bands
    ]


def row_bands(words: Sequence[Word]) -> list[tuple[float, float]]:
    """Return top and bottom of each row that words without rules form.

    Lines of one row stand closer than rows do; where all stand alike each line is a row.
    """
    lines = lines_of(words)
    middles = [median(word.middle for word in line) for line in lines]
    gaps = [above - below for above, below in pairwise(middles)]
    # Lines that overlap stand in one row, beside each other in cells of unequal length.
    height = median(word.height for word in words) if words else 0.0
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
