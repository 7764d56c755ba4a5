"""Images: facts by Pillow, EXIF on request, and the picture within the bounds of image content."""

import warnings
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from enum import unique
from math import ceil, sqrt
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fetchstash.errors import BadArgument, OutOfRange
from fetchstash.handlers._contract import (
    Extracted,
    Format,
    Head,
    Hints,
    PartRequest,
    PartText,
    Picture,
    Sniffed,
    family,
    variant,
)
from fetchstash.handlers._limits import ExtractLimits
from fetchstash.handlers._parts import bounded, part_text
from fetchstash.handlers._reasons import KEPT, Reason, ReasonTable
from fetchstash.text import clip, counted
from fetchstash.text.facts import DocumentFacts


@unique
class ImageReason(ReasonTable):
    """Why a picture is not read."""

    IMAGE_UNKNOWN = "the image is damaged, or of a format that is not known here", KEPT
    IMAGE_NO_EXIF = "The image has no EXIF.", 'Use render="image" to see it.', OutOfRange
    IMAGE_NO_TEXT = (
        "An image has no text.",
        'Use render="image", or path="exif" for all that its EXIF says.',
        BadArgument,
    )


if TYPE_CHECKING:
    from PIL import Image

# Formats of the web. Others of Pillow's are rare, and some start programs (EPS).
_FORMATS = (
    "PNG",
    "JPEG",
    "GIF",
    "WEBP",
    "AVIF",
    "BMP",
    "TIFF",
    "ICO",
    "ICNS",
    "JPEG2000",
    "PPM",
    "TGA",
    "PCX",
)
# Brands of HEIF that pi-heif decodes (a phone's photos); AVIF is Pillow's own.
_HEIF_BRANDS = (b"heic", b"heix", b"hevc", b"heim", b"heis", b"mif1", b"msf1")
_ANIMATED = {"GIF", "WEBP", "PNG"}
_MAX_FRAMES = 9
# A frame is decoded from the ones before it.
_FARTHEST_FRAME = 200
_LOSSY = {"JPEG", "WEBP", "AVIF", "JPEG2000", "HEIF"}
# Exif 2.32, section 4.6: the GPS IFD, with the place, is read only if path="exif" asks for it.
_ORIENTATION, _EXIF_IFD, _GPS_IFD = 0x0112, 0x8769, 0x8825
_POINTERS = {_EXIF_IFD, _GPS_IFD, 0xA005}
# Section 4.6.6: the hemisphere and degrees, minutes and seconds, of latitude and longitude.
_LATITUDE, _LONGITUDE = (1, 2), (3, 4)
_MAX_VALUE = 500
_SHOWN_TAGS = {
    "taken": (0x9003, 0x0132),
    "camera": (0x0110,),
    "software": (0x0131,),
    "by": (0x013B,),
    "description": (0x010E,),
}
_QUARTER_TURNS = {5, 6, 7, 8}


class ImageHandler:
    """Reads raster images; SVG is drawn elsewhere."""

    name = "image"

    def extract(self, source: Path, hints: Hints, limits: ExtractLimits) -> Extracted:  # noqa: ARG002 - the header says it all
        """Return size and facts; there is no text. Raises NoText for an unreadable image."""
        from PIL import Image  # noqa: PLC0415 - a heavy import

        with _opened(source) as image:
            width, height = image.size
            # PNG's own would decode the pixels first, to look for Exif behind them.
            exif = Image.Image.getexif(image)
            if exif.get(_ORIENTATION) in _QUARTER_TURNS:
                width, height = height, width
            info = _facts(image, exif)
        return Extracted(None, DocumentFacts(width=width, height=height, structure_info=info))

    def part(self, request: PartRequest) -> PartText | Picture:
        """Return the image as a picture, the right way up, or as text all of its EXIF."""
        if request.render == "text" and request.path == "exif":
            with _opened(request.source) as image:
                text = "".join(_exif_lines(image))
            if not text:
                raise ImageReason.IMAGE_NO_EXIF.error()
            return part_text(text, request)
        if request.render != "image" or request.path:
            raise ImageReason.IMAGE_NO_TEXT.error()
        from PIL import ImageOps  # noqa: PLC0415 - a heavy import

        limits = request.limits.preview
        edge = limits.max_image_edge_px
        with _opened(request.source) as image:
            image.draft(None, (2 * edge, 2 * edge))  # a JPEG is decoded at a fraction of its size
            photo = image.format in _LOSSY
            if image.format in _ANIMATED and getattr(image, "n_frames", 1) > 1:
                return bounded(_sheet(image, edge), limits, photo=photo)
            image.thumbnail((edge, edge), reducing_gap=2.0)
            return bounded(ImageOps.exif_transpose(image), limits, photo=photo)

    def raster(self, source: Path, page: int, edge: int) -> "Image.Image":  # noqa: ARG002 - one page
        """Return the image for OCR, the right way up."""
        from PIL import ImageOps  # noqa: PLC0415 - a heavy import

        with _opened(source) as image:
            image.draft(None, (edge, edge))
            return ImageOps.exif_transpose(image)


