"""Fair turns between tenants, in the loop and in threads.

One event loop serves all. If fifty requests of one tenant were begun at once, each step of another
tenant's only request would wait for a step of each of the fifty.
"""

import asyncio
import math
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial

import anyio

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


_WEIGHT = 0.1
_LONGEST_WAIT = 60


@dataclass(frozen=True, slots=True, eq=False)
class _Waiter:
    """A call in line: how many of its tenant may run, and what is set when it has a slot."""

    most: int
    free: anyio.Event = field(default_factory=anyio.Event)


@dataclass(slots=True)
class _CallQueue:
    """The calls of one tenant: how many run, and which wait, the first to come first."""

    running: int = 0
    waiting: deque[_Waiter] = field(default_factory=deque[_Waiter])


Rest = Callable[[], None]
_WORK_SECONDS, _REST = 0.001, 4


class _Resting:
    """Lets work in a thread sleep four fifths of its time while it should let others come first.

    Threads share the interpreter: work of one tenant slows each step of another's request.
    """

    def __init__(self, should_rest: Callable[[], bool]) -> None:
        self._should_rest = should_rest
        self._since = time.monotonic()

    def rest(self) -> None:
        """Sleep if the work has run for long enough."""
        worked = time.monotonic() - self._since
        if worked >= _WORK_SECONDS:
            if self._should_rest():
                time.sleep(_REST * min(worked, 5 * _WORK_SECONDS))
            self._since = time.monotonic()


class Turns:
    """At most ``slots`` at a time, ``most`` of one tenant, and ``waiting`` of one tenant in line.

    A free slot goes to the tenant that has the fewest, and among these to the one whose turn was
    longest ago. A tenant may have fewer than all slots, so that one that floods leaves a slot for
    the others. ``what`` names the slots in errors. ``is_greedy`` says whose work should rest
    for others; it is called in any thread.
    """

    def __init__(
        self,
        what: str,
        slots: int,
        most: int,
        *,
        waiting: int = 256,
        is_greedy: Callable[[str], bool] = lambda _: False,
    ) -> None:
        self._what = what
        self._slots = slots
        self._most = most
        self._waiting = waiting
        self._is_greedy = is_greedy
        self._running = 0
        # In the order of their last turns.
        self._lanes: dict[str, _CallQueue] = {}
        self._seconds = 1.0

    def of(self, tenant: str, most: int = 0) -> Callable[[], AbstractAsyncContextManager[Rest]]:
        """Return ``turn`` for one tenant, which has ``most`` slots if that is fewer (0: all)."""
        return partial(self.turn, tenant, most)

    def most_of(self, most: int) -> int:
        """Return the slots of a tenant that may have ``most`` (0: as many as any)."""
        return min(most or self._most, self._most)

    @asynccontextmanager
    async def turn(
        self, tenant: str, most: int = 0, *, patience: float = math.inf
    ) -> AsyncGenerator[Rest]:
        """Hold a slot. The work may call what this yields, in its thread, to let others come first.

        Raises Busy if the tenant's line is full, or after ``patience`` seconds.
        """
        most = self.most_of(most)
        lane = self._lanes.setdefault(tenant, _CallQueue())
        with telemetry.timed("wait", queue=self._what):
            if self._running < self._slots and lane.running < most and not lane.waiting:
                self._begin(tenant, lane)
            else:
                await self._wait(tenant, lane, most, patience)
        started = anyio.current_time()
        try:
            yield _Resting(lambda: self._is_greedy(tenant)).rest
        finally:
            held = anyio.current_time() - started
            self._seconds += (held - self._seconds) * _WEIGHT
            self._end(tenant, lane)

    async def _wait(self, tenant: str, lane: _CallQueue, most: int, patience: float) -> None:
        if len(lane.waiting) >= self._waiting:
            raise self._busy(len(lane.waiting) + 1, most)
        waiter = _Waiter(most)
        lane.waiting.append(waiter)
        telemetry.adjust("queue", 1, queue=self._what)
        try:
            with anyio.move_on_after(patience):
                await waiter.free.wait()
        except BaseException:
            self._leave(tenant, lane, waiter)
            raise
        finally:
            telemetry.adjust("queue", -1, queue=self._what)
        if not waiter.free.is_set():
            self._leave(tenant, lane, waiter)
            raise self._busy(len(lane.waiting) + 1, most)

    def _leave(self, tenant: str, lane: _CallQueue, waiter: _Waiter) -> None:
        """Take a call that gave up out of the line, or give its slot back."""
        if waiter.free.is_set():
            self._end(tenant, lane)
        else:
            lane.waiting.remove(waiter)
            self._forget(tenant, lane)

    def _begin(self, tenant: str, lane: _CallQueue) -> None:
        lane.running += 1
        self._running += 1
        self._lanes[tenant] = self._lanes.pop(tenant, lane)  # its turn was the last one

    def _end(self, tenant: str, lane: _CallQueue) -> None:
        lane.running -= 1
        self._running -= 1
        self._forget(tenant, lane)
        while self._running < self._slots:
            ready = [
                (name, other)
                for name, other in self._lanes.items()
                if other.waiting and other.running < other.waiting[0].most
            ]
            if not ready:
                return
            name, other = min(ready, key=lambda item: item[1].running)
            self._begin(name, other)
            other.waiting.popleft().free.set()

    def _forget(self, tenant: str, lane: _CallQueue) -> None:
        if not lane.running and not lane.waiting:
            self._lanes.pop(tenant, None)

    def _busy(self, queued: int, most: int) -> Busy:
        """Return the error with the time in which the tenant's line becomes empty."""
        seconds = min(max(math.ceil(self._seconds * queued / most), 1), _LONGEST_WAIT)
        what = f"All {self._what} that you may have at a time are in use."
        return Busy(what, f"Try again in {seconds} s.", retry_after_seconds=seconds)
