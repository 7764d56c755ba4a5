"""The threads in which a store does its blocking work."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from threading import Event
from typing import TypeVar

from anyio import CapacityLimiter, to_thread

from fetchstash.store._disk import translate_errors

T = TypeVar("T")

Rest = Callable[[], None]
"""Called often by a scan in its thread; may sleep, so that others come first."""

Turn = Callable[[], AbstractAsyncContextManager[Rest | None]]
"""Waits for the turn of a scan, where several stores share the processors, and holds it."""

SHORT_WORKERS = 8
SCAN_WORKERS = 8


class Threads:
    """The threads of one store. Scans have their own, so that they never delay a short call.

    ``short`` calls run at a time: more where they wait for a network than where for a disk. Each
    scan holds a ``turn``.
    """

    def __init__(self, short: int = SHORT_WORKERS, turn: Turn = nullcontext) -> None:
        self._turn = turn
        self._short = CapacityLimiter(short)
        self._scans = CapacityLimiter(SCAN_WORKERS)

    async def run(self, work: Callable[[], T]) -> T:
        """Run short work in a thread. Errors of disk and SQLite become StoreError or Busy."""

        def translated() -> T:
            with translate_errors():
                return work()

        return await to_thread.run_sync(translated, limiter=self._short)

    async def scan(self, work: Callable[[Callable[[], bool]], T]) -> T:
        """Run long work in a thread. It gets a function that says whether it was cancelled.

        A cancelled call returns at once. Its work stops as soon as it asks.
        """
        cancelled = Event()

        def translated(rest: Rest | None) -> T:
            def is_cancelled() -> bool:
                if rest:
                    rest()
                return cancelled.is_set()

            with translate_errors():
                return work(is_cancelled if rest else cancelled.is_set)

        try:
            async with self._turn() as rest:
                return await to_thread.run_sync(
                    translated, rest, limiter=self._scans, abandon_on_cancel=True
                )
        finally:
            cancelled.set()
