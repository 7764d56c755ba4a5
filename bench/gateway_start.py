"""Time the start of servers, alone and behind the gateway: from the spawn to tools/list.

    python -P bench/gateway_start.py FOLDER [--rounds 9]     (scripts/gateway installs the servers)

The server stands behind ``--`` or in the settings file. The starts take turns, and each figure is
the median of its rounds. CPU is what the gateway's own process had used by then; where both
processors are busy it comes on top. Ends with 1 if a start behind the gateway takes over 1.3 times
as long. A server over HTTP runs already, so for that only what the gateway adds is printed.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.request import Request, urlopen

from fetchstash.cli.demo.driver import command

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


@contextmanager
def over_http() -> Generator[str]:
    """Run a server over HTTP that is no SDK's, and yield its URL."""
    program = Path(__file__).parents[1] / "tests" / "gateway" / "servers" / "http_flood.py"
    words = [sys.executable, "-P", str(program), "json"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout
        yield server.stdout.readline().strip()
        server.kill()


def connect(url: str) -> Start:
    """Ask a server over HTTP what the gateway asks it, without the gateway."""
    started = time.perf_counter()
    for number, method in enumerate(("initialize", "tools/list")):
        message = {"jsonrpc": "2.0", "id": number, "method": method, "params": HELLO}
        headers = {"content-type": "application/json", "accept": "application/json"}
        with urlopen(Request(url, json.dumps(message).encode(), headers)) as response:
            assert "result" in json.load(response)
    return Start(time.perf_counter() - started, 0)


def compare(
    name: str, rounds: int, alone: Callable[[], Start], ways: Mapping[str, Callable[[], Start]]
) -> float:
    """Print the medians of starts that take turns; return the largest ratio."""
    starts: dict[str, list[Start]] = {way: [] for way in ("", *ways)}
    for number in range(rounds + 1):  # the first round fills the caches of the disk
        for way, start_it in {"": alone, **ways}.items():
            taken = start_it()
            if number:
                starts[way].append(taken)
    first = statistics.median(start.seconds for start in starts.pop("")) * 1_000
    ratios: list[float] = []
    for way, behind in starts.items():
        second = statistics.median(start.seconds for start in behind) * 1_000
        cpu = statistics.median(start.cpu for start in behind) * 1_000
        ratios.append(second / first)
        print(
            f"{name:19}{way:11}{first:5.0f} ms{second:6.0f} ms{second / first:7.2f}"
            f"{second - first:5.0f} ms{cpu:5.0f} ms"
        )
    return max(ratios)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="where the servers are installed")
    parser.add_argument("--rounds", type=int, default=9)
    arguments = parser.parse_args()
    most, wrap = 0.0, [command(), "wrap"]
    print(f"{'medians':30}{'alone':>8}{'gateway':>9}{'ratio':>7}{'added':>8}{'CPU':>8}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        # A user's Python has its bytecode; a test run may forbid to write it.
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        environment["FETCHSTASH_STORE_FOLDER"] = str(folder / "store")
        file = folder / "settings.toml"

        def starting(*words: str) -> Callable[[], Start]:
            return lambda: start([*words], environment)

        for server, words in servers(arguments.folder, folder).items():
            table = f"[wrap.servers.bench]\ncommand = {json.dumps(words[0])}\n"
            file.write_text(f"{table}args = {json.dumps(words[1:])}\n")
            ways = {
                "--": starting(*wrap, "--", *words),
                "--config": starting(*wrap, "--config", str(file)),
            }
            ratio = compare(server, arguments.rounds, starting(*words), ways)
            most = max(most, ratio)
        with over_http() as url:
            ways = {"--url": starting(*wrap, "--url", url)}
            compare("a server that runs", arguments.rounds, lambda: connect(url), ways)
    load = os.getloadavg()[0]
    print(
        f"at most {MOST} × the server alone; load of the machine {load:.1f}, {os.cpu_count()} CPUs"
    )
    return 0 if most <= MOST else 1


if __name__ == "__main__":
    sys.exit(main())
