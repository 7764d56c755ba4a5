"""Retention: what is removed when, and how much of what is kept counts."""

import logging
from collections.abc import Iterable, Iterator
from itertools import islice

from fetchstash.store import _rows as rows
from fetchstash.store._clock import believed_now, read_now
from fetchstash.store._contract import Removed, Usage
from fetchstash.store._limits import ALL_RUNS, StoreLimits
from fetchstash.store._schema import Db
from fetchstash.system import telemetry

_log = logging.getLogger("fetchstash.store")


def usage(db: Db, run: str) -> Usage:
    """Return what a run keeps, pinned artifacts too, and when the first of it expires.

    What has expired and is not removed yet does not count: it would refuse a put that removes it.
    """
    which, of = ("pinned = 0", ()) if run == ALL_RUNS else ("run = ?", (run,))
    now = read_now(db)
    first = db.execute(
        f"SELECT min(expires_at) FROM artifact WHERE {which} AND expires_at > ?",  # noqa: S608
        (*of, now),
    )
    return Usage(*rows.kept(db, run, now), first.fetchone()[0] or 0.0)


EVICTIONS_PER_PUT = 32
"""More artifacts do not go at one put, so that lowering a limit does not make it slow."""


def due(db: Db, limits: StoreLimits, most: int | None = EVICTIONS_PER_PUT) -> list[Removed]:
    """Return at most ``most`` artifacts to remove: overdue ones, then the least recently used.

    Two look-ups show that nothing does. Limits are of the whole store, pinned artifacts aside.
    """
    return list(islice(_due(db, believed_now(db), limits), most))


def _due(db: Db, now: float, limits: StoreLimits) -> Iterator[Removed]:
    artifacts, size = db.execute("SELECT artifacts, bytes FROM total").fetchone()
    unpinned = "SELECT ref, bytes FROM artifact WHERE pinned = 0 AND expires_at"
    # The overdue first, within the limits or not: they may be all that has to go.
    for ref, freed in db.execute(f"{unpinned} <= ?", (now,)):
        artifacts, size = artifacts - 1, size - freed
        yield Removed(ref, freed, "age")
    if artifacts <= limits.max_artifacts and size <= limits.max_total_bytes:
        return
    # ``used`` is a counter and no time: a clock that jumps would change the order.
    for ref, freed in db.execute(f"{unpinned} > ? ORDER BY used", (now,)):
        reason = "count" if artifacts > limits.max_artifacts else "bytes"
        artifacts, size = artifacts - 1, size - freed
        yield Removed(ref, freed, reason)
        if artifacts <= limits.max_artifacts and size <= limits.max_total_bytes:
            return


def report(removed: Iterable[Removed]) -> None:
    """Log that artifacts were evicted before their dates, because the store is full."""
    for reason, setting in (("count", "store.max_artifacts"), ("bytes", "store.max_total_bytes")):
        refs = [item.artifact_ref for item in removed if item.reason == reason]
        if refs:
            _log.warning("Artifacts evicted before their dates: %d, for %s.", len(refs), setting)
            telemetry.count("evictions", len(refs), limit=setting)
