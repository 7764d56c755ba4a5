"""Clean up what tenants keep: once an hour for each, by one process of one replica.

A turn removes what has expired, applies the limits, and removes the bytes that nothing names. It is
a line of the log and a metric. After it, and after an operator deleted a person or a tenant, every
replica removes from the cache of its machine what has no row any more.
"""

import logging
import shutil
import time
from collections import Counter
from collections.abc import Collection
from pathlib import Path

import anyio

from fetchstash.config import Settings
from fetchstash.errors import FetchstashError
from fetchstash.store import (
    CLEANED,
    Objects,
    is_shared,
    open_existing,
    remove_rest,
    stores_of,
)
from fetchstash.system import telemetry

TURN_SECONDS = 3_600
"""Between two turns of a tenant. Bytes wait as long for a put of the same (_team.py)."""

AGAIN_SECONDS = 300
"""After a turn that failed."""

LOOK_SECONDS = 5
_TURN = "clean-up"
_log = logging.getLogger("fetchstash.service")


class Upkeep:
    """The clean-up turns of one process. What is due is decided by rows that all share."""

    def __init__(self, settings: Settings, objects: Objects) -> None:
        self._settings, self._counts = settings, objects.counts
        # Until when of CLEANED the caches of this machine are pruned, by tenant.
        self._pruned: dict[str, float] = {}
        self._is_failing = False

    async def run(self) -> None:
        """Look what is due every few seconds, until cancelled."""
        self._pruned = dict.fromkeys(self._cached(), -1.0)  # they may be of a time long ago
        while True:
            await self.look()
            await anyio.sleep(LOOK_SECONDS)

    async def look(self) -> None:
        """Take the turns that are due, and prune the caches of what was cleaned up since.

        A store that fails is looked at again; the log says so once.
        """
        try:
            names = await stores_of(self._settings.store)
            recent = await self._counts.recent(_TURN, TURN_SECONDS)
            deleted = set(await self._counts.noted(CLEANED)).difference(names)
            for name in (*names, *sorted(deleted)):
                if name not in recent and await self._counts.take_turn(_TURN, name, TURN_SECONDS):
                    await (self._remove_rest(name) if name in deleted else self._clean_up(name))
            await self._prune(names)
        except FetchstashError as error:
            if not self._is_failing:
                _log.warning("Clean-up waits: %s", error.what)
            self._is_failing = True
        else:
            self._is_failing = False

    def _own(self, name: str) -> Settings:
        return self._settings.for_tenant(name) if name else self._settings

    async def _clean_up(self, name: str) -> None:
        started = time.perf_counter()
        try:
            with telemetry.timed("clean_up"):
                async with open_existing(self._own(name).store) as store:
                    done = await store.clean_up()
        except FetchstashError as error:
            facts = {"tenant": name, "code": error.code, "reason": error.what}
            _log.warning("clean-up failed", extra={"facts": facts})
            await self._counts.note(_TURN, name, ago=TURN_SECONDS - AGAIN_SECONDS)
            return
        removed = Counter(item.reason for item in done.removed if item.reason != "orphan")
        for reason, n in {**removed, "file": done.files}.items():
            if n:
                telemetry.count("cleaned", n, reason=reason)
        line: dict[str, str | int | float] = {
            "tenant": name,
            "expired": removed["age"],
            "evicted": removed["count"] + removed["bytes"],
            "files": done.files,
            "seconds": round(time.perf_counter() - started, 3),
        }
        _log.info("clean-up", extra={"facts": line})
        await self._counts.note(CLEANED, name)

    async def _remove_rest(self, name: str) -> None:
        """Remove what a put wrote into the store of a tenant while that was being deleted."""
        await remove_rest(self._own(name).store, TURN_SECONDS)

    async def _prune(self, names: Collection[str]) -> None:
        """Prune this machine's caches of tenants that were cleaned up since the last pruning."""
        if not is_shared(self._settings.store):
            return  # a folder of this machine has no cache, and whoever deletes is here
        cleaned = await self._counts.noted(CLEANED)
        for name in {**self._pruned, **cleaned}:
            at = cleaned.get(name, 0.0)
            if at > self._pruned.get(name, -1.0):
                await self._prune_one(name, is_deleted=name not in names)
                self._pruned[name] = at

    async def _prune_one(self, name: str, *, is_deleted: bool) -> None:
        own = self._own(name)
        if not is_deleted:
            async with open_existing(own.store) as store:
                await store.prune_cache()
            return
        caches = own.store.folder / "buckets"
        await anyio.to_thread.run_sync(lambda: shutil.rmtree(caches, ignore_errors=True))
        remove_logs(own)

    def _cached(self) -> list[str]:
        """Return the tenants with a cache on this machine, also from before this process."""
        folder = self._settings.store.folder
        tenants = [path.parent.name for path in folder.glob("tenants/*/buckets")]
        return [*([""] if (folder / "buckets").exists() else []), *tenants]


def remove_logs(settings: Settings) -> None:
    """Remove the event logs of a tenant that was deleted."""
    if settings.telemetry.event_log:
        log = Path(settings.telemetry.event_log)
        for path in log.parent.glob(f"{log.name}*"):
            path.unlink(missing_ok=True)
