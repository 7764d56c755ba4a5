"""Images: facts by Pillow, and the picture within the bounds of image content. Where it was taken is told only on request."""

import warnings
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from fetchstash.errors import BadArgument, NoText, OutOfRange
from fetchstash.facts import DocumentFacts
from fetchstash.handlers._contract import (
    ContentKind,
    Extracted,
    ExtractLimits,
    Hints,
    PartRequest,
    PartText,
    Picture,
)
from fetchstash.handlers._exif import exif_lines
from fetchstash.handlers._media._mp4 import mp4
from fetchstash.handlers._shared._part_text import part_text
from fetchstash.handlers._shared._picture import bounded
from fetchstash.handlers._shared._reasons import EMPTY_FILE, FETCH_AGAIN, KEPT

if TYPE_CHECKING:
    from PIL import Image

# What the web serves; Pillow's other formats are rare, and some of them start other programs (EPS).
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
_AVIF_BRANDS = {b"avif", b"avis"}
_LOSSY = {"JPEG", "WEBP", "AVIF", "JPEG2000"}
# Exif 2.32, section 4.6.4 (0th IFD) and 4.6.5 (Exif IFD). The GPS IFD is left alone.
_ORIENTATION, _EXIF_IFD = 0x0112, 0x8769
_TOLD_TAGS = {
    "taken": (0x9003, 0x0132),
    "camera": (0x0110,),
    "software": (0x0131,),
    "by": (0x013B,),
    "description": (0x010E,),
}
_QUARTER_TURNS = {5, 6, 7, 8}


class ImageHandler:
    """Reads raster images; an SVG is text and none of its business."""

    name = "image"

    def can_handle(self, kind: ContentKind, media_type: str) -> bool:
        """Return whether this is a raster image."""
        return kind == "image" and media_type != "image/svg+xml"

    def extract(self, source: Path, hints: Hints, limits: ExtractLimits) -> Extracted:  # noqa: ARG002 - the header says it all
        """Return size and facts; there is no text. Raises NoText for what is no image that can be read."""
        if heif := _heif_facts(source):
            return heif
        from PIL import Image  # noqa: PLC0415 - a heavy import

        with _opened(source) as image:
            width, height = image.size
            exif = Image.Image.getexif(
                image
            )  # PNG's own would decode the pixels first, to look for Exif behind them
            if exif.get(_ORIENTATION) in _QUARTER_TURNS:
                width, height = height, width
            info = _facts(image, exif)
            return Extracted(None, DocumentFacts(width=width, height=height, structure_info=info))

    def part(self, request: PartRequest) -> PartText | Picture:
        """Return the image as a picture, the right way up and within the bounds; or all of its EXIF, if ``path`` is "exif"."""
        if request.render == "text" and request.path == "exif":
            with _opened(request.source) as image:
                text = "".join(exif_lines(image))
            if not text:
                raise OutOfRange("The image has no EXIF.", 'Use render="image" to see it.')
            return part_text(text, request)
        if request.render != "image" or request.path:
            raise BadArgument(
                "An image has no text.",
                'Use render="image", or path="exif" for all that its EXIF says.',
            )
        from PIL import ImageOps  # noqa: PLC0415 - a heavy import

        limits = request.limits.preview
        edge = limits.max_image_edge_px
        with _opened(request.source) as image:
            image.draft(
                None, (2 * edge, 2 * edge)
            )  # JPEG alone: decoded at an eighth to a half of its size
            photo = image.format in _LOSSY
            image.thumbnail((edge, edge), reducing_gap=2.0)
            return bounded(ImageOps.exif_transpose(image), limits, photo=photo)


def _heif_facts(source: Path) -> Extracted | None:
    """Return the size of a picture of a phone (HEIC and its kin), whose container tells it though Pillow cannot decode it."""
    with source.open("rb") as file:
        head = file.read(12)
        if head[4:8] != b"ftyp" or head[8:12] in _AVIF_BRANDS:
            return None
        facts = mp4(file, source.stat().st_size)
    info = "HEIF, not decoded here"
    return Extracted(
        None, DocumentFacts(width=facts.width, height=facts.height, structure_info=info)
    )


@contextmanager
def _opened(source: Path) -> Generator["Image.Image"]:
    """Open an image, of which Pillow decodes some 89 million pixels at the most. Raises NoText for what cannot be decoded."""
    from PIL import Image, UnidentifiedImageError  # noqa: PLC0415 - a heavy import

    if not source.stat().st_size:
        raise NoText(EMPTY_FILE, FETCH_AGAIN)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        try:
            with Image.open(source, formats=_FORMATS) as image:
                yield image
        except (Image.DecompressionBombWarning, Image.DecompressionBombError):
            raise NoText(
                f"the picture has more than {Image.MAX_IMAGE_PIXELS:,} pixels",
                KEPT,
            ) from None
        except UnidentifiedImageError:
            raise NoText(
                "the image is damaged, or of a format that is not known here", KEPT
            ) from None
        except (OSError, SyntaxError, ValueError):  # what Pillow raises for broken data, by format
            raise NoText("the image is damaged or cut short", FETCH_AGAIN) from None


def _facts(image: "Image.Image", exif: "Image.Exif") -> str:
    """Return one line: format, colour mode, frames, and what EXIF says besides the place."""
    frames = getattr(image, "n_frames", 1)
    facts = [str(image.format), image.mode, *([f"{frames} frames"] if frames > 1 else [])]
    tags = {**exif, **exif.get_ifd(_EXIF_IFD)}
    for label, numbers in _TOLD_TAGS.items():
        value = next((str(tags[number]).strip("\0 ") for number in numbers if number in tags), "")
        if value:
            facts.append(f"{label} {value}")
    return ", ".join(facts)
