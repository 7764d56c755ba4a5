"""Text that a page draws and nobody sees: white, transparent, covered, or in layers that are off.

Text without ink (render mode 3) is none of it: it is the layer of a scan, and is kept.
"""

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from ctypes import byref, c_float, c_int, c_uint, c_ulong, c_ushort, c_void_p, cast
from itertools import islice
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fetchstash.handlers._pdf._objects import PLAIN, Item, moved
from fetchstash.handlers._pdf._words import Box, unchecked

if TYPE_CHECKING:
    from pypdfium2 import PdfPage, PdfTextPage

# So many fills may cover or carry the texts of a page.
_MAX_COVERS = 1_000
_MAX_LOOKS, _MAX_PAIRS = 100_000, 2_000_000
# Of 255: lighter is white, fainter is not seen, and what is not as dense covers nothing.
WHITE, FAINT, _DENSE = 250, 12, 250
_SMALL = 4.0
# A form in a layer names it in its dictionary.
_LAYERED = re.compile(rb"/OC[ \t\r\n]{1,4}\d{1,10}[ \t\r\n]|/OC[ \t\r\n]{0,4}<<")
# Pictures in which texts are looked for, in pixels a point; of one grey but for so much.
_SCALE, _MAX_EDGE, _FLAT = 2.0, 3_000, 2
# A picture of so much of a page is a scan, whose text lies under it.
_SCAN = 0.5


