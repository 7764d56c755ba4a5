"""A service in several processes over one socket.

The parent binds the socket and serves nothing: it starts the workers, puts another in the place of
one that ends, hands each the signals, and adds up their metrics. A worker is the whole service, as
a replica is: what they share is in the store, or goes through the pipe that each has to the parent.

    parent → worker   the job, once; ``end`` (a signal); ``cancel`` (from another worker);
                      ``measure``
    worker → parent   ``ready``, or ``failed`` with the error; ``cancel`` of a call that runs
                      elsewhere; ``measured``

A worker heeds no signal: a terminal and systemd send theirs to every process, and the second one
ends a service at once. When the parent is killed its pipes end, and so do the workers, at once.
"""

import asyncio
import logging
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator, Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection, Pipe
from typing import Any

import anyio

from fetchstash.config import Settings
from fetchstash.errors import BadArgument, FetchstashError, Internal
from fetchstash.service._exports import serving_metrics
from fetchstash.store import store_folder
from fetchstash.system.processes import processors

_COMMAND = "from fetchstash.service._workers import main; main()"
_BRIEF_SECONDS = 30
"""A worker that ends sooner has failed to serve."""
_MOST_FAILURES = 5
"""After so many in a row the service ends: whoever started it sees why, and may start it anew."""
_MEASURE_SECONDS = 5.0

_log = logging.getLogger("fetchstash.service")

Message = tuple[str, Any]


@dataclass(frozen=True, slots=True)
class Job:
    """The arguments of a worker process."""

    settings: Settings
    host: str
    number: int
    workers: int


def worker_count(settings: Settings) -> int:
    """Return how many processes serve. Raises BadArgument where there cannot be several."""
    asked, store = settings.http.workers, settings.store
    alone = ""
    if sys.platform == "win32":
        alone = "Windows hands a socket to one process"
    elif store_folder(store) is None and not store.catalog:
        alone = "a store in memory is that of one process"
    if alone and asked > 1:
        raise BadArgument(f"{asked} workers cannot serve: {alone}.", "Set http.workers to 1.")
    return 1 if alone else asked or processors()


class Channel:
    """One end of the pipe between the parent and a worker, read by the event loop."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def listen(self, on_message: Callable[[str, Any], None], on_end: Callable[[], None]) -> None:
        """Call ``on_message`` for each message, and ``on_end`` when the other side has ended."""
        loop = asyncio.get_running_loop()

        def read() -> None:
            try:
                while self._connection.poll():
                    on_message(*self._connection.recv())
            except (EOFError, OSError):
                self.close()
                on_end()

        loop.add_reader(self._connection.fileno(), read)

    def send(self, kind: str, value: Any = None) -> None:
        """Send a message. Messages to an ended process are dropped."""
        with suppress(OSError, ValueError):
            self._connection.send((kind, value))

    def close(self) -> None:
        """Close this end."""
        if not self._connection.closed:
            asyncio.get_running_loop().remove_reader(self._connection.fileno())
            self._connection.close()


@dataclass(slots=True)
class _Worker:
    """The parent's record of a worker. ``measured`` receives its metrics when it reports."""

    channel: Channel
    measured: "asyncio.Future[str] | None" = None


