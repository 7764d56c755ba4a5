"""End child processes, make and remove the files that they share, and count processors."""

import asyncio
import math
import os
import secrets
import signal
import sys
import tempfile
from asyncio import SubprocessTransport
from asyncio.subprocess import Process
from contextlib import suppress
from pathlib import Path

GONE_SECONDS = 5
"""A killed process that is there for longer hangs in the kernel; nothing waits for that."""

_CPU_MAX = Path("/sys/fs/cgroup/cpu.max")


def kill(process: Process) -> None:
    """Kill a process and close its pipes; ``is_gone`` waits for it.

    ``Process.wait`` returns after the end of all pipes (base_subprocess.py in CPython 3.11 to
    3.14). A stdout that is paused, because too much of it was not read, or that a child of the
    process holds, never ends; so it is closed here.
    """
    if process.returncode is None:
        with suppress(ProcessLookupError):
            if sys.platform == "win32":
                process.kill()
            else:
                # Process.kill first reaps one that has ended (bpo-38630), before the loop does,
                # which warns then.
                os.kill(process.pid, signal.SIGKILL)
    # Process has no public way to its transport. Closing all of that would reap it, too.
    transport: SubprocessTransport = getattr(process, "_transport")  # noqa: B009 - private
    for descriptor in (0, 1):
        if pipe := transport.get_pipe_transport(descriptor):
            pipe.close()


async def is_gone(process: Process) -> bool:
    """Wait until a killed process has ended; return whether it did."""
    with suppress(TimeoutError):
        async with asyncio.timeout(GONE_SECONDS):
            await process.wait()
            return True
    return False


def new_file(folder: Path, prefix: str) -> Path:
    """Make an empty file, 0600, under a new name.

    Call it on the event loop: a thread would finish after its task was cancelled, and leave the
    file.
    """
    descriptor, name = tempfile.mkstemp(prefix=prefix, dir=folder)
    os.close(descriptor)
    return Path(name)


def remove_tree(folder: Path) -> None:
    """Remove a folder with all that is in it, as far as the system lets this process.

    Folders are moved up before they are emptied: they may be nested deeper than a path or Python's
    stack reaches, and ``shutil.rmtree`` fails there.
    """
    prefix = secrets.token_hex(8)
    folders = [folder]
    for current in folders:  # the list grows on the way
        with suppress(OSError):
            if not os.access(current, os.R_OK | os.W_OK | os.X_OK):
                current.chmod(0o700)
            with os.scandir(current) as entries:
                for entry in entries:
                    with suppress(OSError):
                        if not entry.is_dir(follow_symlinks=False):
                            Path(entry).unlink()
                        else:
                            folders.append(folder / f"{prefix}{len(folders)}")
                            Path(entry).rename(folders[-1])
    for current in reversed(folders):
        with suppress(OSError):
            current.rmdir()


def processors(cpu_max: Path = _CPU_MAX) -> int:
    """Return the processors of this process, at least 1: a container has fewer than its machine.

    ``cpu_max`` holds the time that it may use and of how much, in microseconds, or "max" (Linux,
    Control Group v2, cpu.max).
    """
    # What Python counts is the machine's; 3.13 has os.process_cpu_count.
    own = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    with suppress(OSError, ValueError):
        used, period = cpu_max.read_text(encoding="ascii").split()
        if used != "max":
            own = min(own, math.ceil(int(used) / max(int(period), 1)))
    return max(own, 1)
