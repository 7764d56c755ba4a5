"""Ranking and indexing in processes of their own: they would take the interpreter from the loop.

A job is data that is pickled to a process over its stdin; its result comes back over stdout. A
search that is cancelled is killed with its process, so nothing in a job rests for others. A process
stays for the next job, of any store, with what it has opened. It ends when it was idle for a while,
when the program does, and when a store that it has open is closed. Between two jobs it goes on with
the index of its last one (_search.py).
"""

import os
import pickle
import signal
import subprocess
import sys
from collections import OrderedDict
from collections.abc import Callable, Hashable
from contextlib import suppress
from threading import Lock, Timer, enumerate as threads
from typing import Any, Protocol

from fetchstash.errors import FetchstashError, StoreError
from fetchstash.store._contract import SearchResult
from fetchstash.store._disk import translate_errors
from fetchstash.store._search import INDEXING
from fetchstash.system.processes import processors

LITTLE = 256 * 2**10
"""Bytes of text that are ranked in a thread: in less time than a process takes to start."""

NICENESS = 3
"""Of the processes: the loop comes first, and a search still gets a third of a busy processor."""

_IDLE_SECONDS = 20
_MOST_OPEN = 8
_COMMAND = "from fetchstash.store._search_pool import main; main()"
_NO_WINDOW: int = getattr(subprocess, "CREATE_NO_WINDOW", 0)


class Job(Protocol):
    """A search as data. ``key`` names what it reads, which ``open`` opens in another process."""

    @property
    def key(self) -> Hashable:
        """The same for all jobs that read what this one opens."""
        ...

    def open(self) -> Any:
        """Open what the job reads."""
        ...

    def run(self, opened: Any, cancelled: Callable[[], bool]) -> SearchResult:
        """Search. Raises FetchstashError."""
        ...


class Child:
    """A process that does one job at a time."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = Lock()
        self._is_ended = False
        self.keys: set[Hashable] = set()

    def ask(self, job: Job) -> SearchResult:
        """Do a job. Blocks until it is done, or ``end`` is called. Raises FetchstashError."""
        self.keys.add(job.key)
        while True:
            is_new = self._process is None
            try:
                process = self._started()
                assert process.stdin
                assert process.stdout
                pickle.dump(job, process.stdin)
                process.stdin.flush()
                answer: SearchResult | FetchstashError = pickle.load(process.stdout)  # noqa: S301 - our own
            except (OSError, EOFError, pickle.UnpicklingError):
                self._reap()
                if self._is_ended or is_new:
                    what = "The search ended before its result."
                    raise StoreError(what, "Try again.") from None
                continue  # it was idle for too long just now
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


def take(key: Hashable) -> Child:
    """Return an idle process for a job: one that has open what the job reads, if there is one."""
    with _lock:
        for number, child in enumerate(_idle):
            if key in child.keys:
                return _idle.pop(number)
        return _idle.pop() if _idle else Child()


def give_back(child: Child) -> None:
    """Keep a process for the next job. There is one for each processor at most, or two."""
    with _lock:
        _idle.append(child)
        surplus = _idle.pop(0) if len(_idle) > max(processors(), 2) else None
    if surplus:
        surplus.close()


def close(key: Hashable) -> None:
    """End the processes that have something open: its folder may be gone next."""
    with _lock:
        closed = [child for child in _idle if key in child.keys]
        _idle[:] = [child for child in _idle if child not in closed]
    for child in closed:
        child.close()


def _leave() -> None:
    """End this process when what it indexes is indexed."""
    for thread in threads():
        if thread.name == INDEXING:
            thread.join()
    os._exit(0)


def main() -> None:
    """Do jobs until stdin ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to all; the server ends us
    if sys.platform != "win32":
        with suppress(OSError):
            os.nice(NICENESS)
    opened: OrderedDict[Hashable, Any] = OrderedDict()
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
        try:
            with translate_errors():
                opened[job.key] = opened.pop(job.key, None) or job.open()
                answer = job.run(opened[job.key], lambda: False)
        except FetchstashError as error:
            answer = error
        if len(opened) > _MOST_OPEN:
            opened.popitem(last=False)
        pickle.dump(answer, sys.stdout.buffer)
        sys.stdout.buffer.flush()
