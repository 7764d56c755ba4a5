"""A passage in two calls out of what has no text of its own. Runs where the extras are."""

import pytest

from fetchstash.demo.content import Document
from fetchstash.demo.driver import ask, started
from fetchstash.demo.site import Site
from fetchstash.handlers import ocr_is_installed
from tests.scanned import PROSE, page, scan

pytestmark = [pytest.mark.anyio, pytest.mark.slow]


@pytest.mark.skipif(not ocr_is_installed(), reason="the extra ocr is not installed: scripts/extras")
async def test_a_scanned_pdf_gives_a_passage_for_fewer_than_900_tokens() -> None:
    chapter = PROSE.replace("7.85", "4.20")
    pdf = scan([page(chapter), page(PROSE), page(chapter)])
    pages = {"/report.pdf": Document("application/pdf", pdf)}
    async with Site(pages) as site, started(site, "--deadline-seconds", "300") as client:
        url = site.url("/report.pdf")
        fetched = await ask(client, "fetch_content", url=url, maxChars=1_000)
        found = await ask(
            client, "artifact_grep", artifact_ref=fetched.ref, pattern="7.85", literal=True
        )
        again = await ask(
            client, "artifact_slice", artifact_ref=fetched.ref, unit="pages", start=2, end=2
        )
    assert "7.85 euros" not in fetched.text
    assert "7.85 euros" in found.text
    assert fetched.tokens + found.tokens < 900
    assert "[Page 2]\n[read by OCR, confidence" in again.text
