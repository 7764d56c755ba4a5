"""Limits of a worker by the operating system; on Windows, and in part on macOS, only by time."""

import sys
from collections.abc import Generator
from contextlib import contextmanager

MAX_FILE_BYTES = 2 * 2**30
# The server ends a job that takes too long. If it is gone, the worker ends itself this much later.
ORPHAN_SECONDS = 5

if sys.platform == "win32":

    def limit_process() -> None:
        """Do nothing: Windows has no such limits."""

    @contextmanager
    def job_limits(memory_mb: int, cpu_seconds: float, wall_seconds: float) -> Generator[None]:
        """Do nothing."""
        del memory_mb, cpu_seconds, wall_seconds
        yield

else:
    import math
    import resource
    import signal

    def limit_process() -> None:
        """Allow this process no core dumps, and files of a bounded size."""
        _limit(resource.RLIMIT_CORE, 0, hard=0)
        _limit(resource.RLIMIT_FSIZE, MAX_FILE_BYTES, hard=MAX_FILE_BYTES)

    @contextmanager
    def job_limits(memory_mb: int, cpu_seconds: float, wall_seconds: float) -> Generator[None]:
        """Give a job its address space in MiB, its seconds of CPU from now on, and its time.

        The limit on memory is for good: all jobs of a worker have the same. Of CPU only the soft
        limit moves, because a hard one cannot be raised again for the next job (setrlimit(2)). The
        kernel ends the process with SIGXCPU or SIGALRM.
        """
        used = resource.getrusage(resource.RUSAGE_SELF)
        _limit(resource.RLIMIT_CPU, math.ceil(used.ru_utime + used.ru_stime + cpu_seconds))
        _limit(resource.RLIMIT_AS, memory_mb * 2**20, hard=memory_mb * 2**20)
        signal.alarm(math.ceil(wall_seconds) + ORPHAN_SECONDS)
        try:
            yield
        finally:
            signal.alarm(0)

    def _limit(kind: int, soft: int, *, hard: int | None = None) -> None:
        try:
            top = resource.getrlimit(kind)[1]
            highest = (
                top if hard is None else hard if top == resource.RLIM_INFINITY else min(hard, top)
            )
            resource.setrlimit(
                kind, (soft if highest == resource.RLIM_INFINITY else min(soft, highest), highest)
            )
        except (OSError, ValueError):  # macOS refuses some of them; the wall limit remains
            return
