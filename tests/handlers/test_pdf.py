"""PDF files: text by page, facts, pictures, and one clear line for an unreadable file."""

# ruff: noqa: E501 - a document on one line reads better than in pieces

import io
from collections.abc import Callable
from pathlib import Path
from unittest.mock import Mock

import pypdf
import pypdfium2
import pytest
from PIL import Image

from fetchstash.cli.demo.pdf import Bookmark, make_pdf, stream, write_objects
from fetchstash.errors import BadArgument, NoText, OutOfRange
from fetchstash.handlers import (
    Extracted,
    ExtractLimits,
    Hints,
    Part,
    PartRequest,
    Picture,
    handler_named,
)
from fetchstash.text import PreviewLimits
from fetchstash.text.ranges import Heading

HELVETICA = b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>"

Save = Callable[[bytes], Path]


@pytest.fixture
def save(tmp_path: Path) -> Save:
    def write(data: bytes) -> Path:
        source = tmp_path / "document.pdf"
        source.write_bytes(data)
        return source

    return write


def read(source: Path, limits: ExtractLimits | None = None) -> tuple[Extracted, list[Part]]:
    extracted = handler_named("pdf").extract(source, Hints(), limits or ExtractLimits())
    assert extracted.parts is not None
    return extracted, list(extracted.parts)


def three_pages() -> bytes:
    return make_pdf(
        ["First page.", "Second page.", "Third page."],
        "Three pages",
        [Bookmark("One", 1), Bookmark("Two", 2, 2)],
    )


def scanned(pages: int) -> bytes:
    """Return a PDF of pages that hold one grey image each and no text."""
    kids = " ".join(f"{5 + index} 0 R" for index in range(pages))
    page = (
        b"<< /Type /Page /Parent 2 0 R /Resources << /XObject << /I 3 0 R >> >> /Contents 4 0 R >>"
    )
    image = stream(
        bytes([128] * 64),
        "/Type /XObject /Subtype /Image /Width 8 /Height 8 /ColorSpace /DeviceGray /BitsPerComponent 8",
    )
    return write_objects([
        b"<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {pages} /MediaBox [0 0 200 200] >>".encode(),
        image,
        stream(b"200 0 0 200 0 0 cm /I Do"),
        *[page] * pages,
    ])  # fmt: skip


def encrypted(password: str) -> bytes:
    writer = pypdf.PdfWriter(clone_from=io.BytesIO(three_pages()))
    writer.encrypt(user_password=password, owner_password="owner", algorithm="RC4-128")
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


def with_form_field() -> bytes:
    """Return a PDF with a filled-in text field."""
    entries = (
        "/Type /XObject /Subtype /Form /BBox [0 0 200 20] /Resources << /Font << /F1 3 0 R >> >>"
    )
    appearance = stream(b"BT /F1 12 Tf 2 4 Td (Filled in by hand) Tj ET", entries)
    return write_objects([
        b"<< /Type /Catalog /Pages 2 0 R /AcroForm << /Fields [6 0 R] /DR << /Font << /F1 3 0 R >> >> /DA (/F1 12 Tf) >> >>",
        b"<< /Type /Pages /Kids [4 0 R] /Count 1 /MediaBox [0 0 300 300] >>",
        HELVETICA,
        b"<< /Type /Page /Parent 2 0 R /Resources << /Font << /F1 3 0 R >> >> /Contents 5 0 R /Annots [6 0 R] >>",
        stream(b"BT /F1 12 Tf 20 200 Td (Name:) Tj ET"),
        b"<< /Type /Annot /Subtype /Widget /FT /Tx /T (name) /V (Filled) /F 4 /Rect [60 195 260 215] /AP << /N 7 0 R >> >>",
        appearance,
    ])  # fmt: skip


