"""Pages without a text layer: read by OCR when they are asked for, each once, and kept."""

import io
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pypdf
import pytest
from PIL import Image

from fetchstash.cli.demo.site import make_pdf
from fetchstash.errors import NoText, TooLarge, as_method
from fetchstash.handlers import Decision, PageText, unmapped_page
from fetchstash.render import Host, as_shown, view_of
from fetchstash.stash import Stash
from fetchstash.store import Facts
from fetchstash.text.ranges import Heading, Ranges, Table
from tests.loopback import Page, Site
from tests.scanned import png, scan
from tests.stash.conftest import OpenStash
from tests.store.conftest import put_into

pytestmark = [pytest.mark.anyio, pytest.mark.in_process]

SCAN = scan([Image.new("L", (60, 80), 255)] * 4)
PICTURE = png(Image.new("L", (60, 80), 200))
HINT = "The operator can install fetchstash[ocr]"


Scanned = Callable[[], AbstractAsyncContextManager[tuple[Stash, str]]]


class Reader:
    """Stands for OCR: ``read`` lists the pages that were read, ``hang`` those that never end."""

    def __init__(self) -> None:
        self.read: list[int] = []
        self.hang: set[int] = set()
        self.fail: set[int] = set()
        self.blank: set[int] = set()
        self.hanging = anyio.Event()

    async def read_page(self, decision: Decision, source: Path, page: int) -> PageText:
        assert decision.kind in ("pdf", "image")
        assert source.read_bytes()
        if page in self.hang:
            self.hanging.set()
            await anyio.sleep_forever()
        if page in self.fail:
            raise TooLarge(f"Page {page} could not be read.", "Look at it.")
        self.read.append(page)
        return PageText("" if page in self.blank else f"words of sheet {page}", 0.934)

    async def aclose(self) -> None:
        pass


@pytest.fixture
def reader() -> Reader:
    return Reader()


@pytest.fixture
def opened(open_stash: OpenStash, reader: Reader) -> OpenStash:
    """Return a function that opens a Stash with ``reader`` for OCR, or with none."""

    def open_it(*, ocr: bool = True, **settings: Any) -> Any:
        return open_stash(extract__ocr="off", page_reader=reader if ocr else None, **settings)

    return open_it


@pytest.fixture
def scanned(opened: OpenStash, site: Site) -> Scanned:
    """Return a function that opens a Stash and fetches a scan of four pages."""

    @asynccontextmanager
    async def fetch_it() -> AsyncGenerator[tuple[Stash, str]]:
        async with opened() as stash:
            yield stash, (await stash.fetch(serve(site, SCAN))).ref

    return fetch_it


def with_scan(texts: list[str], number: int) -> bytes:
    """Return a PDF of pages with text, and a scan as page ``number`` (from 1)."""
    writer = pypdf.PdfWriter(clone_from=io.BytesIO(make_pdf(texts, "t")))
    writer.insert_page(pypdf.PdfReader(io.BytesIO(SCAN)).pages[0], number - 1)
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


def hurried(stash: Stash, seconds: float = 0.5) -> Stash:
    """Return the same Stash with half a second for a call."""
    fetch = replace(stash.settings.fetch, deadline_seconds=seconds)
    settings = replace(stash.settings, fetch=fetch)
    return replace(stash, settings=settings, scans=replace(stash.scans, settings=settings))


def serve(site: Site, data: bytes, media_type: str = "application/pdf") -> str:
    site.pages["/scan"] = Page(data, {"Content-Type": media_type})
    return site.url("/scan")


async def test_a_fetch_reads_the_pages_of_a_scan_and_marks_them(
    opened: OpenStash, site: Site, reader: Reader
) -> None:
    async with opened() as stash:
        artifact = await stash.fetch(serve(site, SCAN))
        text = await artifact.text()
    assert reader.read == [1, 2, 3, 4]
    assert text.startswith(
        "[Page 1]\n[read by OCR, confidence .93]\nwords of sheet 1\n\n[Page 2]\n"
    )
    assert artifact.facts.ocr_pages == 4
    assert artifact.facts.pages_without_text == 0
    assert artifact.facts.extraction_error == ""
    assert "words of sheet 4" in as_shown(artifact)


