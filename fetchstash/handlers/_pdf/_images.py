"""The pictures on the pages of a PDF: numbered in order, each once, and shown by number."""

import re
from collections.abc import Iterator
from ctypes import byref, c_uint
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fetchstash.handlers._contract import Picture
from fetchstash.handlers._limits import ExtractLimits
from fetchstash.handlers._reasons import Reason
from fetchstash.handlers._shared._picture import bounded

if TYPE_CHECKING:
    from pypdfium2 import PdfDocument, PdfPage

_IMAGE = re.compile(rb"/Subtype\s{0,4}/Image\b")
_MAX_PICTURES = 1_000
_MAX_OBJECTS = 5_000
_MAX_FORMS = 50
_MAX_PIXELS = 64_000_000
# Smaller ones are icons, bullets and shadings.
_LEAST_SIDE = 32


def are_in(source: Path) -> bool:
    """Return whether a file holds pictures.

    The dictionary of a picture is that of a stream, which no object stream compresses (ISO 32000-1,
    section 7.5.7). Looking for one is cheaper than looking at the objects of each page.
    """
    with source.open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as data:
        return _IMAGE.search(data) is not None


class PageImages:
    """Numbers the pictures of pages, which come in order; one that comes again has no number."""

    def __init__(self, *, skipped: bool = False) -> None:
        self.count = 0
        self._skipped = skipped
        self._seen: set[tuple[int, int, int]] = set()

    def of(self, page: "PdfPage") -> Iterator[tuple[int, Any, int, int]]:
        """Yield number, object, width and height of each new picture on a page."""
        from pypdfium2 import raw  # noqa: PLC0415 - a heavy import

        width, height = c_uint(), c_uint()
        for item in _images(page):
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

    def marks(self, page: "PdfPage") -> str:
        """Return the new pictures of a page as Markdown, a line each."""
        if self._skipped:
            return ""
        return "\n".join(
            f"![picture, {width}×{height} px](images/{number})"
            for number, _, width, height in self.of(page)
        )


def _images(page: "PdfPage") -> Iterator[Any]:
    """Yield the image objects of a page and of the forms on it."""
    from pypdfium2 import raw  # noqa: PLC0415 - a heavy import

    handle, get, kind_of = page.raw, raw.FPDFPage_GetObject, raw.FPDFPageObj_GetType
    image, form = raw.FPDF_PAGEOBJ_IMAGE, raw.FPDF_PAGEOBJ_FORM
    forms = 0
    for index in range(min(raw.FPDFPage_CountObjects(handle), _MAX_OBJECTS)):
        item = get(handle, index)
        kind = kind_of(item)
        if kind == image:
            yield item
        elif kind == form and forms < _MAX_FORMS:
            forms += 1
            for inner in range(min(raw.FPDFFormObj_CountObjects(item), _MAX_OBJECTS)):
                within = raw.FPDFFormObj_GetObject(item, inner)
                if kind_of(within) == image:
                    yield within


def listed(document: "PdfDocument", limits: ExtractLimits) -> str:
    """Return a line for each picture of a document."""
    images = PageImages()
    return "".join(
        f"{number}. page {index + 1}, {width}×{height} px\n"
        for index in range(min(len(document), limits.pdf_max_pages))
        for number, _, width, height in images.of(document[index])
    )


def shown(document: "PdfDocument", wanted: str, limits: ExtractLimits) -> Picture:
    """Return the picture of this number. Raises OutOfRange or NoText."""
    from pypdfium2 import PdfImage, PdfiumError  # noqa: PLC0415 - a heavy import

    images = PageImages()
    for index in range(min(len(document), limits.pdf_max_pages)):
        page = document[index]
        for number, item, width, height in images.of(page):
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
