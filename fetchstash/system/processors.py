"""How many processors this process may use."""

import math
import os
import sys
from contextlib import suppress
from pathlib import Path

_CPU_MAX = Path("/sys/fs/cgroup/cpu.max")


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
