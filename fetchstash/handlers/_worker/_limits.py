"""Limits of a worker by the operating system; on Windows, and in part on macOS, only by time."""

import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

MAX_FILE_BYTES = 2 * 2**30
MAX_OPEN_FILES = 256
MORE_THREADS = 1_000
"""Than the system has now; decoders of pictures and models start some, of a machine's 100,000."""
JOBS_OF_CPU = 4
"""A worker has so many times the CPU time of one job for its life: a hard limit cannot be raised
again for the next job (setrlimit(2)), and one that was taken over raises a soft one."""
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

    def is_worn_out() -> bool:
        """Return False: only time is limited."""
        return False

else:
    import math
    import resource
    import signal

    def limit_process() -> None:
        """Allow this process no core dumps, few open files of a bounded size, and some threads."""
        _limit(resource.RLIMIT_CORE, 0, hard=0)
        _limit(resource.RLIMIT_FSIZE, MAX_FILE_BYTES, hard=MAX_FILE_BYTES)
        _limit(resource.RLIMIT_NOFILE, MAX_OPEN_FILES, hard=MAX_OPEN_FILES)
        _limit(resource.RLIMIT_MEMLOCK, 0, hard=0)
        with suppress(OSError, ValueError, IndexError):  # proc_loadavg(5); it holds for users alone
            threads = int(Path("/proc/loadavg").read_text().split()[3].partition("/")[2])
            _limit(resource.RLIMIT_NPROC, threads + MORE_THREADS, hard=threads + MORE_THREADS)

    @contextmanager
    def job_limits(memory_mb: int, cpu_seconds: float, wall_seconds: float) -> Generator[None]:
        """Give a job its address space in MiB, its seconds of CPU from now on, and its time.

        The limit on memory is for good: all jobs of a worker have the same. Of CPU the soft limit
        moves, and the hard one of the first job stays. The kernel ends the process with SIGXCPU,
        SIGKILL or SIGALRM.
        """
        used = _cpu_seconds()
        life = math.ceil(used + JOBS_OF_CPU * cpu_seconds)
        _limit(resource.RLIMIT_CPU, math.ceil(used + cpu_seconds), hard=life)
        _limit(resource.RLIMIT_AS, memory_mb * 2**20, hard=memory_mb * 2**20)
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
