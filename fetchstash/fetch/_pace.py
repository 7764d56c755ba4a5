"""How many requests a site gets at a time, and how many a second.

A service shares one ``Gates`` among its tenants, so that a site sees one visitor. How often that
one asks is kept where all its processes and replicas see it: ``reserve``.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

import anyio

from fetchstash.errors import FetchstashError

Reserve = Callable[[str, float], Awaitable[float]]
"""Given a host and the seconds between two requests, how many seconds to wait for the next."""


@dataclass(slots=True)
class _Gate:
    slots: anyio.Semaphore
    users: int = 0
    next_at: float = 0.0


class Gates:
    """One gate for each host with a request in flight, or with one a moment ago."""

    def __init__(self, concurrency: int, rate: float, reserve: Reserve | None = None) -> None:
        """Allow ``concurrency`` requests at a time and ``rate`` a second (0: any) per host."""
        self._concurrency = max(1, concurrency)
        self._interval = 1 / rate if rate > 0 else 0.0
        self._reserve = reserve
        self._gates: dict[str, _Gate] = {}

    @asynccontextmanager
    async def turn(self, host: str) -> AsyncGenerator[None]:
        """Wait for a turn at ``host``, which lasts until the response is closed."""
        slots = anyio.Semaphore(self._concurrency, fast_acquire=True)
        gate = self._gates.setdefault(host, _Gate(slots))
        gate.users += 1
        try:
            async with gate.slots:
                if self._interval:
                    await anyio.sleep(await self._wait(host, gate))
                yield
        finally:
            gate.users -= 1
            now, gates = anyio.current_time(), self._gates
            self._gates = {name: g for name, g in gates.items() if g.users or g.next_at > now}

    async def _wait(self, host: str, gate: _Gate) -> float:
        """Return the seconds until the next request; where nobody else can be asked, our own."""
        now = anyio.current_time()
        own = max(gate.next_at - now, 0.0)
        gate.next_at = now + own + self._interval
        if self._reserve:
            with suppress(FetchstashError):
                return await self._reserve(host, self._interval)
        return own
