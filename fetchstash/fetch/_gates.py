"""Limit concurrency and rate of the requests to each host."""

from collections.abc import Callable
from dataclasses import dataclass, field

import anyio


@dataclass(slots=True)
class _Gate:
    slots: anyio.Semaphore
    users: int = 0
    next_at: float = field(default=0.0)


class Gates:
    """One gate for each host with a request in flight, or with one a moment ago."""

    def __init__(self, concurrency: int, rate: float) -> None:
        """Allow ``concurrency`` requests at a time and ``rate`` a second (0: any) per host."""
        self._concurrency = max(1, concurrency)
        self._interval = 1 / rate if rate > 0 else 0.0
        self._gates: dict[str, _Gate] = {}

    async def enter(self, host: str) -> Callable[[], None]:
        """Wait for a turn, and return the function to call when the response is closed."""
        gate = self._gates.setdefault(host, _Gate(anyio.Semaphore(self._concurrency)))
        gate.users += 1
        try:
            await gate.slots.acquire()
        except BaseException:
            self._leave(gate)
            raise

        def leave() -> None:
            gate.slots.release()
            self._leave(gate)

        try:
            now = anyio.current_time()
            turn = max(now, gate.next_at)
            gate.next_at = turn + self._interval
            if turn > now:
                await anyio.sleep(turn - now)
        except BaseException:
            leave()
            raise
        return leave

    def _leave(self, gate: _Gate) -> None:
        gate.users -= 1
        if not gate.users:
            now = anyio.current_time()
            gone = [
                name
                for name, other in self._gates.items()
                if not other.users and other.next_at <= now
            ]
            for name in gone:
                del self._gates[name]
