"""What a call costs a team's store: queries and requests, and time of the database.

    python -P bench/store_costs.py [--artifacts 1000 --artifacts 10000 --artifacts 100000]

Counts, for one tenant of so many artifacts, what put, get, get by URL, list, search over the run
and the quota check ask of PostgreSQL and of a bucket in memory. ``ms`` is the statements' time.
"""

import argparse
import hashlib
import secrets
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio

from fetchstash.store import Facts, StoreLimits, _rows, open_store
from fetchstash.store._blobs import Blob
from fetchstash.store._contract import stamp
from fetchstash.store._postgres import Connection
from fetchstash.store._text import StrideIndex
from fetchstash.text.ranges import Ranges
from tests.store.buckets import every_bucket_is, new_objects
from tests.store.postgres import server

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

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
            _rows.insert(db, _rows.new_record("default", facts, Ranges(), None, blobs), blobs)
            store._index(db, blobs, (text.decode().split(), True))  # noqa: SLF001


async def measure(counts: list[int], folder: Path) -> None:
    statements: list[float] = []
    execute = Connection.execute

    def timed(self: Connection, sql: str, parameters: Any = (), /) -> Any:
        began = time.perf_counter()
        done = execute(self, sql, parameters)
        statements.append((time.perf_counter() - began) * 1000)
        return done

    Connection.execute = timed  # type: ignore[method-assign]
    objects = new_objects()
    with every_bucket_is(objects):
        limits = StoreLimits(
            folder, "s3://bucket", run="default", catalog=server().new_database(),
            max_artifacts=10**9, max_total_bytes=2**50, cache_bytes=0,
        )  # fmt: skip
        store = await open_store(limits)
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

        async def put() -> str:
            paths = [store.spool / secrets.token_hex(8) for _ in range(2)]
            for path in paths:
                path.write_bytes(secrets.token_hex(99).encode())
            facts = await store.put(paths[0], paths[1], Facts(), Ranges(), url="https://a.example/")
            return facts.artifact_ref

        ref = await put()
        calls: dict[str, Callable[[], Awaitable[object]]] = {
            "put": put,
            "get": lambda ref=ref: store.get(ref),  # type: ignore[misc]
            "get by URL": lambda: store.get("https://a.example/"),
            "list": lambda: store.list(limit=50),
            "quota check": store.usage,
            "search, rare": lambda: store.search("number77 alpha", (), 5),
            "search, common": lambda: store.search("alpha beta", (), 5),
            "gc": store.gc,
        }
        for name, call in calls.items():
            statements.clear()
            objects.requests.clear()
            await call()
            asked, taken = len(objects.requests), sum(statements)
            print(f"{count:>10,} {name:18}{len(statements):>9}{asked:>10}{taken:>9.1f}")
    await store.aclose()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--artifacts", type=int, action="append", default=[])
    counts = sorted(parser.parse_args().artifacts) or [1_000, 10_000, 100_000]
    with tempfile.TemporaryDirectory() as folder:
        anyio.run(measure, counts, Path(folder))


if __name__ == "__main__":
    main()
