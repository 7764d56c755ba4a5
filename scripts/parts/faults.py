"""Plant one-line faults in a copy of the checkout, and name those that no test notices.

    scripts/faults                    all of scripts/parts/faults.toml
    scripts/faults ROOM …             those of some rooms
    scripts/faults --only WORD        those whose rule has this word
    scripts/faults --list FILE        those of another list, written as that one

Each fault is tried against the tests that its row names, then those of its room as `scripts/test`
runs them, the quick ones first, then all others: until one fails, which is printed. Run it by hand,
and before a release. Exit code: how many survived, or no longer stand where the list says.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import tomllib
import venv
from dataclasses import dataclass
from pathlib import Path

from scripts.setup import ROOT

TABLE = Path(__file__).with_name("faults.toml")
TESTS = {
    "cli": ["tests/cli"],
    "client": ["tests/client"],
    "config": ["tests/test_config.py"],
    "fetch": ["tests/fetch"],
    "gateway": ["tests/gateway"],
    "handlers": ["tests/handlers"],
    "render": ["tests/test_render.py", "tests/server"],
    "server": ["tests/server"],
    "service": ["tests/service"],
    "stash": ["tests/stash"],
    "store": ["tests/store"],
    "system": ["tests/test_telemetry.py", "tests/service"],
    "text": ["tests/test_hygiene.py", "tests/test_tokens.py", "tests/fetch/test_url.py"],
}
"""The tests of each room; they are tried before all others."""
SOME = ("-q", "-x", "--cases", "4", "-p", "no:cacheprovider")
"""How `scripts/test` chooses, up to the first failure."""
SIDE_BY_SIDE = ("-n", "auto", "--dist", "loadfile")
_FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)
MOST_SECONDS = 900
NO_TESTS = 5
"""How pytest ends where a file has none of a mark."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One change, and the rule that it breaks. One of the files ``tests`` should notice it."""

    room: str
    rule: str
    file: str
    line: str
    fault: str
    tests: str = ""


def copy_of_checkout(folder: Path) -> Path:
    """Copy the files that git knows, and return a Python that imports that copy alone."""
    names = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout
    archive = subprocess.Popen(
        ["tar", "--create", "--null", "--files-from=-"],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with subprocess.Popen(["tar", "--extract"], cwd=folder, stdin=archive.stdout):
        assert archive.stdin is not None
        archive.stdin.write(names.encode())
        archive.stdin.close()
    archive.wait()
    place = folder / ".venv-faults"
    venv.create(place, with_pip=False, symlinks=True)
    # Files of a folder that a .pth names are importable, but its own .pth files are not read: so
    # the checkout, which is installed there as editable, is not on the path.
    packages = next(place.glob("lib/python3*/site-packages"))
    (packages / "copy.pth").write_text(
        f"{folder}\n{Path(os.__file__).parent}\n{next(p for p in sys.path if 'site-packages' in p)}"
    )
    python = place / "bin" / "python"
    command = place / "bin" / "fetchstash"  # what tests start, of the copy, too
    command.write_text(f"#!{python} -P\nfrom fetchstash.cli import main\n\nmain()\n")
    command.chmod(0o755)
    return python


class Trial:
    """Tries faults in a copy of the checkout."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.python = folder, copy_of_checkout(folder)
        self.failures: dict[tuple[str, ...], str] = {}

    def outcome(self, fault: Fault, number: int) -> str:
        """Return how a fault ended: it was noticed, SURVIVED, or could not be tried."""
        path = self.folder / fault.file
        source = path.read_text(encoding="utf-8")
        if source.count(fault.line) != 1:
            return "OUT OF DATE: the line does not stand there once"
        own = TESTS[fault.room]
        runs: list[tuple[str, ...]] = [
            ("not slow", *SIDE_BY_SIDE, *own),
            ("slow and not long", *SIDE_BY_SIDE, *own),
            ("not long", *SIDE_BY_SIDE, *(f"--ignore={test}" for test in own)),
        ]
        for tests in [("not long", *fault.tests.split()), *runs] if fault.tests else runs:
            path.write_text(source.replace(fault.line, fault.fault), encoding="utf-8")
            # Bytecode is taken by the time of its source: another one for each change.
            os.utime(path, (2 * number, 2 * number))
            failure = self.failure_now(tests)
            path.write_text(source, encoding="utf-8")
            os.utime(path, (2 * number + 1, 2 * number + 1))
            if failure and (other := self.failure_without(tests)):
                return f"UNKNOWN: without a fault, too, there fails {other}"
            if failure:
                return f"noticed by {failure}"
        return "SURVIVED"

    def failure_without(self, tests: tuple[str, ...]) -> str:
        """Return the first failure of tests in the copy as it is. They are run once for this."""
        if tests not in self.failures:
            self.failures[tests] = self.failure_now(tests)
        return self.failures[tests]

    def failure_now(self, tests: tuple[str, ...]) -> str:
        """Run the tests of a mark against the copy; return the first that failed, "" if none."""
        environment = {**os.environ, "PYTHONSAFEPATH": "1"}
        environment.pop("PYTHONPATH", None)
        environment["PATH"] = f"{self.python.parent}{os.pathsep}{environment['PATH']}"
        try:
            done = subprocess.run(
                [self.python, "-m", "pytest", *SOME, "-m", *tests],
                cwd=self.folder,
                env=environment,
                capture_output=True,
                timeout=MOST_SECONDS,
                check=False,
                encoding="utf-8",
                errors="replace",
            )
        except subprocess.TimeoutExpired:
            return f"the limit of {MOST_SECONDS} s"
        failed = _FAILED.search(done.stdout)
        if done.returncode in {0, NO_TESTS}:
            return ""
        return failed[1] if failed else f"pytest, which ended with {done.returncode}"


def main() -> int:
    """Try the chosen faults; return how many survived or are out of date."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("rooms", nargs="*", metavar="ROOM", help=", ".join(TESTS))
    parser.add_argument("--only", default="", help="a word of the rule")
    parser.add_argument("--list", default=TABLE, type=Path, metavar="FILE", help="another list")
    chosen = parser.parse_args()
    rows = tomllib.loads(chosen.list.read_text(encoding="utf-8"))["fault"]
    faults = [Fault(**row) for row in rows]
    faults = [
        fault
        for fault in faults
        if (not chosen.rooms or fault.room in chosen.rooms) and chosen.only in fault.rule
    ]
    survived = 0
    with tempfile.TemporaryDirectory(prefix="faults-") as name:
        trial = Trial(Path(name))
        for number, fault in enumerate(faults, 1):
            outcome = trial.outcome(fault, number)
            survived += not outcome.startswith("noticed")
            print(f"{fault.room}: {fault.rule}: {outcome}", flush=True)
    print(f"{len(faults) - survived} of {len(faults)} faults are noticed.")
    return survived


if __name__ == "__main__":
    sys.exit(main())
