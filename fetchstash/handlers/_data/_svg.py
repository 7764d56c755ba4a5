"""SVG: text as XML, and the picture by resvg, which runs no scripts and fetches nothing."""

import io
import re
from pathlib import Path

from fetchstash.handlers._contract import Extracted, Hints, PartRequest, PartText, Picture
from fetchstash.handlers._data import DataReason
from fetchstash.handlers._data._xml import XmlHandler
from fetchstash.handlers._limits import ExtractLimits
from fetchstash.handlers._reasons import Reason
from fetchstash.handlers._shared._picture import bounded

_MAX_BYTES = 8 * 1024 * 1024
_HEAD_BYTES = 64 * 1024
_MAX_SCALE = 8.0
_ROOT = re.compile(r"<(?:\w+:)?svg\b[^>]{0,4000}>")
_SIDE = re.compile(r"""\b(width|height)\s*=\s*["']\s*([\d.]{1,10})\s*(?:px)?\s*["']""")
_VIEW = re.compile(
    r"""\bviewBox\s*=\s*["']\s*[-\d.]+[\s,]+[-\d.]+[\s,]+([\d.]{1,10})[\s,]+([\d.]{1,10})"""
)


class SvgHandler:
    """Reads SVG as XML, and draws it."""

    name = "svg"

    def __init__(self) -> None:
        self._xml = XmlHandler()

    def extract(self, source: Path, hints: Hints, limits: ExtractLimits) -> Extracted:
        """Return the text, as that of other XML, and the size of the drawing."""
        extracted = self._xml.extract(source, hints, limits)
        with source.open("rb") as file:
            width, height = _size(file.read(_HEAD_BYTES).decode("utf-8-sig", "replace"))
        extracted.learn(width=max(round(width), 1), height=max(round(height), 1))
        return extracted

    def part(self, request: PartRequest) -> PartText | Picture:
        """Return elements as text, or all of it as a picture."""
        if request.render != "image" or request.path:
            return self._xml.part(request)
        from PIL import Image  # noqa: PLC0415 - a heavy import

        edge = request.limits.preview.max_image_edge_px
        with Image.open(io.BytesIO(_drawn(request.source, edge)), formats=("PNG",)) as image:
            return bounded(image, request.limits.preview, photo=False)


def _drawn(source: Path, edge: int) -> bytes:
    """Return a PNG whose longer side is at most ``edge`` pixels. Raises NoText."""
    import resvg_py  # noqa: PLC0415 - a heavy import

    if source.stat().st_size > _MAX_BYTES:
        raise DataReason.SVG_LARGE.error(limit=_MAX_BYTES)
    markup = source.read_bytes().decode("utf-8-sig", "replace")
    width, height = _size(markup)
    longest = max(width, height)
    zoom = min(edge / longest, _MAX_SCALE)
    try:
        return bytes(
            resvg_py.svg_to_bytes(
                svg_string=markup,
                width=max(round(width * zoom), 1),
                height=max(round(height * zoom), 1),
                background="white",
            )
        )
    except BaseException as error:
        # resvg reports damage by ValueError, and a panic is a BaseException of pyo3's.
        if isinstance(error, Exception) or type(error).__name__ == "PanicException":
            raise Reason.IMAGE_DAMAGED.error() from None
        raise


def _size(markup: str) -> tuple[float, float]:
    """Return width and height of a drawing in its own units, 300 by 150 where it has none."""
    root = _ROOT.search(markup, 0, _HEAD_BYTES)
    sides = dict(_SIDE.findall(root[0])) if root else {}
    view = _VIEW.search(root[0]) if root else None
    numbers = [_number(sides.get(name, "")) for name in ("width", "height")]
    if view:
        across, down = _number(view[1]), _number(view[2])
        numbers = [numbers[0] or across, numbers[1] or down]
    return numbers[0] or 300.0, numbers[1] or 150.0


def _number(text: str) -> float:
    try:
        return min(max(float(text), 0.0), 1e6)
    except ValueError:
        return 0.0
