"""Tables without vertical rules: phrases that stand under each other. Pure functions.

Only what is sure becomes a table: rows of several short phrases with white strips between them that
no line crosses. Two columns of prose, lists and directories of contents are none.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from fetchstash.handlers._pdf._lines import (
    Phrase,
    Row,
    lines_of,
    phrases,
    row_bands,
    rows_of,
)
from fetchstash.handlers._pdf._words import Rule, Word

_MIN_ROWS = 3
# Lines farther apart than this, as a multiple of their height, do not belong together.
_MAX_GAP = 3.5
# A strip between columns is at least this wide, as a share of a line's height.
_STRIP = 0.5
# So wide are the gaps at a strip on average.
_MEAN_GAP = 0.9
# Phrases of more words, on average in a column, are prose.
_MAX_WORDS = 6.0
_MAX_TRIMMED = 3
_LEADER = re.compile(r"(\.\s?){5}")
_NUMBER = re.compile(r"[^\w]*\d[\d.,:/%\s-]*\w{0,3}[^\w]*")


@dataclass(frozen=True, slots=True)
class Aligned:
    """A table that alignment shows: its words, its rows, and the extents of its columns."""

    words: tuple[Word, ...]
    rows: tuple[Row, ...]
    columns: tuple[tuple[float, float], ...]
    top: float
    bottom: float


@dataclass(slots=True)
class _Line:
    words: list[Word]
    phrases: list[Phrase]

    @property
    def middle(self) -> float:
        return median(word.middle for word in self.words)

    @property
    def height(self) -> float:
        return median(word.height for word in self.words)


Columns = list[tuple[float, float]]


def aligned_tables(words: Sequence[Word], rules: Sequence[Rule]) -> list[Aligned]:
    """Return the tables among ``words``; horizontal ``rules`` part their rows where they are."""
    lines = [_Line(line, [] if _is_led(line) else phrases(line)) for line in lines_of(words)]
    return [table for first, last in _blocks(lines) if (table := _table(lines[first:last], rules))]


def _is_led(line: Sequence[Word]) -> bool:
    """Return whether dots lead from a title to a page number, as in directories of contents."""
    dots = sum(set(word.text) <= {".", "…", "·"} for word in line)
    return dots > 4 or any(_LEADER.search(word.text) for word in line)


def _blocks(lines: Sequence[_Line]) -> Iterator[tuple[int, int]]:
    """Yield runs of lines, [first, last), between whose phrases the same strips are white."""
    start = 0
    while start < len(lines):
        if len(lines[start].phrases) < 2:
            start += 1
            continue
        strip = _STRIP * lines[start].height
        columns = _columns([], lines[start], strip)
        most, end = len(columns), start + 1
        while end < len(lines):
            line, before = lines[end], lines[end - 1]
            if before.middle - line.middle > _MAX_GAP * before.height:
                break
            merged = _columns(columns, line, strip)
            # A phrase in one column is the rest of a cell; one across columns ends the table.
            if len(merged) < max(2, most - 1) or _crosses(columns, line, merged):
                break
            columns, end = merged, end + 1
            most = max(most, len(columns))
        while end - start > 1 and len(lines[end - 1].phrases) < 2 and _is_apart(lines, end - 1):
            end -= 1
        yield _trimmed(lines, start, end)
        start = end


def _trimmed(lines: Sequence[_Line], start: int, end: int) -> tuple[int, int]:
    """Return a block without outer lines of prose, which alone fill some of its columns."""
    for _ in range(_MAX_TRIMMED):
        columns = len(_columns_of(lines[start:end]))
        if end - start > _MIN_ROWS and len(_columns_of(lines[start : end - 1])) < columns:
            end -= 1
        elif end - start > _MIN_ROWS and len(_columns_of(lines[start + 1 : end])) < columns:
            start += 1
        else:
            break
    return start, end


def _columns_of(lines: Sequence[_Line]) -> Columns:
    columns: Columns = []
    for line in lines:
        columns = _columns(columns, line, _STRIP * lines[0].height)
    return columns


def _crosses(columns: Columns, line: _Line, merged: Columns) -> bool:
    """Return whether a line joins columns that are wider apart than a cell's neighbours are."""
    return len(merged) < len(columns) and len(line.phrases) < len(merged)


