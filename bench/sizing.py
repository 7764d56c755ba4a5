"""Measure what a service takes: memory, and processor time for each call.

    python -P bench/sizing.py [--tenants 50] [--calls 300]

Memory is proportional (Pss), processor time that of the server and its workers: both hardly depend
on what else the machine does. Prints what docs/operations.md needs to size a service.
"""

import argparse
import asyncio
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.append(str(Path(__file__).parents[1]))

from bench._http_calls import Caller, serving
from bench.http import PAGES, cpu_seconds, family, flags, free_port, memory, sliced
from fetchstash.cli.demo.content import documents
from fetchstash.cli.demo.driver import command
from fetchstash.cli.demo.site import Site

if TYPE_CHECKING:
    from collections.abc import Callable


def token(tenant: str, store: str) -> str:
    """Make a token of a tenant in a store."""
    words = [command(), "token", "create", "--tenant", tenant, "--name", "bench"]
    return subprocess.run(
        [*words, "--config", os.devnull, "--folder", store],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()


async def fetched(caller: Caller, url: str) -> str:
    """Fetch a page and return its reference."""
    answer = await caller.tool("fetch_content", url=url)
    if answer.code:
        raise RuntimeError(f"{answer.code} {answer.text[:200]}")
    return answer.ref


async def measured(pid: int, callers: list[Caller], site: Site, calls: int) -> None:
    """Print memory and processor time of a service."""
    small = site.url("/report.pdf")
    print(f"the server before its first call: {memory(pid):.0f} MB")
    await fetched(callers[0], small)
    one = memory(pid)
    workers = [child for child in family(pid) if child != pid]
    print(f"with one tenant: {one:.0f} MB, and each worker {max(map(memory, workers)):.0f} MB")
    for caller in callers[1:]:
        await fetched(caller, small)
    each = (memory(pid) - one) / max(len(callers) - 1, 1)
    print(f"each of {len(callers) - 1} more tenants: {each:.1f} MB")
    caller, chance = callers[0], random.Random(1)
    ref = await fetched(caller, site.url("/0.txt"))
    kinds: dict[str, Callable[[], dict[str, Any]]] = {
        "artifact_slice": lambda: {"artifact_ref": ref, **sliced(chance)},
        "artifact_grep": lambda: {"artifact_ref": ref, "pattern": "4711 things"},
        "artifact_search": lambda: {"artifact_refs": [ref], "query": "document things 4711"},
        "artifact_info": lambda: {"artifact_ref": ref},
        "fetch_content": lambda: {"url": small, "refresh": True},
    }
    for tool, arguments in kinds.items():
        await caller.tool(tool, **arguments())
        before = cpu_seconds(pid)
        for _ in range(calls):
            answer = await caller.tool(tool, **arguments())
            assert not answer.code, answer
        spent = (cpu_seconds(pid) - before) / calls
        print(f"{tool:16} {spent * 1000:6.1f} ms of a processor")


async def main(tenants: int, calls: int) -> None:
    """Start a service of several tenants and measure it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        store = str(folder / "store")
        tokens = [token(f"tenant-{number}", store) for number in range(tenants)]
        async with Site(documents() | PAGES) as site:
            port = free_port()
            words = flags(site, "--folder", store)
            env = os.environ | {"FETCHSTASH_QUOTA_REQUESTS_PER_MINUTE": "0"}
            async with serving(port, *words, log=folder / "log", env=env) as process:
                callers = [Caller(port, token=text) for text in tokens]
                await measured(process.pid, callers, site, calls)
                for caller in callers:
                    await caller.aclose()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tenants", type=int, default=50)
    parser.add_argument("--calls", type=int, default=300)
    chosen = parser.parse_args()
    asyncio.run(main(chosen.tenants, chosen.calls))
