"""PDF files that were cut short: complete pages are read, and the loss is reported."""

import time
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from fetchstash.cli.demo.pdf import make_pdf, stream, write_objects
from fetchstash.errors import NoText
from fetchstash.handlers import Extracted, ExtractLimits, Hints, PartRequest, Picture, handler_named

Read = Callable[..., tuple[Extracted, str]]
Save = Callable[[bytes], Path]

WHOLE = make_pdf([f"This is page {number} of twenty." for number in range(1, 21)], "Twenty pages")


def test_the_pages_before_the_cut_are_read_and_the_loss_is_reported(read: Read) -> None:
    extracted, text = read(handler_named("pdf"), WHOLE[: len(WHOLE) // 2])
    assert text.startswith("[Page 1]\nThis is page 1 of twenty.\n")
    pages = text.count("[Page ")
    assert 5 < pages < 20
    facts = extracted.facts
    assert (facts.pages, facts.extraction_truncated) == (pages, True)
    assert facts.extraction_error == f"the file is cut short: {pages} pages were found in it"


@pytest.mark.parametrize("share", [0.3, 0.7, 0.95])
def test_each_complete_page_is_found_wherever_the_cut_is(read: Read, share: float) -> None:
    cut = WHOLE[: int(len(WHOLE) * share)]
    facts = read(handler_named("pdf"), cut)[0].facts
    assert facts.pages == cut[: cut.rfind(b"endobj")].count(b"/Type /Page ")


def test_a_page_of_a_cut_file_is_shown_as_a_picture(save: Save) -> None:
    picture = handler_named("pdf").part(
        PartRequest(
            source=save(WHOLE[: len(WHOLE) // 2]), unit="pages", start=2, end=2, render="image"
        )
    )
    assert isinstance(picture, Picture)


def in_object_stream() -> bytes:
    """Return a PDF with its page in an object stream, cut before the cross-reference stream."""
    page = b"<< /Type /Page /Resources << /Font << /F1 3 0 R >> >> /Contents 4 0 R >>"
    inner = zlib.compress(b"7 0 8 %d " % len(page) + page + b"<< /Other true >>")
    head = b"<< /Type /ObjStm /N 2 /First %d /Filter /FlateDecode /Length %d >>" % (
        len(b"7 0 8 %d " % len(page)),
        len(inner),
    )
    return write_objects(
        [
            b"<< /Type /Catalog >>",
            b"<< >>",
            b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
            stream(b"BT /F1 12 Tf 50 700 Td (Packed page) Tj ET"),
            head + b"\nstream\n" + inner + b"\nendstream",
        ]
    ).partition(b"xref")[0]


def test_pages_within_compressed_object_streams_are_found(read: Read) -> None:
    picture, text = read(handler_named("pdf"), in_object_stream())
    assert text == "[Page 1]\nPacked page\n\n"
    assert picture.facts.extraction_truncated


def test_a_linearized_file_says_how_many_pages_it_had(read: Read) -> None:
    header = b"99 0 obj\n<</Linearized 1/L 9999/O 3/E 500/N 137/T 9000>>\nendobj\n"
    cut = WHOLE[: len(WHOLE) // 2].replace(b"\n", b"\n" + header, 1)
    facts = read(handler_named("pdf"), cut)[0].facts
    lost = f"the file is cut short: {facts.pages} of its 137 pages were found in it"
    assert facts.extraction_error == lost


@pytest.mark.slow
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
        read(handler_named("pdf"), data)
    assert time.process_time() - before < 10


def test_a_rotated_page_reads_as_any_other(save: Save) -> None:
    data = make_pdf(["One line of text."], "Rotated").replace(
        b"/Parent 2 0 R ", b"/Parent 2 0 R /Rotate 90 "
    )
    parts = handler_named("pdf").extract(save(data), Hints(), ExtractLimits()).parts
    assert "".join(part.text for part in parts or ()) == "[Page 1]\nOne line of text.\n\n"