def test_each_page_is_a_part_that_begins_with_its_number(save: Save) -> None:
    extracted, parts = read(save(three_pages()))
    assert [part.text for part in parts] == [
        "[Page 1]\nFirst page.\n\n",
        "[Page 2]\nSecond page.\n\n",
        "[Page 3]\nThird page.\n\n",
    ]
    assert all(part.starts_page for part in parts)
    assert extracted.facts.pages == 3
    assert not extracted.facts.extraction_truncated


def test_title_and_bookmarks_become_title_and_outline(save: Save) -> None:
    extracted, _ = read(save(three_pages()))
    assert extracted.facts.title == "Three pages"
    assert extracted.facts.outline == (Heading("One", 1, "pages", 1), Heading("Two", 2, "pages", 2))


@pytest.mark.parametrize("title", ["", "untitled", "Microsoft Word - draft3.doc", "paper.dvi"])
def test_a_meaningless_title_is_dropped(save: Save, title: str) -> None:
    extracted, _ = read(save(make_pdf(["x"], title)))
    assert extracted.facts.title == ""


@pytest.mark.parametrize(
    ("max_pages", "read_pages", "truncated"),
    [(2, 2, True), (3, 3, False), (4, 3, False)],
    ids=["one short", "just enough", "one over"],
)
def test_pages_beyond_the_limit_are_left_out_and_reported(
    save: Save, max_pages: int, read_pages: int, truncated: bool
) -> None:
    extracted, parts = read(save(three_pages()), ExtractLimits(pdf_max_pages=max_pages))
    assert (len(parts), extracted.facts.extraction_truncated, extracted.facts.pages) == (
        read_pages,
        truncated,
        3,
    )
    assert extracted.facts.extraction_error == (
        "only the first 2 of its 3 pages were read" if truncated else ""
    )


def test_a_page_without_text_keeps_its_place_among_others(save: Save) -> None:
    _, parts = read(save(make_pdf(["", "Text.", ""], "t")))
    assert [part.text.split("\n")[:2] for part in parts] == [
        ["[Page 1]", "(no text on this page)"],
        ["[Page 2]", "Text."],
        ["[Page 3]", "(no text on this page)"],
    ]


@pytest.mark.parametrize(
    ("pages", "reason"),
    [
        (12, "the document has no text layer: its 12 pages are pictures"),
        (1, "the document has no text layer: its page is a picture"),
    ],
)
def test_a_scanned_document_is_reported_as_such(save: Save, pages: int, reason: str) -> None:
    with pytest.raises(NoText) as caught:
        read(save(scanned(pages)))
    assert caught.value.what == reason


def test_a_document_of_blank_pages_is_reported_as_such(save: Save) -> None:
    with pytest.raises(NoText, match="the document has no text: its 2 pages are blank"):
        read(save(make_pdf(["", ""], "t")))


def test_a_document_encrypted_with_the_empty_password_is_read(save: Save) -> None:
    _, parts = read(save(encrypted("")))
    assert "Second page." in parts[1].text


def test_a_document_encrypted_with_a_password_is_reported(save: Save) -> None:
    with pytest.raises(NoText, match="the document is encrypted and opens only with its password"):
        read(save(encrypted("secret")))


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "the file is empty"),
        (b"%PDF-1.7\n" + b"\x9c garbage " * 400, "the file is cut short: not one page can be read"),
        (
            b"%PDF-1.7\n" + b"\x9c garbage " * 400 + b"%%EOF",
            "the file is damaged: not one page can be read",
        ),
        (b"hello " * 500, "the file is no PDF: not one page can be read"),
    ],
    ids=["empty", "cut short", "damaged", "no PDF"],
)
def test_a_file_that_cannot_be_opened_gives_one_clear_line(
    save: Save, data: bytes, reason: str
) -> None:
    with pytest.raises(NoText) as caught:
        read(save(data))
    assert caught.value.what == reason


def test_the_fields_of_a_form_are_read(save: Save) -> None:
    _, parts = read(save(with_form_field()))
    assert "Name:" in parts[0].text
    assert "Filled in by hand" in parts[0].text


