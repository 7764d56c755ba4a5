"""Reading order of PDF pages with two columns that are written line by line. Pure functions.

Most pages are in reading order and cost nothing. A page is examined if it has many more runs of
text than lines, and reordered if its runs fill two columns, which those of a table do not.
"""

from collections.abc import Sequence
from itertools import pairwise
from statistics import median

Box = tuple[float, float, float, float]
"""Left, bottom, right and top, in points from the lower left corner of the page."""

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


def may_have_columns(runs: int, lines: int) -> bool:
    """Return whether a page with these numbers of runs and lines may have columns."""
    return lines >= _MIN_LINES and runs >= _RUNS_A_LINE * lines


def sampled(runs: int) -> list[int]:
    """Return indexes of runs to sample; ``are_side_by_side`` compares each with the next.

    They are an odd number apart, because left and right alternate on such pages.
    """
    return list(range(0, runs - 1, -(-runs // _SAMPLES) | 1))


def are_side_by_side(run: Box, following: Box) -> bool:
    """Return whether two runs of column length share a line, with a gutter between them."""
    is_same_line = abs(run[1] - following[1]) < _SAME_LINE
    return (
        is_same_line
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
    if (
        not _fills(left)
        or not _fills(right)
        or not _alternates(runs, gutter, len(left), len(right))
    ):
        return []
    crossing = sorted((run for run in runs if run[0] < gutter < run[2]), key=lambda run: -run[3])
    edges = (
        min(run[0] for run in runs) - 1,
        min(run[1] for run in runs) - 1,
        max(run[2] for run in runs) + 1,
    )
    regions: list[Box] = []
    top = max(run[3] for run in runs) + 1
    for run in crossing:
        if run[3] < top - 1:
            regions += [(edges[0], run[3], gutter, top), (gutter, run[3], edges[2], top)]
        regions.append((edges[0], run[1], edges[2], min(run[3], top)))
        top = min(top, run[1])
    if edges[1] < top:
        regions += [(edges[0], edges[1], gutter, top), (gutter, edges[1], edges[2], top)]
    return regions


def _gutter(runs: Sequence[Box]) -> float | None:
    """Return the middle of the widest strip in the middle of the page that few runs cross."""
    if not runs:
        return None
    first, last = min(run[0] for run in runs), max(run[2] for run in runs)
    low, high = (first + share * (last - first) for share in _MIDDLE)
    allowed = _MAX_CROSSING * len(runs)
    steps = sorted(
        {low, high, *(edge for run in runs for edge in (run[0], run[2]) if low < edge < high)}
    )
    best: tuple[float, float] | None = None
    for start, end in pairwise(steps):
        middle = (start + end) / 2
        wide_enough = end - start >= _MIN_GUTTER and (
            best is None or end - start > best[1] - best[0]
        )
        if wide_enough and sum(run[0] < middle < run[2] for run in runs) <= allowed:
            best = (start, end)
    return None if best is None else (best[0] + best[1]) / 2


def _fills(column: Sequence[Box]) -> bool:
    """Return whether a column has many lines, most of them full: prose has, cells have not."""
    lines: dict[int, list[Box]] = {}
    for run in column:
        lines.setdefault(round(run[1] / _SAME_LINE), []).append(run)
    if len(lines) < _MIN_LINES:
        return False
    width = max(run[2] for run in column) - min(run[0] for run in column)
    return (
        median(sum(run[2] - run[0] for run in line) for line in lines.values())
        >= _MIN_FILLED * width
    )


def _alternates(runs: Sequence[Box], gutter: float, left: int, right: int) -> bool:
    """Return whether the runs change sides at most lines; else the page is in order."""
    sides = [run[0] >= gutter for run in runs if run[2] <= gutter or run[0] >= gutter]
    return sum(side != following for side, following in pairwise(sides)) >= min(left, right) / 2
