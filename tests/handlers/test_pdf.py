"""PDF files: text by page, facts, pictures, cut files, and one clear line for an unreadable one."""

# ruff: noqa: E501 - a document on one line reads better than in pieces

import io
import time
from unittest.mock import Mock

import pypdf
import pytest
from PIL import Image

from fetchstash.cli.demo.site import Bookmark, make_pdf
from fetchstash.errors import BadArgument, NoText, OutOfRange
from fetchstash.handlers import ExtractLimits, PartText, Picture
from fetchstash.handlers._pdf import mend
from fetchstash.text import PreviewLimits
from fetchstash.text.ranges import Heading
from tests.handlers.conftest import PartOf, Read, check_facts, reads, unreadable
from tests.handlers.pdf_pages import stream, write_objects

HELVETICA = b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>"


def picture_of(part: PartOf, data: bytes, page: int = 1, **bounds: int) -> Picture:
    limits = ExtractLimits(preview=PreviewLimits(**bounds))
    picture = part("pdf", data, unit="pages", start=page, end=page, render="image", limits=limits)
    assert isinstance(picture, Picture)
    return picture


def three_pages() -> bytes:
    return make_pdf(
        ["First page.", "Second page.", "Third page."],
        "Three pages",
        [Bookmark("One", 1), Bookmark("Two", 2, 2)],
    )


def scanned(pages: int, blank: int = 0) -> bytes:
    """Return a PDF of pages that hold one grey image each and no text, the first ones nothing."""
    kids = " ".join(f"{5 + index} 0 R" for index in range(pages))
    page = (
        b"<< /Type /Page /Parent 2 0 R /Resources << /XObject << /I 3 0 R >> >> /Contents 4 0 R >>"
    )
    image = stream(
        bytes([128] * 64),
        "/Type /XObject /Subtype /Image /Width 8 /Height 8 /ColorSpace /DeviceGray /BitsPerComponent 8",
    )
    return write_objects(
        [
            b"<< /Type /Catalog /Pages 2 0 R >>",
            f"<< /Type /Pages /Kids [{kids}] /Count {pages} /MediaBox [0 0 200 200] >>".encode(),
            image,
            stream(b"200 0 0 200 0 0 cm /I Do"),
            *[page.replace(b" /Contents 4 0 R", b"")] * blank,
            *[page] * (pages - blank),
        ]
    )


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
    return write_objects(
        [
            b"<< /Type /Catalog /Pages 2 0 R /AcroForm << /Fields [6 0 R] /DR << /Font << /F1 3 0 R >> >> /DA (/F1 12 Tf) >> >>",
            b"<< /Type /Pages /Kids [4 0 R] /Count 1 /MediaBox [0 0 300 300] >>",
            HELVETICA,
            b"<< /Type /Page /Parent 2 0 R /Resources << /Font << /F1 3 0 R >> >> /Contents 5 0 R /Annots [6 0 R] >>",
            stream(b"BT /F1 12 Tf 20 200 Td (Name:) Tj ET"),
            b"<< /Type /Annot /Subtype /Widget /FT /Tx /T (name) /V (Filled) /F 4 /Rect [60 195 260 215] /AP << /N 7 0 R >> >>",
            appearance,
        ]
    )


def test_each_page_is_a_part_that_begins_with_its_number(read: Read) -> None:
    extracted, _ = read("pdf", three_pages())
    assert [(part.text, part.starts_page) for part in extracted.parts or ()] == [
        ("[Page 1]\nFirst page.\n\n", True),
        ("[Page 2]\nSecond page.\n\n", True),
        ("[Page 3]\nThird page.\n\n", True),
    ]
    headings = [heading for part in extracted.parts or () for heading in part.headings]
    assert headings == [Heading("One", 1, "pages", 1), Heading("Two", 2, "pages", 2)]
    check_facts(extracted, pages=3, extraction_truncated=False, title="Three pages", outline=())


@pytest.mark.parametrize("title", ["", "untitled", "Microsoft Word - draft3.doc", "paper.dvi"])
def test_a_meaningless_title_is_dropped(read: Read, title: str) -> None:
    check_facts(read("pdf", make_pdf(["x"], title))[0], title="")


@pytest.mark.parametrize(
    ("max_pages", "read_pages", "truncated"),
    [(2, 2, True), (3, 3, False), (4, 3, False)],
    ids=["one short", "just enough", "one over"],
)
def test_pages_beyond_the_limit_are_left_out_and_reported(
    read: Read, max_pages: int, read_pages: int, truncated: bool
) -> None:
    extracted, text = read("pdf", three_pages(), ExtractLimits(pdf_max_pages=max_pages))
    assert text.count("[Page ") == read_pages
    reason = "only the first 2 of its 3 pages were read" if truncated else ""
    check_facts(extracted, extraction_truncated=truncated, pages=3, extraction_error=reason)


