"""The clock on the wall, and whether it may be trusted to say that something is old."""

import time

JUMP_SECONDS = 3600


class Clock:
    """Compares the wall clock with one that nobody sets, since this was made."""

    def __init__(self) -> None:
        self._began = time.time() - _steady()

    def now(self) -> float:
        """Return seconds since 1970, and not less because the clock was set back: what is stored now must not seem old later."""
        return max(time.time(), self._began + _steady())

    def oldest(self) -> float:
        """Return the time until which artifacts may expire: now, or 1970 if the clock has jumped: then nothing is old."""
        return 0.0 if abs(time.time() - _steady() - self._began) > JUMP_SECONDS else time.time()


def _steady() -> float:
    """Return seconds since some moment, sleep of the machine included where the system can tell."""
    boottime = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if boottime is None else time.clock_gettime(boottime)
