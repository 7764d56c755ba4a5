"""Fetching beside bare httpx2: bytes, text, small pages one by one and at once, an unchanged page.

    python -P bench/speed.py [--rounds 7] [--small]

One server on loopback in a process of its own, ours and theirs in turns, so that the machine's load
falls on both. A ratio is the median of the pairs. CPU is of this process and of its workers, in the
ticks of the system's clock. The other rows of docs/speed.md are printed by the programs beside this
one: scripts/ci bench --long runs them all. Ends with 1 if a goal is missed.
"""

import os
import platform
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from statistics import median

import anyio
import httpx2

from bench._run import cpu_seconds
from fetchstash import open_stash
from scripts.drive.programs import options

WORDS = ("system", "time", "value", "data", "user", "request", "naïve", "server", "page", "1984")
MEGABYTE = 10**6
AT_ONCE = 10

Work = Callable[[], Awaitable[object]]
Cost = tuple[float, float]
"""Seconds by the clock, and of CPU."""


def page(number: int) -> bytes:
    """Return a page of 8 KB: an article with its navigation, another for each number."""
    chance = random.Random(number)
    texts = [" ".join(chance.choices(WORDS, k=60)) for _ in range(20)]
    body = "<h2>More</h2>".join("".join(f"<p>{t}.</p>" for t in texts[n::2]) for n in (0, 1))
    links = "".join(f"<a href=/{n}>Part {n}</a>" for n in range(8))
    title = f"<title>Page {number}</title></head><body><nav>{links}</nav>"
    main = f"<main><h1>Page {number}</h1>{body}</main><footer>Imprint</footer></body></html>"
    return f"<!doctype html><html><head>{title}{main}".encode()


def serve() -> None:
    """Serve /page/N, and /bytes/N and /text/N of N bytes, until killed; print the port."""
    chance = random.Random(1)
    lines = "".join(f"line {n}: {' '.join(chance.choices(WORDS, k=8))}\n" for n in range(5_000))
    large = {
        "bytes": ("application/octet-stream", bytes(range(256)) * 1024),
        "text": ("text/plain; charset=utf-8", lines.encode()),
    }

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # the head and a small body in one segment

        def do_GET(self) -> None:
            kind, _, number = self.path.strip("/").partition("/")
            same = "If-None-Match" in self.headers
            self.send_response(304 if same else 200 if number else 404)
            self.send_header("ETag", '"1"')
            self.send_header("Cache-Control", "no-cache")
            if same:
                self.end_headers()
                return
            media_type, body = "text/html; charset=utf-8", page(int(number)) if number else b""
            left = len(body)
            if kind in large:
                (media_type, body), left = large[kind], int(number)
            self.send_header("Content-Type", media_type)
            self.send_header("Content-Length", str(left))
            self.end_headers()
            while left > 0:
                left -= self.wfile.write(body[:left])

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name there
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        print(server.server_port, flush=True)
        server.serve_forever()


def row(work: str, figures: str, *goals: tuple[float, float, str]) -> bool:
    """Print a row; return whether its goals are met: a value, its bound (negative: at least), unit.

    A bound that is met is no more than said.
    """
    words: list[str] = []
    all_met = True
    for value, bound, unit in goals:
        met = value >= -bound if bound < 0 else value <= bound
        all_met = all_met and met
        goal = f"{'≥' if bound < 0 else '≤'} {abs(bound):g}{'' if met else ', MISSED'}"
        words.append(f"{value:.2f}{unit} (goal {goal})")
    print(f"| {work} | {figures} | {'; '.join(words)} |", flush=True)
    return all_met


class Turns:
    """Runs ours and theirs in turns."""

    def __init__(self, server: int, rounds: int) -> None:
        self._server, self._rounds = server, rounds

    async def _cost(self, work: Work) -> Cost:
        """Return what a piece of work took, the server's CPU left out."""

        def cpu() -> float:
            return cpu_seconds(os.getpid()) - cpu_seconds(self._server)

        began, before = time.perf_counter(), cpu()
        await work()
        return time.perf_counter() - began, cpu() - before

    async def pairs(self, ours: Work, theirs: Work) -> list[tuple[Cost, Cost]]:
        """Do both in each round, the first one in turn; return what each took."""
        measured: list[tuple[Cost, Cost]] = []
        for number in range(self._rounds):
            works = (theirs, ours) if number % 2 else (ours, theirs)
            first, second = [await self._cost(work) for work in works]
            measured.append((second, first) if number % 2 else (first, second))
        return measured


