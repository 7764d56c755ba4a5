"""What the operating system holds a worker to. Where it knows no such limits (Windows, macOS in part) the wall limit remains."""

import sys

MAX_FILE_BYTES = 2 * 2**30

if sys.platform == "win32":

    def limit_process() -> None:
        """Do nothing: Windows has no such limits."""

    def limit_job(memory_mb: int, cpu_seconds: float) -> None:
        """Do nothing."""

else:
    import math
    import resource

    def limit_process() -> None:
        """Limit what holds for the whole life of this process: no core dumps, and files of a bounded size."""
        _limit(resource.RLIMIT_CORE, 0, hard=0)
        _limit(resource.RLIMIT_FSIZE, MAX_FILE_BYTES, hard=MAX_FILE_BYTES)

    def limit_job(memory_mb: int, cpu_seconds: float) -> None:
        """Give the job its address space in MiB, and so many seconds of CPU more than this process has used already.

        Only the soft limits move, because a hard one cannot be raised again for the next job (setrlimit(2)). The kernel ends the
        process with SIGXCPU.
        """
        used = resource.getrusage(resource.RUSAGE_SELF)
        _limit(resource.RLIMIT_CPU, math.ceil(used.ru_utime + used.ru_stime + cpu_seconds))
        _limit(resource.RLIMIT_AS, memory_mb * 2**20)

    def _limit(kind: int, soft: int, *, hard: int | None = None) -> None:
        try:
            top = resource.getrlimit(kind)[1]
            highest = top if hard is None else hard if top == resource.RLIM_INFINITY else min(hard, top)
            resource.setrlimit(kind, (soft if highest == resource.RLIM_INFINITY else min(soft, highest), highest))
        except (OSError, ValueError):  # macOS refuses some of them; the wall limit remains
            return
