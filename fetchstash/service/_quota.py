"""Count what each tenant uses, on all replicas, and refuse what is over its quota.

Each replica counts for itself. Every EXCHANGE_SECONDS it writes its counts as one small object and
reads those of the others. So it knows what the others admitted until twice that time ago: all
together admit at most the quota, and what all but one admit in that time (docs/operations.md).
The object of a replica that ended is counted on until its counts are over: a restart forgets
nothing but the last seconds of one that was killed.

Times are wall-clock times, as replicas and restarts have no other in common. A clock that jumps
makes a quota a little too kind, and no wait ever leaves its bounds.
"""

import json
import logging
import math
import secrets
import sqlite3
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, field
from typing import Any, cast

from fetchstash.errors import Call, FetchstashError, OverQuota
from fetchstash.store import MemoryObjects, Objects

EXCHANGE_SECONDS = 5
_STEP = EXCHANGE_SECONDS
"""Seconds of one bucket of requests."""
_MINUTE = 60 // _STEP
_DAY = 86_400
_HEARTBEAT, _SILENT, _GONE = 30, 90, 2 * _DAY
"""Seconds after which a replica writes though nothing happened, and those after which the object of
one that has not written is read once a minute, or deleted."""

_FOLDER = "quota"
_log = logging.getLogger("fetchstash.service")

Clock = Callable[[], float]


