"""Pictures of PDF pages leave a trace, are listed and shown."""

from pathlib import Path

import pytest

from fetchstash.cli.demo.pdf import make_pdf, stream, write_objects
from fetchstash.errors import BadArgument, OutOfRange
from fetchstash.handlers import ExtractLimits, Hints, PartRequest, PartText, Picture, handler_named

FONT = b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>"


def image(side: int, grey: int) -> bytes:
    entries = f"/Type /XObject /Subtype /Image /Width {side} /Height {side} /ColorSpace /DeviceGray"
    return stream(bytes([grey]) * side * side, f"{entries} /BitsPerComponent 8")


def document(tmp_path: Path) -> Path:
    """Return two pages: a logo on both, an icon, and a photo on the second."""
    text = b"BT /F1 12 Tf 60 700 Td (The gates are open.) Tj ET\n"
    draw = b"q 100 0 0 100 60 400 cm /%s Do Q\n"
    used = "/Font << /F1 3 0 R >> /XObject << /Logo 6 0 R /Icon 7 0 R /Photo 8 0 R >>"
    page = f"<< /Type /Page /Parent 2 0 R /Resources << {used} >> /Contents %d 0 R >>".encode()
    pages = [page % number for number in (9, 10)]
    source = tmp_path / "document.pdf"
    source.write_bytes(write_objects([
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [4 0 R 5 0 R] /Count 2 /MediaBox [0 0 595 842] >>",
        FONT, *pages, image(50, 10), image(8, 20), image(64, 255),
        stream(text + draw % b"Logo" + draw % b"Icon"),
        stream(text + draw % b"Logo" + draw % b"Photo"),
    ]))  # fmt: skip
    return source


def test_each_picture_is_named_once_behind_the_text_of_its_page(tmp_path: Path) -> None:
    parts = handler_named("pdf").extract(document(tmp_path), Hints(), ExtractLimits()).parts
    assert "".join(part.text for part in parts or ()) == (
        "[Page 1]\nThe gates are open.\n\n![picture, 50×50 px](images/1)\n\n"
        "[Page 2]\nThe gates are open.\n\n![picture, 64×64 px](images/2)\n\n"
    )


def test_pictures_are_listed_and_shown_by_number(tmp_path: Path) -> None:
    source, handler = document(tmp_path), handler_named("pdf")
    listed = handler.part(PartRequest(source=source, path="images"))
    assert listed == PartText("1. page 1, 50×50 px\n2. page 2, 64×64 px\n", 2)
    shown = handler.part(PartRequest(source=source, path="images/2", render="image"))
    assert isinstance(shown, Picture)
    assert (shown.width, shown.height) == (64, 64)
    for path in ("images/3", "images/x"):
        with pytest.raises(OutOfRange, match="2 pictures"):
            handler.part(PartRequest(source=source, path=path, render="image"))
    with pytest.raises(BadArgument):
        handler.part(PartRequest(source=source, path="images", render="image"))


def test_a_document_without_pictures_lists_none(tmp_path: Path) -> None:
    source = tmp_path / "document.pdf"
    source.write_bytes(make_pdf(["Text."], "t"))
    assert handler_named("pdf").part(PartRequest(source=source, path="images")) == PartText("", 0)
