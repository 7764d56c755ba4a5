"""The drawn objects of a PDF page by pdfium: rules and pictures."""

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from ctypes import byref, c_float, c_uint
from dataclasses import dataclass
from itertools import pairwise
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fetchstash.handlers._contract import Picture
from fetchstash.handlers._limits import ExtractLimits
from fetchstash.handlers._parts import bounded
from fetchstash.handlers._pdf._words import Box, turned, unchecked
from fetchstash.handlers._reasons import Reason

if TYPE_CHECKING:
    from pypdfium2 import PdfDocument, PdfPage

# So many objects of a page are looked at, and so many forms on it.
_MAX_OBJECTS, _MAX_FORMS = 20_000, 200
# A drawing of more objects, or a path of more segments, is a picture and no table.
_MAX_DRAWN = 10_000
_MAX_PATHS = 3_000
_MAX_SEGMENTS = 400
_MAX_ALL_SEGMENTS = 20_000
# A line with more corners is a curve of a drawing, and so are the curves of a longer path.
_MAX_CORNERS, _MAX_ROUNDED = 12, 24
# Thin paths are rules by their box; of the others so many are looked at, more are a drawing.
_MAX_READ = 500
# A filled rectangle thinner than this, in points, is a rule; another has four edges.
_THIN = 3.0
_SHORTEST = 3.0
# Smaller drawings, in points, are no tables.
_SMALL = 6.0
_STRAIGHT = 0.5

# Smaller pictures are icons and bullets.
_MAX_PICTURES = 1_000
_MAX_PIXELS = 64_000_000
_LEAST_SIDE = 32

_IMAGE = re.compile(rb"/Subtype\s{0,4}/Image\b")

Matrix = tuple[float, float, float, float, float, float]
PLAIN: Matrix = (1, 0, 0, 1, 0, 0)
"""The matrix that changes nothing."""
Item = tuple[Any, int, Matrix]
"""An object of a page, its kind, and the matrix of the form that it stands in."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A straight line: at ``at`` on one axis, from ``start`` to ``end`` on the other."""

    at: float
    start: float
    end: float


def read_rules(
    page: "PdfPage", items: Sequence[Item], rotation: int
) -> tuple[list[Rule], list[Rule]]:
    """Return horizontal and vertical rules: the lines and edges of rectangles of a page."""
    width, height = page.get_size()
    if rotation in {90, 270}:
        width, height = height, width
    horizontal: list[Rule] = []
    vertical: list[Rule] = []
    for box in _boxes(items):
        x0, y0, x1, y1 = turned(box, rotation)
        wide, high = x1 - x0, y1 - y0
        if wide > 0.95 * width and high > 0.95 * height:  # the paper
            continue
        if high < _THIN and wide >= _SHORTEST:
            horizontal.append(Rule((y0 + y1) / 2, x0, x1))
        elif wide < _THIN and high >= _SHORTEST:
            vertical.append(Rule((x0 + x1) / 2, y0, y1))
        elif wide >= _THIN and high >= _THIN:
            horizontal += [Rule(y0, x0, x1), Rule(y1, x0, x1)]
            vertical += [Rule(x0, y0, y1), Rule(x1, y0, y1)]
    return horizontal, vertical


def objects_of(page: "PdfPage") -> list[Item]:
    """Return the objects of a page and of the forms on it as they are painted.

    They are addresses in pdfium, valid as long as the page is open.
    """
    from pypdfium2 import raw  # noqa: PLC0415 - a heavy import

    m = raw.FS_MATRIX()
    get, kind_of = unchecked("FPDFPage_GetObject"), unchecked("FPDFPageObj_GetType")
    handle, form = page.raw, raw.FPDF_PAGEOBJ_FORM
    count = min(raw.FPDFPage_CountObjects(handle), _MAX_OBJECTS)
    items: list[Item] = []
    waiting: list[tuple[Any, Matrix]] = [(get(handle, n), PLAIN) for n in range(count)]
    waiting.reverse()
    forms, left = 0, _MAX_OBJECTS
    while waiting and left:
        left -= 1
        item, outer = waiting.pop()
        kind = kind_of(item)
        if kind != form:
            items.append((item, kind, outer))
            continue
        forms += 1
        if forms <= _MAX_FORMS and raw.FPDFPageObj_GetMatrix(item, byref(m)):
            inner = product((m.a, m.b, m.c, m.d, m.e, m.f), outer)
            many = min(raw.FPDFFormObj_CountObjects(item), left)
            waiting += [
                (raw.FPDFFormObj_GetObject(item, index), inner) for index in range(many - 1, -1, -1)
            ]
    return items


