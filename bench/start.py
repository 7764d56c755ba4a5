"""Time from spawn to the answer of tools/list over stdio, against a bare MCP server.

    python -P bench/start.py --runs 15

The peer is an MCPServer of the same SDK with one tool and nothing else. Both are started in turn,
so that whatever else the machine does falls on both; the medians are compared. The requests are
written by hand (those of the handshake era), so that no client's own start counts. Then the CPU
time of ``import fetchstash`` is measured.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench._run import import_seconds, options
from fetchstash.cli.demo._tour import command

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
HELLO = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "bench", "version": "1"},
}
REQUESTS = (
    {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO},
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
    {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
)


def seconds(server: list[str], folder: str) -> float:
    """Start ``server`` and return the seconds until its tools are listed."""
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("PYTHON")
    }
    started = time.perf_counter()
    with subprocess.Popen(
        server, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=folder, env=environment
    ) as process:
        assert process.stdin
        assert process.stdout
        process.stdin.write(b"".join(json.dumps(request).encode() + b"\n" for request in REQUESTS))
        process.stdin.flush()
        for line in process.stdout:
            answer = json.loads(line)
            if answer.get("id") == 2:
                assert answer["result"]["tools"]
                break
        taken = time.perf_counter() - started
        process.stdin.close()
        process.wait(30)
    return taken


def main() -> int:
    runs: int = options(__doc__, runs=15).runs
    with tempfile.TemporaryDirectory() as folder:
        bare = Path(folder, "bare.py")
        bare.write_text(BARE)
        servers = {
            "bare MCPServer": [sys.executable, "-P", str(bare)],
            "fetchstash": [
                command(),
                "serve",
                "--config",
                os.devnull,
                "--folder",
                str(Path(folder, "store")),
            ],
        }
        taken: dict[str, list[float]] = {name: [] for name in servers}
        for number in range(runs + 1):  # the first run of each fills the caches of the disk
            for name, server in servers.items():
                passed = seconds(server, folder)
                if number:
                    taken[name].append(passed)
    for name, times in taken.items():
        print(
            f"{name:16}median {statistics.median(times):.3f} s, fastest {min(times):.3f} s, "
            f"slowest {max(times):.3f} s, {runs} runs"
        )
    ratio = statistics.median(taken["fetchstash"]) / statistics.median(taken["bare MCPServer"])
    fastest = min(taken["fetchstash"]) / min(taken["bare MCPServer"])
    print(
        f"fetchstash / bare: {ratio:.3f} by medians, {fastest:.3f} by the fastest (bound {BOUND})"
    )
    imported = statistics.median(import_seconds("fetchstash") for _ in range(runs))
    print(f"import fetchstash: {imported * 1_000:.1f} ms of CPU (bound {IMPORT_BOUND * 1_000:.0f})")
    return 0 if ratio <= BOUND and imported <= IMPORT_BOUND else 1


if __name__ == "__main__":
    sys.exit(main())
