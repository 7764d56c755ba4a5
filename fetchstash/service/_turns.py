"""Slots that tenants share, given to them in turn: who asks for a thousand waits for itself."""

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

_WEIGHT = 0.1
_LONGEST_WAIT = 60


@dataclass(frozen=True, slots=True, eq=False)
class _Waiter:
    """A call in line: how many of its tenant may run, and what is set when it has a slot."""

    most: int
    free: anyio.Event = field(default_factory=anyio.Event)


@dataclass(slots=True)
class _Lane:
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
        self._lanes: dict[str, _Lane] = {}
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
        lane = self._lanes.setdefault(tenant, _Lane())
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

    async def _wait(self, tenant: str, lane: _Lane, most: int, patience: float) -> None:
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

    def _leave(self, tenant: str, lane: _Lane, waiter: _Waiter) -> None:
        """Take a call that gave up out of the line, or give its slot back."""
        if waiter.free.is_set():
            self._end(tenant, lane)
        else:
            lane.waiting.remove(waiter)
            self._forget(tenant, lane)

    def _begin(self, tenant: str, lane: _Lane) -> None:
        lane.running += 1
        self._running += 1
        self._lanes[tenant] = self._lanes.pop(tenant, lane)  # its turn was the last one

    def _end(self, tenant: str, lane: _Lane) -> None:
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

    def _forget(self, tenant: str, lane: _Lane) -> None:
        if not lane.running and not lane.waiting:
            self._lanes.pop(tenant, None)

    def _busy(self, queued: int, most: int) -> Busy:
        """Return the error with the time in which the tenant's line becomes empty."""
        seconds = min(max(math.ceil(self._seconds * queued / most), 1), _LONGEST_WAIT)
        what = f"All {self._what} that you may have at a time are in use."
        return Busy(what, f"Try again in {seconds} s.", retry_after_seconds=seconds)
