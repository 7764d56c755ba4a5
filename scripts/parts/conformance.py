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
import sys
import tempfile
from pathlib import Path

from fetchstash.cli.demo._tour import command
from fetchstash.cli.demo.site import Site
from scripts.drive.programs import check, failures, output_of
from scripts.drive.service import served
from scripts.drive.tools import ROOT, node_folder, node_program

REFUSED = 5
"""The inspector's exit code where a tool's result is an error."""
REVISIONS = ("2025-11-25", "2026-07-28")


def run_suite(program: str, url: str, revision: str) -> None:
    """Run one requirement set."""
    baseline = ROOT / "scripts" / "parts" / "conformance.d" / f"baseline-{revision}.yml"
    with tempfile.TemporaryDirectory() as results:
        flags = ["--requirements", revision, "--expected-failures", baseline, "-o", results]
        done = output_of([program, "server", "--url", url, *flags])
    total = " ".join(re.findall(r"Total: .*", done.stdout))
    fault = done.returncode and (done.stdout + done.stderr)[-6_000:]
    check(f"conformance {revision}: {total}", fault)


async def by_hand() -> None:
    """List the tools, make calls that work and one that must not."""
    program = node_program("inspector", "mcp-inspector")
    if program is None:
        return
    with tempfile.TemporaryDirectory() as folder:
        async with Site() as site:
            flags = ["--allow-host", f"127.0.0.1:{site.port}"]
            stdio = [command(), "serve", "--folder", folder, *flags]
            await asyncio.to_thread(make_calls, program, "stdio", stdio, site)
            with served(Path(folder) / "http", *flags) as address:
                over_http = [address, "--transport", "http"]
                await asyncio.to_thread(make_calls, program, "http", over_http, site)


def make_calls(program: str, transport: str, server: list[str], site: Site) -> None:
    """Make the inspector's calls over a transport."""
    url = site.url("/report.pdf")
    calls = {
        "tools/list --strict": ["--method", "tools/list", "--strict"],
        "fetch_content": called("fetch_content", url=url, maxChars=500),
        "artifact_grep": called("artifact_grep", artifact_ref=url, pattern="Chapter 3"),
        "artifact_slice": called("artifact_slice", artifact_ref=url, unit="pages", start=3, end=3),
        "artifact_info": called("artifact_info"),
        "resources/templates/list": ["--method", "resources/templates/list"],
        "an address that is refused": called("fetch_content", url="http://127.0.0.2/"),
    }
    # A loaded machine takes more than the 15 s that it waits by itself.
    patient = ["--connect-timeout", "120000", "--format", "json"]
    for name, arguments in calls.items():
        done = output_of([program, "--cli", *server, *arguments, *patient])
        wrong = done.returncode != (REFUSED if "refused" in name else 0)
        fault = wrong and done.stdout + done.stderr
        check(f"{transport} {name}: exit {done.returncode}", fault)


def called(tool: str, **arguments: object) -> list[str]:
    """Return the inspector's flags for one call of a tool."""
    given = [
        f"{name}={value if isinstance(value, str) else json.dumps(value)}"
        for name, value in arguments.items()
    ]
    flags = [part for argument in given for part in ("--tool-arg", argument)]
    return ["--method", "tools/call", "--tool-name", tool, *flags]


def main() -> int:
    """Run both requirement sets and the inspector; return how many checks failed."""
    node = node_folder(22)
    program = node_program("conformance", "conformance") if node else None
    if node is None or program is None:
        return 0
    os.environ["PATH"] = f"{node}{os.pathsep}{os.environ['PATH']}"
    with tempfile.TemporaryDirectory() as folder, served(Path(folder)) as url:
        for revision in REVISIONS:
            run_suite(program, url, revision)
    asyncio.run(by_hand())
    return len(failures)


if __name__ == "__main__":
    sys.exit(main())
