"""Time the start of servers, alone and behind the gateway: from the spawn to tools/list.

    python -P bench/gateway_start.py FOLDER [--rounds 9]     (scripts/gateway installs the servers)

Both starts take turns, and each figure is the median of its rounds. CPU is what the gateway's own
process had used by then; where both processors are busy it comes on top. Ends with 1 if a start
behind the gateway takes over 1.3 times as long.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from fetchstash.demo.driver import command

MOST = 1.3
HELLO = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "bench", "version": "1"},
}


class Start(NamedTuple):
    """Seconds until tools/list was answered, and of CPU until then."""

    seconds: float
    cpu: float


def servers(home: Path, data: Path) -> dict[str, list[str]]:
    """Return the commands of the servers that are installed."""
    npm = home / "node_modules" / ".bin"
    known = {
        "filesystem (Node)": [str(npm / "mcp-server-filesystem"), str(data)],
        "everything (Node)": [str(npm / "mcp-server-everything")],
        "sqlite (Python)": [
            str(home / "sqlite" / "bin" / "mcp-server-sqlite"),
            "--db-path",
            str(data / "shop.db"),
        ],
        "git (Python)": [str(home / "git" / "bin" / "mcp-server-git")],
    }
    return {name: words for name, words in known.items() if Path(words[0]).exists()}


def start(words: list[str], environment: Mapping[str, str]) -> Start:
    """Start a server, list its tools, and end it."""
    started = time.perf_counter()
    pipe, nothing = subprocess.PIPE, subprocess.DEVNULL
    with subprocess.Popen(
        words, stdin=pipe, stdout=pipe, stderr=nothing, env=environment
    ) as process:
        ask(process, 1, "initialize", HELLO)
        send(process, {"method": "notifications/initialized"})
        ask(process, 2, "tools/list", {})
        seconds, cpu = time.perf_counter() - started, cpu_of(process.pid)
        assert process.stdin
        process.stdin.close()
        process.wait(30)
    return Start(seconds, cpu)


def send(process: subprocess.Popen[bytes], message: dict[str, Any]) -> None:
    assert process.stdin
    process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
    process.stdin.flush()


def ask(process: subprocess.Popen[bytes], number: int, method: str, params: Any) -> None:
    """Send a request, and wait for its result."""
    send(process, {"id": number, "method": method, "params": params})
    assert process.stdout
    for line in process.stdout:
        answer = json.loads(line)
        if answer.get("id") == number and "method" not in answer:
            assert "result" in answer, answer
            return
    raise AssertionError(f"it ended before it answered {method}")


def cpu_of(process: int) -> float:
    """Return the seconds of CPU of a process (proc(5), stat: utime and stime)."""
    fields = Path("/proc", str(process), "stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="where the servers are installed")
    parser.add_argument("--rounds", type=int, default=9)
    arguments = parser.parse_args()
    good, wrap = True, [command(), "wrap", "--"]
    print(f"{'medians':20}{'alone':>8}{'gateway':>9}{'ratio':>7}{'added':>8}{'CPU':>8}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        # A user's Python has its bytecode; a test run may forbid to write it.
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        environment["FETCHSTASH_STORE_FOLDER"] = str(folder / "store")
        for server, words in servers(arguments.folder, folder).items():
            start([*wrap, *words], environment)
            alone: list[Start] = []
            behind: list[Start] = []
            for _ in range(arguments.rounds):
                alone.append(start(words, environment))
                behind.append(start([*wrap, *words], environment))
            first = statistics.median(one.seconds for one in alone) * 1_000
            second = statistics.median(one.seconds for one in behind) * 1_000
            cpu = statistics.median(one.cpu for one in behind) * 1_000
            print(
                f"{server:20}{first:5.0f} ms{second:6.0f} ms{second / first:7.2f}"
                f"{second - first:5.0f} ms{cpu:5.0f} ms"
            )
            good = good and second <= MOST * first
    load = os.getloadavg()[0]
    print(
        f"at most {MOST} × the server alone; load of the machine {load:.1f}, {os.cpu_count()} CPUs"
    )
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
