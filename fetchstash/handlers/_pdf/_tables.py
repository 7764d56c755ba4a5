"""Tables of a PDF page: ruled ones, and those that alignment shows. Pure functions."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from fetchstash.handlers._pdf import _lines
from fetchstash.handlers._pdf._lines import Row, column_at, lines_of, phrases, rows_of
from fetchstash.handlers._pdf._objects import Rule, Word

# Rules nearer than this, in points, are one, and touch.
_NEAR = 3.0
# More rules make a drawing, in which finding what touches what takes quadratic time.
_MAX_RULES = 600
_MAX_CELLS = 5_000
_MAX_PADDING = 8.0
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
class Grid:
    """Rules that hang together: ``xs`` from the left, ``ys`` from the top, and what is drawn."""

    xs: tuple[float, ...]
    ys: tuple[float, ...]
    horizontal: tuple[Rule, ...]
    vertical: tuple[Rule, ...]

    def holds(self, word: Word) -> bool:
        """Return whether the middle of a word stands in the grid."""
        across = (word.left + word.right) / 2
        return self.xs[0] <= across <= self.xs[-1] and self.ys[-1] <= word.middle <= self.ys[0]


def grids(horizontal: Sequence[Rule], vertical: Sequence[Rule]) -> list[Grid]:
    """Return the grids of at least two rows and two columns, from the top of the page."""
    horizontal, vertical = _merged(horizontal), _merged(vertical)
    if not horizontal or not vertical or len(horizontal) + len(vertical) > _MAX_RULES:
        return []
    group = list(range(len(horizontal) + len(vertical)))

    def root(index: int) -> int:
        while group[index] != index:
            group[index] = group[group[index]]
            index = group[index]
        return index

    for h, across in enumerate(horizontal):
        for v, down in enumerate(vertical, start=len(horizontal)):
            if _crosses(across, down.at) and _crosses(down, across.at):
                group[root(v)] = root(h)
    members: dict[int, tuple[list[Rule], list[Rule]]] = {}
    for index, rule in enumerate([*horizontal, *vertical]):
        members.setdefault(root(index), ([], []))[index >= len(horizontal)].append(rule)
    grids: list[Grid] = []
    for across_lines, down_lines in members.values():
        if across_lines and down_lines:
            ends_x = [end for rule in across_lines for end in (rule.start, rule.end)]
            ends_y = [end for rule in down_lines for end in (rule.start, rule.end)]
            xs = _places([*(rule.at for rule in down_lines), min(ends_x), max(ends_x)])
            ys = _places([*(rule.at for rule in across_lines), min(ends_y), max(ends_y)])[::-1]
            if len(xs) > 2 and len(ys) > 2 and len(xs) * len(ys) <= _MAX_CELLS:
                grids.append(Grid(xs, ys, tuple(across_lines), tuple(down_lines)))
    return sorted(grids, key=lambda grid: -grid.ys[0])


def fill(grid: Grid, words: Sequence[Word]) -> list[Row]:
    """Return the rows of a grid; a value that spans rows is repeated in them.

    No rows come back where the grid holds too little text to be a table.
    """
    cells: dict[tuple[int, int], list[Word]] = {}
    rows, columns = len(grid.ys) - 1, len(grid.xs) - 1
    band_words: list[list[Word]] = [[] for _ in range(rows)]
    for word in words:
        band_words[_lines.row_at(word, grid.ys[1:])].append(word)
    owner = _owners(grid, band_words)
    for row, inside in enumerate(band_words):
        for word in inside:
            cells.setdefault(owner[row, column_at(word, grid.xs[1:])], []).append(word)
    # A cell that rules part from none below spans rows, and is no part of one of them.
    spanning = {owner[row, column] for row, column in owner if owner[row, column][0] != row}
    table: list[Row] = []
    for row in range(rows):
        places = [(row, column) for column in range(columns)]
        own = [cells.get(place, []) if place not in spanning else [] for place in places]
        band = rows_of(own, _extents(grid, owner, own, row), is_only=rows <= 2)
        for column, place in enumerate(places):
            # In the other columns of a cell that spans them nothing stands.
            if owner[place] in spanning and owner[place][1] == column:
                text = _lines.cell_text(cells.get(owner[place], []))
                for line in band:
                    line[column] = text
        table += band
    filled = [owner[place] for place in owner if owner[place] in cells]
    # In a figure a few texts stand in boxes that reach over many others.
    return _sure(table) if 2 * len(set(filled)) >= len(filled) else []


def _extents(
    grid: Grid,
    owner: Mapping[tuple[int, int], tuple[int, int]],
    cells: Sequence[Sequence[Word]],
    row: int,
) -> list[tuple[float, float]]:
    """Return where the text of each cell of a row begins, and where it has to end."""
    extents = list(pairwise(grid.xs))
    for column, (left, right) in enumerate(extents):
        first = owner[row, column][1]
        if first == column:
            begin = min((word.left for word in cells[column]), default=left)
            extents[column] = begin, right - min(max(begin - left, 0), _MAX_PADDING)
        else:
            extents[first] = extents[first][0], right
    return extents


def _sure(table: list[Row]) -> list[Row]:
    """Return a table without empty rows and columns; none if it has too little text."""
    table = [row for row in table if any(row)]
    kept = [c for c in range(len(table[0])) if any(row[c] for row in table)] if table else []
    table = [[row[column] for column in kept] for row in table]
    several = sum(sum(map(bool, row)) > 1 for row in table)
    return table if len(kept) > 1 and len(table) > 1 and several > 1 else []


def _owners(
    grid: Grid, band_words: Sequence[Sequence[Word]]
) -> dict[tuple[int, int], tuple[int, int]]:
    """Return for each cell the upper left one of those that no rule separates from it."""
    owner: dict[tuple[int, int], tuple[int, int]] = {}
    for row, (top, bottom) in enumerate(pairwise(grid.ys)):
        middle = (top + bottom) / 2
        runs = [run for line in lines_of(band_words[row]) for run in phrases(line)]
        for column, (left, right) in enumerate(pairwise(grid.xs)):
            place = (row, column)
            owner[place] = place
            if column and not _is_ruled(grid.vertical, left, middle):
                # Rows without rules of their own keep columns that no phrase crosses.
                crossed = any(run.left < left - 1 and run.right > left + 1 for run in runs)
                if crossed or not runs:
                    owner[place] = owner[row, column - 1]
            across = (left + right) / 2
            if row and owner[place] == place and not _is_ruled(grid.horizontal, top, across):
                owner[place] = owner[row - 1, column]
    return owner


def _is_ruled(rules: Iterable[Rule], at: float, place: float) -> bool:
    return any(abs(rule.at - at) <= _NEAR and rule.start <= place <= rule.end for rule in rules)


def _crosses(rule: Rule, at: float) -> bool:
    return rule.start - _NEAR <= at <= rule.end + _NEAR


def _places(values: Iterable[float]) -> tuple[float, ...]:
    """Return sorted values, those that are near each other as one."""
    places: list[float] = []
    for value in sorted(values):
        if not places or value - places[-1] > _NEAR:
            places.append(value)
    return tuple(places)


def _merged(rules: Iterable[Rule]) -> list[Rule]:
    """Return rules with those that lie on one line and touch joined."""
    by_place: list[list[Rule]] = []
    for rule in sorted(rules, key=lambda rule: rule.at):
        if by_place and rule.at - by_place[-1][0].at <= _NEAR:
            by_place[-1].append(rule)
        else:
            by_place.append([rule])
    joined: list[Rule] = []
    for place in by_place:
        at = sum(rule.at for rule in place) / len(place)
        spans: list[tuple[float, float]] = []
        for rule in sorted(place, key=lambda rule: rule.start):
            if spans and rule.start <= spans[-1][1] + _NEAR:
                spans[-1] = spans[-1][0], max(spans[-1][1], rule.end)
            else:
                spans.append((rule.start, rule.end))
        joined += [Rule(at, start, end) for start, end in spans]
    return joined


@dataclass(frozen=True, slots=True)
class Table:
    """A table of a page: its rows, where its columns begin and end in points, and its words."""

    rows: tuple[Row, ...]
    edges: tuple[float, ...]
    words: Sequence[Word]


@dataclass(slots=True)
class _Line:
    words: list[Word]
    phrases: list[_lines.Phrase]

    @property
    def middle(self) -> float:
        return median(word.middle for word in self.words)

    @property
    def height(self) -> float:
        return median(word.height for word in self.words)


Columns = list[tuple[float, float]]


def aligned_tables(words: Sequence[Word], rules: Sequence[Rule]) -> list[Table]:
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
            joins = len(merged) < len(columns) and len(line.phrases) < len(merged)
            if joins or len(merged) < max(2, most - 1):
                break
            columns, end = merged, end + 1
            most = max(most, len(columns))
        while end - start > 1 and len(lines[end - 1].phrases) < 2:
            if lines[end - 2].middle - lines[end - 1].middle <= 1.35 * lines[end - 1].height:
                break
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


def _table(lines: Sequence[_Line], rules: Sequence[Rule]) -> Table | None:
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
    bands: list[tuple[float, float]] = []
    if len(inner) >= 3:
        edges = pairwise([top, *sorted(inner, reverse=True), bottom])
        bands = [(high, low) for high, low in edges if high - low > 4]
    bands = bands or _lines.row_bands(words)
    cells: list[list[list[Word]]] = [[[] for _ in columns] for _ in bands]
    for word in words:
        row = _lines.row_at(word, [low for _, low in bands])
        cells[row][column_at(word, [right for _, right in columns])].append(word)
    strip = _STRIP * lines[0].height
    ends = [*(left - strip for left, _ in columns[1:]), columns[-1][1]]
    extents = [(left, end) for (left, _), end in zip(columns, ends, strict=True)]
    rows = [row for band in cells for row in rows_of(band, extents)]
    if not _is_sure(rows, has_rules=bool(inner)):
        return None
    return Table(tuple(rows), tuple(edge for column in columns for edge in column), words)


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
