"""The processes below this one, on Linux: what a host that was killed leaves behind."""

import ctypes
import os
import signal
import time
from contextlib import suppress
from pathlib import Path

_PR_SET_CHILD_SUBREAPER = 36


def adopt_orphans() -> None:
    """Become the parent of what our descendants leave behind (PR_SET_CHILD_SUBREAPER, prctl(2))."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def descendants() -> dict[int, str]:
    """Return the processes below this one, each with its command line; zombies are reaped."""
    parents: dict[int, int] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            state, parent = (folder / "stat").read_text().rpartition(")")[2].split()[:2]
            if state != "Z":
                parents[int(folder.name)] = int(parent)
            elif int(parent) == os.getpid():
                with suppress(ChildProcessError):
                    os.waitpid(int(folder.name), os.WNOHANG)
    below: dict[int, str] = {}
    rising = {os.getpid()}
    while rising:
        rising = {child for child, parent in parents.items() if parent in rising}
        for child in rising:
            with suppress(OSError):
                line = (Path("/proc") / str(child) / "cmdline").read_bytes()
                below[child] = line.replace(b"\0", b" ").decode("utf-8", "replace")
    return below


def kill_those_of(folder: Path) -> None:
    """Kill at once the processes whose programs are in a folder, as the system does."""
    for child, line in descendants().items():
        if str(folder) in line:
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)


def left_after(seconds: float) -> dict[int, str]:
    """Return what still runs after some seconds, {} as soon as nothing does."""
    end = time.monotonic() + seconds
    while (left := descendants()) and time.monotonic() < end:
        time.sleep(0.1)
    return left
