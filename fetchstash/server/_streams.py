"""Lines over stdin and stdout. Imports no SDK: the gateway starts before it is there.

Each read takes all that the host has written, and each write all that waits. A thread of its own
for each line, as in the SDK's transport, gives the interpreter away several times for each message:
beside threads that are busy that is 5 ms each time (sys.setswitchinterval), and requests that come
faster than that wait in line.
"""

import ctypes
import os
import sys
from collections.abc import AsyncGenerator

import anyio
import anyio.to_thread

_READ_BYTES = 2**16
_PR_SET_DUMPABLE = 4


def claim_streams() -> tuple[int, int]:
    """Return new descriptors of stdin and stdout.

    From now on stdin is empty, and what else is written to stdout goes to stderr: only JSON-RPC may
    reach the host. Both stay open until the process ends: a thread may still be reading.
    """
    streams = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return streams


async def read_lines(descriptor: int) -> AsyncGenerator[bytes]:
    """Yield the lines that are read, without their ends."""
    # The thread that reads waits for ever, so it takes no place among the others.
    limiter, line = anyio.CapacityLimiter(1), bytearray()
    while data := await anyio.to_thread.run_sync(
        os.read, descriptor, _READ_BYTES, abandon_on_cancel=True, limiter=limiter
    ):
        *ends, rest = data.split(b"\n")
        for end in ends:
            yield bytes(line + end)
            line.clear()
        line += rest
    if line:
        yield bytes(line)


class LineWriter:
    """Writes lines of several tasks, in the order of their calls."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._unwritten: list[bytes] = []
        self._lock = anyio.Lock()
        self._limiter = anyio.CapacityLimiter(1)

    async def write(self, *lines: bytes) -> None:
        """Write lines, and return when they are written. Raises OSError."""
        self._unwritten += lines
        async with self._lock:
            data = b"".join(self._unwritten)  # nothing where the task before took ours along
            self._unwritten.clear()
            if data:
                await anyio.to_thread.run_sync(self._write_all, data, limiter=self._limiter)

    def _write_all(self, data: bytes) -> None:
        left = memoryview(data)
        while left:
            left = left[os.write(self._descriptor, left) :]


def hide_memory() -> None:
    """Keep other processes of this user from tracing this one (PR_SET_DUMPABLE, prctl(2)).

    On Linux alone; then /proc hides its environment, its memory and its descriptors, too.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