async def test_each_page_is_read_once_and_kept_across_a_restart(
    opened: OpenStash, site: Site, reader: Reader
) -> None:
    reader.fail = {3}
    async with opened() as stash:
        ref = (await stash.fetch(serve(site, SCAN))).ref
        assert reader.read == [1, 2]
    reader.fail = set()
    async with opened() as stash:
        part = await stash.slice(ref, unit="pages", start=2, end=3)
        assert reader.read == [1, 2, 3]
        assert "sheet 2" in part.text
        assert "sheet 3" in part.text
        again = await stash.slice(ref, unit="pages", start=2, end=3)
        assert again.text == part.text
        assert reader.read == [1, 2, 3]
        assert [finding for finding in await stash.check() if finding.level == "fault"] == []


async def test_what_was_read_is_found_by_grep_search_and_read(scanned: Scanned) -> None:
    async with scanned() as (stash, ref):
        assert (await stash.grep("sheet 3", [ref])).total == 1
        assert "sheet" in str(await stash.search("sheet", [ref]))
        assert (await stash.read(ref)).total == (await stash.get(ref)).facts.extracted_chars
        pages = await stash.slice(ref, unit="pages", start=4)
        assert pages.text.startswith("[Page 4]")
        assert pages.count == 4


async def test_pages_that_there_is_no_time_for_follow_in_the_next_call(
    opened: OpenStash, site: Site, reader: Reader
) -> None:
    reader.fail, reader.hang = {1}, {3}
    async with opened() as stash:
        artifact = await stash.fetch(serve(site, SCAN))
        assert artifact.facts.extracted_chars is None
        assert 'unit="pages", start=1, end=4) reads them by OCR' in as_shown(artifact)
        part = await hurried(stash).slice(artifact.ref, unit="pages", start=2)
        assert "sheet 2" in part.text
        assert "[Page 3]" not in part.text
        assert (part.next and part.next.arguments["start"]) == 3
        shown = as_shown(part)
        assert "[Page 3 was not read in time. Continue with the call at the end.]" in shown
        assert shown.endswith('unit="pages", start=3)')


async def test_each_slice_reads_a_page_though_its_time_is_over_until_all_are_read(
    scanned: Scanned, reader: Reader
) -> None:
    reader.fail = {1, 2, 3, 4}
    async with scanned() as (stash, ref):
        reader.fail.clear()
        reader.read.clear()
        late, start, texts = hurried(stash, seconds=0), 1, list[str]()
        for page in range(1, 5):
            part = await late.slice(ref, unit="pages", start=start)
            texts.append(part.text)
            assert reader.read == list(range(1, page + 1))
            start = part.next.arguments["start"] if part.next else 0
    assert start == 0
    assert [f"sheet {n}" in text for n, text in enumerate(texts, start=1)] == [True] * 4


async def test_an_image_is_read_though_the_time_of_the_call_is_over(
    opened: OpenStash, site: Site
) -> None:
    async with opened() as stash:
        ref = (await stash.fetch(serve(site, PICTURE, "image/png"))).ref
        assert "sheet 1" in (await hurried(stash, seconds=0).slice(ref, path="text")).text


async def test_progress_counts_pages(scanned: Scanned, reader: Reader) -> None:
    reader.fail = {1}
    reports: list[tuple[int, int | None]] = []
    async with scanned() as (stash, ref):

        def report(done: int, total: int | None) -> None:
            reports.append((done, total))

        await stash.slice(ref, unit="pages", start=2, end=4, progress=report)
    assert reports == [(1, 3), (2, 3), (3, 3)]


async def test_a_page_that_fails_leaves_the_others(scanned: Scanned, reader: Reader) -> None:
    reader.fail = {2}
    async with scanned() as (stash, ref):
        assert "sheet 1" in (await stash.read(ref)).text
        with pytest.raises(TooLarge, match="Page 2"):
            await stash.slice(ref, unit="pages", start=2, end=3)
        assert "sheet 3" in (await stash.slice(ref, unit="pages", start=3, end=3)).text


