"""Pictures for a model: encoded within the bounds of image content (context.max_image_…)."""

import io
from collections.abc import Iterator
from typing import TYPE_CHECKING

from fetchstash.handlers._contract import Picture
from fetchstash.handlers._reasons import Reason
from fetchstash.text import PreviewLimits

if TYPE_CHECKING:
    from PIL import Image

_JPEG_QUALITIES = (85, 70, 50)
_SMALLEST_EDGE = 64


def bounded(image: "Image.Image", limits: PreviewLimits, *, photo: bool) -> Picture:
    """Return ``image`` encoded, and made smaller until it is within ``limits``.

    It is PNG, or JPEG if it is a ``photo`` or too large as PNG. Raises TooLarge if even a thumbnail
    is over the limit.
    """
    image = _plain(image)
    edge = min(limits.max_image_edge_px, max(image.size))
    while True:
        image.thumbnail((edge, edge), reducing_gap=2.0)
        for encoded, media_type in _encodings(image, photo=photo):
            if len(encoded) <= limits.max_image_size_bytes:
                return Picture(encoded, media_type, *image.size)
        edge = max(image.size) // 2
        if edge < _SMALLEST_EDGE:
            raise Reason.LARGE_PICTURE.error()


def _plain(image: "Image.Image") -> "Image.Image":
    """Return ``image`` in a mode that PNG and JPEG share, or in RGBA, which only PNG has."""
    if image.mode in {"L", "RGB", "RGBA"}:
        return image
    transparent = image.mode in {"LA", "La", "PA", "RGBa"} or "transparency" in image.info
    return image.convert("RGBA" if transparent else "L" if image.mode == "1" else "RGB")


def _encodings(image: "Image.Image", *, photo: bool) -> Iterator[tuple[bytes, str]]:
    """Yield ``image`` encoded, the best looking first."""
    from PIL import Image  # noqa: PLC0415 - only a worker that makes pictures pays for it

    if not photo:
        yield _encode(image, "PNG"), "image/png"
    if image.mode == "RGBA":  # JPEG has no transparency: paint on white
        backed = Image.new("RGB", image.size, "white")
        backed.paste(image, mask=image)
        image = backed
    for quality in _JPEG_QUALITIES:
        yield _encode(image, "JPEG", quality=quality), "image/jpeg"


def _encode(image: "Image.Image", form: str, **options: int) -> bytes:
    out = io.BytesIO()
    image.save(out, form, **options)
    return out.getvalue()
