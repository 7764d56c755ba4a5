"""Where the CPU of a fetch and of reading a page goes: samples, printed and drawn.

    python -P bench/where.py CORPUS [--pages 400] [--every 32] [--picture docs/where-time-goes.svg]

A signal for each millisecond of CPU that this process uses looks where it is: at the innermost
frame whose file stands in a table below. What the main thread does not use, other threads do. The
workers' CPU is that of the system's clock. CORPUS is that of handlers_html.py; its every Nth page
is read in this process.
"""

import gc
import gzip
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from functools import partial
from html import escape
from pathlib import Path
from types import FrameType
from typing import Self

import anyio

from bench._run import cpu_seconds
from bench.handlers_html import extract
from bench.speed import __file__ as speed_program
from fetchstash import open_stash
from fetchstash.handlers._worker._child import GC_THRESHOLDS
from scripts.drive.programs import options

FETCH = {
    "selectors.py": "threads: the store, the body",
    "/fetchstash/fetch/": "fetching",
    "/fetchstash/": "the rest of fetchstash",
    "/httpcore2/": "httpcore2 and h11",
    "/h11/": "httpcore2 and h11",
    "/anyio/": "anyio and asyncio",
    "/asyncio/": "anyio and asyncio",
}
READ = {
    "/_html/_tree.py": "tree, with lexbor's parse",
    "/_html/_element.py": "tree, with lexbor's parse",
    "/_html/_style.py": "styles",
    "/_html/_sheet.py": "styles",
    "/_html/_hidden.py": "styles",
    "/_html/_features.py": "features of the scorer",
    "/_html/_trees.py": "choice of blocks: trees, repairs",
    "/_html/_content.py": "choice of blocks: trees, repairs",
    "/_html/_repairs.py": "choice of blocks: trees, repairs",
    "/_html/_blocks.py": "blocks and Markdown",
    "/_html/_inline.py": "blocks and Markdown",
    "/_html/_tables.py": "blocks and Markdown",
    "/handlers/": "decoding, scripts, media, the rest",
}
WORKER = "the worker"
COLORS = ("#0969da", "#1a7f37", "#9a6700", "#cf222e", "#8250df", "#57606a")
NAMES = [*dict.fromkeys([*FETCH.values(), WORKER]), *dict.fromkeys(READ.values())]
"""Each has its color in all bars."""


class Sampler:
    """Counts where the process is, at each millisecond of its CPU."""

    def __init__(self, table: dict[str, str]) -> None:
        self.counts: Counter[str] = Counter()
        self._table = table

    def _look(self, _: int, frame: FrameType | None) -> None:
        while frame is not None:
            path = frame.f_code.co_filename
            name = next((name for part, name in self._table.items() if part in path), None)
            if name:
                self.counts[name] += 1
                return
            frame = frame.f_back

    def __enter__(self) -> Self:
        signal.signal(signal.SIGPROF, self._look)
        signal.setitimer(signal.ITIMER_PROF, 0.001, 0.001)
        return self

    def __exit__(self, *_: object) -> None:
        signal.setitimer(signal.ITIMER_PROF, 0)

    def shares(self, milliseconds: float) -> dict[str, float]:
        """Return what each part took of so many milliseconds."""
        samples = self.counts.total() or 1
        return {name: milliseconds * n / samples for name, n in self.counts.most_common()}


async def of_fetches(base: str, server: int, pages: int) -> dict[str, dict[str, float]]:
    """Return the milliseconds of a new small page and of an unchanged one, by part."""
    found: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        limits = {"fetch.allow_hosts": [base.removeprefix("http://")], "store.folder": folder}
        async with open_stash(limits) as stash:

            async def sample(what: str, fetch: Callable[[int], Awaitable[object]]) -> None:
                def workers() -> float:
                    return cpu_seconds(os.getpid()) - cpu_seconds(server) - time.process_time()

                await fetch(0)
                of_workers, before = workers(), time.process_time()
                with Sampler(FETCH) as sampler:
                    for number in range(1, pages + 1):
                        await fetch(number)
                each = 1_000 / pages
                found[what] = sampler.shares((time.process_time() - before) * each)
                found[what][WORKER] = max(workers() - of_workers, 0) * each

            await sample("A new page of 8 KB", lambda n: stash.fetch(f"{base}/page/{n}"))
            await sample("The same page, unchanged", lambda _: stash.fetch(f"{base}/page/0"))
    return found


def of_reading(corpus: Path, every: int) -> dict[str, float]:
    """Return the milliseconds of reading an HTML page of the corpus, by part."""
    rows = [json.loads(line) for line in (corpus / "index.jsonl").read_text().splitlines()][::every]
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder, "page.html")
        sampler = Sampler(READ)
        spent = 0.0
        for round_ in range(2):  # the first imports and compiles
            for row in rows:
                page.write_bytes(gzip.decompress((corpus / row["path"]).read_bytes()))
                before = time.process_time()
                if round_:
                    with sampler:
                        extract(page, row["url"])
                    spent += time.process_time() - before
                else:
                    extract(page, row["url"])
    return sampler.shares(1_000 * spent / len(rows))


def drawn(works: dict[str, dict[str, float]]) -> str:
    """Return the picture: for each piece of work a bar as long as it is, and its parts by name."""
    shapes: list[str] = []
    y = 24
    for work, parts in works.items():
        whole = sum(parts.values())
        shapes.append(f'<text x="0" y="{y}" font-weight="bold">{work}: {whole:.1f} ms</text>')
        at = 0.0
        for number, (name, spent) in enumerate(parts.items()):
            width, color = 760 * spent / whole, COLORS[NAMES.index(name) % len(COLORS)]
            size = f'width="{width:.1f}" height="22" fill="{color}"'
            shapes.append(f'<rect x="{at:.1f}" y="{y + 8}" {size}/>')
            x, line = 380 * (number % 2), y + 48 + 18 * (number // 2)
            shapes.append(f'<rect x="{x}" y="{line - 10}" width="11" height="11" fill="{color}"/>')
            words = f"{escape(name)}: {spent:.2f} ms, {100 * spent / whole:.0f} %"
            shapes.append(f'<text x="{x + 17}" y="{line}">{words}</text>')
            at += width
        y += 78 + 18 * ((len(parts) + 1) // 2)
    head = 'font-family="system-ui, sans-serif" font-size="13" fill="#1f2328"'
    box = f'viewBox="-12 0 784 {y - 14}"'
    paper = f'<rect x="-12" width="784" height="{y - 14}" fill="#fff"/>'
    shapes = [f'<svg xmlns="http://www.w3.org/2000/svg" {box} {head}>', paper, *shapes, "</svg>"]
    return "\n".join(shapes) + "\n"


def main() -> int:
    """Print where the time goes, and draw it where a picture is asked for."""
    chosen = options(__doc__, corpus="index.jsonl", pages=400, every=32, picture="")
    command = [sys.executable, "-P", speed_program, "--serve"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            base = f"http://127.0.0.1:{int(server.stdout.readline())}"
            works = anyio.run(partial(of_fetches, base, server.pid, chosen.pages))
        finally:
            server.kill()
    gc.set_threshold(*GC_THRESHOLDS)
    works["Reading an HTML page of the corpus"] = of_reading(chosen.folder, chosen.every)
    for work, parts in works.items():
        print(f"{work}: {sum(parts.values()):.1f} ms")
        for name, spent in parts.items():
            print(f"  {spent:6.2f}  {name}")
    if chosen.picture:
        Path(chosen.picture).write_text(drawn(works), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
