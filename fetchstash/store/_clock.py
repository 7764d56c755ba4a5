"""The time by which artifacts expire, as the catalogue keeps it.

It is kept there, so that a process whose clock is wrong cannot expire what others keep.
"""

import json
import time
from dataclasses import dataclass

from fetchstash.store._schema import Db

JUMP_SECONDS = 24 * 3600
SECOND_LOOK_SECONDS = 3600

CLOCK_SECONDS = 60
"""The clock in the catalogue is moved on in steps, so that not every change writes it."""


@dataclass(frozen=True, slots=True)
class StoreClock:
    """The latest time that is believed, and a later one that a second look must confirm.

    In seconds since 1970. ``now`` never goes back.
    """

    now: float = 0.0
    pending: float | None = None

    def look(self, wall: float) -> "StoreClock":
        """Return the clock updated by a reading of a machine's clock.

        A jump of more than a day is believed when a look at least an hour later confirms it. A look
        that does not confirm it shows that the earlier clock was wrong.
        """
        # A clock that goes back changes nothing: what has expired may be deleted already.
        if not self.now or wall <= self.now + JUMP_SECONDS:
            return StoreClock(max(self.now, wall))
        if self.pending is not None and wall >= self.pending + SECOND_LOOK_SECONDS:
            return StoreClock(wall)
        earliest = wall if self.pending is None else min(self.pending, wall)
        return StoreClock(self.now, earliest)


def clock(db: Db) -> StoreClock:
    """Return the store's clock as the catalogue has it."""
    row = db.execute("SELECT value FROM setting WHERE name = 'clock'").fetchone()
    return StoreClock(*json.loads(row[0])) if row else StoreClock()


def _look(db: Db, known: StoreClock) -> StoreClock:
    """Return the clock after a look at that of this machine.

    The clock of a team's database confirms a jump: a tenant that was quiet for days is no fault.
    """
    wall = time.time()
    later = known.look(wall)
    if later.pending is not None and db.dialect.is_shared:
        (confirmed,) = db.execute(f"SELECT {db.dialect.now}").fetchone()
        if abs(confirmed - wall) < SECOND_LOOK_SECONDS:
            return StoreClock(wall)
    return later


def read_now(db: Db) -> float:
    """Return the time by which readers treat artifacts as expired. Nothing is written."""
    return _look(db, clock(db)).now


def believed_now(db: Db) -> float:
    """Look at the clock, and return the time by which artifacts expire."""
    known = clock(db)
    later = _look(db, known)
    if later.pending != known.pending or later.now > known.now + CLOCK_SECONDS:
        db.execute(
            "INSERT INTO setting VALUES ('clock', ?)"
            " ON CONFLICT (name) DO UPDATE SET value = excluded.value",
            (json.dumps([later.now, later.pending]).encode(),),
        )
    return later.now


def time_of_put(db: Db) -> float:
    """Return the time from which an artifact is kept, in seconds since 1970."""
    # While a jump ahead is doubted the machine's time counts here: should the jump be confirmed, an
    # artifact of meanwhile must not be found expired.
    return max(believed_now(db), time.time())
