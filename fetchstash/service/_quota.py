"""Count each tenant's use, on all replicas, and refuse what exceeds its quota.

Each process counts for itself. Every EXCHANGE_SECONDS it adds what it counted to the rows that all
share, and reads them. So it knows what the others admitted until twice that time ago: all together
admit at most the quota, and what all but one admit in that time (docs/operations.md). A restart
forgets nothing but the last seconds of a process that was killed.

Times are wall-clock times, as replicas and restarts have no other in common. A clock that jumps
makes a quota a little too kind, and no wait ever leaves its bounds.
"""

import logging
import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from fetchstash.errors import Call, FetchstashError, OverQuota
from fetchstash.store import Counts, MemoryObjects
from fetchstash.text import counted

EXCHANGE_SECONDS = 5
_STEP = EXCHANGE_SECONDS
"""Seconds of one bucket of requests."""
_MINUTE = 60 // _STEP
_DAY = 86_400
_log = logging.getLogger("fetchstash.service")

Clock = Callable[[], float]


@dataclass(slots=True)
class _Used:
    """Counts of one kind by name and step: those since the last exchange, and the shared ones.

    Counts of steps that ended ``lasting`` seconds ago are not read any more.
    """

    kind: str
    step: int
    lasting: int
    new: Counter[tuple[str, int]] = field(default_factory=Counter[tuple[str, int]])
    before: dict[str, dict[int, int]] = field(default_factory=dict[str, dict[int, int]])

    def add(self, name: str, now: float, n: int) -> None:
        self.new[name, int(now // self.step)] += n

    def of(self, name: str, step: int) -> int:
        """Return how much of a step a name used, on all replicas."""
        return self.before.get(name, {}).get(step, 0) + self.new[name, step]

    async def exchange(self, counts: Counts, now: float) -> None:
        """Add new counts to the shared ones, and read those. Raises FetchstashError."""
        first = int((now - self.lasting) // self.step)
        self.new = Counter({key: n for key, n in self.new.items() if key[1] >= first})
        sent = self.new.copy()
        read = await counts.add(self.kind, sent, first, first - self.lasting // self.step)
        self.new -= sent  # more was counted meanwhile
        self.before = {}
        for (name, step), n in read.items():
            self.before.setdefault(name, {})[step] = n


class Quotas:
    """The counts of all tenants, on this replica and on the others."""

    def __init__(self, counts: Counts | None = None, clock: Clock = time.time) -> None:
        """Without ``counts`` this process counts alone."""
        self._counts = counts or MemoryObjects().counts
        self._clock = clock
        self._requests = _Used("requests", _STEP, 2 * 60)
        self._fetched = _Used("fetched", _DAY, _DAY)
        self._failing = False

    def request(self, limits: Mapping[str, int]) -> None:
        """Count a request for each of these, a tenant and a person, with their limits.

        Raises OverQuota, and then counts it for none.
        """
        now = self._clock()
        for name, limit in limits.items():
            self._check_minute(name, limit, now, _whose(name, limits))
        for name in limits:
            self._requests.add(name, now, 1)

    def _check_minute(self, name: str, limit: int, now: float, whose: str) -> None:
        # The next step, too: clocks differ.
        step = int(now // _STEP)
        by_step = {at: self._requests.of(name, at) for at in range(step - _MINUTE, step + 2)}
        total = sum(by_step.values())
        if limit and total >= limit:
            freed_at = 0
            for at in sorted(by_step):
                total -= by_step[at]
                freed_at = at + _MINUTE + 1
                if total < limit:
                    break
            wait = _bounded(freed_at * _STEP - now, 60 + 2 * _STEP)
            what = f"{whose} may send {counted(limit, 'request')} a minute, and have."
            raise OverQuota(what, f"Try again in {wait} s.", retry_after_seconds=wait)

    async def pace(self, host: str, seconds: float) -> float:
        """Return how long to wait until a site may be asked again, by any process or replica."""
        return await self._counts.reserve(host, seconds)

    async def check_host(self, person: str, host: str, limit: int) -> None:
        """Count a host. Raises OverQuota where it is one more than ``limit`` in a minute."""
        if not limit:
            return
        now = self._clock()
        may, oldest = await self._counts.ask(person, host, limit, now, 60)
        if not may:
            wait = _bounded(oldest + 60 - now, 60)
            what = f"You may fetch from {limit:,} different hosts a minute, and have."
            step = f"Try again in {wait} s; hosts of this minute and what is kept can be read."
            raise OverQuota(what, step, retry_after_seconds=wait)

    def may_fetch(self, limits: Mapping[str, int]) -> None:
        """Raise OverQuota if one of these has fetched as many bytes today as its limit."""
        now = self._clock()
        day = int(now // _DAY)
        for name, limit in limits.items():
            used = self._fetched.of(name, day)
            if limit and used >= limit:
                wait = _bounded((day + 1) * _DAY - now, _DAY)
                what = f"{_whose(name, limits)} may fetch {counted(limit, 'byte')} a day, and have "
                what += f"fetched {used:,}."
                step = f"Try again in {_length(wait)}; what is kept can be read."
                raise OverQuota(what, step, retry_after_seconds=wait)

    def fetched(self, names: Iterable[str], size: int) -> None:
        for name in names:
            self._fetched.add(name, self._clock(), size)

    async def exchange(self) -> None:
        """Add our counts to those that all share, and read these.

        A store that fails leaves each replica to its own counts, and the log says so once.
        """
        now = self._clock()
        try:
            for used in (self._requests, self._fetched):
                await used.exchange(self._counts, now)
            await self._counts.forget_moments()
        except FetchstashError as error:
            if not self._failing:
                _log.warning("quotas are counted by this replica alone: %s", error.what)
            self._failing = True
        else:
            self._failing = False


def _bounded(seconds: float, most: float) -> int:
    return math.ceil(min(max(seconds, 1), most))


def _length(seconds: int) -> str:
    """Return a time in its largest unit, rounded up."""
    for unit, length in (("h", 3600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{math.ceil(seconds / length)} {unit}"
    return f"{seconds} s"


def limits_of(tenant: str, person: str, limit: int, part: float) -> dict[str, int]:
    """Return a tenant's quota and its person's part of it, by the names that they count under."""
    limits = {tenant: limit}
    if part < 1 and person and limit:
        limits[f"{tenant}/{person}"] = math.ceil(limit * part)
    return limits


def _whose(name: str, limits: Mapping[str, int]) -> str:
    """Return the subject of a sentence about the quota of one of these names."""
    return "You" if len(limits) == 1 or "/" in name else "You and the others of your tenant"


def over_stored(what: str, wait: float, may_delete: bool, name: str, value: int) -> OverQuota:
    """Return the error of a tenant that keeps as much as it may; ``wait``: until some expires."""
    delete = Call("delete", {"ref": "art_…"})
    raised = Call("setting", {"name": name, "value": value})
    seconds = _bounded(wait, 366 * _DAY)
    makes_room = "{} makes room" if may_delete else "whoever runs the service can delete some"
    step = f"{{}} lists it, and {makes_room}. The first of it expires in {_length(seconds)}; {{}}."
    calls = (Call("list"), *([delete] if may_delete else []), raised)
    return OverQuota(what, step, *calls, retry_after_seconds=seconds)
