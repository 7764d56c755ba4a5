"""Confine this worker: whatever its libraries do, it can read its job and nothing else.

It may read Python, its packages and the system's libraries, and what is in its room: the folder
that the server made for it, with the job's document in ``in`` and room for files in ``out``. It
cannot reach the network, start programs, touch another process, or outlive the server. What the
system lacks is left out and reported, and `fetchstash doctor` prints it. On Windows, and in part on
macOS, only time limits a job.
"""

import json
import os
import shutil
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2]

# Shared libraries and data that libraries read. Nothing here is a user's.
_SYSTEM = (
    "/lib",
    "/lib64",
    "/usr/lib",
    "/usr/lib64",
    "/usr/local/lib",
    "/usr/share",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/fonts",
    "/etc/localtime",
    "/etc/mime.types",
    "/dev/urandom",
    "/dev/random",
    "/dev/zero",
    "/sys/devices/system/cpu",
)


_LACKS = (
    "a reader may do what root may",
    "a reader may read any file of this user: no Landlock",
    "a reader may use the network: no seccomp",
)

_PROFILE = """(version 1)
(deny default)
(allow process-exec (literal {python}) {folders_of_python})
(allow sysctl-read)
(allow file-read-metadata)
(allow file-read* {folders})
(allow file-read* (subpath {room}))
(allow file-write* (subpath {out}))
(allow file-read* file-write-data (literal "/dev/null"))
(allow signal (target self))
(deny file-link)
(deny file-write-create (vnode-type SYMLINK))
"""
# Where macOS has its own libraries and the time zones.
_MACOS_SYSTEM = ("/System", "/usr/lib", "/usr/share", "/private/var/db/timezone", "/dev/urandom")

MAX_FILE_BYTES = 2 * 2**30
MAX_OPEN_FILES = 256
MORE_THREADS = 1_000
"""Than the system has now; decoders of pictures and models start some, of a machine's 100,000."""
JOBS_OF_CPU = 4
"""A worker has so many times the CPU time of one job for its life: a hard limit cannot be raised
again for the next job (setrlimit(2)), and one that was taken over raises a soft one."""
# The server ends a job that takes too long. If it is gone, the worker ends itself this much later.
ORPHAN_SECONDS = 5


def confine(room: Path, readable: Iterable[Path]) -> list[str]:
    """Confine this process to ``room`` and what is ``readable``; return what could not be done.

    Each entry is a sentence without its full stop.
    """
    sys.dont_write_bytecode = True
    tempfile.tempdir = str(room / "out")
    if sys.platform == "win32":
        from fetchstash.handlers._worker import _windows  # noqa: PLC0415 - Windows alone has it

        return _windows.missing(sys.argv)
    if sys.platform != "linux":
        return missing()  # macOS: the server started this process in a sandbox (_process)
    from fetchstash.handlers._worker import _linux  # noqa: PLC0415 - Linux alone

    rules = [(path, _linux.READ) for path in (*python_folders(), *readable, room / "in")]
    rules += [(Path("/dev/null"), _linux.CHANGE), (room / "out", _linux.CHANGE)]
    steps = _linux.drop_capabilities, lambda: _linux.restrict_files(rules), _linux.restrict_calls
    return list(_failures(zip(_LACKS, steps, strict=True)))


def missing() -> list[str]:
    """Return the features that this system lacks to confine workers, as far as can be seen."""
    if sys.platform == "win32":
        from fetchstash.handlers._worker import _windows  # noqa: PLC0415 - Windows alone has it

        return _windows.missing([_windows.RESTRICTED])
    if sys.platform != "linux":
        has_sandbox = shutil.which("sandbox-exec") is not None
        return [] if has_sandbox else ["a reader may do what this user may: no sandbox-exec"]
    from fetchstash.handlers._worker import _linux  # noqa: PLC0415 - Linux alone

    return list(_failures(zip(_LACKS[1:], (_linux.check_files, _linux.check_calls), strict=True)))


def _failures(steps: Iterable[tuple[str, Callable[[], object]]]) -> Iterator[str]:
    for lack, step in steps:
        try:
            step()
        except OSError as error:
            yield f"{lack} ({error.strerror})"