async def test_a_cancelled_slice_keeps_what_it_read(scanned: Scanned, reader: Reader) -> None:
    reader.fail, reader.hang = {1}, {3}
    async with scanned() as (stash, ref):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: stash.slice(ref, unit="pages", start=2, end=3))
            await reader.hanging.wait()
            tasks.cancel_scope.cancel()
        assert "sheet 2" in (await stash.slice(ref, unit="pages", start=2, end=2)).text
    assert reader.read == [2]


async def test_a_page_without_print_is_said_to_be_and_not_read_again(
    scanned: Scanned, reader: Reader
) -> None:
    reader.blank = {1, 2, 3, 4}
    async with scanned() as (stash, ref):
        part = await stash.slice(ref, unit="pages", start=2, end=2)
    assert part.text == "[Page 2]\n[read by OCR: no text]\n\n"
    assert reader.read == [1, 2, 3, 4]


async def test_two_calls_that_read_at_once_lose_nothing(
    opened: OpenStash, site: Site, reader: Reader
) -> None:
    reader.fail = {1}
    async with opened() as stash, opened() as other:
        ref = (await stash.fetch(serve(site, SCAN))).ref

        async def read(reading: Stash, page: int) -> None:
            await reading.slice(ref, unit="pages", start=page, end=page)

        async with anyio.create_task_group() as tasks:
            for reading, page in ((stash, 2), (other, 3), (stash, 4)):
                tasks.start_soon(read, reading, page)
        text = (await stash.read(ref)).text
        facts = (await stash.get(ref)).facts
    assert [f"sheet {page}" in text for page in (2, 3, 4)] == [True] * 3
    assert (facts.ocr_pages, facts.pages_without_text) == (3, 1)


async def test_a_scan_between_texts_is_read_when_it_is_asked_for(
    opened: OpenStash, site: Site, reader: Reader
) -> None:
    pdf = with_scan(["first words", *["more words " * 20] * 6], 2)
    async with opened(views__inline_threshold=500, views__preview_chars=20) as stash:
        ref = (await stash.fetch(serve(site, pdf))).ref
        assert reader.read == []  # it stands behind the preview
        found = await stash.grep("more words", [ref])
        assert "1 page not read yet" in view_of(Host(stash.settings.views), found).text
        part = await stash.slice(ref, unit="pages", start=1, end=3)
    assert reader.read == [2]
    assert "[Page 2]\n[read by OCR, confidence .93]\nwords of sheet 2\n\n[Page 3]" in part.text


@pytest.mark.parametrize(
    "pages", [with_scan(["some words"] * 11, 1), make_pdf(["some words", "", ""], "t")]
)
async def test_one_scan_among_many_and_empty_pages_are_not_worth_a_line(
    opened: OpenStash, site: Site, pages: bytes
) -> None:
    async with opened(ocr=False) as stash:
        assert "without a text layer" not in as_shown(await stash.fetch(serve(site, pages)))


async def test_a_document_of_empty_pages_names_no_ocr(opened: OpenStash, site: Site) -> None:
    async with opened(ocr=False) as stash:
        shown = as_shown(await stash.fetch(serve(site, make_pdf(["", ""], "t"))))
    assert "the document has no text, only 2 blank pages" in shown
    assert "ocr" not in shown.lower()


@pytest.mark.parametrize(
    ("ocr", "call"), [(False, "page=3"), (True, "start=3, end=4")], ids=["picture", "OCR"]
)
async def test_the_call_for_pages_without_text_names_the_first_of_them(
    opened: OpenStash, site: Site, ocr: bool, call: str
) -> None:
    async with opened(ocr=ocr, views__inline_threshold=200, views__preview_chars=20) as stash:
        artifact = await stash.fetch(serve(site, with_scan(["many words " * 20] * 3, 3)))
    assert artifact.unread
    assert call in as_method(artifact.unread.call)


