"""The demonstration's site and what it holds."""

import asyncio
import contextlib
import hashlib
import http.client
import io
from typing import Any

import pypdf
import pypdfium2
import pytest

from fetchstash.cli.demo import site as content
from fetchstash.cli.demo.site import Bookmark, Document, Site, documents, make_pdf


def get(site: Site, path: str, method: str = "GET") -> tuple[int, str, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", site.port, timeout=10)
    connection.request(method, path)
    answer = connection.getresponse()
    return answer.status, answer.headers["Content-Type"], answer.read()


@pytest.mark.anyio
async def test_it_serves_what_it_holds_under_the_labels_that_it_says() -> None:
    async with Site() as site:
        for path, document in documents().items():
            assert await asyncio.to_thread(get, site, path + "?query=1") == (
                200,
                document.media_type,
                document.body,
            )


@pytest.mark.anyio
async def test_it_serves_pages_of_a_test_and_is_gone_afterwards() -> None:
    async with Site({"/a": Document("text/plain", b"a")}) as site:
        assert site.url("/a") == f"http://127.0.0.1:{site.port}/a"
        assert await asyncio.to_thread(get, site, "/a") == (200, "text/plain", b"a")
        assert await asyncio.to_thread(get, site, "/a", "HEAD") == (200, "text/plain", b"")
        assert (await asyncio.to_thread(get, site, "/robots.txt"))[0] == 404
        port = site.port
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection("127.0.0.1", port)


@pytest.mark.anyio
@pytest.mark.parametrize(
    "request_line",
    [b"\r\n\r\n", b"nonsense\r\n\r\n", b"GET\r\n\r\n", b"x" * 100_000, b""],
    ids=repr,
)
async def test_a_broken_request_is_hung_up_on(request_line: bytes) -> None:
    async with Site({}) as site:
        reader, writer = await asyncio.open_connection("127.0.0.1", site.port)
        writer.write(request_line)
        writer.write_eof()
        with contextlib.suppress(ConnectionResetError):  # it may hang up before it has read all
            assert await reader.read() == b""
        writer.close()
        assert (await asyncio.to_thread(get, site, "/"))[0] == 404


@pytest.mark.parametrize(
    ("path", "least", "most"),
    [
        pytest.param(content.ARTICLE, 5_000, 10_000, id="article"),
        pytest.param(content.HANDBOOK, 2_000_000, 2_200_000, id="2 MB of HTML"),
        pytest.param(content.STATIONS_JSON, 5_000_000, 5_200_000, id="5 MB of JSON"),
        pytest.param(content.READINGS, 4_000_000, 5_000_000, id="CSV"),
        pytest.param(content.REPORT, 40_000, 100_000, id="PDF"),
    ],
)
def test_the_documents_are_as_large_as_the_demonstration_says(
    path: str, least: int, most: int
) -> None:
    assert least <= len(documents()[path].body) < most


@pytest.mark.slow
def test_the_documents_are_the_same_at_each_run() -> None:
    # Whoever changes the contents changes this too, and looks at the demonstration again.
    texts = (content.ARTICLE, content.HANDBOOK, content.STATIONS_JSON, content.READINGS)
    assert (
        hashlib.sha256(b"".join(documents()[path].body for path in texts)).hexdigest()[:16]
        == "5f432a3d997f6d06"
    )


def test_the_pdf_has_its_pages_and_bookmarks_and_is_the_mislabelled_one() -> None:
    report = documents()[content.REPORT].body
    assert documents()[content.MISLABELLED] == Document("text/html", report)
    pdf = pypdfium2.PdfDocument(report)
    assert len(pdf) == content.PDF_PAGES
    texts = [
        page.get_textpage().get_text_bounded() for page in map(pdf.__getitem__, range(len(pdf)))
    ]
    assert [number for number, text in enumerate(texts, 1) if content.ADVICE.words in text] == [
        content.NEEDLE_PAGE
    ]
    assert all(f"- {number} -" in text for number, text in enumerate(texts, 1))
    assert len(list(pdf.get_toc())) == 8
    pdf.close()


# --- The PDFs of the demonstration and the tests: a reader finds what was written.

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
