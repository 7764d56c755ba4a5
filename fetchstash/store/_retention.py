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
from fetchstash.store._limits import ALL_RUNS, Candidate, StoreLimits, Total, plan
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


def total(db: Db) -> Total:
    """Return what the store keeps, pinned artifacts left out."""
    return Total(*db.execute("SELECT artifacts, bytes FROM total").fetchone())


def usage(db: Db, run: str) -> Usage:
    """Return what a run keeps, pinned artifacts too, and when the first of it expires."""
    first = (
        db.execute("SELECT min(expires_at) FROM artifact WHERE pinned = 0")
        if run == ALL_RUNS
        else db.execute("SELECT min(expires_at) FROM artifact WHERE run = ?", (run,))
    )
    return Usage(*rows.kept(db, run), first.fetchone()[0] or 0.0)


def overdue(db: Db, now: float) -> Iterator[Candidate]:
    """Go through the artifacts that are too old, in any run."""
    found = db.execute(
        "SELECT id, ref, bytes, expires_at FROM artifact WHERE pinned = 0 AND expires_at <= ?",
        (now,),
    )
    return (Candidate(*row) for row in found)


def has_overdue(db: Db, now: float) -> bool:
    """Return whether an artifact of any run is too old."""
    first = "SELECT 1 FROM artifact WHERE pinned = 0 AND expires_at <= ? LIMIT 1"
    return db.execute(first, (now,)).fetchone() is not None


def least_used(db: Db) -> Iterator[Candidate]:
    """Go through the artifacts of all runs that are not pinned, least recently used first."""
    found = db.execute(
        "SELECT id, ref, bytes, expires_at FROM artifact WHERE pinned = 0 ORDER BY used"
    )
    return (Candidate(*row) for row in found)


def due(db: Db, now: float, limits: StoreLimits, most: int | None) -> list[Removed]:
    """Return what retention removes, the first ``most`` of it."""
    planned = plan(overdue(db, now), least_used(db), total(db), limits)
    return [Removed(c.ref, c.bytes, reason) for c, reason in islice(planned, most)]


EVICTIONS_PER_PUT = 32
"""More artifacts do not go at one put, so that lowering a limit does not make it slow."""


def due_at_put(db: Db, now: float, limits: StoreLimits) -> list[Removed]:
    """Return what goes at a put: mostly nothing, which two look-ups tell."""
    if total(db).is_within(limits) and not has_overdue(db, now):
        return []
    return due(db, now, limits, EVICTIONS_PER_PUT)


def report(removed: Iterable[Removed]) -> None:
    """Say that artifacts went before their dates, because the store holds no more."""
    for reason, setting in (("count", "store.max_artifacts"), ("bytes", "store.max_total_bytes")):
        refs = [item.artifact_ref for item in removed if item.reason == reason]
        if refs:
            _log.warning("%d artifacts were evicted before their dates: %s.", len(refs), setting)
            telemetry.count("evictions", len(refs), limit=setting)


def clock(db: Db) -> StoreClock:
    """Return the store's clock as the catalogue has it."""
    row = db.execute("SELECT value FROM setting WHERE name = 'clock'").fetchone()
    return StoreClock(*json.loads(row[0])) if row else StoreClock()


def set_clock(db: Db, clock: StoreClock) -> None:
    """Keep the store's clock."""
    value = json.dumps([clock.now, clock.pending]).encode()
    db.execute(
        "INSERT INTO setting VALUES ('clock', ?)"
        " ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        (value,),
    )


def believed_now(db: Db) -> float:
    """Look at the clock, and return the time by which artifacts expire."""
    known = clock(db)
    later = known.look(time.time())
    if later.pending != known.pending or later.now > known.now + CLOCK_SECONDS:
        set_clock(db, later)
    return later.now


def time_of_put(db: Db) -> float:
    """Return the time from which an artifact is kept, in seconds since 1970."""
    return max(believed_now(db), time.time())
