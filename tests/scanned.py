"""Scans of the tests' own making: pages that are pictures of text."""

import io
import textwrap
from collections.abc import Sequence

from PIL import Image, ImageDraw, ImageFont

PROSE = (
    "The committee met on 14 March 2023 to review the annual report of the northern harbour "
    "authority. Total revenue rose by 12.4 percent to 3,481,207 euros, while maintenance costs "
    "fell for the third year in a row. Members asked why the dredging of the eastern channel had "
    "been postponed, and the engineer explained that two barges were still under repair. It was "
    "agreed that the contract should be renewed until 2026, provided that the price of a load does "
    "not exceed 7.85 euros. The chairman thanked the staff for their patience during the flood, "
    "when water stood forty centimetres deep in the archive and nine hundred boxes of files had to "
    "be moved by hand. A list of lost documents is attached; copies may be requested in writing."
)


def page(text: str = PROSE, *, dpi: int = 150, points: float = 11, width: int = 74) -> Image.Image:
    """Return an A4 page at ``dpi`` with ``text``, wrapped, in Pillow's own font."""
    picture = Image.new("L", (round(8.27 * dpi), round(11.69 * dpi)), 255)
    pixels = points * dpi / 72
    margin = round(0.9 * dpi)
    lines = "\n".join(textwrap.fill(line, width) for line in text.split("\n"))
    ImageDraw.Draw(picture).multiline_text(
        (margin, margin), lines, 20, ImageFont.load_default(pixels), spacing=pixels * 0.4
    )
    return picture


def scan(pages: Sequence[Image.Image], dpi: int = 150) -> bytes:
    """Return a PDF whose pages are these pictures."""
    file = io.BytesIO()
    pages[0].save(file, "PDF", save_all=True, append_images=pages[1:], resolution=dpi)
    return file.getvalue()


def png(picture: Image.Image) -> bytes:
    """Return a picture as a PNG file."""
    file = io.BytesIO()
    picture.save(file, "PNG")
    return file.getvalue()
