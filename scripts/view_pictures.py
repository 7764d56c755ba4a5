"""Draw docs/view-*.png: the view as a person sees it, on documents of the demonstration.

Needs Playwright and a Chromium; the environment of scripts/extras has both:
    ~/.cache/fetchstash/extras/bin/python scripts/view_pictures.py [--out DIR]
"""

import argparse
import asyncio
import hashlib
import os
import shutil
import tempfile
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from typing import Any

import anyio
from PIL import Image
from playwright.async_api import Browser, Page, async_playwright

from fetchstash.cli.demo.site import documents
from fetchstash.config import Settings, load
from fetchstash.fetch import Fetched
from fetchstash.render import Host
from fetchstash.server.tools import answer, tool_specs
from fetchstash.server.ui import ViewServer
from fetchstash.stash import open_stash

TARGET = Path(__file__).resolve().parent.parent / "docs"
WIDE, NARROW = {"width": 1_440, "height": 900}, {"width": 360, "height": 740}


PLACES = {
    "https://www.lanternholm.example/tides": "/article.html",
    "https://docs.harbour.example/handbook": "/handbook.html",
    "https://reports.harbour.example/2025/annual-report.pdf": "/report.pdf",
    "https://api.stations.example/v2/stations.json": "/stations.json",
    "https://data.stations.example/readings.csv": "/readings.csv",
}


class Library:
    """A Fetcher of the demonstration's documents under names of their own (RFC 2606)."""

    async def fetch(self, url: str, folder: Path, **_: Any) -> Fetched:
        """Return a document as if it had come from the network."""
        document = documents()[PLACES[url]]
        handle, name = tempfile.mkstemp(dir=folder)
        os.close(handle)
        await anyio.Path(name).write_bytes(document.body)
        sha256 = hashlib.sha256(document.body).hexdigest()
        headers = {"content-type": document.media_type}
        size, now = len(document.body), datetime.now(UTC)
        last = url.rpartition("/")[2]
        return Fetched(Path(name), url, url, url, url, 200, headers, size, sha256, now, last)

    async def check(self, url: str, final_url: str = "") -> None:
        """Allow every place."""

    async def aclose(self) -> None:
        """Close nothing."""


async def fill(settings: Settings) -> None:
    """Read the documents as an agent does."""
    tools = {tool.name: tool for tool in tool_specs(settings)}
    async with open_stash(settings, fetcher=Library()) as stash:

        async def ask(tool: str, **arguments: Any) -> str:
            view = await answer(stash, Host(settings.views), tools[tool], arguments)
            await asyncio.sleep(1.2)  # agents think between calls, and the plot is over time
            return str(view.facts[0]["artifact_ref"]) if view.facts else ""

        tides, handbook, report, stations, readings = [
            await ask("fetch_content", url=url) for url in PLACES
        ]
        await ask("artifact_grep", artifact_ref=handbook, pattern="night ferry")
        await ask("artifact_slice", artifact_ref=handbook, start=240, end=420)
        await ask("artifact_slice", artifact_ref=report, unit="pages", start=3, end=4)
        await ask("artifact_slice", artifact_ref=stations, path="/stations/0")
        await ask("artifact_slice", artifact_ref=readings, unit="rows", start=1, end=60)
        await ask("get_search_content", artifact_ref=tides)
        await ask("artifact_search", query="night ferry quay", max_results=4)


async def shot(page: Page, target: Path, name: str) -> None:
    """Take a picture when the page is at rest."""
    await page.wait_for_load_state("networkidle")
    await page.wait_for_timeout(300)
    data = await page.screenshot()
    # The page has few colours: a palette makes the file a third as large.
    small = (
        Image.open(BytesIO(data))
        .convert("RGB")
        .quantize(256, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    )
    small.save(target / f"view-{name}.png", optimize=True)


async def choose(page: Page, text: str) -> None:
    """Open an artifact by a piece of its line."""
    await page.locator(".item", has_text=text).first.click()
    await page.locator("#tabs button").first.wait_for()


async def wide(browser: Browser, link: str, target: Path, state: Path) -> None:
    """Draw the wide pictures."""
    options: dict[str, Any] = {"viewport": WIDE}
    context = await browser.new_context(**options, color_scheme="light")
    page = await context.new_page()
    await page.goto(link)
    await shot(page, target, "overview")
    await choose(page, "HTML")
    await page.fill("#grep", "gauge|flood")
    await page.press("#grep", "Enter")
    await shot(page, target, "text")
    await choose(page, "PDF")
    await page.get_by_role("tab", name="Pages").click()
    await page.locator(".shot[src]").evaluate("image => image.decode()")
    await shot(page, target, "pages")
    await page.get_by_role("tab", name="Shown to").click()
    await shot(page, target, "calls")
    await context.storage_state(path=state)
    at = page.url.partition("#")[0]
    await context.close()
    dark = await browser.new_context(**options, color_scheme="dark", storage_state=state)
    page = await dark.new_page()
    await page.goto(at)
    await choose(page, "CSV")
    await page.get_by_role("tab", name="Table").click()
    await shot(page, target, "table-dark")
    await page.click("#home")
    await shot(page, target, "overview-dark")
    await dark.close()
    phone = await browser.new_context(viewport=NARROW, storage_state=state)
    page = await phone.new_page()
    await page.goto(at)
    await shot(page, target, "narrow-list")
    await choose(page, "HTML")
    await shot(page, target, "narrow-text")
    await phone.close()


async def draw(target: Path) -> None:
    """Fill a store, serve it, and take the pictures."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        settings = load({"store.folder": str(folder / "store"), "store.run": "harbour"})
        await fill(settings)
        async with ViewServer.open(settings) as server, async_playwright() as playwright:
            chromium = shutil.which("chromium") or shutil.which("google-chrome")
            browser = await playwright.chromium.launch(
                executable_path=chromium, args=["--no-sandbox"]
            )
            await wide(browser, server.link, target, folder / "state.json")
            await browser.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, default=TARGET)
    asyncio.run(draw(parser.parse_args().out))
