"""The time by which artifacts expire. Pure.

It is kept in the catalogue, so that a process whose clock is wrong cannot expire what others keep.
"""

from dataclasses import dataclass

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
