"""Run the protocol's conformance suite against the server, for both requirement sets.

    scripts/ci conformance

The suite talks to ``fetchstash serve --http``, a process on loopback. What an application's
server cannot pass stands with its reason in conformance.d/baseline-REVISION.yml; anything
else that fails, and anything of the baseline that passes now, is a failure. Then the inspector
calls the tools as a person would. Skipped aloud without npm or a Node of 22 or newer.
"""

import asyncio
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
    """List the tools, fetch a PDF, and ask for an address that is refused."""
    program = node_program("inspector", "mcp-inspector")
    if program is None:
        return
    with tempfile.TemporaryDirectory() as folder:
        async with Site() as site:
            flags = ["--allow-host", f"127.0.0.1:{site.port}"]
            stdio = [program, "--cli", command(), "serve", "--folder", folder, *flags]
            await asyncio.to_thread(make_calls, "stdio", stdio, site)
            with served(Path(folder) / "http", *flags) as address:
                over_http = [program, "--cli", address, "--transport", "http"]
                await asyncio.to_thread(make_calls, "http", over_http, site)


def make_calls(transport: str, inspector: list[str], site: Site) -> None:
    """Make the inspector's calls over a transport."""
    # A loaded machine takes more than the 15 s that it waits by itself.
    patient = ["--connect-timeout", "120000", "--format", "json"]
    fetch = ["--method", "tools/call", "--tool-name", "fetch_content", "--tool-arg"]
    for name, flags, code in (
        ("tools/list --strict", ["--method", "tools/list", "--strict"], 0),
        ("a PDF", [*fetch, f"url={site.url('/report.pdf')}"], 0),
        ("an address that is refused", [*fetch, "url=http://127.0.0.2/"], REFUSED),
    ):
        done = output_of([*inspector, *flags, *patient])
        fault = done.returncode != code and done.stdout + done.stderr
        check(f"{transport} {name}: exit {done.returncode}", fault)


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
