"""The PDFs of the demonstration and the tests: a reader finds what was written."""

import io
from typing import Any

import pypdf

from fetchstash.cli.demo.site import Bookmark, make_pdf

PAGES = ["First line of (page) one.\n\nA \\ and an en dash – here.", "Page two.", "Page three."]
MARKS = [
    Bookmark("One", 1),
    Bookmark("One, in detail", 1, 2),
    Bookmark("Two", 2),
    Bookmark("Deep", 3, 2),
    Bookmark("Deeper", 3, 3),
]


def test_what_was_written_is_read_back_without_a_fault() -> None:
    reader = pypdf.PdfReader(io.BytesIO(make_pdf(PAGES, "A title ✓", MARKS)), strict=True)
    texts = [page.extract_text().split("\n") for page in reader.pages]
    assert [lines[0] for lines in texts] == [
        "First line of (page) one.",
        "Page two.",
        "Page three.",
    ]
    assert "A \\ and an en dash – here." in texts[0]
    assert reader.metadata is not None
    assert reader.metadata.title == "A title ✓"
    assert marks_of(reader, reader.outline) == MARKS


def marks_of(reader: pypdf.PdfReader, outline: Any, level: int = 1) -> list[Bookmark]:
    """Return the bookmarks of an outline, in which a list has those one level below."""
    marks: list[Bookmark] = []
    for entry in outline:
        if isinstance(entry, list):
            marks += marks_of(reader, entry, level + 1)
        else:
            page = reader.get_destination_page_number(entry)
            marks.append(Bookmark(str(entry.title), (page or 0) + 1, level))
    return marks


def test_long_paragraphs_are_wrapped() -> None:
    reader = pypdf.PdfReader(io.BytesIO(make_pdf(["word " * 100], "t")))
    lines = reader.pages[0].extract_text().split("\n")
    assert max(len(line) for line in lines) <= 80
    assert "".join(lines).count("word") == 100