GARBAGE = b"%PDF-1.7\n" + b"\x9c garbage " * 400


test_a_document_without_text_gives_one_clear_line = unreadable(
    "pdf",
    {
        "scans": (scanned(12), "the document has no text layer, only pictures of 12 pages"),
        "a scan under a blank cover": (
            scanned(3, blank=1),
            "the document has no text layer, only pictures of 3 pages",
        ),
        "a scan": (scanned(1), "the document has no text layer, only pictures of 1 page"),
        "blank": (make_pdf(["", ""], "t"), "the document has no text, only 2 blank pages"),
        "password": (
            encrypted("secret"),
            "the document is encrypted and opens only with its password",
        ),
        "empty": (b"", "the file is empty"),
        "cut short": (GARBAGE, "the file is cut short: not one page can be read"),
        "damaged": (GARBAGE + b"%%EOF", "the file is damaged: not one page can be read"),
        "no PDF": (b"hello " * 500, "the file is no PDF: not one page can be read"),
    },
)


test_pages_are_read = reads(
    "pdf",
    {
        "nothing on some": (
            make_pdf(["", "Text.", ""], "t"),
            "[Page 1]\n(an empty page)\n\n[Page 2]\nText.\n\n[Page 3]\n(an empty page)\n\n",
        ),
        "empty password": (
            encrypted(""),
            "[Page 1]\nFirst page.\n\n[Page 2]\nSecond page.\n\n[Page 3]\nThird page.\n\n",
        ),
        "fields of a form": (with_form_field(), "[Page 1]\nName: Filled\n\n"),
        "rotated": (
            make_pdf(["One line of text."], "R").replace(
                b"/Parent 2 0 R", b"/Parent 2 0 R /Rotate 90"
            ),
            "[Page 1]\nOne line of text.\n\n",
        ),
    },
)


