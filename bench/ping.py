"""Time pings over stdio while the server does what large documents and models make it do.

    python -P bench/ping.py [--scene NAME …] [--artifacts 20000]

page: a page of 2.3 MB is converted, in both protocol eras (the newer has no ping: tools/list).
grep: hostile patterns, eight at a time, on a line of 4 MB and on 48 MB; half of them are cancelled.
search: the first searches of a new process over many artifacts and 48 MB more, then later ones.

scripts/ci torture handlers pings while it fetches every hostile file.

A ping is sent every 10 ms, whether or not the one before was answered: a loop that stands for a
second delays a hundred of them.
"""

import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

import anyio
from mcp import Client

from bench._run import load
from fetchstash.cli.demo._tour import ask, started
from fetchstash.cli.demo.site import Document, Site
from fetchstash.store import Facts, StoreLimits, open_store
from scripts.drive.programs import options
from scripts.torture.kept import put
from tests.server.ui.many import put_many, quick_folder

BOUND = 0.1
PAGE_BYTES = 2_300_000
PERIOD = 0.01
SEARCH_SECONDS = 30
WARM_SEARCHES = 40
PATTERNS = (
    r"\pL{1,200}é$", r"((x{1,30}){1,30})y", r"(?i)(\pL{1,9}\pN){30}", r"\pL{1000}",
    ".{0,900}" * 30, "(a+)+$", r"(x+x+)+y", r"\bnever\b.*\bthere\b",
)  # fmt: skip
RUN = "default"


class Pings:
    """Pings of a server on a fixed beat, and how long each waited."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.waits: list[float] = []

    async def beside(self, work: Callable[[], Awaitable[object]]) -> None:
        """Ping while ``work`` runs."""
        async with anyio.create_task_group() as pings:
            ticking = anyio.CancelScope()

            async def tick() -> None:
                with ticking:
                    due = anyio.current_time()
                    while True:
                        pings.start_soon(self._ping)
                        due += PERIOD
                        await anyio.sleep_until(due)

            pings.start_soon(tick)
            await work()
            ticking.cancel()

    async def _ping(self) -> None:
        session = self._client.session
        began = time.perf_counter()
        await (session.send_ping() if self._client.mode == "legacy" else session.list_tools())
        self.waits.append(time.perf_counter() - began)

    def line(self, scene: str) -> str:
        """Return the figures of a scene."""
        waits = sorted(self.waits)
        p50, p99 = (waits[int(len(waits) * share)] * 1000 for share in (0.5, 0.99))
        over = sum(wait > BOUND for wait in waits)
        return f"{scene:16}{len(waits):8}{p50:9.1f}{p99:9.1f}{waits[-1] * 1000:9.1f}{over:8}"


async def page(mode: str) -> str:
    """Convert a page of 2.3 MB."""
    section = (
        "<h2>Section {0}</h2><p>Some <b>words</b> and a <a href='/x{0}'>link</a> "
        "about the {0}th thing, which is a thing.</p>"
    )
    sections = "".join(section.format(n) for n in range(PAGE_BYTES // len(section)))
    big = f"<html><body><article>{sections}</article></body></html>".encode()
    site_pages = {"/big": Document("text/html", big), "/small": Document("text/html", b"<p>warm")}
    async with Site(site_pages) as site, started(site, mode=mode) as client:
        await ask(client, "fetch_content", url=site.url("/small"))
        pings = Pings(client)
        await pings.beside(lambda: ask(client, "fetch_content", url=site.url("/big")))
        return pings.line(f"page ({mode})")


@asynccontextmanager
async def prepared(artifacts: int) -> AsyncGenerator[tuple[Client, list[str]]]:
    """Serve a store of small artifacts and two large texts; yield the references of the two."""
    with quick_folder() as place:
        folder = place / "store"
        await put_many(folder, RUN, artifacts)
        store = await open_store(StoreLimits(folder, run=RUN, max_artifacts=2 * artifacts + 10))
        large = {
            "line": "words of one line, ëven so ".encode() * 150_000,
            "lines": b"xxxxxxxxxxxxxxxx words of a text aaaaaaaaaaaaaaaa\n" * 1_000_000,
        }
        refs: list[str] = []
        for title, data in large.items():
            facts = Facts(title=title, content_kind="text", word="text")
            refs.append((await put(store, title.encode(), data, facts)).artifact_ref)
        await store.aclose()
        flags = f"--no-ephemeral --folder {folder} --run {RUN} --max-artifacts 10000000".split()
        async with Site({}) as site, started(site, *flags, mode="legacy") as client:
            await ask(client, "artifact_info")  # the first call opens the store
            yield client, refs


async def grep() -> str:
    """Look for hostile patterns, eight at a time, and cancel every second one."""
    async with prepared(10) as (client, refs):
        pings = Pings(client)
        at_once = anyio.CapacityLimiter(8)

        async def one(ref: str, pattern: str, seconds: float | None) -> None:
            async with at_once:
                with anyio.move_on_after(seconds):
                    await ask(client, "artifact_grep", artifact_ref=ref, pattern=pattern)

        async def work() -> None:
            async with anyio.create_task_group() as calls:
                for ref in refs:
                    for pattern in PATTERNS:
                        calls.start_soon(one, ref, pattern, None)
                        calls.start_soon(one, ref, pattern, 0.3)

        await pings.beside(work)
        return pings.line("grep")


async def search(artifacts: int) -> str:
    """Search again and again, from a process that has just started and then when all is indexed."""
    async with prepared(artifacts) as (client, _):
        cold, warm = Pings(client), Pings(client)
        query = {"query": "document 77"}

        async def first_searches() -> None:
            end = time.monotonic() + SEARCH_SECONDS
            while time.monotonic() < end:
                answer = await ask(client, "artifact_search", **query)
                if "not indexed yet" not in answer.text:
                    return

        async def later_searches() -> None:
            for _ in range(WARM_SEARCHES):
                await ask(client, "artifact_search", **query)

        await cold.beside(first_searches)
        await warm.beside(later_searches)
        return f"{cold.line('search')}\n{warm.line('search, indexed')}"


def main() -> None:
    args = options(__doc__, scene=["page", "grep", "search"], artifacts=20_000)
    scenes: dict[str, list[Callable[[], Awaitable[str]]]] = {
        "page": [lambda: page("legacy"), lambda: page("2026-07-28")],
        "grep": [grep],
        "search": [lambda: search(args.artifacts)],
    }
    print(f"{load()}; in ms, over: {BOUND:g} s")
    print(f"{'while':16}{'pings':>8}{'p50':>9}{'p99':>9}{'max':>9}{'over':>8}", flush=True)
    for name in args.scene:
        for scene in scenes[name]:
            print(anyio.run(scene), flush=True)


if __name__ == "__main__":
    main()