class Parent:
    """Keeps ``count`` workers running until it is stopped."""

    def __init__(self, settings: Settings, host: str, opened: socket.socket, count: int) -> None:
        self._settings = settings
        self._host = host
        self._opened = opened
        self._count = count
        self._workers: dict[int, _Worker] = {}
        self._restarts = 0
        self._is_ending = False
        self._failure: FetchstashError | None = None
        self._ready: set[int] = set()
        self._all_ready = anyio.Event()

    async def run(self, announce: Callable[[], None]) -> None:
        """Serve until a signal. Raises Internal where workers end again and again."""
        with self._opened:
            async with (
                serving_metrics(self._settings.http, self.measure),
                anyio.create_task_group() as tasks,
            ):
                tasks.start_soon(self._pass_signals_on)
                tasks.start_soon(self._announce, announce)
                async with anyio.create_task_group() as keeping:
                    for number in range(self._count):
                        keeping.start_soon(self._keep, number)
                tasks.cancel_scope.cancel()
        if self._failure:
            raise self._failure

    async def _keep(self, number: int) -> None:
        """Run a worker, and restart it each time it ends, until the service does."""
        failures = 0
        while not self._is_ending:
            began = time.monotonic()
            code = await self._run(number)
            if self._is_ending:
                return
            failures = failures + 1 if time.monotonic() - began < _BRIEF_SECONDS else 1
            self._restarts += 1
            _log.error("Worker %d ended with %s. Another takes its place.", number, code)
            if failures >= _MOST_FAILURES:
                what = f"Worker {number} ended {failures} times within seconds."
                self._failure = Internal(what, "The log has what it said.")
                self._end()
            await anyio.sleep(0.1 * 2**failures)

    async def _run(self, number: int) -> int:
        """Run a worker to its end; return its exit code."""
        ours, theirs = Pipe()
        descriptors = theirs.fileno(), self._opened.fileno()
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-c", _COMMAND, *map(str, descriptors)),
            stdin=asyncio.subprocess.DEVNULL,
            pass_fds=descriptors,
        )
        theirs.close()
        worker = self._workers[number] = _Worker(Channel(ours))
        worker.channel.listen(partial(self._take, number), lambda: None)
        worker.channel.send("job", Job(self._settings, self._host, number, self._count))
        if self._is_ending:
            worker.channel.send("end")
        try:
            return await process.wait()
        finally:
            self._workers.pop(number)
            self._ready.discard(number)
            worker.channel.close()

    def _take(self, number: int, kind: str, value: Any) -> None:
        """Handle a message of a worker."""
        if kind == "ready":
            self._ready.add(number)
            if len(self._ready) == self._count:
                self._all_ready.set()
        elif kind == "cancel":
            self._tell("cancel", value, but=number)
        elif kind == "failed":
            self._failure = value
            self._end()
        elif kind == "measured":
            measured = self._workers[number].measured
            if measured and not measured.done():
                measured.set_result(value)

    def _tell(self, kind: str, value: Any = None, but: int = -1) -> None:
        for number, worker in self._workers.items():
            if number != but:
                worker.channel.send(kind, value)

    def _end(self) -> None:
        self._is_ending = True
        self._tell("end")

    async def _pass_signals_on(self) -> None:
        with end_signals() as signals:
            async for _ in signals:
                self._end()

    async def _announce(self, announce: Callable[[], None]) -> None:
        await self._all_ready.wait()
        announce()

    async def measure(self) -> str:
        """Return the measurements of all workers as one text for Prometheus."""
        loop, answers = asyncio.get_running_loop(), dict[int, str]()
        asked = {
            number: worker for number, worker in self._workers.items() if number in self._ready
        }
        for worker in asked.values():
            if worker.measured is None or worker.measured.done():
                worker.measured = loop.create_future()
                worker.channel.send("measure")
        for number, worker in asked.items():
            with suppress(TimeoutError):  # it ended meanwhile, or hangs
                async with asyncio.timeout(_MEASURE_SECONDS):
                    assert worker.measured
                    answers[number] = await asyncio.shield(worker.measured)
        return merged(answers, {"running": len(self._workers), "restarts": self._restarts})


def merged(texts: Mapping[int, str], counts: Mapping[str, int]) -> str:
    """Join Prometheus' texts: each sample gets the label ``worker``, each name one head."""
    families: dict[str, tuple[list[str], list[str]]] = {}
    for number, text in sorted(texts.items()):
        samples = list[str]()
        for line in text.splitlines():
            if line.startswith("# "):
                heads, samples = families.setdefault(line.split(" ")[2], ([], []))
                if line not in heads:
                    heads.append(line)
                continue
            name, brace, rest = line.partition("{")
            if brace:
                samples.append(f'{name}{{worker="{number}",{rest}')
            else:
                name, _, value = line.partition(" ")
                samples.append(f'{name}{{worker="{number}"}} {value}')
    lines = [line for heads, samples in families.values() for line in (*heads, *samples)]
    for name, kind in (("running", "gauge"), ("restarts", "counter")):
        whole = f"fetchstash_service_workers_{name}" + "_total" * (kind == "counter")
        lines += [f"# TYPE {whole} {kind}", f"{whole} {counts[name]}"]
    return "\n".join(lines) + "\n"


@contextmanager
def end_signals() -> Generator[AsyncIterator[object]]:
    """Yield the signals that ask the service to end, as they come; none on Windows."""
    if sys.platform == "win32":
        yield _never()
        return
    ends = [signal.SIGTERM, signal.SIGINT]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # as nohup has it
        ends.append(signal.SIGHUP)
    with anyio.open_signal_receiver(*ends) as signals:
        yield signals


async def _never() -> AsyncIterator[object]:
    await anyio.sleep_forever()
    yield None


def main() -> None:
    """Serve as a worker: the arguments are the descriptors of the pipe and of the socket."""
    from fetchstash.service._serve import serve_as_worker  # noqa: PLC0415 - it imports this module

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    pipe, opened = map(int, sys.argv[1:])
    connection: Connection = Connection(pipe)
    try:
        _, job = connection.recv()
    except EOFError:  # the service ended before this worker began
        return
    anyio.run(serve_as_worker, job, Channel(connection), socket.socket(fileno=opened))