def python_folders() -> Iterator[Path]:
    """Yield the folders that Python and its packages are imported from, and the system's own."""
    yield from map(Path, _SYSTEM)
    yield PACKAGE
    yield from map(Path, map(sysconfig.get_path, ("stdlib", "platstdlib", "purelib", "platlib")))
    yield from (Path(prefix) / "lib" for prefix in (sys.prefix, sys.base_prefix))
    private = [PACKAGE.parent]
    with suppress(RuntimeError):  # a user without a home, as a container's number has none
        private.append(Path("~").expanduser())
    for entry in map(Path, sys.path):
        folder = entry.resolve()
        # `pip install --target` and PEX leave packages in any folder, each with its record. A
        # project that is installed in place has its root on the path, with all that is in it.
        has_records = any(folder.glob("*.dist-info"))
        is_private = any(path.is_relative_to(folder) for path in private)
        if folder.name in ("site-packages", "dist-packages") or (has_records and not is_private):
            yield folder


def confined_command(room: Path, readable: Iterable[Path]) -> tuple[str, ...]:
    """Return the beginning of the command line that confines a worker to its room, () elsewhere."""
    if sys.platform != "darwin" or shutil.which("sandbox-exec") is None:
        return ()
    return ("sandbox-exec", "-p", profile(room, readable))


def profile(room: Path, readable: Iterable[Path]) -> str:
    """Return the profile of a worker. Later rules go before earlier ones: it makes no links.

    A profile quotes strings as JSON does.
    """
    folder = room.resolve()  # rules are about real paths, and /tmp is a link
    # A framework's python starts another program of its own folder.
    programs = (sys.base_prefix, os.path.realpath(sys.executable))
    return _PROFILE.format(
        python=json.dumps(sys.executable),
        folders_of_python=_subpaths(programs),
        folders=_subpaths((*map(str, python_folders()), *_MACOS_SYSTEM, *map(str, readable))),
        room=json.dumps(str(folder)),
        out=json.dumps(str(folder / "out")),
    )


def _subpaths(paths: Iterable[str]) -> str:
    real = dict.fromkeys(name for path in paths for name in (path, os.path.realpath(path)))
    return " ".join(f"(subpath {json.dumps(path)})" for path in real)


if sys.platform == "win32":

    def limit_process() -> None:
        """Do nothing: Windows has no such limits."""

    @contextmanager
    def job_limits(memory_mb: int, cpu_seconds: float, wall_seconds: float) -> Generator[None]:
        """Do nothing."""
        del memory_mb, cpu_seconds, wall_seconds
        yield

    def is_worn_out() -> bool:
        """Return False: only time is limited."""
        return False

else:
    import math
    import resource
    import signal

    def limit_process() -> None:
        """Allow this process no core dumps, few open files of a bounded size, and some threads."""
        _limit(resource.RLIMIT_CORE, 0, 0)
        _limit(resource.RLIMIT_FSIZE, MAX_FILE_BYTES, MAX_FILE_BYTES)
        _limit(resource.RLIMIT_NOFILE, MAX_OPEN_FILES, MAX_OPEN_FILES)
        _limit(resource.RLIMIT_MEMLOCK, 0, 0)
        with suppress(OSError, ValueError, IndexError):  # proc_loadavg(5); it holds for users alone
            threads = int(Path("/proc/loadavg").read_text().split()[3].partition("/")[2])
            _limit(resource.RLIMIT_NPROC, threads + MORE_THREADS, threads + MORE_THREADS)

    @contextmanager
    def job_limits(memory_mb: int, cpu_seconds: float, wall_seconds: float) -> Generator[None]:
        """Give a job its address space in MiB, its seconds of CPU from now on, and its time.

        The limit on memory is for good: all jobs of a worker have the same. Of CPU the soft limit
        moves, and the hard one of the first job stays. The kernel ends the process with SIGXCPU,
        SIGKILL or SIGALRM.
        """
        used = _cpu_seconds()
        life = math.ceil(used + JOBS_OF_CPU * cpu_seconds)
        _limit(resource.RLIMIT_CPU, math.ceil(used + cpu_seconds), life)
        _limit(resource.RLIMIT_AS, memory_mb * 2**20, memory_mb * 2**20)
        signal.alarm(math.ceil(wall_seconds) + ORPHAN_SECONDS)
        try:
            yield
        finally:
            signal.alarm(0)

    def is_worn_out() -> bool:
        """Return whether too little CPU time is left for another job."""
        hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
        return hard != resource.RLIM_INFINITY and hard - _cpu_seconds() < hard / JOBS_OF_CPU

    def _cpu_seconds() -> float:
        used = resource.getrusage(resource.RUSAGE_SELF)
        return used.ru_utime + used.ru_stime

    def _limit(kind: int, soft: int, hard: int) -> None:
        try:
            top = resource.getrlimit(kind)[1]
            hard = hard if top == resource.RLIM_INFINITY else min(hard, top)
            resource.setrlimit(kind, (min(soft, hard), hard))
        except (OSError, ValueError):  # macOS refuses some of them; the wall limit remains
            return
