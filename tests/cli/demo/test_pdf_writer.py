"""The PDFs of the demonstration and the tests: two readers find what was written."""

import io

import pypdf
import pypdfium2
import pytest

from fetchstash.cli.demo.pdf import Bookmark, make_pdf

PAGES = ["First line of (page) one.\n\nA \\ and an en dash – here.", "Page two.", "Page three."]
MARKS = [
    Bookmark("One", 1),
    Bookmark("One, in detail", 1, 2),
    Bookmark("Two", 2),
    Bookmark("Deep", 3, 2),
    Bookmark("Deeper", 3, 3),
]


def test_pdfium_reads_back_pages_title_and_bookmarks() -> None:
    with pypdfium2.PdfDocument(make_pdf(PAGES, "A title ✓", MARKS)) as document:
        page = document[0]
        text_page = page.get_textpage()
        assert text_page.get_text_bounded().split("\r\n") == [
            "First line of (page) one.",
            "A \\ and an en dash – here.",
        ]
        text_page.close()
        page.close()
        assert document.get_metadata_value("Title") == "A title ✓"
        targets = [
            (mark.get_title(), mark.level + 1, mark.get_dest()) for mark in document.get_toc()
        ]
        found = [
            Bookmark(title, (dest.get_index() or 0) + 1, level)
            for title, level, dest in targets
            if dest
        ]
        assert found == MARKS


def test_pypdf_reads_back_the_same_and_finds_no_fault() -> None:
    reader = pypdf.PdfReader(io.BytesIO(make_pdf(PAGES, "A title ✓", MARKS)), strict=True)
    assert [page.extract_text().split("\n")[0] for page in reader.pages] == [
        "First line of (page) one.",
        "Page two.",
        "Page three.",
    ]
    assert reader.metadata is not None
    assert reader.metadata.title == "A title ✓"


def test_long_paragraphs_are_wrapped() -> None:
    reader = pypdf.PdfReader(io.BytesIO(make_pdf(["word " * 100], "t")))
    lines = reader.pages[0].extract_text().split("\n")
    assert max(len(line) for line in lines) <= 80
    assert "".join(lines).count("word") == 100


def test_a_text_longer_than_its_page_is_refused() -> None:
    with pytest.raises(ValueError, match="A page holds 54 lines"):
        make_pdf(["line\n" * 60], "t")


@pytest.mark.parametrize(
    "marks", [[Bookmark("a", 4)], [Bookmark("a", 1, 2)], [Bookmark("a", 1), Bookmark("b", 1, 3)]]
)
def test_bookmarks_that_point_nowhere_or_skip_a_level_are_refused(marks: list[Bookmark]) -> None:
    with pytest.raises(ValueError, match="skips a level or points to no page"):
        make_pdf(PAGES, "t", marks)
