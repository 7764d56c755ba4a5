"""Call the server through the MCP inspector, as a person would, and check the exit codes.

    .venv/bin/python scripts/inspector.py

Skipped aloud where npm cannot install the inspector.
"""

import asyncio
import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

from fetchstash.cli.demo.driver import command
from fetchstash.cli.demo.site import Site
from scripts.drive.hosts import npm_program
from scripts.drive.service import served

INSPECTOR = "@modelcontextprotocol/inspector@2.12.0"
REFUSED = 5
"""The inspector's exit code where a tool's result is an error."""


def inspect(program: str, server: list[str], *arguments: str) -> tuple[int, str]:
    """Run the inspector once and return its exit code and output."""
    asked = [program, "--cli", *server, *arguments, "--format", "json"]
    done = subprocess.run(
        asked, capture_output=True, text=True, timeout=300, check=False, stdin=subprocess.DEVNULL
    )
    return done.returncode, done.stdout + done.stderr


async def main() -> int:
    """List the tools, make calls that work and one that must not, and say how each ended."""
    program = npm_program(INSPECTOR, "mcp-inspector")
    if program is None:
        print("SKIPPED: npm cannot install the inspector here")
        return 0
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        async with Site() as site:
            flags = ["--allow-host", f"127.0.0.1:{site.port}"]
            stdio = [command(), "serve", "--folder", folder, *flags]
            url = site.url("/report.pdf")
            calls = {
                "tools/list --strict": (0, ["--method", "tools/list", "--strict"]),
                "fetch_content": (0, called("fetch_content", url=url, maxChars=500)),
                "artifact_grep": (
                    0,
                    called("artifact_grep", artifact_ref=url, pattern="Chapter 3"),
                ),
                "artifact_slice": (
                    0,
                    called("artifact_slice", artifact_ref=url, unit="pages", start=30, end=30),
                ),
                "artifact_info": (0, called("artifact_info")),
                "resources/templates/list": (0, ["--method", "resources/templates/list"]),
                "an address that is refused": (
                    REFUSED,
                    called("fetch_content", url="http://127.0.0.2/"),
                ),
            }
            failed += await check(program, "stdio", stdio, calls)
            with served(Path(folder) / "http", *flags) as address:
                failed += await check(program, "http", [address, "--transport", "http"], calls)
    return 1 if failed else 0


async def check(
    program: str, transport: str, server: list[str], calls: Mapping[str, tuple[int, list[str]]]
) -> int:
    """Make the calls over a transport, say how each ended, and return how many failed."""
    failed = 0
    for name, (expected, arguments) in calls.items():
        code, output = await asyncio.to_thread(inspect, program, server, *arguments)
        ended = "ok" if code == expected else "FAILED"
        print(f"{ended}  {transport} {name}: exit {code}", flush=True)
        if code != expected:
            failed += 1
            print(output)
    return failed


def called(tool: str, **arguments: object) -> list[str]:
    """Return the inspector's flags for one call of a tool."""
    given = [
        f"{name}={value if isinstance(value, str) else json.dumps(value)}"
        for name, value in arguments.items()
    ]
    flags = [part for argument in given for part in ("--tool-arg", argument)]
    return ["--method", "tools/call", "--tool-name", tool, *flags]


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
