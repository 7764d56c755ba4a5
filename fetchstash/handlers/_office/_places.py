"""The order in which a person reads what stands on a slide: by place, not by drawing order.

Files list shapes from the hindmost to the foremost, which is often the order in which they were
made. What follows is a recursive cut of the page at its gaps (as in the XY-cut of page layouts),
which prefers columns: a heading stays with its bullets.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

_MAX_DEPTH = 12
_MAX_CUT = 150  # shapes; more are a drawing, and are read by rows
# Of its size, what a shape may reach into its neighbour: boxes of text are larger than their text.
_SLACK = 0.12
# Shapes of one column lie no farther apart than this part of their slide's height.
_NEAR = 0.09
_VALUE = re.compile(r"\s*[-+~≈<>≤≥]?\s*[$€£¥]?\d[\d.,:/\s]*\S{0,3}\s*")
_LABEL_END = ":"


class Box(NamedTuple):
    """Where a shape stands, in any one unit."""

    left: float
    top: float
    right: float
    bottom: float


@dataclass(slots=True)
class Shape:
    """A shape, or a group of them, with what writes its text."""

    box: Box | None = None
    is_title: bool = False
    text: str = ""
    writes: list[Callable[[], None]] = field(default_factory=list[Callable[[], None]])
    inner: list["Shape"] = field(default_factory=list["Shape"])

    def says_something(self) -> bool:
        """Return whether there is any text to write."""
        return bool(self.writes) or any(shape.says_something() for shape in self.inner)


def write_all(shapes: Sequence[Shape], locate: Callable[[], None]) -> None:
    """Write shapes in the order in which they are read, titles first.

    ``locate`` gives shapes their places. It is called only where there is an order to find: most
    slides have a title and one text.
    """
    texts = [shape for shape in shapes if shape.says_something() and not shape.is_title]
    if len(texts) > 1 or any(shape.inner for shape in texts):
        locate()
    placed = [shape for shape in _attached(shapes) if shape.says_something()]
    titles = [shape for shape in placed if shape.is_title]
    others = [shape for shape in placed if not shape.is_title]
    boxes = [shape.box for shape in placed if shape.box]
    height = max((b.bottom for b in boxes), default=0) - min((b.top for b in boxes), default=0)
    for shape in (*titles, *_ordered(others, height * _NEAR)):
        for write in shape.writes:
            write()


def _attached(shapes: Sequence[Shape]) -> list[Shape]:
    """Return groups as one shape each; a shape without a place stays with the one before it."""
    result: list[Shape] = []
    for shape in shapes:
        whole = _flat(shape) if shape.inner else shape
        if whole.box is None and result and not whole.is_title and not result[-1].is_title:
            result[-1].writes += whole.writes
        else:
            result.append(whole)
    return result


def _flat(group: Shape) -> Shape:
    """Return a group as one shape, its inner ones in their order; their titles are no titles."""
    inner = [shape for shape in _attached(group.inner) if shape.says_something()]
    boxes = [shape.box for shape in inner if shape.box]
    box = group.box
    if boxes:
        box = Box(
            min(b.left for b in boxes),
            min(b.top for b in boxes),
            max(b.right for b in boxes),
            max(b.bottom for b in boxes),
        )
    height = box.bottom - box.top if box else 0
    ordered = list(_ordered(inner, height * _NEAR))
    writes = [*group.writes, *(write for shape in ordered for write in shape.writes)]
    return Shape(box, text=" ".join(shape.text for shape in ordered), writes=writes)


def _ordered(shapes: list[Shape], near: float, depth: int = 0) -> Iterator[Shape]:
    if len(shapes) < 2 or depth > _MAX_DEPTH or any(shape.box is None for shape in shapes):
        yield from shapes
    elif len(shapes) > _MAX_CUT:
        yield from _by_rows(shapes)
    else:
        for band in _bands(shapes, near):
            columns = _cut(band, across=True)
            if len(columns) > 1 and not _is_grid(columns):
                for column in columns:
                    yield from _ordered(column, near, depth + 1)
            elif len(band) < len(shapes):
                yield from _ordered(band, near, depth + 1)
            else:
                yield from _by_rows(band)


def _bands(shapes: list[Shape], near: float) -> Iterator[list[Shape]]:
    """Yield the shapes in horizontal bands, from the top; bands with the same columns are one."""
    band: list[Shape] = []
    for below in _cut(shapes, across=False):
        if band and not (_is_near(band, below, near) and len(_cut(band + below, across=True)) > 1):
            yield band
            band = []
        band += below
    yield band


def _is_near(above: list[Shape], below: list[Shape], near: float) -> bool:
    bottom = max(_box(shape).bottom for shape in above)
    is_alone = len(below) == 1 or len(above) == 1
    return not is_alone or min(_box(shape).top for shape in below) - bottom <= near


def _cut(shapes: list[Shape], *, across: bool) -> list[list[Shape]]:
    """Return the shapes in groups that a straight gap parts, from the left or from the top."""

    def span(shape: Shape) -> tuple[float, float]:
        box = _box(shape)
        low, high = (box.left, box.right) if across else (box.top, box.bottom)
        slack = (high - low) * _SLACK
        return low + slack, high - slack

    groups: list[list[Shape]] = []
    reach = 0.0
    for shape in sorted(shapes, key=span):
        low, high = span(shape)
        if groups and low <= reach:
            groups[-1].append(shape)
            reach = max(reach, high)
        else:
            groups.append([shape])
            reach = high
    return groups


def _is_grid(columns: list[list[Shape]]) -> bool:
    """Return whether two columns are labels and their values, which are read by rows."""
    if len(columns) != 2 or len(columns[0]) != len(columns[1]) or len(columns[0]) < 2:
        return False
    names, values = ([shape.text for shape in sorted(c, key=_top)] for c in columns)
    return all(name.rstrip().endswith(_LABEL_END) for name in names) or all(
        map(_VALUE.fullmatch, values)
    )


def _by_rows(shapes: list[Shape]) -> Iterator[Shape]:
    """Yield shapes by their tops, within half a height's tolerance, then from the left."""
    row: list[Shape] = []
    for shape in sorted(shapes, key=_top):
        if row:
            first = _box(row[0])
            if _box(shape).top - first.top > (first.bottom - first.top) / 2:
                yield from sorted(row, key=_left)
                row = []
        row.append(shape)
    yield from sorted(row, key=_left)


def _box(shape: Shape) -> Box:
    assert shape.box is not None
    return shape.box


def _top(shape: Shape) -> float:
    return _box(shape).top


def _left(shape: Shape) -> float:
    return _box(shape).left
