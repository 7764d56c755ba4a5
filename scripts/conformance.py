"""Run the protocol's conformance suite against the server, for both requirement sets.

    scripts/conformance

The suite talks to ``fetchstash serve --http``, a process on loopback. What an application's
server cannot pass stands with its reason in scripts/conformance.d/baseline-REVISION.yml; anything
else that fails, and anything of the baseline that passes now, is a failure. Then the inspector
lists and calls the tools with --strict. Skipped aloud without npm or a Node of 22 or newer.
"""

import asyncio
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

from scripts import inspector
from scripts.drive.hosts import ROOT, node_folder, npm_program
from scripts.drive.service import served

SUITE = "@modelcontextprotocol/conformance@0.2.0-alpha.12"
REVISIONS = ("2025-11-25", "2026-07-28")


def run_suite(program: str, environment: dict[str, str], url: str, revision: str) -> int:
    """Run one requirement set and return whether it failed."""
    baseline = ROOT / "scripts" / "conformance.d" / f"baseline-{revision}.yml"
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


def main() -> int:
    """Run both requirement sets and the inspector; return how many failed."""
    node = node_folder(22)
    program = npm_program(SUITE, "conformance") if node else None
    if node is None or program is None:
        print("SKIPPED: npm or a Node of 22 or newer is missing, so no suite can run")
        return 0
    os.environ["PATH"] = f"{node}{os.pathsep}{os.environ['PATH']}"
    failed = 0
    with tempfile.TemporaryDirectory() as folder, served(Path(folder)) as url:
        for revision in REVISIONS:
            failed += run_suite(program, dict(os.environ), url, revision)
    return failed + asyncio.run(inspector.main())


if __name__ == "__main__":
    sys.exit(main())