def hidden_texts(
    page: "PdfPage",
    items: Sequence[Item],
    layers_off: Callable[[], frozenset[str]],
    *,
    has_layered_forms: bool,
) -> set[int]:
    """Return the addresses of the text objects, among those of a page, that nobody sees.

    ``layers_off`` names the layers that are off when the document is opened. ``has_layered_forms``:
    forms of the document may be in layers, too.
    """
    from pypdfium2 import raw  # noqa: PLC0415 - a heavy import

    looks = _Looks(items, page.get_size())
    text, invisible = raw.FPDF_PAGEOBJ_TEXT, raw.FPDF_TEXTRENDERMODE_INVISIBLE
    colour_of = unchecked("FPDFPageObj_GetFillColor")
    mode_of = unchecked("FPDFTextObj_GetTextRenderMode")
    marks_of = unchecked("FPDFPageObj_CountMarks")
    red, green, blue, alpha = looks.colours
    at = looks.at_colours
    hidden: set[int] = set()
    texts: list[int] = []
    unsure: list[Item] = []
    last_fill = 0
    for place, (item, kind, matrix) in enumerate(items):
        if kind != text:
            last_fill = place
            continue
        texts.append(place)
        is_faint = colour_of(item, *at) and (
            alpha.value <= FAINT
            or (red.value >= WHITE and green.value >= WHITE and blue.value >= WHITE)
        )
        if (
            is_faint
            and mode_of(item) in {0, 4}
            and (alpha.value <= FAINT or not looks.is_on_ink(place))
        ):
            hidden.add(_address(item))
        elif marks_of(item) and (names := _layers(item)):
            if not layers_off().isdisjoint(names):
                hidden.add(_address(item))
            elif "" in names:
                unsure.append(items[place])
        elif has_layered_forms and matrix is not PLAIN:
            unsure.append(items[place])
    if texts and last_fill > texts[0]:
        painted = ((at, items[at]) for at in range(texts[0], last_fill + 1))
        most = min(_MAX_COVERS, _MAX_PAIRS // len(texts))
        fills = islice((pair for pair in painted if pair[1][1] in looks.fills), most)
        covers = deque((at, box) for at, item in fills if (box := looks.cover(item)))
        for place in texts if covers else ():
            item, box = items[place][0], looks.box(items[place])
            while covers and covers[0][0] < place:  # what is painted before a text is under it
                covers.popleft()
            if _is_under(box, covers) and mode_of(item) != invisible:
                hidden.add(_address(item))
    if unsure and layers_off():
        drawn = [item for item in unsure if mode_of(item[0]) != invisible]
        hidden.update(_undrawn(page, [(_address(item[0]), looks.box(item)) for item in drawn]))
    return hidden


def has_layered_forms(source: Path) -> bool:
    """Return whether a file holds forms that name a layer (ISO 32000-1, section 8.11.3.3).

    The dictionary of a form is that of a stream, which is never compressed.
    """
    with source.open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as data:
        return _LAYERED.search(data) is not None


def _undrawn(page: "PdfPage", texts: Sequence[tuple[int, Box]]) -> Iterator[int]:
    """Yield the addresses of texts that a picture of the page does not show.

    pdfium tells neither which layers a membership dictionary names nor the layer of a form, but it
    does not draw what is off. A text over others stays.
    """
    scale = min(_SCALE, _MAX_EDGE / max(*page.get_size(), 1.0))
    with closing(page.render(scale=scale, grayscale=True)) as bitmap:
        picture = bitmap.to_pil()
        to_bitmap = bitmap.get_posconv(page).to_bitmap
        for address, (left, bottom, right, top) in texts:
            (a, b), (c, d) = to_bitmap(left, bottom), to_bitmap(right, top)
            x0, y0 = max(min(a, c), 0), max(min(b, d), 0)
            x1, y1 = min(max(a, c) + 1, picture.width), min(max(b, d) + 1, picture.height)
            if x0 < x1 and y0 < y1:
                greys = picture.crop((x0, y0, x1, y1)).tobytes()
                if max(greys) - min(greys) <= _FLAT:
                    yield address


class _Looks:
    """Asks pdfium how objects look."""

    def __init__(self, items: Sequence[Item], size: tuple[float, float]) -> None:
        from pypdfium2 import raw  # noqa: PLC0415 - a heavy import

        self.fills = {raw.FPDF_PAGEOBJ_PATH, raw.FPDF_PAGEOBJ_IMAGE, raw.FPDF_PAGEOBJ_SHADING}
        self._raw, self._items, self._page = raw, items, size[0] * size[1]
        self._edges = c_float(), c_float(), c_float(), c_float()
        self._at = tuple(map(byref, self._edges))
        self.colours = c_uint(), c_uint(), c_uint(), c_uint()
        self.at_colours = tuple(map(byref, self.colours))
        self._mode = c_int(), c_int()
        self._left = _MAX_LOOKS
        self._bounds_of = unchecked("FPDFPageObj_GetBounds")
        self._paint_of = unchecked("FPDFPath_GetDrawMode")

    def colour(self, item: Item) -> tuple[int, int, int, int]:
        """Return the colour that fills an object; black for a pattern, which has none."""
        if item[1] not in {self._raw.FPDF_PAGEOBJ_TEXT, self._raw.FPDF_PAGEOBJ_PATH}:
            return 0, 0, 0, 255
        if not self._raw.FPDFPageObj_GetFillColor(item[0], *self.at_colours):
            return 0, 0, 0, 255
        red, green, blue, alpha = self.colours
        return red.value, green.value, blue.value, alpha.value

    def box(self, item: Item) -> Box:
        """Return the box of an object."""
        self._bounds_of(item[0], *self._at)
        left, bottom, right, top = self._edges
        box = left.value, bottom.value, right.value, top.value
        return box if item[2] is PLAIN else moved(box, item[2])

    def cover(self, item: Item) -> Box | None:
        """Return the box of an object that hides what it is painted over, None for another."""
        box = self.box(item)
        wide, high = box[2] - box[0], box[3] - box[1]
        if min(wide, high) < _SMALL or not self._fills(item):
            return None
        if item[1] == self._raw.FPDF_PAGEOBJ_IMAGE and wide * high > _SCAN * self._page:
            return None
        if self.colour(item)[3] < _DENSE or self._raw.FPDFPageObj_HasTransparency(item[0]):
            return None
        return box

    def is_on_ink(self, place: int) -> bool:
        """Return whether a text stands on something that is painted before it and not white."""
        box = self.box(self._items[place])
        x, y = (box[0] + box[2]) / 2, (box[1] + box[3]) / 2
        for item in reversed(self._items[:place]):
            if item[1] not in self.fills:
                continue
            self._left -= 1
            if self._left < 0:
                return True
            left, bottom, right, top = self.box(item)
            if left <= x <= right and bottom <= y <= top and self._fills(item):
                red, green, blue, alpha = self.colour(item)
                if alpha > FAINT:
                    return min(red, green, blue) < WHITE
        return False

    def _fills(self, item: Item) -> bool:
        if item[1] != self._raw.FPDF_PAGEOBJ_PATH:
            return True
        fill, stroke = self._mode
        self._paint_of(item[0], byref(fill), byref(stroke))
        return fill.value != 0


def hidden_chars(text_page: "PdfTextPage", hidden: set[int], starts: Iterable[int]) -> set[int]:
    """Return which of the characters at ``starts`` belong to ``hidden`` text objects."""
    get, handle = unchecked("FPDFText_GetTextObject"), text_page.raw
    return {index for index in starts if _address(get(handle, index)) in hidden}


def _address(item: Any) -> int:
    return cast(item, c_void_p).value or 0


def _is_under(box: Box, covers: Iterable[tuple[int, Box]]) -> bool:
    """Return whether a cover leaves nothing of a text; boxes of letters are a little too large."""
    near = 0.15 * (box[3] - box[1])
    left, bottom, right, top = box[0] + near, box[1] + near, box[2] - near, box[3] - near
    for _, cover in covers:
        if cover[0] <= left and cover[1] <= bottom and cover[2] >= right and cover[3] >= top:
            return True
    return False


def _layers(item: Any) -> list[str]:
    """Return the names of the layers that a text stands in (ISO 32000-1, section 8.11).

    A membership dictionary, which names layers indirectly, has the name "".
    """
    from pypdfium2 import raw  # noqa: PLC0415 - a heavy import

    names: list[str] = []
    for index in range(min(raw.FPDFPageObj_CountMarks(item), 8)):
        mark = raw.FPDFPageObj_GetMark(item, index)
        buffer, length = (c_ushort * 128)(), c_ulong()
        raw.FPDFPageObjMark_GetName(mark, buffer, 256, byref(length))
        if bytes(buffer)[: length.value].decode("utf-16-le", "replace").strip("\0") != "OC":
            continue
        if raw.FPDFPageObjMark_GetParamStringValue(mark, b"Name", buffer, 256, byref(length)):
            names.append(bytes(buffer)[: length.value].decode("utf-16-le", "replace").strip("\0"))
        else:
            names.append("")
    return names
