"""Servers as processes on loopback, the service over HTTP above all."""

import os
import re
import socket
import subprocess
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from fetchstash.cli.demo._tour import command

SECONDS = 180


def free_port() -> int:
    """Return a port of loopback that nobody uses."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def running(
    command: Sequence[str], ready: str, environment: Mapping[str, str], log: Path
) -> Generator[subprocess.Popen[bytes]]:
    """Run a server until the block ends; the block begins once its output says ``ready``."""
    with log.open("ab") as output:
        begin = output.tell()
        server = subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output
        )
        try:
            end = time.monotonic() + SECONDS
            while ready not in (said := log.read_bytes()[begin:].decode(errors="replace")):
                if server.poll() is not None or time.monotonic() > end:
                    raise RuntimeError(f"{' '.join(command)}: {said}")
                time.sleep(0.05)
            yield server
        finally:
            server.terminate()
            server.wait(SECONDS)


@contextmanager
def served(folder: Path, *flags: str) -> Generator[str]:
    """Start ``fetchstash serve --http`` on a free port, and yield the URL.

    Fails if the service logs an error, or does not end well.
    """
    # The machine that runs this may have a kernel without Landlock.
    environment = os.environ | {"FETCHSTASH_EXTRACT_CONFINE": "auto"}
    words = [command(), "serve", "--http", "127.0.0.1:0", "--folder", str(folder / "store"), *flags]
    folder.mkdir(exist_ok=True)
    log = folder / "log"
    with running(words, "/mcp", environment, log) as process:
        address = re.search(r"http://[^ ]+/mcp", log.read_text())
        assert address
        yield address[0]
    faults = [line for line in log.read_text().splitlines() if '"level":"error"' in line]
    if process.returncode or faults:
        raise SystemExit(f"FAILED: the service ended with {process.returncode}: {faults[:3]}")
