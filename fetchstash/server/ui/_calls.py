"""The log of calls, read again only when it has changed."""

from typing import Any

import anyio
import anyio.to_thread

from fetchstash.config import Settings
from fetchstash.server.tools import log_of, logged_calls
from fetchstash.store import ALL_RUNS


class Calls:
    """The calls of all runs."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._log = log_of(settings)
        self._state: object = None
        self._records: list[dict[str, Any]] = []
        self._lock = anyio.Lock()

    def state(self) -> tuple[int, int]:
        """Return what changes with every call."""
        try:
            status = self._log.path.stat() if self._log else None
        except OSError:
            status = None
        return (status.st_size, status.st_mtime_ns) if status else (0, 0)

    async def of_run(self, run: str) -> list[dict[str, Any]]:
        """Return the calls of a run, oldest first."""
        records = await self._all()
        return [record for record in records if run in (ALL_RUNS, record.get("run"))]

    async def of_artifact(self, ref: str) -> list[dict[str, Any]]:
        """Return what each call showed of an artifact, oldest first."""
        return [
            {**{name: record.get(name) for name in ("time", "tool", "asked", "tokens")}, **shown}
            for record in await self._all()
            for shown in record.get("shown", ())
            if shown.get("ref") == ref
        ]

    async def projects(self) -> dict[str, str]:
        """Return the folders of the runs that are known."""
        records = await self._all()
        return {r["run"]: r["project"] for r in records if r.get("run") and r.get("project")}

    async def _all(self) -> list[dict[str, Any]]:
        async with self._lock:
            if (state := self.state()) != self._state:
                self._records = await anyio.to_thread.run_sync(
                    lambda: list(logged_calls(self._settings))
                )
                self._state = state
            return self._records
