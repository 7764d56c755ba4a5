"""One worker process as the server sees it: started, given jobs, killed if it breaks a limit."""

import asyncio
import contextlib
import logging
import os
import signal
import subprocess
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Callable
from typing import Any

from fetchstash.errors import Internal
from fetchstash.handlers._limits import ExtractLimits
from fetchstash.handlers._worker import _frames
from fetchstash.handlers._worker._confine import missing
from fetchstash.handlers._worker._macos import confined_command
from fetchstash.handlers._worker._room import KeptOpen, Room
from fetchstash.system import children, telemetry
from fetchstash.system.folders import remove_tree
from fetchstash.text.hygiene import clean_line

COMMAND = (sys.executable, "-P", "-m", "fetchstash.handlers._worker._child")
START_SECONDS = 30
MAX_JOBS = 200
# After the end of the pipe the exit status is a moment away; killing at once would lose it.
EXIT_GRACE_SECONDS = 1

# All that a worker needs to find its libraries. The rest may hold keys, and stays with the server.
ENVIRONMENT = (
    "PATH", "PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH",
    "SYSTEMROOT", "TEMP", "TMP", "TMPDIR",
)  # fmt: skip

# A host without a console would see one open for each worker on Windows.
NO_WINDOW: int = getattr(subprocess, "CREATE_NO_WINDOW", 0)

_log = logging.getLogger("fetchstash.handlers")

OnReport = Callable[[dict[str, Any]], None]


def warn_unconfined(limits: ExtractLimits) -> None:
    """Say in the log what this system lacks to confine the workers, in one line; if anything."""
    if lacks := "; ".join(missing()):
        if limits.confine == "required":
            _log.warning("No document is read: %s, and extract.confine is required.", lacks)
        else:
            _log.warning("Workers are not confined: %s. See extract.confine.", lacks)


class WorkerDied(Exception):
    """The process ended before its job was done. The message is the reason, for people."""


