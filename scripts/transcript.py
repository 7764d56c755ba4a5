"""Run each command on terminals of 60, 80 and 160 columns and in a pipe; print what a person sees.

.venv/bin/python scripts/transcript.py [COLUMNS...]
"""

import asyncio
import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import tempfile
import termios
from pathlib import Path

from fetchstash.cli import cells
from fetchstash.cli.demo.driver import command
from fetchstash.cli.demo.site import Site

WIDTHS = (60, 80, 160)
ROWS = 14
"""Rows shown of each output."""

_METER = re.compile(r"(?:\r\x1b\[K[^\r\n]*)*\r\x1b\[K")
_STYLES = re.compile(r"\x1b\[[0-9;]*m|\x1b\]8;;[^\x1b]*\x1b\\")


def commands(site: Site) -> list[list[str]]:
    """Return one call of each command; ``fetch`` comes first, and the others read what it kept."""
    report, stations = site.url("/report.pdf"), site.url("/stations.json")
    return [
        ["--help"],
        ["grep", "--help"],
        ["fetch", report],
        ["fetch", stations, site.url("/none"), "--max-chars", "600"],
        ["ls"],
        ["ls", "--json"],
        ["get", report, "--max-chars", "300"],
        ["get", "@2", "--max-chars", "300", "--as-model"],
        ["grep", "tide gauge", "@2", "-C", "1"],
        ["grep", "Orla", "@1", "@2", "-m", "2"],
        ["slice", "@1", "--path", "/stations/18018"],
        ["slice", "@2", "--start", "3", "--render", "page-3.png"],
        ["search", "tide", "gauge", "-n", "2"],
        ["info", "@2"],
        ["get", "notes.md"],
        ["pin", "@2"],
        ["stats"],
        ["token", "create", "--tenant", "acme", "--name", "ci"],
        ["token", "list"],
        ["gc", "--dry-run"],
        ["rm", "@1"],
        ["config"],
        ["doctor"],
        ["grep", "(unclosed", "@1"],
        ["fetch", "http://127.0.0.2/"],
        ["get", "nothing-such"],
    ]


def on_terminal(
    arguments: list[str], environment: dict[str, str], folder: Path, columns: int
) -> str:
    """Return what a command shows in the end on a terminal, without colour and links."""
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    with subprocess.Popen(
        [command(), *arguments],
        env=environment,
        cwd=folder,
        stdin=follower,
        stdout=follower,
        stderr=follower,
    ) as process:
        os.close(follower)
        shown = b""
        try:
            while more := os.read(leader, 65_536):
                shown += more
        except OSError:  # the end of a terminal that nobody holds any more
            pass
        process.wait()
    os.close(leader)
    text = _STYLES.sub("", _METER.sub("", shown.decode().replace("\r\n", "\n")))
    return f"{text.rstrip()}\n(exit code {process.returncode})"


def in_pipe(arguments: list[str], environment: dict[str, str], folder: Path) -> str:
    """Return what a command writes into a pipe."""
    done = subprocess.run(
        [command(), *arguments],
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    return f"{done.stdout.rstrip()}\n(exit code {done.returncode})"


def folded(text: str, columns: int) -> str:
    """Return the first rows of a text, folded as a terminal folds them, and its last line."""
    *lines, ending = text.split("\n")
    rows: list[str] = []
    for line in lines:
        row = ""
        for char in line:
            if cells(row + char) > columns:
                rows.append(row)
                row = ""
            row += char
        rows.append(row)
    if len(rows) > ROWS:
        rows[ROWS:] = [f"[… {len(rows) - ROWS:,} more rows …]"]
    return "\n".join([*rows, ending])


async def main(widths: tuple[int, ...]) -> None:
    """Print the transcript."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "notes.md").write_text("# Notes\n\nWhat is here is read like a page.\n")
        async with Site() as site:
            kept = {
                name: value
                for name, value in os.environ.items()
                if not name.startswith("FETCHSTASH_") and name != "COLUMNS"
            }
            environment = {
                **kept,
                "FETCHSTASH_CONFIG": os.devnull,
                "FETCHSTASH_FETCH_ALLOW_HOSTS": f"127.0.0.1:{site.port}",
                "FETCHSTASH_TELEMETRY_EVENT_LOG": f"{folder}/events.jsonl",
                "TERM": "xterm-256color",
            }
            for columns in widths:
                environment["FETCHSTASH_STORE_FOLDER"] = f"{folder}/store-{columns}"
                print(f"{f' {columns} columns ':=^{columns}}\n")
                for arguments in commands(site):
                    print(f"$ fetchstash {' '.join(arguments)}")
                    shown = await asyncio.to_thread(
                        on_terminal, arguments, environment, folder, columns
                    )
                    print(folded(shown, columns) + "\n", flush=True)
            print(f"{' in a pipe ':=^80}\n")
            for arguments in commands(site):
                print(f"$ fetchstash {' '.join(arguments)} 2>/dev/null | cat")
                written = await asyncio.to_thread(in_pipe, arguments, environment, folder)
                print(folded(written, 160) + "\n", flush=True)


if __name__ == "__main__":
    asyncio.run(main(tuple(map(int, sys.argv[1:])) or WIDTHS))