def test_pypdf_reads_a_page_that_pdfium_does_not(
    save: Save, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pypdfium2.PdfTextPage, "get_text_bounded", Mock(return_value=""))
    _, parts = read(save(three_pages()))
    assert [part.text for part in parts][2] == "[Page 3]\nThird page.\n\n"


@pytest.mark.parametrize(
    ("raw", "mended"),
    [
        ("one\r\ntwo\rthree", "one\ntwo\nthree"),
        ("an exam\ufffeple of it", "an example\nof it"),
        ("an exam\x02ple of it", "an example\nof it"),
        ("an exam-\nple of it", "an example\nof it"),
        ("an exam\u00ad\nple of it", "an example\nof it"),
        ("Jean-\nPaul", "Jean-\nPaul"),
        ("Jean\ufffePaul said", "Jean-Paul\nsaid"),
        ("pages 12-\n14", "pages 12-\n14"),
        ("the \ufb01rst \ufb02oor o\ufb03ce", "the first floor office"),
        ("a  \n\n\n\n\nb\n\n", "a\n\nb"),
        ("in\u2011line stays", "in\u2011line stays"),
    ],
)
def test_text_is_cleaned(
    save: Save, monkeypatch: pytest.MonkeyPatch, raw: str, mended: str
) -> None:
    monkeypatch.setattr(pypdfium2.PdfTextPage, "get_text_bounded", Mock(return_value=raw))
    _, parts = read(save(three_pages()))
    assert parts[0].text == f"[Page 1]\n{mended}\n\n"


def test_a_page_is_a_picture_within_the_bounds(save: Save) -> None:
    limits = ExtractLimits(
        preview=PreviewLimits(max_image_edge_px=400, max_image_size_bytes=30_000)
    )
    picture = handler_named("pdf").part(
        PartRequest(
            source=save(three_pages()), unit="pages", start=2, end=2, render="image", limits=limits
        )
    )
    assert isinstance(picture, Picture)
    with Image.open(io.BytesIO(picture.data)) as image:
        assert image.size == (picture.width, picture.height)
        assert max(image.size) == 400
        assert any(image.convert("L").histogram()[:128]), "the page's text is drawn"
    assert len(picture.data) <= 30_000
    assert picture.media_type == "image/png"


def test_a_page_too_large_as_png_becomes_a_jpeg(save: Save) -> None:
    entries = "/Type /XObject /Subtype /Image /Width 300 /Height 300 /ColorSpace /DeviceGray /BitsPerComponent 8"
    noise = stream(Image.effect_noise((300, 300), 90).tobytes(), entries)
    data = write_objects([
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [5 0 R] /Count 1 /MediaBox [0 0 300 300] >>",
        noise,
        stream(b"300 0 0 300 0 0 cm /I Do"),
        b"<< /Type /Page /Parent 2 0 R /Resources << /XObject << /I 3 0 R >> >> /Contents 4 0 R >>",
    ])  # fmt: skip
    limits = ExtractLimits(preview=PreviewLimits(max_image_size_bytes=40_000))
    picture = handler_named("pdf").part(
        PartRequest(source=save(data), unit="pages", start=1, end=1, render="image", limits=limits)
    )
    assert isinstance(picture, Picture)
    assert picture.media_type == "image/jpeg"
    assert len(picture.data) <= 40_000


def test_a_missing_page_is_out_of_range(save: Save) -> None:
    with pytest.raises(OutOfRange, match="There is no page 4: the document has 3"):
        handler_named("pdf").part(
            PartRequest(source=save(three_pages()), unit="pages", start=4, end=4, render="image")
        )


def test_a_part_that_is_no_page_is_a_bad_argument(save: Save) -> None:
    with pytest.raises(BadArgument):
        handler_named("pdf").part(
            PartRequest(source=save(three_pages()), unit="rows", start=1, end=1)
        )