async def test_a_page_whose_text_is_garbage_is_read_by_ocr_when_it_is_asked_for(
    opened: OpenStash, reader: Reader
) -> None:
    first = f"{unmapped_page(1)}7KH ZDUGHQV\n\n"
    facts = Facts(
        content_kind="pdf",
        media_type="application/pdf",
        pages=2,
        unreadable_pages=1,
        unreadable_from=1,
        pictures=True,
        word="PDF",
    )
    async with opened() as stash:
        text, ranges = f"{first}[Page 2]\nplain\n\n", Ranges(pages=(0, len(first)))
        kept = await put_into(stash.store, text.encode(), b"%PDF-1.4", facts, ranges)
        ref = kept.artifact_ref
        part = await stash.slice(ref, unit="pages")
        facts = (await stash.get(ref)).facts
    assert reader.read == [1]
    assert "words of sheet 1" in part.text
    assert "ZDUGHQV" not in part.text
    assert part.text.endswith("[Page 2]\nplain\n\n")
    assert (facts.unreadable_pages, facts.ocr_pages) == (0, 1)


async def test_headings_and_tables_behind_a_page_move_with_their_lines(opened: OpenStash) -> None:
    blank = "[Page 1]\n(no text on this page)\n\n"
    text = f"{blank}[Page 2]\n# Head\n\n| a |\n| --- |\n| 1 |\n"
    ranges = Ranges(pages=(0, len(blank)), tables=(Table("t", 9, 1, 1),))
    facts = Facts(
        content_kind="pdf",
        media_type="application/pdf",
        pages=2,
        pages_without_text=1,
        outline=(Heading("Head", 1, "lines", 5),),
        pictures=True,
        word="PDF",
    )
    async with opened() as stash:
        kept = await put_into(stash.store, text.encode(), b"%PDF-1.4", facts, ranges)
        ref = kept.artifact_ref
        await stash.slice(ref, unit="pages", start=1, end=1)
        assert (await stash.slice(ref, path="Head", start=1, end=1)).text == "# Head\n"
        assert (await stash.slice(ref, unit="rows", start=1, end=1)).text == "| 1 |\n"
        assert (await stash.slice(ref, unit="pages", start=2)).text.startswith("[Page 2]\n# Head")


async def test_an_image_is_read_by_its_path_text_and_stays_a_picture(
    opened: OpenStash, site: Site, reader: Reader
) -> None:
    async with opened() as stash:
        artifact = await stash.fetch(serve(site, PICTURE, "image/png"))
        assert reader.read == []
        part = await stash.slice(artifact.ref, path="text")
        assert part.text == "[read by OCR, confidence .93]\nwords of sheet 1\n"
        await stash.slice(artifact.ref, path="text")
        assert reader.read == [1]
        assert (await stash.grep("sheet", [artifact.ref])).total == 1
        assert (await stash.picture(artifact.ref)).width == 60
        again = await stash.fetch(site.url("/scan"), refresh=True)
        assert again.image is not None
        assert "text" in again.facts.paths


async def test_without_the_extra_the_picture_and_the_extra_are_named(
    opened: OpenStash, site: Site
) -> None:
    async with opened(ocr=False) as stash:
        artifact = await stash.fetch(serve(site, SCAN))
        shown = as_shown(artifact)
        assert "Failed to extract text from PDF: the document has no text layer" in shown
        picture = f'artifact_slice(artifact_ref="{artifact.ref}", render="image", unit="pages", '
        assert f"[4 pages without a text layer: {picture}start=1) shows one." in shown
        assert HINT in shown
        for reading in (
            stash.slice(artifact.ref, unit="pages", start=2),
            stash.read(artifact.ref),
            stash.grep("x", [artifact.ref]),
        ):
            with pytest.raises(NoText, match=r"artifact\.picture\(page=1\) shows one") as caught:
                await reading
            assert HINT in str(caught.value)
        image = await stash.fetch(serve(site, PICTURE, "image/png"))
        with pytest.raises(NoText, match=r"artifact\.picture\(\) shows it") as caught:
            await stash.slice(image.ref, path="text")
        assert HINT in str(caught.value)


async def test_a_scan_is_read_although_no_call_named_pages(
    scanned: Scanned, reader: Reader
) -> None:
    reader.fail = {1}
    async with scanned() as (stash, ref):
        with pytest.raises(NoText, match="reads them by OCR"):
            await stash.read(ref)
