"""A picture to its text, by the models of rapidocr. Runs in the worker alone."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from statistics import fmean
from typing import TYPE_CHECKING, Any

from fetchstash.handlers._ocr._order import as_text, is_legible, slope, upright
from fetchstash.handlers._pdf._text import mend

if TYPE_CHECKING:
    from PIL import Image

MAX_EDGE = 2_000
"""Pixels of the longer edge: 171 dpi for an A4 page. More costs time and reads no better."""
_SMALL_EDGE = 1_000
"""Small pictures are enlarged to this: the letters of a screenshot are 10 pixels high."""
_BLANK = 12
"""Levels of grey, of 256, that paper without print has at the most."""
_MIN_SCORE = 0.5
_SAMPLES = 5
"""Lines that are read both ways up."""
_THREADS = 2


@dataclass(frozen=True, slots=True)
class Reading:
    """The text that was read in a picture, and how sure of it the models are, from 0 to 1."""

    text: str
    confidence: float


Pixels = Any
"""An array of numpy, height by width by three. The extra brings numpy: type checkers have none."""

NOTHING = Reading("", 1.0)


def read(picture: "Image.Image") -> Reading:
    """Return the text of a picture, whichever way up it is."""
    np = _numpy()
    picture = _prepared(picture)
    low, high = picture.convert("L").getextrema()
    if float(high) - float(low) < _BLANK:  # type: ignore[arg-type]
        return NOTHING
    pixels = np.asarray(picture)[:, :, ::-1]  # the models were trained on BGR
    boxes = _boxes(pixels)
    if _stands_on_its_side(boxes):
        pixels = np.rot90(pixels)
        boxes = _boxes(pixels)
    if _is_upside_down(pixels, boxes):
        pixels = np.rot90(pixels, 2)
        boxes = _boxes(pixels)
    return _recognised(np.ascontiguousarray(pixels), boxes)


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
            "Rec.rec_batch_num": 1,  # six at a time take half as much memory again, and no less CPU
            "EngineConfig.onnxruntime.intra_op_num_threads": min(os.cpu_count() or 1, _THREADS),
        }
    )


def _boxes(pixels: Pixels) -> list[Any]:
    """Return the corners of each line of text, from the upper left, clockwise."""
    detected = _engine()(pixels, use_det=True, use_cls=False, use_rec=False)
    boxes = getattr(detected, "boxes", None)
    return [] if boxes is None else list(boxes)


def _lines(pixels: Pixels, boxes: Sequence[Any]) -> list[tuple[str, float]]:
    """Return the text and the score of each box."""
    np, engine = _numpy(), _engine()
    cut = engine.crop_text_regions(pixels, np.array(boxes))
    recognised = engine.recognize_txt(cut)
    return list(zip(recognised.txts, map(float, recognised.scores), strict=True))


def _size(box: Any) -> tuple[float, float]:
    """Return width and height of a box."""
    (ax, ay), (bx, by), (cx, cy), _ = box
    return float(((bx - ax) ** 2 + (by - ay) ** 2) ** 0.5), float(
        ((cx - bx) ** 2 + (cy - by) ** 2) ** 0.5
    )


def _stands_on_its_side(boxes: Sequence[Any]) -> bool:
    """Return whether most of the text is in boxes that are higher than wide."""
    tall = wide = 0.0
    for width, height in map(_size, boxes):
        if height > 1.5 * width:
            tall += height
        elif width > 1.5 * height:
            wide += width
    return tall > wide


def _is_upside_down(pixels: Pixels, boxes: Sequence[Any]) -> bool:
    """Return whether the longest lines are read with more certainty the other way up."""
    np, engine = _numpy(), _engine()
    longest = sorted(boxes, key=_size, reverse=True)[:_SAMPLES]
    if not longest:
        return False
    cut = engine.crop_text_regions(pixels, np.array(longest))
    scores = [
        fmean(engine.recognize_txt(pictures).scores)
        for pictures in (cut, [np.ascontiguousarray(np.rot90(line, 2)) for line in cut])
    ]
    return scores[1] > scores[0]


def _recognised(pixels: Pixels, boxes: Sequence[Any]) -> Reading:
    if not boxes:
        return NOTHING
    corners = [[(float(x), float(y)) for x, y in box] for box in boxes]
    angle = slope(corners)
    sure = [
        (upright(text.strip(), box, angle), score)
        for (text, score), box in zip(_lines(pixels, boxes), corners, strict=True)
        if text.strip() and score >= _MIN_SCORE
    ]
    if not sure:
        return NOTHING
    legible = [(line, score) for line, score in sure if is_legible(line)]
    room = sum(line.right - line.left for line, _ in sure)
    confidence = sum((line.right - line.left) * score for line, score in legible) / max(room, 1.0)
    return Reading(mend(as_text([line for line, _ in legible])), confidence)
