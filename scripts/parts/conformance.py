"""Run the protocol's conformance suite against the server, for both requirement sets.

    scripts/ci conformance

The suite talks to ``fetchstash serve --http``, a process on loopback. What an application's
server cannot pass stands with its reason in conformance.d/baseline-REVISION.yml; anything
else that fails, and anything of the baseline that passes now, is a failure. Then the inspector
calls the tools as a person would. Skipped aloud without npm or a Node of 22 or newer.
"""

import asyncio
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from fetchstash.cli.demo._tour import command
from fetchstash.cli.demo.site import Site
from scripts.drive.service import served
from scripts.drive.tools import ROOT, node_folder, node_program

REFUSED = 5
"""The inspector's exit code where a tool's result is an error."""
REVISIONS = ("2025-11-25", "2026-07-28")


def run_suite(program: str, environment: dict[str, str], url: str, revision: str) -> int:
    """Run one requirement set and return whether it failed."""
    baseline = ROOT / "scripts" / "parts" / "conformance.d" / f"baseline-{revision}.yml"
    with tempfile.TemporaryDirectory() as results:
        flags = ["--requirements", revision, "--expected-failures", str(baseline), "-o", results]
        done = subprocess.run(
            [program, "server", "--url", url, *flags],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=900,
        )
    total = re.findall(r"Total: .*", done.stdout)
    ended = "FAILED" if done.returncode else "ok"
    print(f"{ended:<6}  conformance {revision}: {' '.join(total)}", flush=True)
    if done.returncode:
        print((done.stdout + done.stderr)[-6_000:])
    return bool(done.returncode)


def inspect(program: str, server: list[str], *arguments: str) -> tuple[int, str]:
    """Run the inspector once and return its exit code and output."""
    # A loaded machine takes more than the 15 s that it waits by itself.
    patient = ["--connect-timeout", "120000", "--format", "json"]
    asked = [program, "--cli", *server, *arguments, *patient]
    done = subprocess.run(
        asked, capture_output=True, text=True, timeout=300, check=False, stdin=subprocess.DEVNULL
    )
    return done.returncode, done.stdout + done.stderr


async def by_hand() -> int:
    """List the tools, make calls that work and one that must not, and say how each ended."""
    program = node_program("inspector", "mcp-inspector")
    if program is None:
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


def main() -> int:
    """Run both requirement sets and the inspector; return how many failed."""
    node = node_folder(22)
    program = node_program("conformance", "conformance") if node else None
    if node is None or program is None:
        return 0
    os.environ["PATH"] = f"{node}{os.pathsep}{os.environ['PATH']}"
    failed = 0
    with tempfile.TemporaryDirectory() as folder, served(Path(folder)) as url:
        for revision in REVISIONS:
            failed += run_suite(program, dict(os.environ), url, revision)
    return failed + asyncio.run(by_hand())


if __name__ == "__main__":
    sys.exit(main())
