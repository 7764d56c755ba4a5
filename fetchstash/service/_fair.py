"""Fair queues: tenants, and the persons of one, take turns for requests and slots.

One event loop serves all. If fifty requests of one tenant were begun at once, each step of another
tenant's only request would wait for a step of each of the fifty.
"""

import asyncio
import math
from bisect import insort
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass, field

import anyio

from fetchstash.errors import Busy
from fetchstash.system import telemetry

_BEGUN_SECONDS = 0.02
"""After so long, assume that a request waits for something other than the loop."""

_LATE_SECONDS = 0.005
"""Unless the loop is so late with a timer: then it is the loop that the request waits for."""

_RECENT_SECONDS = 1.0
"""A tenant whose last request ended so recently counts as one that has requests."""

LATER_SECONDS = 2.0
"""By how much a request that takes long stands behind the short ones that came when it did."""

AT_ONCE = 4
"""Requests of a person that is alone which begin at a time: some wait for a thread or a process."""

_REFUSAL_SECONDS = 0.02
_FULL_ANSWER_SECONDS = 0.2
_MOST_REFUSALS = 50
"""Refusals of a tenant that wait to be sent. One more is sent at once."""


Entered = Callable[[], AbstractContextManager[None]]
Begin = Callable[[bool, Entered], Awaitable[None]]
"""Waits until a request may begin. Is given whether that takes long, and what waiting enters."""


def _leave(persons: Counter[str], person: str) -> None:
    """Decrement a count. Persons are removed at zero, so that their number shows who is here."""
    persons[person] -= 1
    if not persons[person]:
        del persons[person]


@dataclass(slots=True)
class _Waiting:
    """A request that waits to begin; of one person's, the one with the smallest ``due`` is next."""

    due: float
    begun: "asyncio.Future[None]"


@dataclass(slots=True)
class _Requests:
    """The requests of one tenant: how many are here, how many begin, and which wait to begin."""

    persons: Counter[str] = field(default_factory=Counter[str])
    last: float = 0.0
    beginning: int = 0
    waiting: dict[str, list[_Waiting]] = field(default_factory=dict[str, list[_Waiting]])
    refused_until: float = 0.0
    full_answer_at: float = 0.0

    @property
    def here(self) -> int:
        """The number of requests that are queued or running."""
        return self.persons.total()

    def next_waiting(self) -> "asyncio.Future[None] | None":
        """Remove and return the request that begins next: persons take turns."""
        while self.waiting:
            person = next(iter(self.waiting))
            queue = self.waiting.pop(person)
            future = queue.pop(0).begun
            if queue:
                self.waiting[person] = queue  # behind the others
            if not future.done():  # else its call was cancelled
                return future
        return None


