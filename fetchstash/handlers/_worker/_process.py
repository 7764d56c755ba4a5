"""One worker process as the server sees it: started, given jobs, killed if it breaks a limit.

Its room is the folder that it is confined to, made and cleared by the server.
"""

import asyncio
import contextlib
import errno
import logging
import os
import signal
import stat
import subprocess
import sys
import tempfile
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from threading import Thread
from typing import Any, TypeVar

from fetchstash.errors import Internal
from fetchstash.handlers._limits import ExtractLimits
from fetchstash.handlers._worker import _protocol as protocol
from fetchstash.handlers._worker._confine import confined_command, missing
from fetchstash.system import SMALL_BYTES, processes, telemetry
from fetchstash.system.processes import remove_tree
from fetchstash.text import counted
from fetchstash.text.hygiene import clean_line

MAX_LEFT = 10
"""Entries of its folder that a job may leave. A worker that leaves more is ended."""
_PIECE_BYTES = 2**20

COMMAND = (sys.executable, "-P", "-m", "fetchstash.handlers._worker._child")
START_SECONDS = 30
MAX_JOBS = 1_000
# After the end of the pipe the exit status is a moment away; killing at once would lose it.
EXIT_GRACE_SECONDS = 1

# All that a worker needs to find its libraries. The rest may hold keys, and stays with the server.
ENVIRONMENT = (
    "PATH",
    "PYTHONPATH",
    "PYTHONHOME",
    "VIRTUAL_ENV",
    "LD_LIBRARY_PATH",
    "DYLD_LIBRARY_PATH",
    "SYSTEMROOT",
    "TEMP",
    "TMP",
    "TMPDIR",
)
# glibc gives back memory above these at once, and getting it anew takes a third of the time that a
# long text takes, and a tenth of OCR. More than this it does not take (mallopt(3)).
_MALLOC = {"MALLOC_MMAP_THRESHOLD_": str(2**25), "MALLOC_TRIM_THRESHOLD_": str(2**25)}

# A host without a console would see one open for each worker on Windows.
NO_WINDOW: int = getattr(subprocess, "CREATE_NO_WINDOW", 0)

_log = logging.getLogger("fetchstash.handlers")

T = TypeVar("T")
OnReport = Callable[[dict[str, Any]], None]


if sys.platform == "linux":
    import fcntl


class KeptOpen(Exception):
    """A worker could still change the text of a job that it says is done."""


class Room:
    """A private folder with the job's document in ``in`` and what the worker writes in ``out``.

    A document is a hard link where one can be made, so that nothing is copied. Others are named to
    the worker at its start in ``readable`` and are read where they are.
    """

    def __init__(self, folder: Path | None) -> None:
        """Make the room in ``folder``, or in the system's folder for temporary files."""
        self.document: Path | None = None
        self.text: Path | None = None
        self._target = Path()
        self._linked = False
        self.path = Path(tempfile.mkdtemp(prefix="worker-", dir=folder))
        self.readable: tuple[Path, ...] = ()
        self._in, self._out = self.path / "in", self.path / "out"
        self._in.mkdir(0o700)
        self._out.mkdir(0o700)

    def lend(self, source: Path | None, text: Path | None = None) -> bool:
        """Clear the room for a job, and lend it ``source`` to read and ``text`` to write. Blocking.

        ``document`` and ``text`` are then the paths by which the worker knows them. Return False
        for a document that cannot be linked, and for a room that cannot be cleared or in which a
        worker that goes on puts files of its own in the way.
        """
        self.document, self.text = source, None
        try:
            if not self._clear():
                return False
            if source is not None and source not in self.readable:
                self.document = self._in / "document"
                # A link to a symbolic link would lead out of the room.
                os.link(source.resolve(), self.document)
            if text is not None:
                self._lend_text(text)
        except OSError:
            return False
        return True

    def _lend_text(self, target: Path) -> None:
        self._target, self.text = target, self._out / "text"
        # On Windows a worker may only write files that were made in its folder (_windows).
        self._linked = sys.platform != "win32"
        if self._linked:
            try:
                os.link(target, self.text)
            except FileExistsError:
                raise
            except OSError:  # the text is wanted on another file system
                self._linked = False
        if not self._linked:
            self.text.touch(0o600, exist_ok=False)

    def take_text(self, size: int) -> None:
        """Take the text back, of one that was copied ``size`` bytes. Blocking.

        Raises KeptOpen if the worker could still change it, and OSError if there is none.
        """
        assert self.text is not None
        if not self._linked:
            _copy(self.text, self._target, size)
            return
        self.text.unlink(missing_ok=True)
        if self._target.stat().st_nlink != 1:
            raise KeptOpen
        # A read lease is refused while a file is open for writing, or mapped so (fcntl(2),
        # F_SETLEASE). Where the file system has no leases nothing is known.
        if sys.platform == "linux":
            fd = os.open(self._target, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_RDLCK)
                fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_UNLCK)
            except BlockingIOError:
                raise KeptOpen from None
            except OSError:
                return
            finally:
                os.close(fd)

    def _clear(self) -> bool:
        """Remove what earlier jobs left; return whether all of it is gone. Raises OSError."""
        for folder in (self._in, self._out):
            with os.scandir(folder) as entries:
                for entry in islice(entries, MAX_LEFT):
                    path = Path(entry)
                    path.rmdir() if entry.is_dir(follow_symlinks=False) else path.unlink()
                if next(entries, None):
                    return False
        return True

    def remove(self) -> None:
        """Remove the room, in a thread: nothing waits for what a worker left in heaps."""
        Thread(target=remove_tree, args=(self.path,)).start()