def test_pypdf_reads_a_page_that_pdfium_does_not(
    read: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pypdfium2.raw.FPDFText_CountChars", Mock(return_value=0))
    assert read("pdf", three_pages())[1].endswith("[Page 3]\nThird page.\n\n")


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
def test_text_is_cleaned(raw: str, mended: str) -> None:
    assert mend(raw) == mended


def test_a_page_is_a_picture_within_the_bounds(part: PartOf) -> None:
    bounds = {"max_image_edge_px": 400, "max_image_size_bytes": 30_000}
    picture = picture_of(part, three_pages(), 2, **bounds)
    with Image.open(io.BytesIO(picture.data)) as image:
        assert image.size == (picture.width, picture.height)
        assert max(image.size) == 400
        assert any(image.convert("L").histogram()[:128]), "the page's text is drawn"
    assert len(picture.data) <= 30_000
    assert picture.media_type == "image/png"


def test_a_page_too_large_as_png_becomes_a_jpeg(part: PartOf) -> None:
    entries = "/Type /XObject /Subtype /Image /Width 300 /Height 300 /ColorSpace /DeviceGray /BitsPerComponent 8"
    noise = stream(Image.effect_noise((300, 300), 90).tobytes(), entries)
    data = write_objects(
        [
            b"<< /Type /Catalog /Pages 2 0 R >>",
            b"<< /Type /Pages /Kids [5 0 R] /Count 1 /MediaBox [0 0 300 300] >>",
            noise,
            stream(b"300 0 0 300 0 0 cm /I Do"),
            b"<< /Type /Page /Parent 2 0 R /Resources << /XObject << /I 3 0 R >> >> /Contents 4 0 R >>",
        ]
    )
    picture = picture_of(part, data, max_image_size_bytes=40_000)
    assert picture.media_type == "image/jpeg"
    assert len(picture.data) <= 40_000


def test_a_page_that_is_not_there_or_no_page_is_an_error(part: PartOf) -> None:
    with pytest.raises(OutOfRange, match="There is no page 4: the document has 3"):
        picture_of(part, three_pages(), 4)
    with pytest.raises(BadArgument):
        part("pdf", three_pages(), unit="rows", start=1, end=1)


def image(side: int, grey: int) -> bytes:
    entries = f"/Type /XObject /Subtype /Image /Width {side} /Height {side} /ColorSpace /DeviceGray"
    return stream(bytes([grey]) * side * side, f"{entries} /BitsPerComponent 8")


def document() -> bytes:
    """Return two pages: a logo on both, an icon, and a photo on the second."""
    text = b"BT /F1 12 Tf 60 700 Td (The gates are open.) Tj ET\n"
    draw = b"q 100 0 0 100 60 400 cm /%s Do Q\n"
    used = "/Font << /F1 3 0 R >> /XObject << /Logo 6 0 R /Icon 7 0 R /Photo 8 0 R >>"
    page = f"<< /Type /Page /Parent 2 0 R /Resources << {used} >> /Contents %d 0 R >>".encode()
    pages = [page % number for number in (9, 10)]
    return write_objects(
        [
            b"<< /Type /Catalog /Pages 2 0 R >>",
            b"<< /Type /Pages /Kids [4 0 R 5 0 R] /Count 2 /MediaBox [0 0 595 842] >>",
            HELVETICA,
            *pages,
            image(50, 10),
            image(8, 20),
            image(64, 255),
            stream(text + draw % b"Logo" + draw % b"Icon"),
            stream(text + draw % b"Logo" + draw % b"Photo"),
        ]
    )


def test_each_picture_is_named_once_behind_the_text_of_its_page(read: Read) -> None:
    assert read("pdf", document())[1] == (
        "[Page 1]\nThe gates are open.\n\n![picture, 50×50 px](images/1)\n\n"
        "[Page 2]\nThe gates are open.\n\n![picture, 64×64 px](images/2)\n\n"
    )


def test_pictures_are_listed_and_shown_by_number(part: PartOf) -> None:
    listed = part("pdf", document(), "images")
    assert listed == PartText("1. page 1, 50×50 px\n2. page 2, 64×64 px\n", 2)
    shown = part("pdf", document(), "images/2", render="image")
    assert isinstance(shown, Picture)
    assert (shown.width, shown.height) == (64, 64)
    for path in ("images/3", "images/x"):
        with pytest.raises(OutOfRange, match="2 pictures"):
            part("pdf", document(), path, render="image")
    with pytest.raises(BadArgument):
        part("pdf", document(), "images", render="image")
    assert part("pdf", three_pages(), "images") == PartText("", 0)


WHOLE = make_pdf([f"This is page {number} of twenty." for number in range(1, 21)], "Twenty pages")


def test_the_pages_before_the_cut_are_read_and_the_loss_is_reported(read: Read) -> None:
    extracted, text = read("pdf", WHOLE[: len(WHOLE) // 2])
    assert text.startswith("[Page 1]\nThis is page 1 of twenty.\n")
    pages = text.count("[Page ")
    assert 5 < pages < 20
    lost = f"the file is cut short: {pages} pages found in it"
    check_facts(extracted, pages=pages, extraction_truncated=True, extraction_error=lost)


@pytest.mark.parametrize("share", [0.3, 0.7, 0.95])
def test_each_complete_page_is_found_wherever_the_cut_is(read: Read, share: float) -> None:
    cut = WHOLE[: int(len(WHOLE) * share)]
    facts = read("pdf", cut)[0].facts
    assert facts.pages == cut[: cut.rfind(b"endobj")].count(b"/Type /Page\n")


def test_a_page_of_a_cut_file_is_shown_as_a_picture(part: PartOf) -> None:
    assert picture_of(part, WHOLE[: len(WHOLE) // 2], 2).width


def in_object_stream() -> bytes:
    """Return a PDF with its page in an object stream, cut before the cross-reference stream."""
    page = b"<< /Type /Page /Resources << /Font << /F1 3 0 R >> >> /Contents 4 0 R >>"
    listed = b"7 0 8 %d " % len(page)
    inner = listed + page + b"<< /Other true >>"
    return write_objects(
        [
            b"<< /Type /Catalog >>",
            b"<< >>",
            HELVETICA,
            stream(b"BT /F1 12 Tf 50 700 Td (Packed page) Tj ET"),
            stream(inner, f"/Type /ObjStm /N 2 /First {len(listed)}"),
        ]
    ).partition(b"xref")[0]


def test_pages_within_compressed_object_streams_are_found(read: Read) -> None:
    picture, text = read("pdf", in_object_stream())
    assert text == "[Page 1]\nPacked page\n\n"
    assert picture.facts.extraction_truncated


def test_a_linearized_file_says_how_many_pages_it_had(read: Read) -> None:
    header = b"99 0 obj\n<</Linearized 1/L 9999/O 3/E 500/N 137/T 9000>>\nendobj\n"
    cut = WHOLE[: len(WHOLE) // 2].replace(b"\n", b"\n" + header, 1)
    facts = read("pdf", cut)[0].facts
    lost = f"the file is cut short: {facts.pages} of its 137 pages found in it"
    assert facts.extraction_error == lost


@pytest.mark.long
@pytest.mark.parametrize(
    "data",
    [
        WHOLE[:300],
        b"%PDF-1.7\n" + b"1 0 obj " * 300_000,
        b"%PDF-1.7\n"
        + b"1 0 obj << /Type /ObjStm /N 9 /First 9 /FlateDecode >> stream\nx endobj\n" * 20_000,
        b"%PDF-1.7\n" + b"1 0 obj << /Type /Page" * 100_000,
    ],
    ids=["no page yet", "objects alone", "object streams that are none", "pages that do not end"],
)
def test_a_file_without_a_complete_page_gives_one_clear_line(read: Read, data: bytes) -> None:
    before = time.process_time()
    with pytest.raises(NoText, match="not one page can be read"):
        read("pdf", data)
    assert time.process_time() - before < 10
