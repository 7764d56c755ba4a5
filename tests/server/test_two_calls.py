"""A passage out of the middle of a large document, in two calls: what fetchstash is for."""

import json

import pytest

from fetchstash.cli.demo._tour import ask, started
from fetchstash.cli.demo.site import NEEDLES, Document, Needle, Site
from fetchstash.fetch import browser_fault
from fetchstash.handlers import ocr_is_installed
from tests.scanned import PROSE, page, scan

pytestmark = pytest.mark.anyio


@pytest.mark.long
@pytest.mark.anyio
@pytest.mark.parametrize("needle", NEEDLES, ids=lambda needle: needle.path)
async def test_it_is_in_the_context_after_a_fetch_and_a_grep_and_fewer_than_900_tokens(
    needle: Needle,
) -> None:
    async with Site() as site, started(site) as client:
        fetched = await ask(client, "fetch_content", url=site.url(needle.path), maxChars=1_000)
        found = await ask(client, "artifact_grep", artifact_ref=fetched.ref, pattern=needle.pattern)
    both = fetched.tokens + found.tokens
    print(f"{needle.path}: {fetched.whole:,} tokens, by two calls {both}")  # noqa: T201 - README
    assert needle.words not in fetched.text
    assert needle.words in found.text
    assert both < 900


# --- A passage in two calls out of what has no text of its own. Runs where the extras are.


@pytest.mark.slow
@pytest.mark.skipif(not ocr_is_installed(), reason="no extra ocr here: scripts/ci extras")
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


WRITTEN = """<html><head><title>Prices</title></head><body><div id="root"></div><script>
fetch("/prices.json").then(answer => answer.json()).then(prices => {
    const rows = prices.map(({name, price}) => `<tr><td>${name}</td><td>${price}</td></tr>`);
    const head = "<tr><th>boat</th><th>euros</th></tr>";
    document.getElementById("root").innerHTML =
        `<main><h1>Prices</h1><table>${head}${rows.join("")}</table></main>`;
});
</script></body></html>"""


@pytest.mark.slow
async def test_a_page_of_scripts_gives_a_passage_for_fewer_than_900_tokens() -> None:
    if fault := await browser_fault():
        pytest.skip(f"{fault} scripts/ci extras")
    prices = [{"name": f"boat {number}", "price": 7 * number} for number in range(1, 500)]
    pages = {
        "/": Document("text/html", WRITTEN.encode()),
        "/prices.json": Document("application/json", json.dumps(prices).encode()),
    }
    flags = ("--browser", "auto", "--deadline-seconds", "300")
    async with Site(pages) as site, started(site, *flags) as client:
        fetched = await ask(client, "fetch_content", url=site.url("/"), maxChars=1_000)
        found = await ask(
            client, "artifact_grep", artifact_ref=fetched.ref, pattern="boat 333 ", context=0
        )
        shown = await client.call_tool(
            "artifact_slice", {"artifact_ref": fetched.ref, "render": "image"}
        )
    assert "[Rendered by Chromium" in fetched.text
    assert "| boat 333 | 2331 |" in found.text
    assert fetched.tokens + found.tokens < 900
    assert [block.type for block in shown.content] == ["text", "image"]
