"""Time how long the view takes to paint, in Chromium, over many artifacts and long texts.

    python -P bench/view.py [--artifacts 10000] [--megabytes 100] [--times 40]

list: another artifact of the list is chosen. text, table: another place of a text and of a CSV of
so many bytes. tree: a level of a JSON of 15 MB, of which a tree is made. json: a place of the text
of a JSON of so many bytes. A time is from the action to the frame behind the one that shows its
result, once the overview stands. On a busy machine `chrt -r 10` runs server and browser first.
Needs Playwright and Chromium: the environment that scripts/ci extras makes has them.
"""

import os
import random
import shutil
from pathlib import Path
from statistics import quantiles

import anyio
from playwright.async_api import Page, async_playwright

from fetchstash.config import load
from fetchstash.server.ui import ViewServer
from scripts.drive.programs import options
from tests.server.ui.many import put_long, put_many, quick_folder

BOUND_MS = 100
VIEWS = Path(__file__).with_name("_view.js").read_text(encoding="utf-8")
LARGE = 4
"""Long texts beside the small ones; the store keeps 10,000 artifacts by default."""
TREE_BYTES = 15_000_000

TABS = {
    "list": ("", ""),
    "text": ("textTab", ".line .doc"),
    "table": ("tableTab", "#body tbody tr"),
    "tree": ("treeTab", ".tree button"),
    "json": ("textTab", ".line .doc"),
}
"""The tab of each view, and what stands there when it is ready."""
ROW = "{0},keeper number {0},light of the cape,30\n"
ITEM = '{{"id": "{0:09}", "keeper": {{"name": "keeper {0}", "log": [1, 2, 3]}}}},\n'


async def fill(folder: Path, count: int, size: int) -> dict[str, str]:
    """Make the store; return the references of the large ones."""
    await put_many(folder, "first", count - LARGE)
    return {
        "text": await put_long(folder, "first", size),
        "table": await put_long(folder, "first", size, kind="csv", line=ROW),
        "tree": await put_long(folder, "first", TREE_BYTES, kind="json", line=ITEM, ends="[]"),
        "json": await put_long(folder, "first", size, kind="json", line=ITEM, ends="[]"),
    }


async def measure(page: Page, refs: dict[str, str], count: int, times: int) -> None:
    """Print the times of each kind of view in milliseconds, and the machine's load."""
    chosen = random.Random(1)
    await page.evaluate(VIEWS)
    for name, (tab, ready) in TABS.items():
        if tab:
            await page.evaluate("([ref, tab]) => open(ref, { tab })", [refs[name], tab])
            await page.wait_for_selector(ready)
        taken: list[float] = []
        for turn in range(times):
            place = chosen.random() if tab == "textTab" else turn + 1
            if name == "list":
                place = chosen.randrange(len(refs), count)
            taken.append(await page.evaluate(f"place => views.{name}(place)", place))
        cuts = quantiles(taken, n=20)
        verdict = "ok" if cuts[18] < BOUND_MS else f"over {BOUND_MS} ms"
        load = os.getloadavg()[0]
        print(
            f"{name:6} p50 {cuts[9]:5.0f} ms  p95 {cuts[18]:5.0f} ms  {verdict}  load {load:.1f}",
            flush=True,
        )


async def main(count: int, size: int, times: int) -> None:
    """Make the store, open the view, and measure."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    with quick_folder() as folder:
        refs = await fill(folder, count, size)
        settings = load({"store.folder": str(folder), "store.run": "first"})
        async with ViewServer.open(settings) as server, async_playwright() as playwright:
            browser = await playwright.chromium.launch(
                executable_path=chromium, args=["--no-sandbox"]
            )
            page = await browser.new_page(viewport={"width": 1_440, "height": 900})
            await page.goto(server.link)
            await page.locator("#count", has_text=f"{count:,} artifacts").wait_for(timeout=600_000)
            await page.locator("#plot").evaluate("plot => plot.decode()")
            await measure(page, refs, count, times)
            await browser.close()


if __name__ == "__main__":
    chosen = options(__doc__, artifacts=10_000, megabytes=100, times=40)
    anyio.run(main, chosen.artifacts, chosen.megabytes * 10**6, chosen.times)
