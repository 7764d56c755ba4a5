"""Retention: what goes when, by the clock that the catalogue keeps.

The time by which artifacts expire is kept in the catalogue, so that a process whose clock is wrong
cannot expire what others keep.
"""

import json
import logging
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from fetchstash.store import _rows as rows
from fetchstash.store._contract import Removed, Usage
from fetchstash.store._limits import ALL_RUNS, StoreLimits
from fetchstash.store._schema import Db
from fetchstash.system import telemetry

_log = logging.getLogger("fetchstash.store")

JUMP_SECONDS = 24 * 3600
SECOND_LOOK_SECONDS = 3600


@dataclass(frozen=True, slots=True)
class StoreClock:
    """The latest time that is believed, and a later one that waits for a second look.

    In seconds since 1970. ``now`` never goes back.
    """

    now: float = 0.0
    pending: float | None = None

    def look(self, wall: float) -> "StoreClock":
        """Return the clock after somebody's wall clock was read.

        A jump of more than a day is believed when a look at least an hour later confirms it. A look
        that does not confirm it shows that the earlier clock was wrong.
        """
        if not self.now or wall <= self.now + JUMP_SECONDS:
            return StoreClock(max(self.now, wall))
        if self.pending is not None and wall >= self.pending + SECOND_LOOK_SECONDS:
            return StoreClock(wall)
        earliest = wall if self.pending is None else min(self.pending, wall)
        return StoreClock(self.now, earliest)


CLOCK_SECONDS = 60
"""The clock in the catalogue is moved on in steps, so that not every change writes it."""


def usage(db: Db, run: str) -> Usage:
    """Return what a run keeps, pinned artifacts too, and when the first of it expires."""
    which, of = ("pinned = 0", ()) if run == ALL_RUNS else ("run = ?", (run,))
    first = db.execute(f"SELECT min(expires_at) FROM artifact WHERE {which}", of)  # noqa: S608
    return Usage(*rows.kept(db, run), first.fetchone()[0] or 0.0)


EVICTIONS_PER_PUT = 32
"""More artifacts do not go at one put, so that lowering a limit does not make it slow."""


def due(db: Db, limits: StoreLimits, most: int | None = EVICTIONS_PER_PUT) -> list[Removed]:
    """Return what goes, ``most`` of it: the overdue, then the least recently used.

    Two look-ups show that nothing does. Limits are of the whole store, pinned artifacts aside.
    """
    return list(islice(_due(db, believed_now(db), limits), most))


def _due(db: Db, now: float, limits: StoreLimits) -> Iterator[Removed]:
    artifacts, size = db.execute("SELECT artifacts, bytes FROM total").fetchone()
    unpinned = "SELECT ref, bytes FROM artifact WHERE pinned = 0 AND expires_at"
    for ref, freed in db.execute(f"{unpinned} <= ?", (now,)):
        artifacts, size = artifacts - 1, size - freed
        yield Removed(ref, freed, "age")
    if artifacts <= limits.max_artifacts and size <= limits.max_total_bytes:
        return
    for ref, freed in db.execute(f"{unpinned} > ? ORDER BY used", (now,)):
        reason = "count" if artifacts > limits.max_artifacts else "bytes"
        artifacts, size = artifacts - 1, size - freed
        yield Removed(ref, freed, reason)
        if artifacts <= limits.max_artifacts and size <= limits.max_total_bytes:
            return


def report(removed: Iterable[Removed]) -> None:
    """Say that artifacts went before their dates, because the store holds no more."""
    for reason, setting in (("count", "store.max_artifacts"), ("bytes", "store.max_total_bytes")):
        refs = [item.artifact_ref for item in removed if item.reason == reason]
        if refs:
            _log.warning("Artifacts evicted before their dates: %d, for %s.", len(refs), setting)
            telemetry.count("evictions", len(refs), limit=setting)


def clock(db: Db) -> StoreClock:
    """Return the store's clock as the catalogue has it."""
    row = db.execute("SELECT value FROM setting WHERE name = 'clock'").fetchone()
    return StoreClock(*json.loads(row[0])) if row else StoreClock()


def believed_now(db: Db) -> float:
    """Look at the clock, and return the time by which artifacts expire."""
    known = clock(db)
    later = known.look(time.time())
    if later.pending != known.pending or later.now > known.now + CLOCK_SECONDS:
        db.execute(
            "INSERT INTO setting VALUES ('clock', ?)"
            " ON CONFLICT (name) DO UPDATE SET value = excluded.value",
            (json.dumps([later.now, later.pending]).encode(),),
        )
    return later.now


def time_of_put(db: Db) -> float:
    """Return the time from which an artifact is kept, in seconds since 1970."""
    return max(believed_now(db), time.time())
