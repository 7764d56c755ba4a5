"""Ruled tables of a PDF page: grids of rules, and the cells between them. Pure functions."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from fetchstash.handlers._pdf._objects import Rule
from fetchstash.handlers._pdf._rows import (
    Row,
    cell_text,
    column_at,
    is_from_right,
    is_in_order,
    lines_of,
    phrases,
    row_at,
    rows_of,
)
from fetchstash.handlers._pdf._words import Word

# Rules nearer than this, in points, are one, and touch.
_NEAR = 3.0
# Rules farther apart than this are two for the eye.
_TWO = 1.0
MAX_RULES = 600
"""More rules make a drawing, in which finding what touches what takes quadratic time."""
_MAX_CELLS = 5_000
_MAX_PADDING = 8.0


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
    drawn = horizontal
    horizontal, vertical = merged(horizontal), merged(vertical)
    if not horizontal or not vertical or len(horizontal) + len(vertical) > MAX_RULES:
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
                grid = Grid(xs, ys, tuple(across_lines), tuple(down_lines))
                grids += _parted(grid, drawn)
    return sorted(grids, key=lambda grid: -grid.ys[0])


def _parted(grid: Grid, drawn: Sequence[Rule]) -> list[Grid]:
    """Return a grid, or the tables that stand so near to each other that it is made of them.

    Two rules part them, and none of their columns goes on.
    """
    edges = {grid.xs[0], grid.xs[-1]}
    for place, y in enumerate(grid.ys[1:-1], start=1):
        if not _is_double(grid, drawn, y):
            continue
        above, below = (
            {x for x in grid.xs if _is_ruled(grid.vertical, x, y + off)} - edges
            for off in (_NEAR + 1, -_NEAR - 1)
        )
        if above and below and above.isdisjoint(below):
            upper = replace(grid, xs=tuple(sorted(above | edges)), ys=grid.ys[: place + 1])
            lower = replace(grid, xs=tuple(sorted(below | edges)), ys=grid.ys[place:])
            return [upper, *_parted(lower, drawn)]
    return [grid]


def _is_double(grid: Grid, drawn: Sequence[Rule], y: float) -> bool:
    """Return whether two rules, each as wide as a grid, are drawn at a height."""
    lengths: Counter[bool] = Counter()
    near = [rule for rule in drawn if abs(rule.at - y) <= _NEAR]
    if not near:
        return False
    low, high = min(rule.at for rule in near), max(rule.at for rule in near)
    for rule in near:
        lengths[rule.at > (low + high) / 2] += round(rule.end - rule.start)
    wide = 0.9 * (grid.xs[-1] - grid.xs[0])
    return high - low > _TWO and min(lengths[True], lengths[False]) >= wide


def fill(grid: Grid, words: Sequence[Word]) -> list[Row]:
    """Return the rows of a grid; a value that spans rows is repeated in them.

    No rows come back where the grid holds too little text to be a table.
    """
    cells: dict[tuple[int, int], list[Word]] = {}
    rows, columns = len(grid.ys) - 1, len(grid.xs) - 1
    band_words: list[list[Word]] = [[] for _ in range(rows)]
    for word in words:
        band_words[row_at(word, grid.ys[1:])].append(word)
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
                text = cell_text(cells.get(owner[place], []))
                for line in band:
                    line[column] = text
        table += band
    if is_from_right(table):
        table = [row[::-1] for row in table]
    filled = [owner[place] for place in owner if owner[place] in cells]
    # In a figure a few texts stand in boxes that reach over many others.
    if 2 * len(set(filled)) < len(filled) or not all(map(is_in_order, cells.values())):
        return []
    return _sure(table)


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


def merged(rules: Iterable[Rule]) -> list[Rule]:
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