def _is_apart(lines: Sequence[_Line], place: int) -> bool:
    return lines[place - 1].middle - lines[place].middle > 1.35 * lines[place].height


def _columns(columns: Columns, line: _Line, strip: float) -> Columns:
    """Return the extents of columns after a line is added, from the left."""
    extents = sorted([*columns, *((run.left, run.right) for run in line.phrases)])
    merged: Columns = []
    for left, right in extents:
        if merged and left < merged[-1][1] + strip:
            merged[-1] = (merged[-1][0], max(merged[-1][1], right))
        else:
            merged.append((left, right))
    return merged


def _table(lines: Sequence[_Line], rules: Sequence[Rule]) -> Aligned | None:
    """Return the table that lines make, None if that is not sure."""
    columns = _columns_of(lines)
    words = [word for line in lines for word in line.words]
    if len(lines) < _MIN_ROWS or len(columns) < 2 or not _is_wide(lines, columns):
        return None
    top, bottom = max(word.top for word in words), min(word.bottom for word in words)
    inner = [
        rule.at
        for rule in rules
        if bottom < rule.at < top and rule.start <= columns[0][1] and rule.end >= columns[-1][0]
    ]
    bands = (_between(top, bottom, inner) if len(inner) >= 3 else []) or row_bands(words)
    cells: list[list[list[Word]]] = [[[] for _ in columns] for _ in bands]
    for word in words:
        across = (word.left + word.right) / 2
        row = next((r for r, (_, low) in enumerate(bands) if word.middle >= low), len(bands) - 1)
        column = next(
            (c for c, (_, right) in enumerate(columns) if across <= right), len(columns) - 1
        )
        cells[row][column].append(word)
    strip = _STRIP * lines[0].height
    ends = [*(left - strip for left, _ in columns[1:]), columns[-1][1]]
    extents = [(left, end) for (left, _), end in zip(columns, ends, strict=True)]
    rows = [row for band in cells for row in rows_of(band, extents)]
    if not _is_sure(rows, has_rules=bool(inner)):
        return None
    return Aligned(tuple(words), tuple(rows), tuple(columns), top, bottom)


def _is_wide(lines: Sequence[_Line], columns: Columns) -> bool:
    """Return whether the gaps that part columns are wider, on the whole, than those of words."""
    for (_, left), (right, _) in pairwise(columns):
        gaps = [
            next((run.left for run in line.phrases if run.left >= right - 1), None)
            for line in lines
        ]
        ends = [
            max((run.right for run in line.phrases if run.right <= left + 1), default=None)
            for line in lines
        ]
        widths = [gap - end for gap, end in zip(gaps, ends, strict=True) if gap and end]
        if widths and sum(widths) / len(widths) < _MEAN_GAP * lines[0].height:
            return False
    return True


def _between(top: float, bottom: float, rules: Sequence[float]) -> list[tuple[float, float]]:
    edges = [top, *sorted(rules, reverse=True), bottom]
    return [(high, low) for high, low in pairwise(edges) if high - low > 4]


def _is_sure(rows: Sequence[Row], *, has_rules: bool) -> bool:
    """Return whether rows are a table and not prose in columns, a list or a directory."""
    width = len(rows[0])
    filled = [sum(map(bool, row)) for row in rows]
    if len(rows) < _MIN_ROWS or sum(filled) < 0.5 * width * len(rows):
        return False
    if sum(count > 1 for count in filled) < max(_MIN_ROWS, 0.7 * len(rows)):
        return False
    texts = [[row[column] for row in rows[1:] if row[column]] for column in range(width)]
    words = [median(len(text.split()) for text in column) if column else 0 for column in texts]
    numbers = [
        sum(bool(_NUMBER.fullmatch(text)) for text in column) / max(len(column), 1)
        for column in texts
    ]
    if has_rules and width > 2:
        return max(words) <= 4 * _MAX_WORDS
    if width == 2:
        # A list's number or mark stands first, a directory's page last.
        return max(words) <= _MAX_WORDS and numbers[1] >= 0.6 and numbers[0] < 0.6
    return sorted(words)[-2] <= _MAX_WORDS
