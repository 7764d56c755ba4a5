"""Tables of a PDF page that no grid holds: columns under each other. Pure functions."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from fetchstash.handlers._pdf._grids import MAX_RULES, merged
from fetchstash.handlers._pdf._layout import BULLETS, ENDS_SENTENCE
from fetchstash.handlers._pdf._objects import Rule
from fetchstash.handlers._pdf._rows import (
    Row,
    cell_text,
    column_at,
    follow,
    is_cut,
    is_from_right,
    lines_of,
    phrases,
    rows_of,
    rows_of_values,
)
from fetchstash.handlers._pdf._words import Word

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
# Cells of fewer words are none of a text.
_FEW_WORDS = 5
# So many words of the file, as a share of its own, may stand between those of a table.
_MAX_BETWEEN = 0.5
# A line whose letters are larger or smaller by this factor is a heading, or another text.
_OTHER_SIZE = 1.15
# Rules of a family begin and end this near; shorter ones belong to a header or to a figure.
_ENDS, _MIN_RULE, _MAX_FAMILIES = 4.0, 60.0, 20
_MAX_COLUMNS = 40
# Lines of one row are nearer to each other than rows are, by this factor.
_ROWS_APART = 1.15
_ORDINAL = re.compile(r"\(?(\d{1,3}|[a-zA-Z]|[ivxIVX]{1,5})[.)]|\[\d{1,3}\]")
_NUMBER = re.compile(r"[^\w]*\d[\d.,:/%\s-]*\w{0,3}[^\w]*")


@dataclass(frozen=True, slots=True)
class Table:
    """A table of a page: its rows, where its columns begin and end in points, and its words."""

    rows: tuple[Row, ...]
    edges: tuple[float, ...]
    words: Sequence[Word]


Columns = list[tuple[float, float]]


class _Line:
    """A line of words with its phrases; ``cells`` are its words by column."""

    __slots__ = ("base", "cells", "phrases", "size", "words")

    def __init__(self, words: list[Word]) -> None:
        self.words = words
        self.phrases = [] if _is_led(words) else phrases(words)
        middle = words[len(words) // 2]
        self.size, self.base = middle.size, middle.base
        self.cells: list[list[Word]] = []


def _is_led(line: Sequence[Word]) -> bool:
    """Return whether dots lead from a title to a page number, as in tables of contents."""
    texts = [word.text for word in line]
    return any("....." in text for text in texts) or sum(not t.strip(".…·") for t in texts) > 4


def open_tables(words: Sequence[Word], rules: Sequence[Rule]) -> list[Table]:
    """Return the tables among ``words`` that no grid holds.

    First those between horizontal ``rules`` of the same ends (above, below the header and at the
    foot, or between rows), then those that white strips between columns show alone.
    """
    tables: list[Table] = []
    across = merged(rules)
    if len(across) > MAX_RULES:
        across = []
    for left, right, ys in _families(across):
        inside = [word for word in words if left - 6 <= word.left and word.right <= right + 6]
        for top, bottom in _spans(ys, inside):
            held = [word for word in inside if bottom < word.middle < top]
            lines = [_Line(line) for line in lines_of(held)]
            between = sorted((y for y in ys if bottom < y < top), reverse=True)
            if top == ys[0] and (header := _header_above(inside, top, lines)):
                lines, between = [header, *lines], [top, *between]
            if table := _table(lines, between, is_ruled=True):
                tables.append(table)
                taken = set(map(id, table.words))
                words = [word for word in words if id(word) not in taken]
                inside = [word for word in inside if id(word) not in taken]
    lines = [_Line(line) for line in lines_of(words)]
    if sum(len(line.phrases) > 1 for line in lines) < _MIN_ROWS - 1:
        return tables
    places = sorted(word.first for word in words)
    for first, last in _blocks(lines):
        block = lines[first:last]
        left = min(word.left for line in block for word in line.words)
        right = max(word.right for line in block for word in line.words)
        top, bottom = block[0].base, block[-1].base
        between = [
            rule.at
            for rule in across
            if bottom < rule.at < top and rule.start <= left + 40 and rule.end >= right - 40
        ]
        table = _table(block, sorted(between, reverse=True), is_ruled=False)
        if table and _is_in_one_piece(table.words, places):
            tables.append(table)
    return tables


def _is_in_one_piece(words: Sequence[Word], places: Sequence[int]) -> bool:
    """Return whether few other words of the page stand in the file between those of a table.

    Between lines of two columns of text, which only look like rows, stands the rest of a column.
    """
    firsts = [word.first for word in words]
    between = bisect_right(places, max(firsts)) - bisect_left(places, min(firsts)) - len(words)
    return between <= _MAX_BETWEEN * len(words)


def _header_above(words: Sequence[Word], top: float, lines: Sequence[_Line]) -> _Line | None:
    """Return the names of the columns where they stand on the first rule, and not below it."""
    above = [word for word in words if top < word.middle < top + 1.5 * word.size]
    found = lines_of(above)
    if len(found) != 1:
        return None
    header = _Line(found[0])
    count = len(header.phrases)
    columns = _columns_of(lines)
    fits = len(columns) == len(_columns_of([header, *lines])) == count
    return header if count > 1 and fits else None


def _families(rules: Sequence[Rule]) -> list[tuple[float, float, list[float]]]:
    """Return the ends and the heights, from the top, of rules that begin and end alike."""
    families: list[list[Rule]] = []
    for rule in sorted(rules, key=lambda rule: -rule.at):
        if rule.end - rule.start < _MIN_RULE:
            continue
        for family in families[-_MAX_FAMILIES:]:
            last = family[-1]
            if abs(last.start - rule.start) < _ENDS and abs(last.end - rule.end) < _ENDS:
                family.append(rule)
                break
        else:
            families.append([rule])
    tall = [family for family in families if len(family) > 1]
    return [
        (family[0].start, family[0].end, [rule.at for rule in family])
        for family in tall[:_MAX_FAMILIES]
    ]


def _spans(ys: Sequence[float], words: Sequence[Word]) -> Iterator[tuple[float, float]]:
    """Yield top and bottom of what may be tables: runs of bands that are no prose."""
    start: float | None = None
    for top, bottom in pairwise(ys):
        held = [word for word in words if bottom < word.middle < top]
        lines = [_Line(line) for line in lines_of(held)]
        if lines and _is_tabular(lines):
            start = top if start is None else start
        else:
            if start is not None:
                yield start, top
            start = None
    if start is not None:
        yield start, ys[-1]


def _is_tabular(lines: Sequence[_Line]) -> bool:
    """Return whether the lines of a band may be rows: one line may always be a header."""
    if len(lines) == 1:
        return True
    strip = _STRIP * lines[0].size
    columns: Columns = []
    across = set(map(id, _across(lines)))
    for line in lines:
        if id(line) not in across:
            columns = _columns(columns, line, strip)
    return len(columns) > 1


def _across(lines: Sequence[_Line]) -> list[_Line]:
    """Return the titles of rows or columns: lines of one phrase where others have more."""
    single = [line for line in lines if len(line.phrases) == 1]
    return single if len(single) <= 0.34 * len(lines) else []


def _blocks(lines: Sequence[_Line]) -> Iterator[tuple[int, int]]:
    """Yield runs of lines, [first, last), with the same white strips between their phrases."""
    start = 0
    while start < len(lines):
        if len(lines[start].phrases) < 2:
            start += 1
            continue
        strip = _STRIP * lines[start].size
        columns = _columns([], lines[start], strip)
        most, end = len(columns), start + 1
        while end < len(lines):
            line, before = lines[end], lines[end - 1]
            if before.base - line.base > _MAX_GAP * before.size or _differ(before, line):
                break
            merged = _columns(columns, line, strip)
            # A phrase in one column is the rest of a cell; one across columns ends the table.
            joins = len(merged) < len(columns) and len(line.phrases) < len(merged)
            if joins or len(merged) < max(2, most - 1):
                break
            columns, end = merged, end + 1
            most = max(most, len(columns))
        while end - start > 1 and len(lines[end - 1].phrases) < 2:
            if lines[end - 2].base - lines[end - 1].base <= 1.5 * lines[end - 1].size:
                break
            end -= 1
        first, last = _trimmed(lines, start, end)
        yield (first - 1 if first == start and _is_above(lines, start, columns) else first), last
        start = end


def _differ(line: _Line, other: _Line) -> bool:
    sizes = [max([word.size for word in each.words]) for each in (line, other)]
    return max(sizes) > _OTHER_SIZE * min(sizes)


def _is_above(lines: Sequence[_Line], start: int, columns: Columns) -> bool:
    """Return whether the line above a block is the beginning of a cell of its first row."""
    if not start or len(lines[start - 1].phrases) != 1:
        return False
    line, first = lines[start - 1], lines[start]
    phrase = line.phrases[0]
    if line.base - first.base > 1.6 * first.size:
        return False
    rights = [*(left - _STRIP * first.size for left, _ in columns[1:]), columns[-1][1] + first.size]
    return any(
        left - 2 <= phrase.left and phrase.right <= right
        for (left, _), right in zip(columns[1:], rights[1:], strict=True)
    )


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
        columns = _columns(columns, line, _STRIP * lines[0].size)
    return columns


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


def _table(lines: list[_Line], between: Sequence[float], *, is_ruled: bool) -> Table | None:
    """Return the table that lines make, None if that is not sure.

    ``between`` are the heights of rules within it; ``is_ruled``: rules stand over and under it too.
    """
    across = set(map(id, _across(lines))) if is_ruled else set[int]()
    columns = _columns_of([line for line in lines if id(line) not in across])
    least = 2 if is_ruled else _MIN_ROWS
    if len(lines) < least or not 2 <= len(columns) <= _MAX_COLUMNS:
        return None
    if not is_ruled and not _is_wide(lines, columns):
        return None
    words = [word for line in lines for word in line.words]
    rights = [right for _, right in columns]
    for line in lines:
        line.cells = [[] for _ in columns]
        for phrase in line.phrases:
            # A title over several columns stands over the first of them.
            reach = [
                n
                for n, (left, right) in enumerate(columns)
                if phrase.left < right and phrase.right > left
            ]
            if len(reach) > 1 or id(line) in across:
                line.cells[reach[0] if reach else column_at(phrase.words[0], rights)] += (
                    phrase.words
                )
            else:
                for word in phrase.words:
                    line.cells[column_at(word, rights)].append(word)
        if not line.phrases:
            for word in line.words:
                line.cells[column_at(word, rights)].append(word)
    bands: list[list[_Line]] = [[] for _ in range(len(between) + 1)]
    for line in lines:
        bands[sum(line.base < y for y in between)].append(line)
    bands = [band for band in bands if band]
    rows: list[Row] = []
    stacked = 0
    strip = _STRIP * lines[0].size
    ends = [*(left - strip for left, _ in columns[1:]), columns[-1][1]]
    extents = [(left, end) for (left, _), end in zip(columns, ends, strict=True)]
    for number, band in enumerate(bands):
        held = [[word for line in band for word in line.cells[n]] for n in range(len(columns))]
        is_header = not number and len(bands) > 1
        if len(bands) > 3:
            made = rows_of(held, extents)
        else:
            has_cuts = any(_has_cut(above, below, columns) for above, below in pairwise(band))
            groups = [] if is_header else _wrapped(band)
            made = [] if is_header or has_cuts or groups else rows_of_values(held, extents)
            groups = groups or _grouped(band, columns, is_header=is_header)
            made = made or [_row(group, columns) for group in groups]
        stacked += len(made) < len(band)
        rows += made
    if is_from_right(rows):
        rows = [row[::-1] for row in rows]
    if not _keeps_order(lines) or not _is_sure(rows, is_ruled=is_ruled, stacked=stacked > 0):
        return None
    return Table(tuple(rows), tuple(edge for column in columns for edge in column), words)


def _keeps_order(lines: Sequence[_Line]) -> bool:
    """Return whether the words of each column stand, down the page, in the order of the file."""
    return all(map(follow, zip(*(line.cells for line in lines), strict=True)))


def _row(group: Sequence[_Line], columns: Columns) -> Row:
    return [
        cell_text([word for line in group for word in line.cells[number]], right)
        for number, (_, right) in enumerate(columns)
    ]


def _grouped(lines: list[_Line], columns: Columns, *, is_header: bool) -> list[list[_Line]]:
    """Return the lines of a band by rows: each line continues cells or begins a row."""
    if is_header and 1 < len(lines) <= 4 and _is_one_header(lines):
        return [lines]
    gaps = [above.base - below.base for above, below in pairwise(lines)]
    bound = _bound(gaps, lines)
    groups = [[lines[0]]]
    first = next((n for n, gap in enumerate(gaps, 1) if bound and gap > bound), 0)
    heads = first if 1 < first <= 4 and _is_one_header(lines[:first]) else 0
    for number, (line, gap) in enumerate(zip(lines[1:], gaps, strict=True), 1):
        if number < heads:
            goes_on = True
        elif bound and gap > bound:
            goes_on = False
        else:
            goes_on = _goes_on(groups[-1], line, columns, is_close=bound > 0)
        if goes_on:
            groups[-1].append(line)
        else:
            groups.append([line])
    return groups


def _wrapped(lines: Sequence[_Line]) -> list[list[_Line]]:
    """Return the lines of a band by rows where wider gaps part them, none if gaps do not tell.

    The last line of a row with wrapped cells fills fewer of them than its first one, or the first
    fewer than the last; in a group of rows that stand closer than groups do, each line fills all.
    """
    gaps = [above.base - below.base for above, below in pairwise(lines)]
    bound = _bound(gaps, lines)
    if not bound:
        return []
    groups = [[lines[0]]]
    for line, gap in zip(lines[1:], gaps, strict=True):
        if gap > bound:
            groups.append([line])
        else:
            groups[-1].append(line)
    tall = [group for group in groups if len(group) > 1]
    fewer = sum(_filled(group[-1]) != _filled(group[0]) for group in tall)
    is_wrapped = len(groups) > 2 and len(tall) > 1 and fewer >= 0.6 * len(tall)
    return groups if is_wrapped else []


def _filled(line: _Line) -> int:
    return sum(map(bool, line.cells))


def _bound(gaps: Sequence[float], lines: Sequence[_Line]) -> float:
    """Return the distance above which lines are rows of their own, 0 if all stand alike."""
    steps = sorted(gap for gap, line in zip(gaps, lines, strict=False) if gap > 0.9 * line.size)
    jumps = [(wide / narrow, narrow, wide) for narrow, wide in pairwise(steps)]
    if not jumps:
        return 0.0
    ratio, narrow, wide = max(jumps)
    return (narrow + wide) / 2 if ratio >= _ROWS_APART else 0.0


def _is_one_header(lines: Sequence[_Line]) -> bool:
    """Return whether the lines of a header are cells of several lines, and not several rows."""
    full = [sum(map(bool, line.cells)) for line in lines]
    if any(len(line.phrases) < count for line, count in zip(lines, full, strict=True)):
        return False
    most = max(full)
    return sum(count == most for count in full) == 1 or all(
        not _is_value(cell) for line in lines for cell in line.cells if cell
    )


def _goes_on(group: Sequence[_Line], line: _Line, columns: Columns, *, is_close: bool) -> bool:
    """Return whether the cells of a line go on with those of the row before."""
    before = group[-1]
    filled = [number for number, cell in enumerate(line.cells) if cell]
    if not filled:
        return True
    if len(group) == 1 and _filled(before) < len(filled) and _ends_below(before, line, columns):
        return True
    forced = lower = 0
    for number in filled:
        above, cell = before.cells[number], line.cells[number]
        if not above:
            return False
        if _is_value(above) and _is_value(cell) and not _is_cut(above, cell, columns[number][1]):
            return False
        first = min(cell, key=lambda word: word.first)
        right = max(word.right for word in above)
        left, end = columns[number]
        centre = abs((min(w.left for w in above) - left) - (end - right))
        room = end - right if centre > 2 else 2 * (end - right)
        forced += room < 0.25 * line.size + first.right - first.left
        lower += first.text[0].islower() or above[-1].broken or above[-1].text.endswith("-")
    if len(filled) < sum(map(bool, group[0].cells)) and len(filled) < len(columns):
        return forced == len(filled) or (is_close and not line.cells[0])
    if is_close:
        return forced >= 0.5 * len(filled) and (forced == len(filled) or 2 * lower >= len(filled))
    return forced == len(filled) and 2 * lower >= len(filled)


def _ends_below(above: _Line, line: _Line, columns: Columns) -> bool:
    """Return whether all cells of a line go on in the next, beside whose words the others stand."""
    for cell, following, (_, end) in zip(above.cells, line.cells, columns, strict=True):
        if not cell:
            continue
        if not following or not following[0].text[0].islower():
            return False
        first = following[0]
        if end - max(word.right for word in cell) > 0.25 * line.size + first.right - first.left:
            return False
    return True


def _has_cut(above: _Line, below: _Line, columns: Columns) -> bool:
    """Return whether a word of a line goes on in the next, because its column is too narrow."""
    return any(
        _is_cut(cell, following, right)
        for cell, following, (_, right) in zip(above.cells, below.cells, columns, strict=True)
    )


def _is_cut(above: Sequence[Word], cell: Sequence[Word], right: float) -> bool:
    return len(above) == 1 and len(cell) > 0 and is_cut(above[0], cell[0], right)


def _is_value(cell: Sequence[Word]) -> bool:
    return bool(_NUMBER.fullmatch(" ".join([word.text for word in cell])))


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
        if widths and sum(widths) / len(widths) < _MEAN_GAP * lines[0].size:
            return False
    return True


def _is_sure(rows: Sequence[Row], *, is_ruled: bool, stacked: bool) -> bool:
    """Return whether rows are those of a table, and no list or prose in columns.

    ``stacked``: some rows have several lines, as only rows do whose cells begin side by side.
    """
    width = len(rows[0])
    filled = [sum(map(bool, row)) for row in rows]
    if is_ruled:
        return len(rows) > 1 and sum(count > 1 for count in filled) > 0.5 * len(rows)
    least = 2 if stacked and width > 2 else _MIN_ROWS
    if len(rows) < least or sum(filled) < 0.5 * width * len(rows):
        return False
    if sum(count > 1 for count in filled) < max(least, (0.6 if least == 2 else 0.7) * len(rows)):
        return False
    if any(_is_prose([row[column] for row in rows]) for column in range(width)):
        return False
    texts = [[row[column] for row in rows[1:] if row[column]] for column in range(width)]
    words = [median(len(text.split()) for text in column) if column else 0 for column in texts]
    numbers = [
        sum(bool(_NUMBER.fullmatch(text)) for text in column) / max(len(column), 1)
        for column in texts
    ]
    marks = sum(len(text) < 4 for text in texts[0]) / max(len(texts[0]), 1)
    if sum(not _are_marks(row[column] for row in rows) for column in range(width)) < 2:
        return False
    if width == 2:
        # A list's number or mark stands first, a directory's page last.
        if max(words) <= _MAX_WORDS and numbers[1] >= 0.6 and numbers[0] < 0.6:
            return True
        return (
            stacked and numbers[0] < 0.6 and marks < 0.5 and all(filled) and words[0] <= _MAX_WORDS
        )
    return stacked or sorted(words)[-2] <= _MAX_WORDS


def _is_prose(column: Sequence[str]) -> bool:
    """Return whether most cells of a column go on with the one above, as the lines of a text do."""
    goes_on = [
        len(cell.split()) >= _FEW_WORDS
        and (cell[0].islower() or above[-1] == ",")
        and not ENDS_SENTENCE.search(above)
        for above, cell in pairwise(filter(None, column))
        if len(above.split()) >= _FEW_WORDS
    ]
    return 2 * sum(goes_on) >= len(column) > 1


def _are_marks(column: Iterable[str]) -> bool:
    """Return whether the cells of a column are the marks of a list."""
    texts = [text for text in column if text]
    return all(text in BULLETS or _ORDINAL.fullmatch(text) for text in texts)
