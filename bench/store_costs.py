"""What a call costs a team's store: queries and requests, and time of the database.

    python -P bench/store_costs.py [--artifacts 1000 … 100000] [--tenants 1000]

Counts, for one tenant of so many artifacts, what put, get, get by URL, list, search over the run
and the quota check ask of PostgreSQL and of a bucket in memory. ``ms`` is the statements' time.
Then it makes the tenants, and compares the last one with the first. Ends with 1 if a list or a
search takes 100 ms of the database or more, or if the last tenant asks more than the first.
"""

import hashlib
import secrets
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio

from fetchstash.store import Facts, StoreLimits, _rows, open_store, store_of_tenant
from fetchstash.store._blobs import Blob
from fetchstash.store._contract import stamp
from fetchstash.store._postgres import Connection
from fetchstash.store._text import StrideIndex
from fetchstash.text.ranges import Ranges
from scripts.drive.programs import options
from scripts.torture.kept import put
from tests.store.buckets import every_bucket_is, new_objects
from tests.store.postgres import server

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

BOUND = 100.0
"""Milliseconds of the database for a list or a search over the run."""

WORDS = ("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa")


def fill(store: Any, first: int, count: int, objects: Any) -> None:
    """Insert artifacts as puts do, many in a transaction."""
    with store._database.changing() as db:  # noqa: SLF001
        for n in range(first, first + count):
            text = f"{WORDS[n % 10]} {WORDS[n // 10 % 10]} number{n}\n".encode() * 8
            sha256, index = hashlib.sha256(text).hexdigest(), StrideIndex.of(text)
            objects.store.put(f"text/{sha256}", text)
            blobs = [Blob("raw", sha256, len(text), 0), Blob("text", sha256, len(text), 0, index)]
            facts = stamp(Facts(), sha256, len(text), index, now=time.time(), max_age_days=7)
            for blob in blobs:
                _rows.insert_blob(db, blob)
            _rows.insert(db, _rows.new_record("default", facts, Ranges(), None, blobs))
            words = text.decode().split(), True
            store._index(db, facts.artifact_ref, sha256, words)  # noqa: SLF001


async def measure(counts: list[int], tenants: int, folder: Path) -> bool:
    """Print a line for each call; return whether the bounds hold."""
    statements: list[float] = []
    held = True
    execute = Connection.execute

    def timed(self: Connection, sql: str, parameters: Any = (), /) -> Any:
        began = time.perf_counter()
        done = execute(self, sql, parameters)
        statements.append((time.perf_counter() - began) * 1000)
        return done

    Connection.execute = timed  # type: ignore[method-assign]
    objects = new_objects()
    limits = StoreLimits(
        folder,
        "s3://bucket",
        run="default",
        catalog=server().new_database(),
        max_artifacts=10**9,
        max_total_bytes=2**50,
        cache_bytes=0,
    )

    async def opened(tenant: str = "") -> Any:
        with every_bucket_is(objects):
            own = store_of_tenant(limits, tenant) if tenant else limits
            return await open_store(own)

    async def keep(store: Any) -> str:
        raw, text = (secrets.token_hex(99).encode() for _ in range(2))
        return (await put(store, raw, text, url="https://a.example/")).artifact_ref

    async def costs(store: Any, named: str) -> dict[str, tuple[int, int, float]]:
        """Print and return what each call asks: statements, requests, milliseconds."""
        ref = await keep(store)
        calls: dict[str, Callable[[], Awaitable[object]]] = {
            "put": lambda: keep(store),
            "get": lambda: store.get(ref),
            "get by URL": lambda: store.get("https://a.example/"),
            "list": lambda: store.list(limit=50),
            "quota check": store.usage,
            "search, rare": lambda: store.search("number77 alpha", (), 5),
            "search, common": lambda: store.search("alpha beta", (), 5),
            "search, any": lambda: store.search("number500 kappa", (), 5),
            "gc": store.gc,
        }
        seen: dict[str, tuple[int, int, float]] = {}
        for name, call in calls.items():
            statements.clear()
            objects.requests.clear()
            await call()
            asked, taken = len(objects.requests), sum(statements)
            seen[name] = len(statements), asked, taken
            print(f"{named:>10} {name:18}{len(statements):>9}{asked:>10}{taken:>9.1f}")
        return seen

    store = await opened()
    print(f"{'artifacts':>10} {'call':18}{'queries':>9}{'requests':>10}{'ms':>9}")
    filled = 0
    for count in counts:
        while filled < count:
            step = min(1_000, count - filled)
            await anyio.to_thread.run_sync(fill, store, filled, step, objects)
            filled += step
        database: Any = getattr(store, "_database")  # noqa: B009
        with database.connection() as db:
            for table in ("artifact", "blob", "words"):
                db.execute(f"ANALYZE {table}")

        seen = await costs(store, f"{count:,}")
        slow = [
            name for name, cost in seen.items() if name[:4] in ("list", "sear") and cost[2] >= BOUND
        ]
        held = held and not slow
    await store.aclose()
    asked: list[dict[str, tuple[int, int]]] = []
    for number in range(1, tenants + 1):
        store = await opened(f"tenant-{number}")
        await keep(store)
        if number in (1, tenants):
            seen = await costs(store, f"tenant {number:,}")
            asked.append({name: cost[:2] for name, cost in seen.items()})
        await store.aclose()
    return held and asked[0] == asked[-1]


def main() -> int:
    chosen = options(__doc__, artifacts=[1_000, 10_000, 100_000], tenants=1_000)
    with tempfile.TemporaryDirectory() as folder:
        return (
            0 if anyio.run(measure, sorted(chosen.artifacts), chosen.tenants, Path(folder)) else 1
        )


if __name__ == "__main__":
    sys.exit(main())