class RequestQueue:
    """Decides when a request may begin: when one before has ended, or waits for I/O.

    Of a person that is alone a few requests begin at a time; beside another tenant or person, one
    of each tenant. So a call of forty steps waits as long as one of five: each step of it would
    wait for a step of every request that has begun. At most ``most`` of a tenant are here.
    Where requests wait, a long one lets those pass that come within LATER_SECONDS.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._tenants: dict[str, _Requests] = {}

    def check(self, tenant: str, person: str = "", part: float = 1) -> None:
        """Raise Busy if a tenant, or a person of it, has as many requests here as it may.

        Where persons have a ``part`` of what the tenant has, none has the last quarter of places.
        """
        own = self._tenants.get(tenant, _Requests())
        most = self._most if part == 1 else self._most * 3 // 4
        for here, limit, whose in (
            (own.persons[person], most, "your calls"),
            (own.here, self._most, "the calls of your tenant"),
        ):
            if here >= limit:
                what = f"{limit} of {whose} run or wait here already."
                raise Busy(what, "Try again in 1 s.", retry_after_seconds=1)

    def is_greedy(self, tenant: str) -> bool:
        """Return whether a tenant has more requests here than another tenant that has some."""
        own, others = self._tenants.get(tenant), self._tenants.values()
        return own is not None and any(0 < other.here < own.here for other in others)

    @contextmanager
    def request(self, tenant: str, person: str = "") -> Generator[Begin]:
        """Count a request until the context ends. Yields the function that waits for its turn."""
        own = self._tenants.setdefault(tenant, _Requests())
        own.persons[person] += 1
        beginning: _Beginning | None = None

        async def begin(is_long: bool, entered: Entered) -> None:
            nonlocal beginning
            if own.waiting or 0 < own.beginning >= self._at_once(tenant):
                with entered():
                    await self._wait(own, tenant, person, LATER_SECONDS if is_long else 0)
            else:
                own.beginning += 1
            beginning = _Beginning(lambda held: self._end_one(tenant, own, held))

        try:
            yield begin
        finally:
            _leave(own.persons, person)
            own.last = asyncio.get_running_loop().time()
            if beginning:
                beginning.end()

    async def refused(self, tenant: str) -> bool:
        """Wait as a refused request has to; return whether it may be answered in full.

        Refusals leave one after the other, as they cost the loop time, too. Some are answered by
        the protocol, so that a model reads why; the others by HTTP alone.
        """
        own, loop = self._tenants.setdefault(tenant, _Requests()), asyncio.get_running_loop()
        wait = max(own.refused_until - loop.time(), 0)
        if wait >= _MOST_REFUSALS * _REFUSAL_SECONDS:
            return False
        own.refused_until = loop.time() + wait + _REFUSAL_SECONDS
        await asyncio.sleep(wait)
        if loop.time() < own.full_answer_at:
            return False
        own.full_answer_at = loop.time() + _FULL_ANSWER_SECONDS
        return True

    async def _wait(self, own: _Requests, tenant: str, person: str, later: float) -> None:
        loop = asyncio.get_running_loop()
        free: asyncio.Future[None] = loop.create_future()
        waiting = _Waiting(loop.time() + later, free)
        insort(own.waiting.setdefault(person, []), waiting, key=lambda other: other.due)
        telemetry.adjust("queue", 1, queue="requests")
        try:
            with telemetry.timed("wait", queue="requests"):
                await free
        except BaseException:
            if free.done() and not free.cancelled():  # it might have begun
                self._end_one(tenant, own)
            free.cancel()
            raise
        finally:
            telemetry.adjust("queue", -1, queue="requests")

    def _end_one(self, tenant: str, own: _Requests, held: float = 0.0) -> None:
        """Start the next request in the place of one that ended or waits.

        A greedy tenant lets the loop go for as long as its last request ``held`` the others.
        """
        if held and own.waiting and self.is_greedy(tenant):
            asyncio.get_running_loop().call_later(held, self._end_one, tenant, own)
            return
        own.beginning -= 1
        most = self._at_once(tenant)
        while own.beginning < most and (free := own.next_waiting()):
            free.set_result(None)
            own.beginning += 1

    def _at_once(self, tenant: str) -> int:
        """Return how many requests of a tenant may begin at a time."""
        return 1 if self._is_contested(tenant) else AT_ONCE

    def _is_contested(self, tenant: str) -> bool:
        """Return whether others have requests, and forget tenants that had none for a while."""
        if len(self._tenants) > 1:
            recent = asyncio.get_running_loop().time() - _RECENT_SECONDS
            self._tenants = {
                name: requests
                for name, requests in self._tenants.items()
                if requests.here or max(requests.last, requests.refused_until) > recent
            }
        return any(name != tenant or len(own.persons) > 1 for name, own in self._tenants.items())


class _Beginning:
    """Calls ``on_end`` once, with its seconds: when a request ends or waits for I/O."""

    def __init__(self, on_end: Callable[[float], None]) -> None:
        self._on_end = on_end
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
        if not self._is_over:
            self._is_over = True
            self._timer.cancel()
            self._on_end(min(self._loop.time() - self._began, _BEGUN_SECONDS))


_WEIGHT = 0.1
_LONGEST_WAIT = 60


@dataclass(frozen=True, slots=True, eq=False)
class _Waiter:
    """A waiting call: its tenant and person, and how many of each may run."""

    person: str
    most: int
    most_of_person: int
    begun: anyio.Event = field(default_factory=anyio.Event)


@dataclass(slots=True)
class _Calls:
    """The calls of one tenant: the running ones by person, and the waiting ones, oldest first."""

    persons: Counter[str] = field(default_factory=Counter[str])
    waiting: list[_Waiter] = field(default_factory=list[_Waiter])

    @property
    def running(self) -> int:
        """How many calls run."""
        return self.persons.total()

    def ready(self) -> _Waiter | None:
        """Return the next call of the person with the fewest running ones; None if none may run."""
        may = [w for w in self.waiting if self.running < w.most and self.has_room(w)]
        return min(may, key=lambda w: self.persons[w.person], default=None)

    def has_room(self, waiter: _Waiter) -> bool:
        """Return whether the person may have one more."""
        return self.persons[waiter.person] < waiter.most_of_person


class FairLimiter:
    """At most ``slots`` at a time, ``most`` of one tenant, and ``waiting`` of one tenant in line.

    A free slot goes to the tenant that has the fewest, and among these to the one that got one
    longest ago; within a tenant to the person that has the fewest. A tenant may have fewer than all
    slots, so that one that floods leaves a slot for the others. ``what`` names the slots in errors.
    """

    def __init__(self, what: str, slots: int, most: int, *, waiting: int = 256) -> None:
        self._what = what
        self._slots = slots
        self.most = most
        self._waiting = waiting
        self._running = 0
        self._tenants: dict[str, _Calls] = {}  # in the order in which they last got a slot
        self._seconds = 1.0

    @asynccontextmanager
    async def slot(
        self,
        tenant: str,
        most: int = 0,
        *,
        person: str = "",
        part: float = 1,
        patience: float = math.inf,
    ) -> AsyncGenerator[None]:
        """Hold a slot. Yields a function that lets others go first; call it in the work's thread.

        A tenant has ``most`` slots if that is fewer (0: as many as any); where persons have a
        ``part`` of what it has, one person leaves the others a slot. Raises Busy if its line is
        full, or after ``patience`` seconds.
        """
        most = min(most or self.most, self.most)
        own = self._tenants.setdefault(tenant, _Calls())
        waiter = _Waiter(person, most, most if part == 1 else max(most - 1, 1))
        with telemetry.timed("wait", queue=self._what):
            is_free = self._running < self._slots and own.running < most
            if is_free and own.has_room(waiter) and not own.ready():
                self._begin(tenant, own, person)
            else:
                await self._wait(tenant, own, waiter, patience)
        started = anyio.current_time()
        try:
            yield
        finally:
            held = anyio.current_time() - started
            self._seconds += (held - self._seconds) * _WEIGHT
            self._end(tenant, own, person)

    async def _wait(self, tenant: str, own: _Calls, waiter: _Waiter, patience: float) -> None:
        ahead = sum(w.person == waiter.person for w in own.waiting)
        of_person = self._waiting if waiter.most == waiter.most_of_person else self._waiting // 2
        if len(own.waiting) >= self._waiting or ahead >= of_person:
            raise self._busy(len(own.waiting) + 1, waiter.most)
        own.waiting.append(waiter)
        telemetry.adjust("queue", 1, queue=self._what)
        begun = False
        try:
            with anyio.move_on_after(patience):
                await waiter.begun.wait()
            begun = waiter.begun.is_set()
        finally:
            telemetry.adjust("queue", -1, queue=self._what)
            if not begun and waiter.begun.is_set():  # cancelled as it got its slot
                self._end(tenant, own, waiter.person)
            elif not begun:
                own.waiting.remove(waiter)
                self._forget(tenant, own)
        if not begun:
            raise self._busy(len(own.waiting) + 1, waiter.most)

    def _begin(self, tenant: str, own: _Calls, person: str) -> None:
        own.persons[person] += 1
        self._running += 1
        self._tenants[tenant] = self._tenants.pop(tenant, own)

    def _end(self, tenant: str, own: _Calls, person: str) -> None:
        _leave(own.persons, person)
        self._running -= 1
        self._forget(tenant, own)
        while self._running < self._slots:
            ready = [
                (name, other, waiter)
                for name, other in self._tenants.items()
                if (waiter := other.ready())
            ]
            if not ready:
                return
            name, other, waiter = min(ready, key=lambda item: item[1].running)
            self._begin(name, other, waiter.person)
            other.waiting.remove(waiter)
            waiter.begun.set()

    def _forget(self, tenant: str, own: _Calls) -> None:
        if not own.running and not own.waiting:
            self._tenants.pop(tenant, None)

    def _busy(self, queued: int, most: int) -> Busy:
        """Return the error with the time in which the tenant's line becomes empty."""
        seconds = min(max(math.ceil(self._seconds * queued / most), 1), _LONGEST_WAIT)
        what = f"All {self._what} that you may have at a time are in use."
        return Busy(what, f"Try again in {seconds} s.", retry_after_seconds=seconds)
