"""EXIF of a picture, the place included (Exif 2.32): read only if ``path="exif"`` asks for it."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from fetchstash.text import clip

if TYPE_CHECKING:
    from PIL import Image

_EXIF, _GPS = 0x8769, 0x8825
_POINTERS = {_EXIF, _GPS, 0xA005}
# Section 4.6.6: the hemisphere and degrees, minutes and seconds, of latitude and longitude.
_LATITUDE, _LONGITUDE = (1, 2), (3, 4)
_MAX_VALUE = 500


def exif_lines(image: "Image.Image") -> Iterator[str]:
    """Yield a line for each tag, "Name: value", and one with the place in degrees."""
    from PIL import ExifTags, Image  # noqa: PLC0415 - a heavy import

    exif = Image.Image.getexif(image)  # PNG's own would decode the pixels first
    place = exif.get_ifd(_GPS)
    for tags, names in (
        (dict(exif), ExifTags.TAGS),
        (exif.get_ifd(_EXIF), ExifTags.TAGS),
        (place, ExifTags.GPSTAGS),
    ):
        for number, value in tags.items():
            if number not in _POINTERS:
                yield f"{names.get(number, f'Tag {number:#06x}')}: {_shown(value)}\n"
    if position := _position(place):
        yield f"Position: {position}\n"


def _shown(value: Any) -> str:
    """Return a value on one line; of bytes that are no ASCII only their number."""
    if isinstance(value, bytes):
        stripped = value.strip(b"\0 ")
        is_text = bool(stripped) and stripped.isascii() and stripped.decode("ascii").isprintable()
        value = stripped.decode("ascii") if is_text else f"({len(value):,} bytes)"
    elif isinstance(value, tuple):
        value = ", ".join(map(str, value))  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    return clip(" ".join(str(value).replace("\0", " ").split()), _MAX_VALUE)


def _position(place: Mapping[int, Any]) -> str:
    """Return latitude and longitude in degrees with their signs, "" if there are no valid ones."""
    degrees: list[float] = []
    for (reference, values), bound in ((_LATITUDE, 90), (_LONGITUDE, 180)):
        try:
            whole, minutes, seconds = (float(value) for value in place[values])
            degree = whole + minutes / 60 + seconds / 3600
        except (KeyError, TypeError, ValueError, ZeroDivisionError):
            return ""
        if not 0 <= degree <= bound:
            return ""
        degrees.append(
            -degree if str(place.get(reference, "")).strip("\0 ") in {"S", "W"} else degree
        )
    return ", ".join(f"{degree:.6f}" for degree in degrees)
