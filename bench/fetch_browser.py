"""Pages of scripts in a browser: seconds, CPU and memory of each, beside a plain fetch.

    python -P bench/fetch_browser.py [--pages N]

Serves an application of scripts on loopback and renders it N times, each time in a fresh browser,
as HTML and as a picture. Memory is the largest sum over all processes of a page (PSS on Linux,
proc(5)), sampled ten times a second. Needs the extra `browser` and a Chromium (scripts/extras).
"""

import argparse
import asyncio
import os
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Self

from fetchstash.cli.demo.content import Document
from fetchstash.cli.demo.site import Site
from fetchstash.fetch import FetchLimits, HttpFetcher
from fetchstash.fetch._browser._child import descendants
from fetchstash.fetch._browser._chromium import missing

APPLICATION = """<html><head><title>App</title></head><body><div id="root"></div><script>
fetch("/rows.json").then(answer => answer.json()).then(rows => {
    document.getElementById("root").innerHTML =
        rows.map(row => `<section><h2>${row.name}</h2><p>${row.text}</p></section>`).join("");
});
</script></body></html>"""
ROWS = ",".join(
    f'{{"name": "Row {number}", "text": "{"words of a row " * 40}"}}' for number in range(300)
)
MIB = 2**20


def memory(process: int) -> int:
    """Return the bytes that the processes below ``process`` take, shared pages counted once."""
    total = 0
    for below in descendants(process):
        with suppress(OSError, ValueError, IndexError):
            lines = Path(f"/proc/{below}/smaps_rollup").read_text().splitlines()
            total += next(int(line.split()[1]) for line in lines if line.startswith("Pss:")) * 1024
    return total


class Peak:
    """The largest memory of this process's children while it is entered, and their number."""

    def __init__(self) -> None:
        self.bytes = self.processes = 0

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._sample())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()

    async def _sample(self) -> None:
        while True:
            self.bytes = max(self.bytes, await asyncio.to_thread(memory, os.getpid()))
            self.processes = max(self.processes, len(descendants(os.getpid())))
            await asyncio.sleep(0.1)


async def measure(pages: int) -> None:
    site = {
        "/": Document("text/html", APPLICATION.encode()),
        "/rows.json": Document("application/json", f"[{ROWS}]".encode()),
    }
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        async with Site(site) as served:
            limits = FetchLimits(allow_hosts=(f"127.0.0.1:{served.port}",), respect_robots=False)
            fetcher = HttpFetcher(limits)
            await fetcher.fetch(served.url("/"), folder)
            began = time.perf_counter()
            await fetcher.fetch(served.url("/"), folder)
            print(f"{'plain fetch':12}{time.perf_counter() - began:8.3f} s")
            for title, edge in (("HTML", 0), ("picture", 1_568)):
                for _ in range(pages):
                    began, before = time.perf_counter(), os.times()
                    async with Peak() as peak:
                        page = await fetcher.render(
                            served.url("/"), folder, seconds=120, edge=edge, max_bytes=2 * MIB
                        )
                    seconds, after = time.perf_counter() - began, os.times()
                    cpu = after.children_user + after.children_system
                    cpu -= before.children_user + before.children_system
                    size = page.path.stat().st_size
                    print(
                        f"{title:12}{seconds:8.1f} s{cpu:8.1f} s CPU of the driver"
                        f"{peak.bytes / MIB:8.0f} MiB{peak.processes:4} processes{size:10,} bytes"
                    )
            await fetcher.aclose()


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--pages", type=int, default=3)
    options = parser.parse_args()
    if lack := missing():
        print(f"SKIPPED: {lack} scripts/extras makes an environment that has it.")
        return 0
    asyncio.run(measure(options.pages))
    return 0


if __name__ == "__main__":
    sys.exit(main())
