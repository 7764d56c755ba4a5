"""Threads and processes of a store: short calls, scans by grep, and searches."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from functools import wraps
from threading import Event
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Protocol, TypeVar

from anyio import CapacityLimiter, to_thread

from fetchstash.errors import FetchstashError
from fetchstash.store import _search_pool as pool
from fetchstash.store._contract import SearchResult
from fetchstash.store._disk import translate_errors
from fetchstash.system.processes import processors

if TYPE_CHECKING:
    from types import CoroutineType

T = TypeVar("T")
P = ParamSpec("P")
S = TypeVar("S", bound="RunsInThreads")

Turn = Callable[[], AbstractAsyncContextManager[object]]
"""Waits for a turn, where several stores share the processors, and holds it."""


@dataclass(frozen=True, slots=True)
class Turns:
    """Who waits for whom: a grep takes milliseconds, and never waits behind searches."""

    grep: Turn = nullcontext
    search: Turn = nullcontext


class RunsInThreads(Protocol):
    """What has methods that block."""

    async def run(self, work: Callable[[], T]) -> T:
        """Run work in a thread."""
        ...


def in_thread(
    work: Callable[Concatenate[S, P], T],
) -> "Callable[Concatenate[S, P], CoroutineType[Any, Any, T]]":
    """Make a blocking method one that runs in a thread."""

    @wraps(work)
    async def run(self: S, *arguments: P.args, **options: P.kwargs) -> T:
        return await self.run(lambda: work(self, *arguments, **options))

    return run  # type: ignore[return-value] # mypy has Coroutine for what pyright calls CoroutineType


CALLS_AT_ONCE = 64
"""Calls of a store over a network: they wait most of their time."""

SHORT_WORKERS = 8
SCAN_WORKERS = 8


class Threads:
    """The threads of one store. Scans have their own, so that they never delay a short call.

    ``short`` calls run at a time: more where they wait for a network than where for a disk.
    """

    def __init__(self, short: int = SHORT_WORKERS, turns: Turns | None = None) -> None:
        self._turns = turns or Turns()
        self._short = CapacityLimiter(short)
        self._scans = CapacityLimiter(SCAN_WORKERS)
        self._searches = CapacityLimiter(max(processors(), 2))
        self._processes = CapacityLimiter(max(processors(), 2))

    async def run(self, work: Callable[[], T]) -> T:
        """Run short work in a thread. Errors of disk and SQLite become StoreError or Busy."""

        def translated() -> T:
            with translate_errors():
                return work()

        return await to_thread.run_sync(translated, limiter=self._short)

    async def grep(self, work: Callable[[Callable[[], bool]], T]) -> T:
        """Run a scan in a thread: RE2 gives the interpreter up.

        The work gets a function that says whether it was cancelled. A cancelled call returns at
        once, and its work stops as soon as it asks.
        """
        async with self._turns.grep():
            return await _abandonable(work, self._scans)

    async def rank(self, work: Callable[[Callable[[], bool]], T]) -> T:
        """Rank a little text in a thread, as ``grep`` runs a scan."""
        async with self._turns.search():
            return await _abandonable(work, self._searches)

    async def search(self, job: pool.Job) -> SearchResult:
        """Do a search in a process, which a cancelled call kills."""
        # Who waits here holds no process: each would start one of its own.
        async with self._turns.search(), self._processes:
            child = pool.take(job.key)
            try:
                result = await to_thread.run_sync(
                    child.ask, job, limiter=CapacityLimiter(1), abandon_on_cancel=True
                )
            except FetchstashError:
                pool.give_back(child)
                raise
            except BaseException:
                child.end()
                raise
            pool.give_back(child)
            return result


async def _abandonable(work: Callable[[Callable[[], bool]], T], limiter: CapacityLimiter) -> T:
    cancelled = Event()

    def translated() -> T:
        with translate_errors():
            return work(cancelled.is_set)

    try:
        return await to_thread.run_sync(translated, limiter=limiter, abandon_on_cancel=True)
    finally:
        cancelled.set()