def medians(measured: Sequence[tuple[Cost, Cost]], what: int) -> tuple[float, float]:
    """Return the medians of both sides: of the seconds (0) or of the CPU (1)."""
    ours, theirs = (median(pair[side][what] for pair in measured) for side in (0, 1))
    return ours, theirs


async def fetching(turns: Turns, base: str, *, small: bool) -> bool:
    """Print the rows; return whether all goals are met."""
    pages = 20 if small else 100
    sizes = (4, 6) if small else (64, 100)
    numbers = iter(range(10**9))
    good: list[bool] = []
    with tempfile.TemporaryDirectory() as folder:
        limits = {"fetch.allow_hosts": [base.removeprefix("http://")], "store.folder": folder}
        async with open_stash(limits) as stash, httpx2.AsyncClient(timeout=None) as client:

            async def bare(path: str) -> None:
                async with client.stream("GET", f"{base}/{path}") as response:
                    with Path(folder, "bare").open("wb") as file:  # noqa: ASYNC230 - as ours waits
                        async for chunk in response.aiter_raw():
                            file.write(chunk)

            async def ours(path: str) -> None:
                artifact = await stash.fetch(f"{base}/{path}", refresh=True)
                if not path.startswith("page"):  # the next round takes it in again
                    await stash.delete(artifact.facts.artifact_ref)

            async def one_by_one(fetch: Callable[[str], Awaitable[None]]) -> None:
                for _ in range(pages):
                    await fetch(f"page/{next(numbers)}")

            async def at_once() -> None:
                for _ in range(0, pages, AT_ONCE):
                    urls = [f"{base}/page/{next(numbers)}" for _ in range(AT_ONCE)]
                    await stash.fetch_many(urls)

            async def again() -> None:
                for _ in range(pages):
                    await stash.fetch(f"{base}/page/0")

            await at_once()  # both workers have started
            await one_by_one(bare)
            for kind, size, rate, most in (
                ("bytes", sizes[0], 1.0, 1.1),
                ("text", sizes[1], 0.8, 2.0),
            ):
                path = f"{kind}/{size * MEGABYTE}"
                measured = await turns.pairs(partial(ours, path), partial(bare, path))
                (own, its), (own_cpu, its_cpu) = medians(measured, 0), medians(measured, 1)
                figures = f"{size / own:.0f} MB/s, {own_cpu:.2f} s of CPU; bare httpx2 to a file "
                figures += f"{size / its:.0f} MB/s, {its_cpu:.2f} s"
                its_rate = median(b[0] / a[0] for a, b in measured), -rate, " × its rate"
                cpu = median(a[1] / max(b[1], 0.01) for a, b in measured), most, " × its CPU"
                good.append(row(f"{size} MB of {kind}", figures, its_rate, cpu))
            measured = await turns.pairs(at_once, partial(one_by_one, ours))
            own, its = (1_000 * cpu / pages for cpu in medians(measured, 1))
            figures = f"{own:.1f} ms of CPU a page; one after the other {its:.1f} ms"
            faster = median(b[0] / a[0] for a, b in measured), -1.7, " × as fast"
            cpu = median(a[1] / b[1] for a, b in measured), 1.0, " × the CPU"
            good.append(row(f"{AT_ONCE} pages at once", figures, faster, cpu))
            await stash.fetch(f"{base}/page/0")
            for what, work, goal in (
                ("a small page, kept, with the worker's CPU", partial(one_by_one, ours), 15),
                ("an unchanged page again", again, 3),
            ):
                measured = await turns.pairs(work, partial(one_by_one, bare))
                own, its = (1_000 * cpu / pages for cpu in medians(measured, 1))
                figures = f"bare httpx2, which fetches a page, {its:.1f} ms"
                good.append(row(what, figures, (own, goal, " ms")))
    return all(good)


def main() -> int:
    """Start the server and print the rows."""
    chosen = options(__doc__, rounds=7, small=False, serve=False)
    if chosen.serve:
        serve()
    print(
        f"{datetime.now(UTC):%Y-%m-%d}, {platform.machine()}, {os.cpu_count()} processors, Python "
        f"{platform.python_version()}, load {os.getloadavg()[0]:.1f}\n\n"
        "| work | figures | beside the peer |\n|---|---|---|"
    )
    command = [sys.executable, "-P", __file__, "--serve"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            base = f"http://127.0.0.1:{int(server.stdout.readline())}"
            turns = Turns(server.pid, chosen.rounds)
            good = anyio.run(partial(fetching, turns, base, small=chosen.small))
        finally:
            server.kill()
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
