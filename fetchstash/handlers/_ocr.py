"""Text of pictures by OCR: scanned pages, photos, screenshots (extra `ocr`).

The models are those that come with `rapidocr`; nothing is downloaded. Pages are read in a worker of
their own, because the models need more memory than a document may.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from itertools import pairwise
from statistics import fmean, median
from typing import TYPE_CHECKING, Any

from fetchstash.handlers._contract import PageText
from fetchstash.handlers._limits import ExtractLimits
from fetchstash.handlers._pdf import mend
from fetchstash.handlers._pdf._layout import widest_gap

if TYPE_CHECKING:
    from PIL import Image

LIBRARIES = ("rapidocr", "onnxruntime")
MEMORY_MB = 3_072
"""Address space of the worker: 1.9 GB were taken for a dense page, 1.0 GB of them resident."""
CPU_SECONDS = 120
WALL_SECONDS = 120
"""For one page: the densest took 15 s of CPU. The call's own deadline mostly ends it sooner."""


def ocr_is_installed() -> bool:
    """Return whether the libraries of the extra `ocr` are there."""
    return all(find_spec(name) is not None for name in LIBRARIES)


def ocr_limits(limits: ExtractLimits) -> ExtractLimits:
    """Return the limits of a worker that reads pictures."""
    return replace(
        limits,
        memory_mb=max(limits.memory_mb, MEMORY_MB),
        cpu_seconds=CPU_SECONDS,
        wall_seconds=WALL_SECONDS,
        plugins=(),
    )


Point = tuple[float, float]

_MIN_LINES = 5
"""A column has at least so many lines."""
_MIN_FILLED = 0.6
"""Most lines of prose are at least that full; cells of a table are not."""
_MIN_WIDTH = 8.0
"""Of a column, in heights of a line: numbers in a table are narrower."""
_MAX_CROSSING = 0.25
"""Headings and figures may cross a gutter: at most that share of the lines."""
_MIN_GUTTER = 0.6
"""Of a gutter, in heights of a line."""
_CELL_GAP = 1.5
_MIN_ROOM = 4.0
_MIN_LETTERS = 0.25
"""Of the squares that fit into a line's box: a Chinese character fills one, Latin letters half."""
_PARAGRAPH_GAP = 0.7


@dataclass(frozen=True, slots=True)
class Line:
    """A recognised piece of a line: its text and its box, in pixels from the upper left."""

    text: str
    left: float
    top: float
    right: float
    bottom: float

    @property
    def height(self) -> float:
        """The height of the box."""
        return self.bottom - self.top

    @property
    def middle(self) -> float:
        """The height of its middle on the page."""
        return (self.top + self.bottom) / 2


