"""Time from a key to the painted text, in a Chromium without a window, on a text of 100 MB.

Each key (PageDown, PageUp, End, Home, an arrow) is sent to the view; the page's own clock measures
from the key event to the frame after the one in which every visible line has its text. Needs
Playwright and Chromium: ~/.cache/fetchstash/extras/bin/python -P bench/ui_paint.py [--mb 100]
"""

import argparse
import asyncio
import shutil
import statistics
import tempfile
from pathlib import Path

from playwright.async_api import async_playwright

from fetchstash.config import load
from fetchstash.server.ui import ViewServer
from fetchstash.store import Facts, open_store
from fetchstash.text.ranges import Ranges

KEYS = (
    *("PageDown",) * 30,
    *("PageUp",) * 10,
    *("End", "PageUp", "Home", "PageDown") * 10,
    *("ArrowDown",) * 20,
)
LIMIT_MS = 100
_TIME = """key => new Promise(done => {
  const text = document.querySelector(".rows");
  const started = performance.now();
  text.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
  const look = () => {
    const lines = [...text.querySelectorAll(".line")];
    if (lines.length && lines.every(line => line.querySelector(".doc").textContent))
      requestAnimationFrame(() => done(performance.now() - started));
    else requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
})"""


async def put_long(folder: Path, size: int) -> None:
    """Put a text of ``size`` bytes."""
    store = await open_store(load({"store.folder": str(folder), "store.run": "bench"}).store)
    raw, text = store.spool / "raw", store.spool / "text"
    line = "{:09} the keeper of the lamp writes down the wind, the tide and the ships he sees.\n"
    with raw.open("w") as file:
        for number in range(1, size // len(line.format(0)) + 1):
            file.write(line.format(number))
    shutil.copyfile(raw, text)
    await store.put(raw, text, Facts(content_kind="text", title="long"), Ranges())
    await store.aclose()


async def measured(size: int) -> dict[str, list[float]]:
    """Return the milliseconds of each key, by its name."""
    times: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name, "store")
        await put_long(folder, size)
        settings = load({"store.folder": str(folder), "store.run": "bench"})
        async with ViewServer.open(settings) as server, async_playwright() as playwright:
            chromium = shutil.which("chromium") or shutil.which("google-chrome")
            browser = await playwright.chromium.launch(
                executable_path=chromium, args=["--no-sandbox"]
            )
            page = await browser.new_page(viewport={"width": 1_440, "height": 900})
            await page.goto(server.link)
            await page.locator(".item").first.click()
            await page.locator(".line .doc").first.wait_for()
            for key in KEYS:
                times.setdefault(key, []).append(await page.evaluate(_TIME, key))
            await browser.close()
    return times


def p95(times: list[float]) -> float:
    """Return the time that 95 of 100 keys keep."""
    return statistics.quantiles(times, n=20, method="inclusive")[-1]


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--mb", type=int, default=100)
    arguments = parser.parse_args()
    by_key = asyncio.run(measured(arguments.mb * 1_000_000))
    for key, times in by_key.items():
        print(f"{key:<10} {len(times):>3} times  p50 {statistics.median(times):6.1f} ms", end="  ")
        print(f"p95 {p95(times):6.1f} ms")
    whole = p95([time for times in by_key.values() for time in times])
    print(f"all        p95 {whole:.1f} ms, bound {LIMIT_MS} ms")
    raise SystemExit(whole > LIMIT_MS)