@dataclass(slots=True)
class Counts:
    """What one tenant used on one replica.

    ``requests`` by step, and ``fetched`` bytes by day.
    """

    requests: dict[int, int] = field(default_factory=dict[int, int])
    fetched: dict[int, int] = field(default_factory=dict[int, int])

    def forget(self, now: float) -> None:
        """Drop what is over, and what a clock that jumped back has left in the future."""
        step, day = int(now // _STEP), int(now // _DAY)
        self.requests = {s: n for s, n in self.requests.items() if _in_minute(s, step)}
        self.fetched = {d: n for d, n in self.fetched.items() if abs(d - day) <= 1}

    def to_json(self) -> list[Any]:
        return [self.requests, self.fetched]

    @classmethod
    def from_json(cls, data: Any) -> "Counts":
        """Read what ``to_json`` made. Raises TypeError, ValueError, AttributeError or KeyError."""
        requests, fetched, *_ = data  # an earlier version counted puts, too
        return cls(_whole(requests), _whole(fetched))


def _whole(counts: Mapping[str, Any]) -> dict[int, int]:
    return {int(key): max(int(n), 0) for key, n in counts.items()}


def _in_minute(step: int, now: int) -> bool:
    """Return whether a step touches the last minute; the next one does, as clocks differ."""
    return now - _MINUTE <= step <= now + 1


@dataclass(slots=True)
class _Replica:
    """What another replica wrote last, when, and when it is to be read again."""

    written: float
    tenants: Mapping[str, Counts]
    read_at: float = 0.0


class Quotas:
    """The counts of all tenants, on this replica and on the others."""

    def __init__(
        self, objects: Objects | None = None, clock: Clock = time.time, hosts_file: str = ":memory:"
    ) -> None:
        """``hosts_file`` is shared by the workers of a service."""
        self.hosts = Hosts(hosts_file, clock)
        self._objects = objects or MemoryObjects()
        self._clock = clock
        self._key = f"{_FOLDER}/{secrets.token_hex(8)}"
        self._own: dict[str, Counts] = {}
        self._others: dict[str, _Replica] = {}
        self._written = 0.0
        self._changed = False
        self._failing = False

    def request(self, limits: Mapping[str, int]) -> None:
        """Count a request for each of these, a tenant and a person, with their limits.

        Raises OverQuota, and then counts it for none.
        """
        now = self._clock()
        for name, limit in limits.items():
            self._check_minute(name, limit, now, _whose(name, limits))
        step = int(now // _STEP)
        for name in limits:
            own = self._own.setdefault(name, Counts())
            own.requests[step] = own.requests.get(step, 0) + 1
        self._changed = True

    def _check_minute(self, name: str, limit: int, now: float, whose: str) -> None:
        step = int(now // _STEP)
        by_step: dict[int, int] = {}
        for counts in self._of(name):
            for at, n in counts.requests.items():
                if _in_minute(at, step):
                    by_step[at] = by_step.get(at, 0) + n
        total = sum(by_step.values())
        if limit and total >= limit:
            freed_at = 0
            for at in sorted(by_step):
                total -= by_step[at]
                freed_at = at + _MINUTE + 1
                if total < limit:
                    break
            wait = _bounded(freed_at * _STEP - now, 60 + 2 * _STEP)
            what = f"{whose} may send {limit:,} requests a minute, and have."
            raise OverQuota(what, f"Try again in {wait} s.", retry_after_seconds=wait)

    async def pace(self, host: str, seconds: float) -> float:
        """Return how long to wait until a site may be asked again, by any process or replica."""
        return await self._objects.reserve(f"site {host}", seconds)

    def may_fetch(self, limits: Mapping[str, int]) -> None:
        """Raise OverQuota if one of these has fetched as many bytes today as its limit."""
        now = self._clock()
        day = int(now // _DAY)
        for name, limit in limits.items():
            used = sum(counts.fetched.get(day, 0) for counts in self._of(name))
            if limit and used >= limit:
                wait = _bounded((day + 1) * _DAY - now, _DAY)
                what = f"{_whose(name, limits)} may fetch {limit:,} bytes a day, and have "
                what += f"fetched {used:,}."
                step = f"Try again in {_length(wait)}; what is kept can be read."
                raise OverQuota(what, step, retry_after_seconds=wait)

    def fetched(self, names: Iterable[str], size: int) -> None:
        day = int(self._clock() // _DAY)
        for name in names:
            own = self._own.setdefault(name, Counts())
            own.fetched[day] = own.fetched.get(day, 0) + size
        self._changed = True

    async def exchange(self) -> None:
        """Write our counts and read those of the others.

        A store that fails leaves each replica to its own counts, and the log says so once.
        """
        try:
            await self._write(self._objects)
            await self._read(self._objects)
        except FetchstashError as error:
            if not self._failing:
                _log.warning("quotas are counted by this replica alone: %s", error.what)
            self._failing = True
        else:
            self._failing = False

    async def _write(self, objects: Objects) -> None:
        self._forget()
        now = self._clock()
        if not self._changed and abs(now - self._written) < _HEARTBEAT:
            return
        self._changed, self._written = False, now
        tenants = {name: counts.to_json() for name, counts in self._own.items()}
        written = json.dumps({"written": now, "tenants": tenants}, separators=(",", ":"))
        await objects.write(self._key, written.encode())

    async def _read(self, objects: Objects) -> None:
        now = self._clock()
        others: dict[str, _Replica] = {}
        for key in await objects.keys(_FOLDER):
            if key == self._key:
                continue
            known = self._others.get(key)
            silent = known is not None and now - known.written > _SILENT
            if known and silent and abs(now - known.read_at) < _SILENT:
                others[key] = known
                continue
            data = await objects.read(key)
            replica = _replica(data, now) if data is not None else None
            if replica is None:
                continue
            if abs(now - replica.written) > _GONE:
                await objects.delete(key)
            else:
                others[key] = replica
        self._others = others

    def _forget(self) -> None:
        now = self._clock()
        for counts in self._own.values():
            counts.forget(now)
        self._own = {name: own for name, own in self._own.items() if own.requests or own.fetched}

    def _of(self, tenant: str) -> Iterable[Counts]:
        if tenant in self._own:
            yield self._own[tenant]
        for replica in self._others.values():
            if tenant in replica.tenants:
                yield replica.tenants[tenant]


class Hosts:
    """Which hosts each person asked for within the last minute, in a file that workers share."""

    def __init__(self, file: str = ":memory:", clock: Clock = time.time) -> None:
        self._file = file
        self._clock = clock
        self._db: sqlite3.Connection | None = None

    def check(self, person: str, host: str, limit: int) -> None:
        """Count a host. Raises OverQuota where it is one more than ``limit`` in a minute."""
        if not limit:
            return
        now = self._clock()
        with closing(self._opened().cursor()) as db:
            db.execute("BEGIN IMMEDIATE")
            try:
                db.execute("DELETE FROM asked WHERE at NOT BETWEEN ? AND ?", (now - 60, now))
                others = "SELECT count(*), min(at) FROM asked WHERE person = ? AND host <> ?"
                count, oldest = db.execute(others, (person, host)).fetchone()
                if count < limit:
                    db.execute("INSERT OR REPLACE INTO asked VALUES (?, ?, ?)", (person, host, now))
            finally:
                db.execute("COMMIT")
        if count >= limit:
            wait = _bounded(oldest + 60 - now, 60)
            what = f"You may fetch from {limit:,} different hosts a minute, and have."
            step = f"Try again in {wait} s; hosts of this minute and what is kept can be read."
            raise OverQuota(what, step, retry_after_seconds=wait)

    def close(self) -> None:
        if self._db:
            self._db.close()
            self._db = None

    def _opened(self) -> sqlite3.Connection:
        if self._db is None:
            self._db = sqlite3.connect(self._file, isolation_level=None, timeout=5)
            # Nothing of it must outlive the service.
            self._db.execute("PRAGMA synchronous = OFF")
            self._db.execute(
                "CREATE TABLE IF NOT EXISTS asked (person TEXT, host TEXT, at REAL,"
                " PRIMARY KEY (person, host)) WITHOUT ROWID"
            )
        return self._db


def _replica(data: bytes, now: float) -> _Replica | None:
    """Read the object of a replica, None for one that is damaged or of another version."""
    with suppress(ValueError, TypeError, AttributeError, KeyError, OverflowError, RecursionError):
        read = cast("dict[str, Any]", json.loads(data))
        tenants = {name: Counts.from_json(counts) for name, counts in read["tenants"].items()}
        return _Replica(float(read["written"]), tenants, now)
    return None


def _bounded(seconds: float, most: float) -> int:
    return math.ceil(min(max(seconds, 1), most))


def _length(seconds: int) -> str:
    """Return a time in its largest unit, rounded up."""
    for unit, length in (("h", 3600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{math.ceil(seconds / length)} {unit}"
    return f"{seconds} s"


def limits_of(tenant: str, person: str, limit: int, part: float) -> dict[str, int]:
    """Return a quota of a tenant, and the part of it that a person has, by what they count as."""
    limits = {tenant: limit}
    if part < 1 and person and limit:
        limits[f"{tenant}/{person}"] = math.ceil(limit * part)
    return limits


def _whose(name: str, limits: Mapping[str, int]) -> str:
    """Return the subject of a sentence about the quota of one of these names."""
    return "You" if len(limits) == 1 or "/" in name else "You and the others of your tenant"


def over_stored(what: str, wait: float, name: str, value: int) -> OverQuota:
    """Return the error of a tenant that keeps as much as it may; ``wait``: until some expires."""
    raised = Call("setting", {"name": name, "value": value})
    seconds = _bounded(wait, 366 * _DAY)
    step = f"Try again in {_length(seconds)}; or {{}}."
    return OverQuota(what, step, raised, retry_after_seconds=seconds)
