"""Begin the requests of each tenant one after the other while others have requests, too.

One event loop serves all. If fifty requests of one tenant were begun at once, each step of another
tenant's only request would wait for a step of each of the fifty.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from fetchstash.errors import Busy
from fetchstash.system import telemetry

_BEGUN_SECONDS = 0.02
"""A request that began so long ago waits for something other than the loop: the next may begin."""

_LATE_SECONDS = 0.005
"""Unless the loop is so late with a timer: then it is the loop that the request waits for."""

_RECENT_SECONDS = 1.0
"""A tenant whose last request ended so recently counts as one that has requests."""

_REFUSAL_SECONDS = 0.02
_SPOKEN_SECONDS = 0.2
_MOST_REFUSALS = 50
"""Refusals of a tenant that wait to be sent. One more is sent at once."""


@dataclass(slots=True)
class _Lane:
    """The requests of one tenant: those that are here, and those that wait to begin."""

    here: int = 0
    last: float = 0.0
    is_held: bool = False
    waiting: deque[asyncio.Future[None]] = field(default_factory=deque[asyncio.Future[None]])
    refused_until: float = 0.0
    spoken_until: float = 0.0


class Pace:
    """Decides when a request may begin. A tenant that is alone is never held back.

    At most ``most`` requests of a tenant are here at a time.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._lanes: dict[str, _Lane] = {}

    def check(self, tenant: str) -> None:
        """Raise Busy if a tenant has as many requests here as it may."""
        lane = self._lanes.get(tenant)
        if lane and lane.here >= self._most:
            what = f"{self._most} of your calls run or wait here already."
            raise Busy(what, "Try again in 1 s.", retry_after_seconds=1)

    def is_greedy(self, tenant: str) -> bool:
        """Return whether a tenant has more requests here than another that has some.

        May be called in any thread.
        """
        lanes = self._lanes.copy()
        own = lanes.get(tenant)
        return own is not None and any(0 < lane.here < own.here for lane in lanes.values())

    @asynccontextmanager
    async def request(self, tenant: str) -> AsyncGenerator[None]:
        """Wait until a request may begin, and hold the lane while it needs the loop."""
        lane = self._lanes.setdefault(tenant, _Lane())
        lane.here += 1
        turn: _Turn | None = None
        try:
            if lane.is_held or self._is_contested(tenant):
                turn = await self._turn(tenant, lane)
            yield
        finally:
            lane.here -= 1
            lane.last = asyncio.get_running_loop().time()
            if turn:
                turn.end()

    async def refused(self, tenant: str) -> bool:
        """Wait as a refused request has to; return whether it may be answered in full.

        Refusals leave one after the other, as they cost the loop time, too. Some are answered by
        the protocol, so that a model reads why; the others by HTTP alone.
        """
        lane = self._lanes.setdefault(tenant, _Lane())
        now = asyncio.get_running_loop().time()
        wait = max(lane.refused_until - now, 0)
        if wait >= _MOST_REFUSALS * _REFUSAL_SECONDS:
            return False
        lane.refused_until = now + wait + _REFUSAL_SECONDS
        await asyncio.sleep(wait)
        now = asyncio.get_running_loop().time()
        if now < lane.spoken_until:
            return False
        lane.spoken_until = now + _SPOKEN_SECONDS
        return True

    async def _turn(self, tenant: str, lane: _Lane) -> "_Turn":
        if lane.is_held:
            free = asyncio.get_running_loop().create_future()
            lane.waiting.append(free)
            telemetry.adjust("queue", 1, queue="requests")
            try:
                with telemetry.timed("wait", queue="requests"):
                    await free
            except BaseException:
                if free in lane.waiting:
                    lane.waiting.remove(free)
                elif not free.cancelled():  # it had the turn already
                    self.pass_on(tenant, lane)
                raise
            finally:
                telemetry.adjust("queue", -1, queue="requests")
        lane.is_held = True
        return _Turn(self, tenant, lane)

    def pass_on(self, tenant: str, lane: _Lane, held: float = 0.0) -> None:
        """Let the next begin; all of them, if the tenant is alone by now.

        A greedy tenant lets the loop go for as long as its last request ``held`` the turn.
        """
        if held and lane.waiting and self.is_greedy(tenant):
            asyncio.get_running_loop().call_later(held, self.pass_on, tenant, lane)
            return
        lane.is_held = False
        while lane.waiting and not lane.is_held:
            free = lane.waiting.popleft()
            if not free.done():  # else its call was cancelled
                free.set_result(None)
                lane.is_held = self._is_contested(tenant)

    def _is_contested(self, tenant: str) -> bool:
        recent = asyncio.get_running_loop().time() - _RECENT_SECONDS
        others = [
            name
            for name, lane in self._lanes.items()
            if lane.here or max(lane.last, lane.refused_until) > recent
        ]
        if len(others) < len(self._lanes):
            self._lanes = {name: self._lanes[name] for name in others}
        return any(name != tenant for name in others)


class _Turn:
    """The right to begin, passed on when the request ends or waits for something else."""

    def __init__(self, pace: Pace, tenant: str, lane: _Lane) -> None:
        self._pace, self._tenant, self._lane = pace, tenant, lane
        self._loop = asyncio.get_running_loop()
        self._began = self._loop.time()
        self._is_over = False
        self._watch()

    def _watch(self) -> None:
        self._due = self._loop.time() + _BEGUN_SECONDS
        self._timer = self._loop.call_at(self._due, self._look)

    def _look(self) -> None:
        if self._loop.time() - self._due > _LATE_SECONDS:
            self._watch()
        else:
            self.end()

    def end(self) -> None:
        """Pass the right on, once."""
        if not self._is_over:
            self._is_over = True
            self._timer.cancel()
            held = min(self._loop.time() - self._began, _BEGUN_SECONDS)
            self._pace.pass_on(self._tenant, self._lane, held)
