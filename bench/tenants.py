"""Measure fairness: the p99 of a quiet tenant beside one that floods, over its p99 alone.

    python -P bench/tenants.py [--seconds 10] [--turns 3] [--flood 50]

The quiet tenant makes one call after the other: mostly reads, some searches, a new document in
twelve. The other calls from --flood connections at once, without a pause, in a process of its own:
slices, searches through 100,000 lines, new PDFs. Both are measured in turns of some seconds, in one
run: first without quotas, so that turns alone are what protects; then with the default quotas.
Ends with 1 if a ratio is over 2.
"""

import asyncio
import json
import os
import random
import secrets
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from argparse import Namespace
from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import Any

from bench._calls import Caller, fetched, timed
from bench._run import p99
from fetchstash.cli.demo.site import HANDBOOK, READINGS, REPORT, Site
from scripts.drive.programs import options
from scripts.drive.service import free_port, serving, token_of

BOUND = 2.0
LINES = 1_000
NEW = 1 / 12
"""The share of calls that fetch what was not fetched before."""


def a_call(
    refs: Sequence[str], site: str, page: str, chance: random.Random
) -> tuple[str, dict[str, Any]]:
    """Return one of the mixed calls."""
    ref, kind = chance.choice(refs), chance.random()
    if kind < NEW:
        return "fetch_content", {"url": f"{site}{page}?{secrets.token_hex(8)}"}
    if kind < 0.2:
        line = chance.randrange(LINES)
        return "artifact_grep", {"artifact_ref": ref, "pattern": f"\\b{line}\\b.*[aeiou]{{3}}"}
    if kind < 0.3:
        return "artifact_search", {"artifact_refs": [ref], "query": "tide gauge at the quay"}
    if kind < 0.4:
        return "artifact_info", {"artifact_ref": ref}
    start = chance.randrange(1, LINES - 50)
    return "artifact_slice", {"artifact_ref": ref, "start": start, "end": start + 49}


Times = dict[str, list[float]]


async def quiet(
    caller: Caller, refs: Sequence[str], site: str, seconds: float, times: Times
) -> Counter[str]:
    """Call one after the other for a while; return the errors."""
    chance, errors = random.Random(len(times)), Counter[str]()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        await timed(caller, *a_call(refs, site, HANDBOOK, chance), times, errors)
    return errors


async def flood(port: int, token: str, site: str, connections: int) -> None:
    """Call from many connections until SIGTERM, and print how many calls of each outcome."""
    outcomes: Counter[str] = Counter()
    first = Caller(port, token=token)
    refs = await fetched(first, [site + HANDBOOK, site + READINGS])
    print("ready", flush=True)

    async def client(number: int) -> None:
        chance, caller = random.Random(number), Caller(port, token=token)
        while True:
            tool, arguments = a_call(refs, site, REPORT, chance)
            with suppress(OSError, EOFError):
                outcomes[(await caller.tool(tool, **arguments)).code or "served"] += 1

    tasks = [asyncio.create_task(client(number)) for number in range(connections)]
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    await ended.wait()
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    print(json.dumps(outcomes), flush=True)


@asynccontextmanager
async def flooding(
    port: int, token: str, site: str, connections: int, totals: Counter[str]
) -> AsyncGenerator[None]:
    """Flood from another process meanwhile; add up what it got."""
    words = [sys.executable, "-P", __file__, "--as-flood", str(port), site, str(connections)]
    environment = os.environ | {"TOKEN": token}
    process = await asyncio.create_subprocess_exec(*words, stdout=subprocess.PIPE, env=environment)
    assert process.stdout
    try:
        await process.stdout.readline()
        await asyncio.sleep(1)
        yield
    finally:
        process.terminate()
        last = (await process.stdout.read()).decode().strip()
        await process.wait()
    totals.update(json.loads(last or "{}"))


def shown(name: str, alone: Sequence[float], beside: Sequence[float]) -> float:
    """Print a line of figures; return the ratio."""
    ratio = p99(beside) / p99(alone)
    milliseconds = [
        1000 * value
        for value in (statistics.median(alone), p99(alone), statistics.median(beside), p99(beside))
    ]
    print(
        f"  {name:18}{len(alone):6,}{milliseconds[0]:9.1f}{milliseconds[1]:9.1f}"
        f"{len(beside):8,}{milliseconds[2]:9.1f}{milliseconds[3]:9.1f}{ratio:9.2f}"
    )
    return ratio


Team = tuple[int, str, dict[str, str]]
"""A service's port, the address of a site, and the tokens of two tenants."""


@asynccontextmanager
async def serving_team(**variables: str) -> AsyncGenerator[Team]:
    """Run a service for two tenants, with settings by environment variables."""
    with tempfile.TemporaryDirectory() as name:
        port = free_port()
        store = ["--config", os.devnull, "--folder", f"{name}/store"]
        tokens = {tenant: token_of(tenant, *store) for tenant in ("quiet", "flood")}
        async with Site() as site:
            flags = [*store, "--allow-host", f"127.0.0.1:{site.port}"]
            environment = os.environ | variables
            with serving(port, Path(name) / "log", *flags, environment=environment):
                yield port, site.url(""), tokens


async def measure(title: str, arguments: Namespace, team: Team) -> bool:
    """Print the figures of one service; return whether its ratio is within the bound."""
    port, site, tokens = team
    alone: Times = {}
    beside: Times = {}
    totals, errors = Counter[str](), Counter[str]()
    caller = Caller(port, token=tokens["quiet"])
    refs = await fetched(caller, [site + HANDBOOK, site + READINGS])
    await quiet(caller, refs, site, min(arguments.seconds, 3), {})
    for _ in range(arguments.turns):
        errors += await quiet(caller, refs, site, arguments.seconds, alone)
        async with flooding(port, tokens["flood"], site, arguments.flood, totals):
            errors += await quiet(caller, refs, site, arguments.seconds, beside)
    await caller.aclose()
    print(f"\n{title}: the other tenant's calls {dict(totals)}")
    print(f"  {'':18}{'alone':>6}{'p50 ms':>9}{'p99 ms':>9}{'beside':>8}{'p50 ms':>9}{'p99 ms':>9}")
    for tool in sorted(alone):
        if len(alone[tool]) > 1 and len(beside.get(tool, ())) > 1:
            shown(tool, alone[tool], beside[tool])
    ratio = shown("all", *(list(chain(*times.values())) for times in (alone, beside)))
    for error, count in errors.most_common(3):
        print(f"  {count} × {error}")
    print(f"  p99 beside over alone {ratio:.2f} (bound {BOUND:g}), {errors.total()} errors (0)")
    return ratio <= BOUND and not errors


async def all_is_fair(arguments: Namespace) -> bool:
    """Measure both services; return whether every bound is kept."""
    async with serving_team(FETCHSTASH_QUOTA_REQUESTS_PER_MINUTE="0") as team:
        good = await measure("no quota", arguments, team)
    async with serving_team() as team:
        return await measure("default quotas", arguments, team) and good


def main() -> int:
    if "--as-flood" in sys.argv:
        port, site, connections = sys.argv[-3:]
        asyncio.run(flood(int(port), os.environ["TOKEN"], site, int(connections)))
        return 0
    arguments = options(__doc__, seconds=10.0, turns=3, flood=50)
    return 0 if asyncio.run(all_is_fair(arguments)) else 1


if __name__ == "__main__":
    sys.exit(main())
