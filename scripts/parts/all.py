"""Run all that CI runs, two parts side by side, and say in one line how it ended.

    scripts/ci

Each part's output is printed when it ends. Most parts wait for processes, installations and time
limits, so that two of them keep two cores busy. The last line counts what failed, what could not be
had (a part says so by a line that begins with SKIPPED:) and names what was not begun for want of
time, which is no failure. Exit code: how many parts failed.
"""

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LOGS = ROOT / "build" / "ci"
LAST_BEGIN_SECONDS = 60 * 60
"""No part begins later; CI is ended after 90 minutes, and one part may take 20."""
MAX_SECONDS = 83 * 60
"""What still runs then is ended, and failed."""
LANES = 2
GRACE_SECONDS = 20
TRY_AGAIN_THEMSELVES = ("checks --all", "extras", "matrix")
"""These run once more only the tests that failed: all of them would take half of CI's time."""

PARTS = (  # those that take longest first, so that both lanes end together
    "checks --all",  # lint, types, import rules, all tests against the built wheel
    "extras",  # OCR, the browser, the shells and LibreOffice, with their real programs
    "frameworks",  # the examples of docs/frameworks.md, with the real packages
    "adapters",  # the client's adapters and their types, against the real SDKs
    "bench --corpora ../shared/corpora",  # each benchmark still runs, in a short form
    "hosts",  # real hosts against a scripted model: what reaches it, what stays
    "matrix",  # the tests of the quick run, on other interpreters
    "replicas --short",  # a team's store on PostgreSQL and real buckets, replicas killed
    "gateway --short",  # the gateway in front of real servers, and what reaches a model with it
    "torture --short",  # kills and hostile files, a few minutes
    "compare --short --jobs 2",  # ours, a peer and three planted bad servers, on a web of its own
    "fuzz --seconds 60",  # the fuzzers, with fresh seeds
    "conformance",  # the protocol's own suite for both eras, and the inspector
    "deploy",  # the unit, the dashboard and the manifests, with what reads them
    "access",  # a real identity provider, and logins of the mcp client and hosts at it
    "packages",  # the bundle, server.json and the image are made, validated and started
    "site",  # the documentation as a site: no link of it is broken
)


@dataclass(slots=True)
class Run:
    """All parts, and how they ended."""

    began: float = field(default_factory=time.monotonic)
    running: set["subprocess.Popen[bytes]"] = field(default_factory=set["subprocess.Popen[bytes]"])
    failed: list[str] = field(default_factory=list[str])
    missing: list[str] = field(default_factory=list[str])
    unsteady: list[str] = field(default_factory=list[str])
    late: list[str] = field(default_factory=list[str])
    took: Counter[str] = field(default_factory=Counter[str])
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def seconds(self) -> float:
        """How long it has run."""
        return time.monotonic() - self.began

    def run(self, part: str) -> None:
        """Run one part to its end, and print what it said; one that begins late is left out."""
        begin = self.seconds
        if begin > LAST_BEGIN_SECONDS:
            self.late.append(part)
            return
        name = part.split(maxsplit=1)[0]
        log = LOGS / f"{name}.log"
        command = [sys.executable, "-P", str(ROOT / "scripts" / "setup.py"), *part.split()]
        with log.open("wb") as output:
            process = subprocess.Popen(
                command,
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # a group, so that all of it can be ended
            )
        self.running.add(process)
        try:
            code = process.wait(max(MAX_SECONDS - self.seconds, 1))
            ended = f"FAILED with {code}" if code else "ok"
        except subprocess.TimeoutExpired:
            end(process)
            ended = "FAILED, ended for want of time"
        self.running.remove(process)
        said = log.read_text(encoding="utf-8", errors="replace")
        seconds = round(self.seconds - begin)
        with self.lock:
            print(f"=== {part}\n{said}=== {part}: {ended} after {seconds} s", flush=True)
            self.took[name] += seconds
            self.missing += [f"{part}: {line}" for line in re.findall(r"(?m)^SKIPPED: (.*)", said)]
            self.unsteady += re.findall(r"(?m)^UNSTEADY: (.*)", said)
            if ended != "ok":
                self.failed.append(part)

    def again(self) -> None:
        """Run once more, by themselves, the parts that failed beside others."""
        for part in tuple(self.failed):
            if part not in TRY_AGAIN_THEMSELVES and self.seconds < LAST_BEGIN_SECONDS:
                self.failed.remove(part)
                self.run(part)
                self.unsteady += [part] * (part not in self.failed)

    def summary(self) -> str:
        """Return the last lines: how long each part took, and how all ended."""
        took = " | ".join(f"{name} {seconds} s" for name, seconds in self.took.most_common())
        good = len(PARTS) - len(self.failed) - len(self.late)
        counts = [f"{good} of {len(PARTS)} parts ok"]
        for what, names, between in (
            ("FAILED", self.failed, ", "),
            ("NOT BEGUN for want of time", self.late, ", "),
            ("passed by themselves", self.unsteady, "; "),
            ("not to be had", self.missing, "; "),
        ):
            counts += [f"{len(names)} {what}: {between.join(names)}"] if names else []
        return f"=== {took}\n=== {self.seconds:.0f} s: {' | '.join(counts)}"


def end(process: "subprocess.Popen[bytes]") -> None:
    """End a part with all that it started."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
            process.wait(GRACE_SECONDS)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            continue


def interrupted(*_: object) -> None:
    """End this process, and so the parts, as Ctrl-C does."""
    sys.exit(1)


def main() -> int:
    """Run all parts; return how many failed."""
    LOGS.mkdir(parents=True, exist_ok=True)
    run = Run()
    signal.signal(signal.SIGTERM, interrupted)
    lanes = ThreadPoolExecutor(LANES)
    try:
        list(lanes.map(run.run, PARTS))
        run.again()
    finally:
        lanes.shutdown(wait=False, cancel_futures=True)
        for process in tuple(run.running):
            end(process)
        print(run.summary(), flush=True)
    return len(run.failed)


if __name__ == "__main__":
    sys.exit(main())
