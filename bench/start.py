"""Time from spawn to the answer of tools/list over stdio, against a bare MCP server.

    python -P bench/start.py --runs 15

The peer is an MCPServer of the same SDK with one tool and nothing else. Both are started in turn,
so that whatever else the machine does falls on both; the medians are compared. The requests are
written by hand (those of the handshake era), so that no client's own start counts. Then the CPU
time of ``import fetchstash`` is measured.
"""

import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from bench._calls import piped
from bench._run import import_seconds
from fetchstash.cli.demo._tour import command
from scripts.drive.programs import options

BOUND = 1.25
IMPORT_BOUND = 0.05
BARE = """
from mcp.server import MCPServer
server = MCPServer("bare")
@server.tool()
def echo(text: str) -> str:
    return text
server.run()
"""


def seconds(server: Sequence[str], folder: Path) -> float:
    """Start ``server`` and return the seconds until its tools are listed."""
    environment = {name: text for name, text in os.environ.items() if name[:6] != "PYTHON"}
    began = time.perf_counter()
    with piped(server, environment, folder) as pipe:
        assert pipe.ask("tools/list")["tools"]
        return time.perf_counter() - began


def main() -> int:
    runs: int = options(__doc__, runs=15).runs
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        bare = [sys.executable, "-P", "-c", BARE]
        ours = [command(), "serve", "--config", os.devnull, "--folder", f"{name}/store"]
        taken: dict[str, list[float]] = {"bare MCPServer": [], "fetchstash": []}
        for number in range(runs + 1):  # the first run of each fills the caches of the disk
            for times, server in zip(taken.values(), (bare, ours), strict=True):
                passed = seconds(server, folder)
                if number:
                    times.append(passed)
    for side, times in taken.items():
        fastest, slowest = min(times), max(times)
        print(f"{side:16}median {median(times):.3f} s, {fastest:.3f} to {slowest:.3f}, {runs} runs")
    its, own = taken.values()
    ratio = median(own) / median(its)
    print(f"fetchstash / bare: {ratio:.3f} by medians (bound {BOUND}), ", end="")
    print(f"{min(own) / min(its):.3f} by the fastest")
    imported = median(import_seconds("fetchstash") for _ in range(runs))
    print(f"import fetchstash: {imported * 1_000:.1f} ms of CPU (bound {IMPORT_BOUND * 1_000:.0f})")
    return 0 if ratio <= BOUND and imported <= IMPORT_BOUND else 1


if __name__ == "__main__":
    sys.exit(main())