class Worker:
    """A running worker process. It does one job at a time.

    ``sound`` is what its last frame said: that nothing is in doubt after the job.
    """

    def __init__(self, process: Process, room: Room, command: tuple[str, ...]) -> None:
        self._process = process
        self._command = command
        self.pid = process.pid
        self.room = room
        self.jobs = 0
        self.sound = True
        self.unconfined: list[str] = []

    @classmethod
    async def start(cls, room: Room, niceness: int = 0, plugins: tuple[str, ...] = ()) -> "Worker":
        """Start a process that is confined to ``room``; ``ready`` waits for it.

        It may read the packages ``plugins`` where they are installed in place. ``niceness`` is how
        far it steps back behind other processes (POSIX, nice). Raises Internal. The worker removes
        the room.
        """
        environment = {name: os.environ[name] for name in ENVIRONMENT if name in os.environ}
        before = (*confined_command(room), *COMMAND, str(room.path))
        after = (",".join(plugins), *map(str, room.readable))
        try:
            process = await asyncio.create_subprocess_exec(
                *before,
                str(os.getpid()),
                *after,
                stdin=PIPE,
                stdout=PIPE,
                stderr=DEVNULL,
                env=environment,
                creationflags=NO_WINDOW,
            )
        except BaseException as error:
            room.remove()
            if not isinstance(error, OSError):
                raise
            next_step = "Free memory or processes, and try again."
            raise Internal("A worker process could not be started.", next_step) from error
        worker = cls(process, room, (*before, "0", *after))
        if niceness and sys.platform != "win32":
            with contextlib.suppress(OSError):  # it has ended already
                os.setpriority(os.PRIO_PROCESS, process.pid, niceness)
        return worker

    async def ready(self) -> None:
        """Wait until it can take a job. Raises Internal; after any exception it is ended."""
        try:
            async with asyncio.timeout(START_SECONDS):
                ready = await self._receive()
        except (_frames.ProtocolError, EOFError, TimeoutError) as error:
            self.end()
            next_step = f"Run `{' '.join(self._command)}` to see why."
            raise Internal("A worker process did not start.", next_step) from error
        except BaseException:
            self.end()
            raise
        self.unconfined = [clean_line(str(line)[:200]) for line in ready.get("missing", ())]

    async def job(
        self, request: dict[str, Any], wall_seconds: float, on_report: OnReport
    ) -> dict[str, Any]:
        """Send ``request``, call ``on_report`` for each report, and return the last frame.

        The job is about what the room was lent. Raises WorkerDied, and what ``on_report`` raises.
        After any exception, also a cancellation, the process is dead.
        """
        inside = {"source": str(self.room.document or ""), "text": str(self.room.text or "")}
        self.jobs += 1
        self.sound = False  # until it says otherwise
        try:
            try:
                async with asyncio.timeout(wall_seconds):
                    return await self._talk(request | inside, on_report)
            except TimeoutError:
                unit = "second" if wall_seconds == 1 else "seconds"
                raise _died("time", f"it took longer than {wall_seconds:g} {unit}") from None
            except _frames.ProtocolError:
                raise _died("protocol", "its reader sent what is no answer") from None
            except (EOFError, OSError):
                raise _died(*await self._cause_of_death()) from None
        except BaseException:
            self.kill()
            raise

    async def take_text(self, size: int) -> None:
        """Take the text of a job that says it is done: ``size`` bytes. Raises as ``job`` does."""
        try:
            await asyncio.to_thread(self.room.take_text, size)
        except KeptOpen:
            self.kill()
            raise _died("protocol", "its reader kept its text open") from None
        except OSError:
            self.kill()
            raise _died("protocol", "its reader sent what is no answer") from None

    @property
    def alive(self) -> bool:
        """Whether the process is still there."""
        return self._process.returncode is None

    @property
    def fit(self) -> bool:
        """Whether it may take another job: its last one ended well, and leaks are still small."""
        return self.alive and self.sound and self.jobs < MAX_JOBS

    def kill(self) -> None:
        """End the process at once; ``gone`` waits for it. Its files stay."""
        self.sound = False  # it looks alive until it is gone, and must not get another job
        children.kill(self._process)

    def end(self) -> None:
        """End the process at once and remove its room."""
        self.kill()
        self.room.remove()

    async def gone(self, size: int | None = None) -> bool:
        """Wait until the killed process has ended, and remove its room; return whether it has.

        Take ``size`` bytes of its text before.
        """
        is_gone = await children.is_gone(self._process)  # until then it may still write

        def clear_up() -> None:
            if is_gone and size is not None:
                with contextlib.suppress(KeptOpen, OSError):  # what is missing is no text
                    self.room.take_text(size)
            remove_tree(self.room.path)

        await asyncio.to_thread(clear_up)
        return is_gone

    async def _talk(self, request: dict[str, Any], on_report: OnReport) -> dict[str, Any]:
        assert self._process.stdin is not None
        self._process.stdin.write(_frames.encode(request))
        await self._process.stdin.drain()
        while "sound" not in (frame := await self._receive()):
            on_report(frame)
        self.sound = frame["sound"] is True
        return frame

    async def _receive(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        prefix = await self._process.stdout.readexactly(_frames.LENGTH_BYTES)
        return _frames.decode(await self._process.stdout.readexactly(_frames.body_length(prefix)))

    async def _cause_of_death(self) -> tuple[str, str]:
        try:
            async with asyncio.timeout(EXIT_GRACE_SECONDS):
                status = await self._process.wait()
        except TimeoutError:
            return "silence", "its reader stopped answering"
        return cause(status)


def cause(status: int) -> tuple[str, str]:
    """Return why a process ended with ``status``, as a code and in words; below 0 is a signal."""
    if status >= 0:
        return "exit", f"its reader ended unexpectedly (exit status {status})"
    if hasattr(signal, "SIGXCPU") and status == -signal.SIGXCPU:
        return "cpu", "it took more CPU time than extract.cpu_seconds allows"
    return "crash", f"its reader crashed ({signal.Signals(-status).name})"


def _died(reason: str, words: str) -> WorkerDied:
    telemetry.count("worker_kills", reason=reason)
    return WorkerDied(words)