def _boxes(items: Sequence[Item]) -> Iterator[Box]:
    """Yield the boxes of straight segments and rectangles."""
    from pypdfium2 import raw  # noqa: PLC0415 - a heavy import

    if len(items) > _MAX_DRAWN:
        return
    paths = read = all_segments = 0
    m = raw.FS_MATRIX()
    bounds_of, path = unchecked("FPDFPageObj_GetBounds"), raw.FPDF_PAGEOBJ_PATH
    x0, y0, x1, y1 = c_float(), c_float(), c_float(), c_float()
    edges = byref(x0), byref(y0), byref(x1), byref(y1)
    for item, kind, outer in items:
        if kind != path:
            continue
        bounds_of(item, *edges)
        box = x0.value, y0.value, x1.value, y1.value
        if outer is not PLAIN:
            box = moved(box, outer)
        wide, high = box[2] - box[0], box[3] - box[1]
        if wide < _SMALL and high < _SMALL:  # a mark, or a letter that is drawn
            continue
        paths += 1
        if paths > _MAX_PATHS:
            return
        if min(wide, high) < _THIN:
            yield box
            continue
        segments = raw.FPDFPath_CountSegments(item)
        all_segments += segments
        read += 1
        if read <= _MAX_READ and segments <= _MAX_SEGMENTS and all_segments <= _MAX_ALL_SEGMENTS:
            matrix = outer
            if raw.FPDFPageObj_GetMatrix(item, byref(m)):
                matrix = product((m.a, m.b, m.c, m.d, m.e, m.f), outer)
            yield from _straight(item, matrix)


def product(first: Matrix, then: Matrix) -> Matrix:
    """Return the matrix that does ``first``, then ``then`` (ISO 32000-1, section 8.3.4)."""
    a, b, c, d, e, f = first
    g, h, i, j, k, l = then  # noqa: E741 - the letters go on
    x, y = e * g + f * i + k, e * h + f * j + l
    return a * g + b * i, a * h + b * j, c * g + d * i, c * h + d * j, x, y


def moved(box: Box, matrix: Matrix) -> Box:
    """Return the box that holds a box which a matrix moves."""
    a, b, c, d, e, f = matrix
    xs = [a * x + c * y + e for x in (box[0], box[2]) for y in (box[1], box[3])]
    ys = [b * x + d * y + f for x in (box[0], box[2]) for y in (box[1], box[3])]
    return min(xs), min(ys), max(xs), max(ys)


def _straight(path: Any, matrix: Matrix) -> Iterator[Box]:
    """Yield boxes of the straight parts of a path; a closed rectangle is one box."""
    from pypdfium2 import raw  # noqa: PLC0415 - a heavy import

    segment_of = unchecked("FPDFPath_GetPathSegment")
    kind_of = unchecked("FPDFPathSegment_GetType")
    point_of = unchecked("FPDFPathSegment_GetPoint")
    is_closed = unchecked("FPDFPathSegment_GetClose")
    a, b, c, d, e, f = matrix
    x, y = c_float(), c_float()
    at_x, at_y = byref(x), byref(y)
    points: list[tuple[float, float]] = []
    count = raw.FPDFPath_CountSegments(path)
    for index in range(count):
        segment = segment_of(path, index)
        kind = kind_of(segment)
        point_of(segment, at_x, at_y)
        point = (a * x.value + c * y.value + e, b * x.value + d * y.value + f)
        if kind == raw.FPDF_SEGMENT_MOVETO:
            yield from _joined(points)
            points = [point]
        elif kind == raw.FPDF_SEGMENT_LINETO:
            if points and min(abs(points[-1][0] - point[0]), abs(points[-1][1] - point[1])) > 1:
                break  # a slanted line: a drawing, which may have thousands
            if len(points) > _MAX_CORNERS:
                return
            points.append(point)
            if is_closed(segment) and points[-1] != points[0]:
                points.append(points[0])
        elif count > _MAX_ROUNDED:
            return
        else:  # a curve, as in the corners of a box
            yield from _joined(points)
            points = []
    yield from _joined(points)


