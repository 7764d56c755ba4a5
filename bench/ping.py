"""Time pings while the server converts a page of 2.3 MB, over stdio, in both protocol eras.

    python -P bench/ping.py

In the newer era, which has no ping, a tools/list is asked for.
"""

import argparse
import statistics
import time

import anyio

from fetchstash.demo.driver import started
from fetchstash.demo.site import Document, Site

BOUND = 0.1
PAGE_BYTES = 2_300_000


def page() -> bytes:
    section = (
        "<h2>Section {0}</h2><p>Some <b>words</b> and a <a href='/x{0}'>link</a> "
        "about the {0}th thing, which is a thing.</p>"
    )
    body = ""
    while len(body) < PAGE_BYTES:
        start = body.count("<h2>")
        body += "".join(section.format(n) for n in range(start, start + 1_000))
    return f"<html><body><article>{body}</article></body></html>".encode()


async def waits(era: str) -> list[float]:
    """Return how long each ping waited while the page was fetched and converted."""
    seen: list[float] = []
    done = anyio.Event()
    pages = {"/big": Document("text/html", page()), "/small": Document("text/html", b"<p>warm")}
    async with Site(pages) as site, started(site, mode=era) as client:
        await client.call_tool("fetch_content", {"url": site.url("/small")})

        async def fetch() -> None:
            await client.call_tool("fetch_content", {"url": site.url("/big")})
            done.set()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(fetch)
            while not done.is_set():
                start = time.perf_counter()
                await (
                    client.session.send_ping() if era == "legacy" else client.session.list_tools()
                )
                seen.append(time.perf_counter() - start)
                await anyio.sleep(0.005)
    return seen


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.parse_args()
    for era in ("legacy", "2026-07-28"):
        seen = anyio.run(waits, era)
        print(
            f"{era:<10}  {len(seen)} asked while it converted: median "
            f"{statistics.median(seen):.4f} s, "
            f"slowest {max(seen):.4f} s (bound {BOUND})"
        )


if __name__ == "__main__":
    main()
