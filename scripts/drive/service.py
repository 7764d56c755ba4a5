"""Servers as processes on loopback, the service over HTTP above all."""

import os
import socket
import subprocess
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from fetchstash.cli.demo._tour import command

START_SECONDS = 180
"""Within which a server must be ready."""
END_SECONDS = 60
"""Within which it must end after SIGTERM; then it is killed."""


def listens(port: int) -> bool:
    """Return whether somebody listens on a port of loopback."""
    with socket.socket() as attempt:
        return attempt.connect_ex(("127.0.0.1", port)) == 0


def free_port() -> int:
    """Return a port of loopback that nobody uses."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def running(
    command: Sequence[str], ready: str | int, environment: Mapping[str, str], log: Path
) -> Generator[subprocess.Popen[bytes]]:
    """Run a server until the block ends; begin the block when it is ready.

    ``ready`` is what its output then says, or the port of loopback on which it then listens.
    """
    with log.open("ab") as output:
        begin = output.tell()
        server = subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output
        )
    try:
        end = time.monotonic() + START_SECONDS
        while True:
            said = log.read_bytes()[begin:].decode(errors="replace")
            if listens(ready) if isinstance(ready, int) else ready in said:
                break
            if server.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"{' '.join(command)}: {said}")
            time.sleep(0.05)
        yield server
    finally:
        server.terminate()
        try:
            server.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


@contextmanager
def serving(
    port: int, log: Path, *flags: str, environment: Mapping[str, str] = os.environ
) -> Generator[subprocess.Popen[bytes]]:
    """Run ``fetchstash serve --http`` on a port of loopback until the block ends."""
    # The machine that runs this may have a kernel without Landlock.
    environment = {**environment, "FETCHSTASH_EXTRACT_CONFINE": "auto"}
    words = [command(), "serve", "--http", f"127.0.0.1:{port}", *flags]
    with running(words, port, environment, log) as process:
        yield process


def token_of(tenant: str, *flags: str, environment: Mapping[str, str] = os.environ) -> str:
    """Create a token of a tenant, as an operator does."""
    words = [command(), "token", "create", "--tenant", tenant, "--name", "drive", *flags]
    made = subprocess.run(words, env=environment, check=True, capture_output=True, text=True)
    return made.stdout.split()[0]


@contextmanager
def served(folder: Path, *flags: str) -> Generator[str]:
    """Serve over HTTP from a store in ``folder``, and yield the URL.

    Fails if the service logs an error, or does not end well.
    """
    folder.mkdir(exist_ok=True)
    port, log = free_port(), folder / "log"
    with serving(port, log, "--folder", str(folder / "store"), *flags) as process:
        yield f"http://127.0.0.1:{port}/mcp"
    faults = [line for line in log.read_text().splitlines() if '"level":"error"' in line]
    if process.returncode or faults:
        raise SystemExit(f"FAILED: the service ended with {process.returncode}: {faults[:3]}")