def slope(corners: Sequence[Sequence[Point]]) -> float:
    """Return the angle of the lines in radians: the median over the wider half of the boxes.

    A box is its corners from the upper left, clockwise.
    """
    edges = sorted(
        ((b[0] - a[0], b[1] - a[1]) for a, b, *_ in corners), key=lambda edge: -math.hypot(*edge)
    )
    wide = edges[: (len(edges) + 1) // 2]
    return median(math.atan2(dy, dx) for dx, dy in wide) if wide else 0.0


def upright(text: str, corners: Sequence[Point], angle: float) -> Line:
    """Return a line with its box turned back by ``angle``."""
    cos, sin = math.cos(-angle), math.sin(-angle)
    turned = [(x * cos - y * sin, x * sin + y * cos) for x, y in corners]
    # The mean of two corners: a skewed box is as high as its line, not as its diagonal.
    (ax, ay), (bx, by), (cx, cy), (dx, dy) = turned
    return Line(text, (ax + dx) / 2, (ay + by) / 2, (bx + cx) / 2, (cy + dy) / 2)


def is_legible(line: Line) -> bool:
    """Return whether a line has about as many letters and digits as fit its box.

    Of a script that the models do not know they return the punctuation alone, and are sure of it.
    """
    room = (line.right - line.left) / max(line.height, 1.0)
    letters = sum(char.isalnum() for char in line.text)
    return room < _MIN_ROOM or letters >= _MIN_LETTERS * room


def as_text(lines: Sequence[Line]) -> str:
    """Return the text of a page in reading order.

    Pieces of one line are joined by a space, by two where a cell seems to end; an empty line
    separates paragraphs.
    """
    blocks = ["\n".join(_joined(block)) for block in blocks_of(list(lines))]
    return "\n\n".join(block for block in blocks if block)


def blocks_of(lines: list[Line]) -> list[list[Line]]:
    """Return the lines in blocks, in reading order: columns, and lines that span them."""
    gutter = _gutter(lines)
    if gutter is None:
        return [lines] if lines else []
    crossing = sorted((n for n in lines if n.left < gutter < n.right), key=lambda line: line.top)
    edges = [-math.inf, *(line.middle for line in crossing), math.inf]
    blocks: list[list[Line]] = []
    for position, (top, bottom) in enumerate(pairwise(edges)):
        band = [line for line in lines if top < line.middle < bottom and line not in crossing]
        blocks += blocks_of([line for line in band if line.right <= gutter])
        blocks += blocks_of([line for line in band if line.left >= gutter])
        if position < len(crossing):
            blocks.append([crossing[position]])
    return blocks


def _gutter(lines: Sequence[Line]) -> float | None:
    """Return the middle of the widest strip that few lines cross between two columns of prose."""
    if len(lines) < 2 * _MIN_LINES:
        return None

    def is_gutter(x: float) -> bool:
        left, right = ([n for n in lines if n.right <= x], [n for n in lines if n.left >= x])
        crossing = len(lines) - len(left) - len(right)
        return crossing <= _MAX_CROSSING * len(lines) and _is_prose(left) and _is_prose(right)

    least = _MIN_GUTTER * median(line.height for line in lines)
    return widest_gap((edge for n in lines for edge in (n.left, n.right)), least, is_gutter)


def _is_prose(column: Sequence[Line]) -> bool:
    """Return whether a column has many lines, most of them nearly as wide as it is."""
    if len(column) < _MIN_LINES:
        return False
    rows = _rows(column)
    width = max(line.right for line in column) - min(line.left for line in column)
    widths = [sum(line.right - line.left for line in row) for row in rows]
    if width < _MIN_WIDTH * median(line.height for line in column):
        return False
    return len(rows) >= _MIN_LINES and median(widths) >= _MIN_FILLED * width


def _rows(lines: Sequence[Line]) -> list[list[Line]]:
    """Return lines that stand at one height together, from left to right."""
    rows: list[list[Line]] = []
    for line in sorted(lines, key=lambda line: line.middle):
        last = rows[-1][-1] if rows else None
        if last and line.middle - last.middle < min(line.height, last.height) / 2:
            rows[-1].append(line)
        else:
            rows.append([line])
    return [sorted(row, key=lambda line: line.left) for row in rows]


def _joined(lines: Sequence[Line]) -> list[str]:
    """Return the text of a block, line by line, with an empty one between paragraphs."""
    texts: list[str] = []
    above: Line | None = None
    for row in _rows(lines):
        whole = row[0]
        for line in row[1:]:
            gap = "  " if line.left - whole.right > _CELL_GAP * line.height else " "
            whole = replace(whole, text=f"{whole.text}{gap}{line.text}", right=line.right)
        if above and whole.top - above.bottom > _PARAGRAPH_GAP * max(whole.height, above.height):
            texts.append("")
        texts.append(whole.text)
        above = whole
    return texts


MAX_EDGE = 2_000
"""Pixels of the longer edge: 171 dpi for an A4 page. More costs time and reads no better."""
_SMALL_EDGE = 1_000
"""Small pictures are enlarged to this: the letters of a screenshot are 10 pixels high."""
_FIRST_EDGE = 1_024
"""Pixels of the longer edge of the picture in which lines are looked for first."""
_LOW = 15
"""Pixels in that picture: a line of 9 points on A4 is 16 high, and lower ones can be missed."""
_EDGE = 20
_STRAY_EDGES = 50
"""Steps of so many levels of a colour outside the lines in that picture: clean pages have none, and
thirty pale words of 7 pixels in the whole one, which were not found, had 129."""
_BLANK = 12
"""Levels of grey, of 256, that paper without print has at the most."""
_MIN_SCORE = 0.5
_SAMPLES = 5
"""The longest lines, by which a page is known to be upside down."""
_SURE = 0.9
"""Lines that are read with this certainty are upright: upside down they reached 0.7 at most."""


Pixels = Any
"""An array of numpy, height by width by three. The extra brings numpy: type checkers have none."""

NOTHING = PageText("", 1.0)


def read(picture: "Image.Image") -> PageText:
    """Return the text of a picture, whichever way up it is."""
    np = _numpy()
    picture = _prepared(picture)
    low, high = picture.convert("L").getextrema()
    if float(high) - float(low) < _BLANK:  # type: ignore[arg-type]
        return NOTHING
    pixels = np.asarray(picture)[:, :, ::-1]  # the models were trained on BGR
    boxes = _boxes(pixels)
    if _stands_on_its_side(boxes):
        pixels = np.ascontiguousarray(np.rot90(pixels))
        boxes = _boxes(pixels)
    readings = _readings(pixels, boxes)
    if _is_upside_down(pixels, boxes, readings):
        pixels = np.ascontiguousarray(np.rot90(pixels, 2))
        boxes = _boxes(pixels)
        readings = _readings(pixels, boxes)
    return _as_page(boxes, readings)


def _prepared(picture: "Image.Image") -> "Image.Image":
    """Return a picture in RGB on white, within the bounds of size."""
    from PIL import Image  # noqa: PLC0415 - a heavy import

    if picture.mode in ("RGBA", "LA", "PA") or "transparency" in picture.info:
        picture = picture.convert("RGBA")
        paper = Image.new("RGBA", picture.size, "white")
        picture = Image.alpha_composite(paper, picture)
    picture = picture.convert("RGB")
    longer = max(picture.size)
    scale = MAX_EDGE / longer if longer > MAX_EDGE else max(_SMALL_EDGE / longer, 1)
    scale = min(scale, 4)
    if scale == 1:
        return picture
    width, height = (max(round(edge * scale), 1) for edge in picture.size)
    return picture.resize((width, height), Image.Resampling.LANCZOS)  # pyright: ignore[reportUnknownMemberType] - numpy


def _numpy() -> Any:
    return import_module("numpy")


@cache
def _engine() -> Any:
    return import_module("rapidocr").RapidOCR(
        params={
            "Global.log_level": "critical",
            "Global.use_cls": False,  # it turns upright lines over; see _is_upside_down
            "Global.max_side_len": MAX_EDGE,
            "Det.limit_type": "max",  # else it enlarges strips and buttons once more
            "Det.limit_side_len": MAX_EDGE,
            "Rec.rec_batch_num": 1,  # six at a time take half as much memory again, and no less CPU
            # A second thread spins while it waits, which doubles the CPU on a busy machine.
            "EngineConfig.onnxruntime.intra_op_num_threads": 1,
        }
    )


def _boxes(pixels: Pixels) -> list[Any]:
    """Return the corners of each line of text, from the upper left, clockwise.

    Lines are looked for in a smaller picture, and where that may miss small print in the whole one.
    """
    height, width, _ = pixels.shape
    scale = _FIRST_EDGE / max(height, width)
    if scale < 1:
        size = max(round(width * scale), 1), max(round(height * scale), 1)
        cv2 = import_module("cv2")
        small = cv2.resize(pixels, size, interpolation=cv2.INTER_AREA)
        boxes = _detected(small)
        low = any(min(_size(box)) < _LOW for box in boxes)
        if not low and _edges_outside(small, boxes) <= _STRAY_EDGES:
            return [box / scale for box in boxes]
    return _detected(pixels)


def _edges_outside(pixels: Pixels, boxes: Sequence[Any]) -> int:
    """Return how many pixels differ from their left neighbour, outside the lines of text."""
    np = _numpy()
    edges = np.abs(np.diff(pixels.astype(np.int16), axis=1)).max(axis=2) > _EDGE
    for box in boxes:
        (left, top), (right, bottom) = box.min(axis=0).astype(int), box.max(axis=0).astype(int)
        edges[max(top - 2, 0) : bottom + 3, max(left - 2, 0) : right + 3] = False
    return int(edges.sum())


def _detected(pixels: Pixels) -> list[Any]:
    detected = _engine()(pixels, use_det=True, use_cls=False, use_rec=False)
    boxes = getattr(detected, "boxes", None)
    return [] if boxes is None else list(boxes)


def _size(box: Any) -> tuple[float, float]:
    a, b, c, _ = (tuple(map(float, corner)) for corner in box)
    return math.dist(a, b), math.dist(b, c)


def _stands_on_its_side(boxes: Sequence[Any]) -> bool:
    """Return whether most of the text is in boxes that are higher than wide."""
    tall = wide = 0.0
    for width, height in map(_size, boxes):
        if height > 1.5 * width:
            tall += height
        elif width > 1.5 * height:
            wide += width
    return tall > wide


def _readings(pixels: Pixels, boxes: Sequence[Any]) -> list[tuple[str, float]]:
    """Return the text of each box, and the model's confidence in it."""
    if not boxes:
        return []
    engine = _engine()
    recognised = engine.recognize_txt(engine.crop_text_regions(pixels, _numpy().array(boxes)))
    return list(zip(recognised.txts, map(float, recognised.scores), strict=True))


def _is_upside_down(
    pixels: Pixels, boxes: Sequence[Any], readings: Sequence[tuple[str, float]]
) -> bool:
    """Return whether the longest lines are read with more certainty the other way up.

    They are not read again where the first reading leaves no doubt.
    """
    by_size = sorted(range(len(boxes)), key=lambda number: _size(boxes[number]), reverse=True)
    longest = by_size[:_SAMPLES]
    if not longest:
        return False
    certainty = fmean(readings[number][1] for number in longest)
    if certainty >= _SURE:
        return False
    np, engine = _numpy(), _engine()
    cut = engine.crop_text_regions(pixels, np.array([boxes[number] for number in longest]))
    turned = engine.recognize_txt([np.ascontiguousarray(np.rot90(line, 2)) for line in cut])
    return fmean(map(float, turned.scores)) > certainty


def _as_page(boxes: Sequence[Any], readings: Sequence[tuple[str, float]]) -> PageText:
    """Return the text of a page in reading order, and the share of it that is certain."""
    corners = [[(float(x), float(y)) for x, y in box] for box in boxes]
    angle = slope(corners)
    sure = [
        (upright(text.strip(), box, angle), score)
        for (text, score), box in zip(readings, corners, strict=True)
        if text.strip() and score >= _MIN_SCORE
    ]
    if not sure:
        return NOTHING
    legible = [(line, score) for line, score in sure if is_legible(line)]
    room = sum(line.right - line.left for line, _ in sure)
    confidence = sum((line.right - line.left) * score for line, score in legible) / max(room, 1.0)
    return PageText(mend(as_text([line for line, _ in legible])), confidence)