def _sheet(image: "Image.Image", edge: int) -> "Image.Image":
    """Return frames of an animation side by side, from its beginning to its end."""
    from PIL import Image  # noqa: PLC0415 - a heavy import

    count = min(getattr(image, "n_frames", 1), _FARTHEST_FRAME)
    shown = min(count, _MAX_FRAMES)
    across = ceil(sqrt(shown))
    side = edge // across
    scale = min(side / max(image.size), 1.0)
    width, height = (max(round(length * scale), 1) for length in image.size)
    sheet = Image.new("RGB", (width * across, height * ceil(shown / across)), "white")
    for place in range(shown):
        image.seek(place * (count - 1) // max(shown - 1, 1))
        frame = image.convert("RGBA")
        frame.thumbnail((width, height))
        sheet.paste(frame, (place % across * width, place // across * height), frame)
    return sheet


@contextmanager
def _opened(source: Path) -> Generator["Image.Image"]:
    """Open an image of at most some 89 million pixels, Pillow's own bound. Raises NoText."""
    from PIL import Image, UnidentifiedImageError  # noqa: PLC0415 - a heavy import

    if not source.stat().st_size:
        raise Reason.EMPTY_FILE.error()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        try:
            formats: tuple[str, ...] = _FORMATS
            if _is_heif(source):
                from pi_heif import register_heif_opener  # noqa: PLC0415 - a heavy import

                register_heif_opener(thumbnails=False)
                formats = ("HEIF",)
            with Image.open(source, formats=formats) as image:
                yield image
        except (Image.DecompressionBombWarning, Image.DecompressionBombError):
            limit = Image.MAX_IMAGE_PIXELS or 0
            raise Reason.IMAGE_PIXELS.error(limit=limit) from None
        except UnidentifiedImageError:
            raise ImageReason.IMAGE_UNKNOWN.error() from None
        except (OSError, SyntaxError, ValueError):  # what Pillow raises for broken data, by format
            raise Reason.IMAGE_DAMAGED.error() from None


def _is_heif(source: Path) -> bool:
    with source.open("rb") as file:
        head = file.read(12)
    return head[4:8] == b"ftyp" and head[8:12] in _HEIF_BRANDS


def _facts(image: "Image.Image", exif: "Image.Exif") -> str:
    """Return one line: format, colour mode, frames, and what EXIF says besides the place."""
    frames = getattr(image, "n_frames", 1)
    facts = [str(image.format), image.mode, *([f"{frames} frames"] if frames > 1 else [])]
    tags = {**exif, **exif.get_ifd(_EXIF_IFD)}
    for label, numbers in _SHOWN_TAGS.items():
        value = next((str(tags[number]).strip("\0 ") for number in numbers if number in tags), "")
        if value:
            facts.append(f"{label} {value}")
    return ", ".join(facts)


def _exif_lines(image: "Image.Image") -> Iterator[str]:
    """Yield a line for each tag, "Name: value", and one with the place in degrees."""
    from PIL import ExifTags, Image  # noqa: PLC0415 - a heavy import

    exif = Image.Image.getexif(image)  # PNG's own would decode the pixels first
    place = exif.get_ifd(_GPS_IFD)
    for tags, names in (
        (dict(exif), ExifTags.TAGS),
        (exif.get_ifd(_EXIF_IFD), ExifTags.TAGS),
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
        value = stripped.decode("ascii") if is_text else f"({counted(len(value), 'byte')})"
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
        is_negative = str(place.get(reference, "")).strip("\0 ") in {"S", "W"}
        degrees.append(-degree if is_negative else degree)
    return ", ".join(f"{degree:.6f}" for degree in degrees)


# Sizes of the header behind the two letters, which are too short to believe alone.
_BMP_HEADERS = {12, 40, 52, 56, 64, 108, 124}


def _sniff_bmp(head: Head) -> Sniffed | None:
    if head.is_text or not head.data.startswith(b"BM"):
        return None
    known = int.from_bytes(head.data[14:18], "little") in _BMP_HEADERS
    return Sniffed("image/bmp", "signature BM") if known else None


_IMAGE = Format(
    kind="image",
    word="{} image",
    handler=ImageHandler,
    media_types=(),
    paths=("exif", "text"),
    pictures=True,
)

_SIGNED = replace(_IMAGE, signed=True)

FORMATS = (
    *family(
        _SIGNED,
        ("{} image", "image/png", "png", b"\x89PNG\r\n\x1a\n"),
        ("{} image", "image/jpeg", "jpg jpeg", b"\xff\xd8\xff"),
        ("{} image", "image/gif", "gif", b"GIF87a", b"GIF89a"),
        ("{} image", "image/tiff", "tif tiff", b"II*\0", b"MM\0*"),
        ("{} image", "image/webp", "webp"),
        ("{} image", "image/avif", "avif"),
        ("{} image", "image/heic", "heic"),
        ("icon", "image/x-icon", "ico", b"\0\0\1\0"),
    ),
    variant(_SIGNED, "{} image", "image/bmp", "bmp", sniff=_sniff_bmp),
    *family(
        _IMAGE,
        ("image", "image/x-portable-anymap", "", b"P4\n", b"P5\n", b"P6\n"),
        ("{} image", "image/jxl", "", b"\0\0\0\x0cJXL \r\n\x87\n", b"\xff\x0a"),
        ("image", "image/x-tga", "tga"),
        ("Photoshop image", "image/vnd.adobe.photoshop", "", b"8BPS\0"),
        ("DjVu image", "image/vnd.djvu", "", b"AT&TFORM"),
        ("{} image", "image/jp2", "", b"\0\0\0\x0cjP  \r\n\x87\n"),
        ("{} image", "image/qoi", "", b"qoif"),
        ("image", "image/vnd.ms-dds", "", b"DDS "),
        ("image", "image/x-exr", "", b"\x76\x2f\x31\x01"),
        ("image", "image/x-xcf", "", b"gimp xcf"),
        ("{} image", "image/*", ""),
    ),
)
