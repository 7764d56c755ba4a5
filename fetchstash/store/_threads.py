"""Threads of a store: look-ups, scans that step aside, and who waits for whom."""

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, nullcontext
from contextvars import copy_context
from threading import Event
from typing import TypeVar

from anyio import CancelScope, CapacityLimiter, lowlevel, to_thread

from fetchstash.store._disk import translate_errors
from fetchstash.system.processes import processors

T = TypeVar("T")


class LookUps:
    """Runs look-ups one after another in one thread.

    A thread gives the interpreter up whenever it asks the disk, and has to wait until the event
    loop gives it back. In threads of their own, look-ups would wait for each other, too.
    """

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, "look-ups")

    async def run(self, work: Callable[[], T]) -> T:
        """Run work in the thread. Errors of disk and SQLite become StoreError or Busy.

        A call that is cancelled waits for its end all the same: it may open a file.
        """
        await lowlevel.checkpoint_if_cancelled()

        def translated() -> T:
            with translate_errors():
                return work()

        loop = asyncio.get_running_loop()
        ended = loop.run_in_executor(self._thread, copy_context().run, translated)
        with CancelScope(shield=True):
            await ended
        return ended.result()

    def close(self) -> None:
        """End the thread once it has no work."""
        self._thread.shutdown(wait=False)


Rest = Callable[[], None]
"""Called often by a scan in its thread; may sleep, so that others come first."""

Turn = Callable[[], AbstractAsyncContextManager[Rest | None]]
"""Waits for the turn of a scan, where several stores share the processors, and holds it."""

CALLS_AT_ONCE = 64
"""Calls of a store over a network: they wait most of their time."""

SHORT_WORKERS = 8
SCAN_WORKERS = 8
_WORK_SECONDS, _REST_SECONDS = 0.001, 0.05
"""A scan rests after the first if it should, at most for the second: it has a deadline."""


class _Share:
    """One scan's share of the processors: all scans together leave one to the event loop.

    Else the threads that read requests and write answers wait in line behind the scans. It belongs
    to the thread that makes it; ``running`` says how many scans there are.
    """

    def __init__(self, running: Callable[[], int], cancelled: Event) -> None:
        self._running = running
        self._cancelled = cancelled
        self._processors = max(processors() - 1, 1)
        self._since = time.thread_time()

    def rest(self) -> None:
        """Sleep if the scan has worked for more than its share, until it is cancelled."""
        worked = time.thread_time() - self._since
        if worked < _WORK_SECONDS:
            return
        others = self._running() / self._processors - 1
        if others > 0:
            self._cancelled.wait(min(worked * others, _REST_SECONDS))
        self._since = time.thread_time()


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
            share = _Share(lambda: self._scans.borrowed_tokens, cancelled)

            def is_cancelled() -> bool:
                if rest:
                    rest()
                share.rest()
                return cancelled.is_set()

            with translate_errors():
                return work(is_cancelled)

        try:
            async with self._turn() as rest:
                return await to_thread.run_sync(
                    translated, rest, limiter=self._scans, abandon_on_cancel=True
                )
        finally:
            cancelled.set()
