"""What the benchmarks share: the machine, peers, and the cost of processes."""

import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from statistics import quantiles
from typing import Any

from scripts.drive.tools import python_tool


def load() -> str:
    """Return the load of the machine and its processors: no figure is read without them."""
    return f"load {os.getloadavg()[0]:.1f}, {os.cpu_count()} processors"


def p99(times: Sequence[float]) -> float:
    """Return the time that one of a hundred exceeds."""
    return quantiles(times, n=100, method="inclusive")[98]


def peer(module: str, tool: str) -> Any:
    """Import a peer, from its locked environment where .venv lacks it; None if it cannot be had.

    The environment of requirements/tools.toml is made if need be. What both have comes from .venv.
    """
    if find_spec(module.partition(".")[0]) is None:
        programs = python_tool(tool)
        if programs is None:
            return None
        sys.path += map(str, programs.parent.glob("lib/python3*/site-packages"))
    return import_module(module)


def peak(pid: int | str = "self") -> int:
    """Return the most memory that a process ever had, in bytes (Linux: VmHWM; elsewhere 0)."""
    status = Path(f"/proc/{pid}/status")
    lines = status.read_text(encoding="utf-8").splitlines() if status.exists() else []
    return next((int(line.split()[1]) * 1024 for line in lines if "VmHWM" in line), 0)


def family(pid: int) -> list[int]:
    """Return a process and its descendants, those that live (Linux; elsewhere it alone)."""
    children: list[str] = []
    for listing in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            children += listing.read_text().split()
    return [pid, *(below for child in children for below in family(int(child)))]


def cpu_seconds(pid: int) -> float:
    """Return the seconds of CPU that a process and its descendants used, ended ones too."""
    ticks = 0
    for member in family(pid):
        with suppress(OSError):  # it has ended meanwhile
            fields = Path(f"/proc/{member}/stat").read_text().rpartition(")")[2].split()
            ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def import_seconds(module: str) -> float:
    """Return the CPU time that an import takes in a fresh interpreter."""
    timed = f"import time; t = time.process_time(); import {module}; print(time.process_time() - t)"
    command = [sys.executable, "-P", "-c", timed]
    return float(subprocess.run(command, capture_output=True, check=True, text=True).stdout)
