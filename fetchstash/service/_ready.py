"""Whether the service can answer calls.

The store takes and gives a value, the audit log takes lines, a worker starts.
"""

import logging
import secrets
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio

from fetchstash.errors import FetchstashError
from fetchstash.handlers import ExtractLimits, Hints, WorkerPool, route_file
from fetchstash.service._audit import AuditLog
from fetchstash.store import Objects

_log = logging.getLogger("fetchstash.service")

_STORE_SECONDS, _WORKER_SECONDS = 5.0, 60.0
"""An answer holds so long: whoever asks /readyz needs no token, and every check costs."""


class _Check:
    """A check that is made anew when its last answer is old."""

    def __init__(self, seconds: float, check: Callable[[], Awaitable[str]]) -> None:
        self._seconds = seconds
        self._check = check
        self._lock = anyio.Lock()
        self._reason = ""
        self._made_at: float | None = None

    async def reason(self) -> str:
        async with self._lock:
            if self._made_at is None or time.monotonic() - self._made_at >= self._seconds:
                try:
                    self._reason = await self._check()
                except (FetchstashError, OSError) as error:
                    _log.warning("Not ready: %s", error)
                    self._reason = getattr(error, "code", "store_error")
                self._made_at = time.monotonic()
            return self._reason


class Readiness:
    """Checks what calls need."""

    def __init__(self, objects: Objects, limits: ExtractLimits, audit: AuditLog) -> None:
        self._objects = objects
        self._audit = audit
        self._limits = limits
        self._key = f"ready/{secrets.token_hex(8)}"
        self._store = _Check(_STORE_SECONDS, self._use_store)
        self._worker = _Check(_WORKER_SECONDS, self._start_worker)

    async def reason(self) -> str:
        """Return a code for what fails, "" if nothing does. The log has the details."""
        return await self._store.reason() or await self._worker.reason()

    async def _use_store(self) -> str:
        if not self._audit.takes_lines():
            return "audit_log"
        await self._objects.write(self._key, b"ready")
        value = await self._objects.read(self._key)
        await self._objects.delete(self._key)
        return "" if value == b"ready" else "store_error"

    async def _start_worker(self) -> str:
        pool = WorkerPool(self._limits)
        try:
            with tempfile.TemporaryDirectory() as name:
                folder = Path(name)
                text = folder / "text"
                text.write_text("a line\n", encoding="utf-8")
                decision = route_file(text, {}, "a.txt")
                read = await pool.extract(text, decision, Hints(), folder)
        finally:
            await pool.aclose()
        return "worker_failed" if read.extraction_error or read.chars == 0 else ""
