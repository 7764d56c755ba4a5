"""End child processes that asyncio started."""

import asyncio
from asyncio import SubprocessTransport
from asyncio.subprocess import Process
from contextlib import suppress

GONE_SECONDS = 5
"""A killed process that is there for longer hangs in the kernel; nothing waits for that."""


def kill(process: Process) -> None:
    """Kill a process and close its pipes; ``is_gone`` waits for it.

    ``Process.wait`` returns after the end of all pipes (base_subprocess.py in CPython 3.11 to
    3.14). A stdout that is paused, because too much of it was not read, or that a child of the
    process holds, never ends; so it is closed here.
    """
    if process.returncode is None:
        with suppress(ProcessLookupError):
            process.kill()
    # Process has no public way to its transport. Closing all of that would reap the process
    # before the loop does, which warns then.
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
