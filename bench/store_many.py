"""A store of 100,000 artifacts: what each call costs, and what the others wait for meanwhile.

    python -P bench/store_many.py [--artifacts 100000] [--kept 10000]

The artifacts are written in one transaction, without syncs; everything else goes through the store.
While a long call runs, ``get`` of one artifact and turns of the event loop are timed beside it.
"""

import argparse
import os
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import anyio

from bench._store import fill
from fetchstash.store import ArtifactStore, Facts, StoreLimits, open_store
from fetchstash.store._limits import DEFAULT_RUN
from fetchstash.text.ranges import Ranges


async def put(store: ArtifactStore) -> None:
    name = os.urandom(8).hex()
    raw, text = store.spool / f"{name}.raw", store.spool / f"{name}.text"
    raw.write_bytes(os.urandom(2_000))
    text.write_text(f"a new text {name}\n" * 50, encoding="utf-8")
    await store.put(raw, text, Facts(), Ranges())


class Beside:
    """What others wait for while a call runs: turns of the loop, and gets of one artifact."""

    def __init__(self, store: ArtifactStore, ref: str) -> None:
        self._store, self._ref = store, ref

    async def timed(self, name: str, call: Callable[[], Awaitable[object]]) -> None:
        """Run ``call`` and print how long it took, and the longest waits beside it."""
        turns, gets = [0.0], [0.0]
        answer: object = None
        took = 0.0
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._turn, turns)
            tasks.start_soon(self._get, gets)
            began = time.perf_counter()
            answer = await call()
            took = time.perf_counter() - began
            tasks.cancel_scope.cancel()
        print(f"{name:34}{took:9.3f}{max(turns):12.3f}{max(gets):12.3f}  {answer or ''}")

    async def _turn(self, waits: list[float]) -> None:
        while True:
            began = time.perf_counter()
            await anyio.sleep(0.005)
            waits.append(time.perf_counter() - began - 0.005)

    async def _get(self, waits: list[float]) -> None:
        while True:
            began = time.perf_counter()
            with suppress(LookupError):
                await self._store.get(self._ref)
            waits.append(time.perf_counter() - began)
            await anyio.sleep(0.01)


async def measure(folder: Path, count: int, kept: int) -> None:
    began = time.perf_counter()
    refs = await anyio.to_thread.run_sync(fill, folder, count)
    print(f"{count:,} artifacts written in {time.perf_counter() - began:.0f} s")
    print(f"{'seconds':34}{'took':>9}{'loop stood':>12}{'get waited':>12}")
    limits = StoreLimits(
        folder, run=DEFAULT_RUN, max_artifacts=count + 1_000, max_total_bytes=2**40
    )
    began = time.perf_counter()
    store = await open_store(limits)
    print(f"{'open':34}{time.perf_counter() - began:9.3f}")
    beside = Beside(store, refs[-1])

    async def search() -> str:
        result = await store.search("alpha number 77", (), 5)
        return f"{len(result.passages)} passages, {result.pending:,} texts pending"

    async def listed() -> str:
        return f"{(await store.list(limit=100)).total:,} artifacts"

    await beside.timed("list", listed)
    await beside.timed("put", lambda: put(store))
    for attempt in ("first search", "second search", "third search"):
        await beside.timed(attempt, search)
    await beside.timed("put while it indexes", lambda: put(store))
    await beside.timed("list while it indexes", listed)
    began = time.perf_counter()
    while (await store.search("alpha number 77", (), 5)).pending:  # noqa: ASYNC110 - a store has no event
        await anyio.sleep(2)
    print(f"indexed {time.perf_counter() - began:.0f} s later")
    await beside.timed("search, all indexed", search)
    await beside.timed("gc with nothing to do", store.gc)
    await store.aclose()
    lowered = replace(limits, max_artifacts=kept)
    store = await open_store(lowered)
    beside = Beside(store, refs[-1])
    await beside.timed(f"put, limit lowered to {kept:,}", lambda: put(store))
    await beside.timed("the next put", lambda: put(store))

    async def collect() -> str:
        return f"{len(await store.gc()):,} removed"

    await beside.timed("gc", collect)
    await beside.timed("search", search)
    await store.aclose()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--artifacts", type=int, default=100_000)
    parser.add_argument("--kept", type=int, default=10_000)
    args = parser.parse_args()
    print(f"load {os.getloadavg()[0]:.1f}, {os.cpu_count()} processors")
    with tempfile.TemporaryDirectory() as folder:
        anyio.run(measure, Path(folder) / "store", args.artifacts, args.kept)


if __name__ == "__main__":
    main()