def _copy(text: Path, target: Path, size: int) -> None:
    """Copy the first ``size`` bytes of what a worker wrote. Raises OSError for another's file.

    A worker that was taken over may have put a link to another file in its place where the system
    does not forbid that (macOS).
    """
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    fd = os.open(text, flags | getattr(os, "O_BINARY", 0))
    with os.fdopen(fd, "rb") as written:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode) or status.st_nlink != 1:
            raise OSError(errno.EPERM, "the text is a link")
        with target.open("r+b") as file:
            while size > 0 and (data := written.read(min(size, _PIECE_BYTES))):
                size -= file.write(data)


def warn_unconfined(limits: ExtractLimits) -> None:
    """Log in one line what this system lacks to confine the workers, if anything."""
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
        kept = {name: os.environ[name] for name in ENVIRONMENT if name in os.environ}
        before = (*confined_command(room.path, room.readable), *COMMAND, str(room.path))
        after = (",".join(plugins), *map(str, room.readable))
        command = *before, str(os.getpid()), *after
        pipes: dict[str, Any] = {"stdin": PIPE, "stdout": PIPE, "stderr": DEVNULL}
        try:
            process = await asyncio.create_subprocess_exec(
                *command, **pipes, env=kept | _MALLOC, creationflags=NO_WINDOW
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
        except (protocol.ProtocolError, EOFError, TimeoutError) as error:
            self.end()
            next_step = f"Run `{' '.join(self._command)}` to see why."
            raise Internal("A worker process did not start.", next_step) from error
        except BaseException:
            self.end()
            raise
        self.unconfined = [clean_line(str(line)[:200]) for line in ready.get("missing", ())]

    def preload(self) -> None:
        """Let the process load what every text needs while its first document is on its way."""
        assert self._process.stdin is not None
        self._process.stdin.write(protocol.encode({"do": "preload"}))

    async def job(
        self, request: dict[str, Any], wall_seconds: float, on_report: OnReport | None = None
    ) -> dict[str, Any]:
        """Send ``request``, call ``on_report`` for each report, and return the last frame.

        The job is about what the room was lent. Raises WorkerDied, and what ``on_report`` raises.
        After any exception, also a cancellation, the process is dead.
        """
        assert self._process.stdin is not None
        inside = {"source": str(self.room.document or ""), "text": str(self.room.text or "")}
        self.jobs += 1
        self.sound = False  # until it says otherwise
        try:
            try:
                async with asyncio.timeout(wall_seconds):
                    self._process.stdin.write(protocol.encode(request | inside))
                    await self._process.stdin.drain()
                    while "sound" not in (frame := await self._receive()):
                        if on_report:
                            on_report(frame)
                    self.sound = frame["sound"] is True
                    return frame
            except TimeoutError:
                limit = counted(wall_seconds, "second", digits="g")
                raise _died("time", f"it took longer than {limit}") from None
            except protocol.ProtocolError:
                raise _died("protocol", "its reader sent what is no answer") from None
            except (EOFError, OSError):
                raise _died(*await self._cause_of_death()) from None
        except BaseException:
            self.kill()
            raise

    async def take_text(self, size: int, measure: Callable[[], T]) -> T:
        """Take the text of a job that says it is done: ``size`` bytes, and ``measure`` it.

        Raises as ``job`` and ``measure`` do.
        """

        def take() -> T:
            self.room.take_text(size)
            return measure()

        try:
            return take() if size <= SMALL_BYTES else await asyncio.to_thread(take)
        except (KeptOpen, OSError) as error:
            self.kill()
            kept = isinstance(error, KeptOpen)
            what = "kept its text open" if kept else "sent what is no answer"
            raise _died("protocol", f"its reader {what}") from None

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
        processes.kill(self._process)

    def end(self) -> None:
        """End the process at once and remove its room."""
        self.kill()
        self.room.remove()

    async def gone(self, size: int | None = None) -> bool:
        """Wait until the killed process has ended, and remove its room; return whether it has.

        Take ``size`` bytes of its text before.
        """
        is_gone = await processes.is_gone(self._process)  # until then it may still write

        def clear_up() -> None:
            if is_gone and size is not None:
                with contextlib.suppress(KeptOpen, OSError):  # what is missing is no text
                    self.room.take_text(size)
            remove_tree(self.room.path)

        await asyncio.to_thread(clear_up)
        return is_gone

    async def _receive(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        prefix = await self._process.stdout.readexactly(protocol.LENGTH_BYTES)
        return protocol.decode(await self._process.stdout.readexactly(protocol.body_length(prefix)))

    async def _cause_of_death(self) -> tuple[str, str]:
        """Return why the process ended, as a code and in words."""
        try:
            async with asyncio.timeout(EXIT_GRACE_SECONDS):
                status = await self._process.wait()
        except TimeoutError:
            return "silence", "its reader stopped answering"
        if status >= 0:
            return "exit", f"its reader ended unexpectedly (exit status {status})"
        name = signal.Signals(-status).name
        if name == "SIGXCPU":
            return "cpu", "it took more CPU time than extract.cpu_seconds allows"
        return "crash", f"its reader crashed ({name})"


def _died(reason: str, words: str) -> WorkerDied:
    telemetry.count("worker_kills", reason=reason)
    return WorkerDied(words)
