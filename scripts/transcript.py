"""Run each command on a terminal and in a pipe, and print what a person would see.

.venv/bin/python scripts/transcript.py
"""

import asyncio
import os
import pty
import subprocess
import tempfile

from fetchstash.demo.driver import command
from fetchstash.demo.site import Site

ROWS = 12
"""Rows shown of each output."""


def commands(site: Site) -> list[list[str]]:
    """Return one call of each command; ``fetch`` comes first, and the others read what it kept."""
    report, stations = site.url("/report.pdf"), site.url("/stations.json")
    return [
        ["fetch", report, stations, "--max-chars", "1500"],
        ["get", report, "--max-chars", "300"],
        ["grep", "tide gauge", report, "-C", "1"],
        ["slice", stations, "--path", "/stations/18018"],
        ["search", "tide gauge", report, "-n", "1"],
        ["info", report],
        ["ls"],
        ["ls", "--json"],
        ["pin", report],
        ["stats"],
        ["gc", "--dry-run"],
        ["rm", stations],
        ["config"],
        ["doctor"],
        ["grep", "(unclosed", report],
        ["fetch", "http://10.0.0.1/"],
    ]


def on_terminal(arguments: list[str], environment: dict[str, str]) -> str:
    """Return what a command shows on a terminal."""
    leader, follower = pty.openpty()
    with subprocess.Popen(
        [command(), *arguments], env=environment, stdout=follower, stderr=follower
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
    return shown.decode().replace("\r\n", "\n") + f"(exit code {process.returncode})"


def in_pipe(arguments: list[str], environment: dict[str, str]) -> str:
    """Return what a command writes into a pipe."""
    done = subprocess.run(
        [command(), *arguments], env=environment, capture_output=True, text=True, check=False
    )
    return done.stdout


def shortened(text: str) -> str:
    """Return the first rows of a text, each of a terminal's width."""
    rows = text.rstrip("\n").split("\n")
    shown = [row if len(row) <= 100 else row[:99] + "…" for row in rows[:ROWS]]
    if len(rows) > ROWS:
        shown.append(
            f"[… {len(rows) - ROWS} more rows …]"
            + (f" {rows[-1]}" if rows[-1].startswith("(exit") else "")
        )
    return "\n".join(shown)


async def main() -> None:
    """Print the transcript."""
    with tempfile.TemporaryDirectory() as folder:
        async with Site() as site:
            kept = {
                name: value
                for name, value in os.environ.items()
                if not name.startswith("FETCHSTASH_")
            }
            environment = {
                **kept,
                "FETCHSTASH_CONFIG": os.devnull,
                "FETCHSTASH_STORE_FOLDER": f"{folder}/store",
                "FETCHSTASH_FETCH_ALLOW_HOSTS": f"127.0.0.1:{site.port}",
                "FETCHSTASH_TELEMETRY_EVENT_LOG": f"{folder}/events.jsonl",
            }
            for arguments in commands(site):
                print(f"$ fetchstash {' '.join(arguments)}")
                print(shortened(await asyncio.to_thread(on_terminal, arguments, environment)))
                print(f"$ fetchstash {' '.join(arguments)} 2>/dev/null | cat")
                print(
                    shortened(await asyncio.to_thread(in_pipe, arguments, environment)) + "\n",
                    flush=True,
                )


if __name__ == "__main__":
    asyncio.run(main())
