"""Print each row of docs/speed.md in one run, with its peer beside it.

    python -P bench/speed.py [--corpora FOLDER] [--rounds 7] [--small] [--only NAME …]

Fetching is measured here against bare httpx2: one server on loopback in a process of its own, ours
and theirs in turns, so that the machine's load falls on both. A ratio is the median of the pairs.
CPU is of this process and of its workers, in the ticks of the system's clock. The other rows are
those of the programs beside this one, each run in a process of its own, with the peers that
requirements/tools locks; a corpus, a peer or a program that cannot be had is said. ``--only`` names
what to run: "fetching", or programs. Ends with 1 if a goal of fetching is missed or one failed.
"""

import os
import platform
import random
import socket
import subprocess
import sys
import tempfile
import time
from argparse import Namespace
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from statistics import median
from threading import Thread

import anyio
import httpx2

from bench._run import cpu_seconds
from fetchstash import open_stash
from scripts.drive.programs import options
from scripts.parts.bench import SHORT, corpus_of, run

WORDS = ("system", "time", "value", "data", "user", "request", "naïve", "server", "page", "1984")
MEGABYTE = 10**6
AT_ONCE = 10
MOST_SECONDS = 330
"""For one program: one that takes longer must not keep the others from their turn."""

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
    """Serve pages, bytes and text of any size, in a process of its own; print the port."""
    server = socket.create_server(("127.0.0.1", 0), backlog=100)
    print(server.getsockname()[1], flush=True)
    chance = random.Random(1)
    lines = "".join(f"line {n}: {' '.join(chance.choices(WORDS, k=8))}\n" for n in range(5_000))
    large = {"bytes": bytes(range(256)) * 1024, "text": lines.encode()}

    def respond(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            received = b""
            while data := connection.recv(65_536):
                received += data
                if b"\r\n\r\n" not in received:
                    continue
                kind, _, number = received.split()[1].decode().strip("/").partition("/")
                fields = 'ETag: "1"\r\nCache-Control: no-cache\r\n'
                if b"if-none-match" in received.lower():
                    connection.sendall(f"HTTP/1.1 304 Not Modified\r\n{fields}\r\n".encode())
                elif not number:
                    connection.sendall(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
                else:
                    body = large[kind] if kind in large else page(int(number))
                    left = int(number) if kind in large else len(body)
                    types = {"bytes": "application/octet-stream", "text": "text/plain"}
                    fields += f"Content-Type: {types.get(kind, 'text/html')}; charset=utf-8\r\n"
                    head = f"HTTP/1.1 200 OK\r\n{fields}Content-Length: {left}\r\n\r\n"
                    connection.sendall(head.encode())
                    while left > 0:
                        left -= connection.send(body[:left])
                received = b""

    while True:
        Thread(target=respond, args=(server.accept()[0],), daemon=True).start()


class Bench:
    """Measures ours beside theirs, and prints a row for each piece of work."""

    def __init__(self, server: int, rounds: int) -> None:
        self._server = server
        self._rounds = rounds
        self.missed = 0

    def cpu(self) -> float:
        """Return the seconds of CPU of this process and its workers, the server's left out."""
        return cpu_seconds(os.getpid()) - cpu_seconds(self._server)

    async def cost(self, work: Work) -> Cost:
        """Do a piece of work; return what it took."""
        began, cpu = time.perf_counter(), self.cpu()
        await work()
        return time.perf_counter() - began, self.cpu() - cpu

    async def pairs(self, ours: Work, theirs: Work) -> list[tuple[Cost, Cost]]:
        """Do both in each round, the first one in turn."""
        measured: list[tuple[Cost, Cost]] = []
        for number in range(self._rounds):
            if number % 2:
                second = await self.cost(theirs)
                measured.append((await self.cost(ours), second))
            else:
                measured.append((await self.cost(ours), await self.cost(theirs)))
        return measured

    def row(self, work: str, figures: str, goals: Sequence[tuple[float, float, str]]) -> None:
        """Print a row. A goal is a value, its bound (negative: at least), and its unit."""
        words: list[str] = []
        for value, bound, unit in goals:
            held = value >= -bound if bound < 0 else value <= bound
            self.missed += not held
            goal = f"{'≥' if bound < 0 else '≤'} {abs(bound):g}{'' if held else ', MISSED'}"
            words.append(f"{value:.2f}{unit} (goal {goal})")
        print(f"| {work} | {figures} | {'; '.join(words)} |", flush=True)


async def fetching(bench: Bench, base: str, *, small: bool) -> None:
    """Print the rows of fetching."""
    pages = 20 if small else 100
    sizes = (4, 6) if small else (64, 100)
    numbers = iter(range(10**9))
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
            goals = ("bytes", sizes[0], 1.0, 1.1), ("text", sizes[1], 0.8, 2.0)
            for kind, size, rate, most in goals:
                path = f"{kind}/{size * MEGABYTE}"
                measured = await bench.pairs(partial(ours, path), partial(bare, path))
                own, its = (median(pair[side][0] for pair in measured) for side in (0, 1))
                own_cpu, its_cpu = (median(pair[side][1] for pair in measured) for side in (0, 1))
                bench.row(
                    f"{size} MB of {kind}",
                    f"{size / own:.0f} MB/s, {own_cpu:.2f} s of CPU; bare httpx2 to a file "
                    f"{size / its:.0f} MB/s, {its_cpu:.2f} s",
                    (
                        (median(b[0] / a[0] for a, b in measured), -rate, " × its rate"),
                        (median(a[1] / max(b[1], 0.01) for a, b in measured), most, " × its CPU"),
                    ),
                )
            measured = await bench.pairs(at_once, partial(one_by_one, ours))
            each = [median(pair[side][1] for pair in measured) / pages * 1000 for side in (0, 1)]
            cores = len(os.sched_getaffinity(0))
            bench.row(
                f"{AT_ONCE} pages at once",
                f"{each[0]:.1f} ms of CPU a page; one after the other {each[1]:.1f} ms; "
                f"{cores} processors",
                (
                    (median(b[0] / a[0] for a, b in measured), -1.7, " × as fast"),
                    (median(a[1] / b[1] for a, b in measured), 1.0, " × the CPU"),
                ),
            )
            measured = await bench.pairs(partial(one_by_one, ours), partial(one_by_one, bare))
            each = [median(pair[side][1] for pair in measured) / pages * 1000 for side in (0, 1)]
            what = f"bare httpx2 {each[1]:.1f} ms"
            bench.row("a small page, kept, with the worker's CPU", what, ((each[0], 15, " ms"),))
            await stash.fetch(f"{base}/page/0")
            measured = await bench.pairs(again, partial(one_by_one, bare))
            each = [median(pair[side][1] for pair in measured) / pages * 1000 for side in (0, 1)]
            what = f"bare httpx2, which fetches a page, {each[1]:.1f} ms"
            bench.row("an unchanged page again", what, ((each[0], 3, " ms"),))


OTHERS: Mapping[str, Sequence[str]] = {
    "handlers_html": ("--every", "20"),
    "client_rewrite": ("--times", "3"),
    "client_replay": ("--share", "0.5"),
    "store_put": ("--repeat", "40"),
    "start": ("--runs", "15"),
    "store_read": ("--mb", "100"),
    "handlers_ocr": ("--pages", "1", "--sorts", "2"),
}
"""The programs of the other rows, and their arguments."""


def others(chosen: Namespace) -> int:
    """Run the programs of the other rows; return how many failed."""
    failed = 0
    for name, arguments in OTHERS.items():
        if chosen.only and name not in chosen.only:
            continue
        given = SHORT[name] if chosen.small else arguments
        with corpus_of(name, chosen.corpora) as corpus:
            if corpus is not None:
                failed += not run(name, [*corpus, *given], MOST_SECONDS)
    return failed


def main() -> int:
    """Start the server and print the rows."""
    chosen = options(__doc__, corpora=Path(), rounds=7, small=False, only=list[str](), serve=False)
    if chosen.serve:
        serve()
    if chosen.only and "fetching" not in chosen.only:
        return 1 if others(chosen) else 0
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
            bench = Bench(server.pid, chosen.rounds)
            anyio.run(partial(fetching, bench, base, small=chosen.small))
        finally:
            server.kill()
    failed = 0 if chosen.only == ["fetching"] else others(chosen)
    return 1 if bench.missed or failed else 0


if __name__ == "__main__":
    sys.exit(main())
