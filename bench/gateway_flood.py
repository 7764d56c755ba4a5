"""Measure the gateway's memory while a server floods it: over stdio, and over streamable HTTP.

    python -P bench/gateway_flood.py [--mb 100 1000]

For each way and size: the peak of the gateway's resident memory over that with a result of 1 MB
(proc(5), VmHWM), the time, and whether the last line of the result is found in the artifact. The
gateway runs under ``ulimit -v``, so a fault here cannot take the machine's memory. Ends with 1 if
a result needs over 64 MB more, or is not found.
"""

import asyncio
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mcp import Client, StdioServerParameters

from bench._run import peak
from fetchstash.cli.demo._tour import command
from scripts.drive.programs import options

SERVERS = Path(__file__).parents[1] / "tests" / "gateway" / "servers"
MOST_BYTES = 64_000_000
VIRTUAL_KB = 4_000_000
CALL_SECONDS = 600


@contextmanager
def upstream(way: str) -> Generator[list[str]]:
    """Run what floods, and yield the words that name it to the gateway."""
    if way == "stdio":
        yield ["--", sys.executable, "-P", str(SERVERS / "plain.py"), "legacy"]
        return
    words = [sys.executable, "-P", str(SERVERS / "http_flood.py"), way.removeprefix("HTTP, ")]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout
        yield ["--url", server.stdout.readline().strip()]
        server.kill()


async def flood(way: str, megabytes: int) -> bool:
    """Print the figures of one flood; return whether they are within the bounds."""
    with tempfile.TemporaryDirectory() as name, upstream(way) as words:
        folder = Path(name)
        start = f'ulimit -v {VIRTUAL_KB}; echo $$ > {folder}/pid; exec "$@"'
        server = StdioServerParameters(
            command="sh",
            args=["-c", start, "sh", command(), "wrap", *words],
            env={"FETCHSTASH_STORE_FOLDER": f"{folder}/store"},
        )
        async with Client(server, mode="legacy", read_timeout_seconds=CALL_SECONDS) as client:
            await client.call_tool("flood", {"size": 1_000_000})
            gateway = (folder / "pid").read_text().strip()
            before, started = peak(gateway), time.perf_counter()
            result: Any = await client.call_tool("flood", {"size": megabytes * 1_000_000})
            seconds, more = time.perf_counter() - started, peak(gateway) - before
            ref = result.meta["fetchstash/artifact"][0]["artifact_ref"]
            grep = {"artifact_ref": ref, "pattern": "the last line", "literal": True}
            lines: Any = await client.call_tool("artifact_grep", grep)
    is_there = "the last line" in lines.content[0].text
    said = "last line found" if is_there else f"NOT FOUND: {lines.content[0].text[:200]}"
    print(f"{way:14} {megabytes:5} MB: {more / 1e6:5.1f} MB more, {seconds:5.1f} s, {said}")
    return is_there and more <= MOST_BYTES


async def main(sizes: list[int]) -> int:
    ways = ("stdio", "HTTP, json", "HTTP, events")
    good = [await flood(way, megabytes) for megabytes in sizes for way in ways]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main(options(__doc__, mb=[100, 1_000]).mb)))
