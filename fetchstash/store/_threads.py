"""Threads and processes of a store: short calls, scans by grep, and searches.

Ranking and indexing much text have processes of their own: they would take the interpreter from
the loop. A job is data that is pickled to a process over its stdin; its result comes back over
stdout. A search that is cancelled is killed with its process, so nothing in a job rests for others.
A process stays for the next job, of any store, with what it has opened. It ends when it was idle
for a while, when the program does, and when a store that it has open is closed. Between two jobs it
goes on with the index of its last one (_search.py).
"""

import os
import pickle
import signal
import subprocess
import sys
from collections import OrderedDict
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from threading import Event, Lock, Timer, enumerate as threads
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Protocol, TypeVar

from anyio import CapacityLimiter, to_thread

from fetchstash.errors import FetchstashError, StoreError
from fetchstash.store._contract import SearchResult
from fetchstash.store._disk import translate_errors
from fetchstash.store._limits import StoreLimits
from fetchstash.store._search import INDEXING
from fetchstash.system import telemetry
from fetchstash.system.processes import processors

if TYPE_CHECKING:
    from types import CoroutineType


LITTLE = 256 * 2**10
"""Bytes of text that are ranked in a thread: in less time than a process takes to start."""

NICENESS = 3
"""Of the processes: the loop comes first, and a search still gets a third of a busy processor."""

_IDLE_SECONDS = 20
_MOST_OPEN = 8
_COMMAND = "from fetchstash.store._threads import main; main()"
_NO_WINDOW: int = getattr(subprocess, "CREATE_NO_WINDOW", 0)


class Job(Protocol):
    """A search as data. ``open`` opens the store of ``limits`` that it reads."""

    @property
    def limits(self) -> StoreLimits: ...

    def open(self) -> Any:
        """Open what the job reads."""
        ...

    def run(self, opened: Any, cancelled: Callable[[], bool]) -> SearchResult:
        """Search. Raises FetchstashError."""
        ...


Key = tuple[str, Path]


def _key(limits: StoreLimits) -> Key:
    """Return the identity of a store: its place."""
    return limits.url, limits.folder


class Child:
    """A process that does one job at a time."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = Lock()
        self._is_ended = False
        self.keys: set[Key] = set()

    def ask(self, job: Job) -> SearchResult:
        """Run a job. Blocks until it is done, or ``end`` is called. Raises FetchstashError."""
        self.keys.add(_key(job.limits))
        while True:
            is_new = self._process is None
            try:
                process = self._started()
                assert process.stdin
                assert process.stdout
                pickle.dump(job, process.stdin)
                process.stdin.flush()
                answer: SearchResult | FetchstashError
                answer, times = pickle.load(process.stdout)  # noqa: S301 - our own
            except (OSError, EOFError, pickle.UnpicklingError):
                self._reap()
                if self._is_ended or is_new:
                    what = "The search ended before its result."
                    raise StoreError(what, "Try again.") from None
                continue  # it was idle for too long just now
            for name, seconds, attributes in times:  # requests to a bucket
                telemetry.duration(name, seconds, **attributes)
            if isinstance(answer, FetchstashError):
                raise answer
            return answer

    def end(self) -> None:
        """Kill the process; may be called from any thread, also while it has a job."""
        with self._lock:
            self._is_ended = True
            if self._process:
                self._process.kill()

    def close(self) -> None:
        """End the process while it has no job."""
        self.end()
        self._reap()

    def _started(self) -> "subprocess.Popen[bytes]":
        with self._lock:
            if self._is_ended:
                raise EOFError
            if self._process is None:
                self._process = subprocess.Popen(  # noqa: S603 - this interpreter
                    (sys.executable, "-P", "-c", _COMMAND),
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    creationflags=_NO_WINDOW,
                )
            return self._process

    def _reap(self) -> None:
        with self._lock:
            process, self._process = self._process, None
        if process:
            process.kill()
            with suppress(OSError):  # what was not sent to it
                process.communicate()


_idle: list[Child] = []
_lock = Lock()


def take(limits: StoreLimits) -> Child:
    """Return an idle process for a job, if possible one that has the job's store open."""
    with _lock:
        for number, child in enumerate(_idle):
            if _key(limits) in child.keys:
                return _idle.pop(number)
        return _idle.pop() if _idle else Child()


def give_back(child: Child) -> None:
    """Keep a process for the next job. There is one for each processor at most, or two."""
    with _lock:
        _idle.append(child)
        surplus = _idle.pop(0) if len(_idle) > max(processors(), 2) else None
    if surplus:
        surplus.close()


def end_processes(limits: StoreLimits) -> None:
    """End the processes that have a store open: its folder may be gone next."""
    with _lock:
        closed = [child for child in _idle if _key(limits) in child.keys]
        _idle[:] = [child for child in _idle if child not in closed]
    for child in closed:
        child.close()


def _leave() -> None:
    """End this process after the index that it is building is written."""
    for thread in threads():
        if thread.name == INDEXING:
            thread.join()
    os._exit(0)


def main() -> None:
    """Run jobs until stdin ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to all; the server ends us
    if sys.platform != "win32":
        with suppress(OSError):
            os.nice(NICENESS)
    opened: OrderedDict[Key, Any] = OrderedDict()
    while True:
        idle = Timer(_IDLE_SECONDS, _leave)
        idle.daemon = True
        idle.start()
        try:
            job: Job = pickle.load(sys.stdin.buffer)  # noqa: S301 - the server's
        except EOFError:
            os._exit(0)  # threads that index are no reason to stay
        idle.cancel()
        answer: object
        with telemetry.collecting() as times:
            try:
                with translate_errors():
                    key = _key(job.limits)
                    opened[key] = opened.pop(key, None) or job.open()
                    answer = job.run(opened[key], lambda: False)
            except FetchstashError as error:
                answer = error
        if len(opened) > _MOST_OPEN:
            opened.popitem(last=False)
        pickle.dump((answer, times), sys.stdout.buffer)
        sys.stdout.buffer.flush()


T = TypeVar("T")
P = ParamSpec("P")
S = TypeVar("S", bound="RunsInThreads")

Turn = Callable[[], AbstractAsyncContextManager[object]]
"""Waits for a turn, where several stores share the processors, and holds it."""


@dataclass(frozen=True, slots=True)
class Turns:
    """The queues of threads: a grep takes milliseconds, and never waits behind searches."""

    grep: Turn = nullcontext
    search: Turn = nullcontext


class RunsInThreads(Protocol):
    """The base of classes with blocking methods."""

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
        """Run a scan in a thread: RE2 releases the interpreter's lock.

        The work gets a function that says whether it was cancelled. A cancelled call returns at
        once, and its work stops as soon as it asks.
        """
        async with self._turns.grep():
            return await _abandonable(work, self._scans)

    async def rank(self, work: Callable[[Callable[[], bool]], T]) -> T:
        """Rank a little text in a thread, as ``grep`` runs a scan."""
        async with self._turns.search():
            return await _abandonable(work, self._searches)

    async def search(self, job: Job) -> SearchResult:
        """Run a search in a process, which a cancelled call kills."""
        # Who waits here holds no process: each would start one of its own.
        async with self._turns.search(), self._processes:
            child = take(job.limits)
            try:
                result = await to_thread.run_sync(
                    child.ask, job, limiter=CapacityLimiter(1), abandon_on_cancel=True
                )
            except FetchstashError:
                give_back(child)
                raise
            except BaseException:
                child.end()
                raise
            give_back(child)
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
