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
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

from fetchstash.demo.driver import command
from scripts import inspector
from scripts.drive.hosts import ROOT, node_folder, npm_program

SUITE = "@modelcontextprotocol/conformance@0.2.0-alpha.12"
REVISIONS = ("2025-11-25", "2026-07-28")


@contextmanager
def served(folder: Path) -> Generator[str]:
    """Start ``fetchstash serve --http`` on a free port, and yield the URL.

    Fails if the service logs an error, or does not end well.
    """
    words = [command(), "serve", "--http", "127.0.0.1:0", "--folder", str(folder / "store")]
    log = folder / "log"
    with (
        log.open("w") as errors,
        subprocess.Popen(words, stdout=subprocess.PIPE, stderr=errors, text=True) as process,
    ):
        assert process.stdout is not None
        line = process.stdout.readline()
        address = re.search(r"http://[^ ]+/mcp", line)
        if address is None:
            process.kill()
            raise SystemExit(f"FAILED: the service said {line!r}")
        yield address[0]
        process.terminate()
        code = process.wait(20)
    faults = [line for line in log.read_text().splitlines() if '"level":"error"' in line]
    if code or faults:
        raise SystemExit(f"FAILED: the service ended with {code}, and logged {faults[:3]}")


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
            timeout=300,
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