def _joined(points: list[tuple[float, float]]) -> Iterator[Box]:
    """Yield the box of a rectangle, or else those of the straight lines between points."""
    if len(points) in {4, 5}:
        xs, ys = {round(x, 1) for x, _ in points}, {round(y, 1) for _, y in points}
        if len(xs) == len(ys) == 2:
            yield min(xs), min(ys), max(xs), max(ys)
            return
    for (x0, y0), (x1, y1) in pairwise(points):
        if abs(x0 - x1) < _STRAIGHT or abs(y0 - y1) < _STRAIGHT:
            yield min(x0, x1), min(y0, y1), max(x0, x1), max(y0, y1)


def are_in(source: Path) -> bool:
    """Return whether a file holds pictures.

    The dictionary of a picture is that of a stream, which no object stream compresses (ISO 32000-1,
    section 7.5.7). Looking for one is cheaper than looking at the objects of each page.
    """
    with source.open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as data:
        return _IMAGE.search(data) is not None


class PageImages:
    """Numbers the pictures of pages, which come in order; one that comes again has no number."""

    def __init__(self) -> None:
        self.count = 0
        self._seen: set[tuple[int, int, int]] = set()

    def of(self, items: Iterable[Item]) -> Iterator[tuple[int, Any, int, int]]:
        """Yield number, object, width and height of each new picture among those of a page."""
        from pypdfium2 import raw  # noqa: PLC0415 - a heavy import

        width, height = c_uint(), c_uint()
        image = raw.FPDF_PAGEOBJ_IMAGE
        for item, kind, _ in items:
            if kind != image:
                continue
            if self.count >= _MAX_PICTURES:
                return
            raw.FPDFImageObj_GetImagePixelSize(item, byref(width), byref(height))
            if min(width.value, height.value) < _LEAST_SIDE:
                continue
            # The same logo on each page has the same size and takes as many bytes.
            length = raw.FPDFImageObj_GetImageDataRaw(item, None, 0)
            key = (width.value, height.value, length)
            if key not in self._seen:
                self._seen.add(key)
                self.count += 1
                yield self.count, item, width.value, height.value

    def marks(self, items: Iterable[Item]) -> str:
        """Return the new pictures among the objects of a page as Markdown, a line each."""
        return "\n".join(
            f"![picture, {width}×{height} px](images/{number})"
            for number, _, width, height in self.of(items)
        )


def listed(document: "PdfDocument", limits: ExtractLimits) -> str:
    """Return a line for each picture of a document."""
    images = PageImages()
    lines: list[str] = []
    for index in range(min(len(document), limits.pdf_max_pages)):
        with closing(document[index]) as page:
            lines += [
                f"{number}. page {index + 1}, {width}×{height} px\n"
                for number, _, width, height in images.of(objects_of(page))
            ]
    return "".join(lines)


def shown(document: "PdfDocument", wanted: str, limits: ExtractLimits) -> Picture:
    """Return the picture of this number. Raises OutOfRange or NoText."""
    from pypdfium2 import PdfImage, PdfiumError  # noqa: PLC0415 - a heavy import

    images = PageImages()
    for index in range(min(len(document), limits.pdf_max_pages)):
        page = document[index]
        for number, item, width, height in images.of(objects_of(page)):
            if str(number) != wanted:
                continue
            if width * height > _MAX_PIXELS:
                raise Reason.IMAGE_PIXELS.error(limit=_MAX_PIXELS)
            image = PdfImage(item, page=page, pdf=document)
            try:
                bitmap = image.get_bitmap(render=True, scale_to_original=True)
            except PdfiumError:
                raise Reason.IMAGE_DAMAGED.error() from None
            return bounded(bitmap.to_pil(), limits.preview, photo=width * height > 250_000)
    raise Reason.DOCUMENT_PICTURES.error(count=images.count)
