"""Scans of the tests' own making: pages that are pictures of text."""

import io
import random
import textwrap
from collections.abc import Sequence
from difflib import SequenceMatcher

from PIL import Image, ImageDraw, ImageFilter, ImageFont

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


def page(
    text: str = PROSE, *, dpi: int = 150, points: float = 11, width: int = 74, font: str = ""
) -> Image.Image:
    """Return an A4 page at ``dpi`` with ``text``, wrapped, in Pillow's own font or in a file's."""
    picture = Image.new("L", (round(8.27 * dpi), round(11.69 * dpi)), 255)
    pixels = points * dpi / 72
    margin = round(0.9 * dpi)
    lines = "\n".join(textwrap.fill(line, width) for line in text.split("\n"))
    letters = ImageFont.truetype(font, pixels) if font else ImageFont.load_default(pixels)
    ImageDraw.Draw(picture).multiline_text(
        (margin, margin), lines, 20, letters, spacing=pixels * 0.4
    )
    return picture


def noisy(picture: Image.Image) -> Image.Image:
    """Return a picture with specks, grey paper and soft edges."""
    specks = random.Random(7)
    spoiled = picture.point([round(35 + level * 0.8) for level in range(256)])  # pyright: ignore[reportUnknownMemberType]
    for _ in range(spoiled.width * spoiled.height // 150):
        at = specks.randrange(spoiled.width), specks.randrange(spoiled.height)
        spoiled.putpixel(at, specks.choice((0, 255)))
    return spoiled.filter(ImageFilter.GaussianBlur(0.7))


def in_two_columns() -> tuple[Image.Image, str]:
    """Return a page with two columns, and its text in reading order."""
    whole = Image.new("L", page("").size, 255)
    texts = [PROSE[: PROSE.index(" It was")], PROSE[PROSE.index("It was") :]]
    for position, text in enumerate(texts):
        column = page(text, points=10, width=36).crop((100, 0, 720, whole.height))
        whole.paste(column, (60 + 590 * position, 0))
    return whole, " ".join(texts)


def accuracy(text: Sequence[str], expected: Sequence[str]) -> float:
    """Return the share of the expected words that stand in those of ``text``, in their order."""
    blocks = SequenceMatcher(None, expected, text, autojunk=False).get_matching_blocks()
    return sum(block.size for block in blocks) / len(expected)


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
