"""Run everything that CI runs of lint, types, import rules and tests.

    scripts/test                  all of it but pyright and the long tests, against the built
                                  wheel: 4 cases of a table
    scripts/test --all            all of it, as CI runs it
    scripts/test --quick          lint, import rules, quick tests on the checkout: 3 cases of a
                                  table, and no test that tests/costly.txt lists
    scripts/lint                  lint and import rules; mends the style that can be mended
    scripts/test [ARGUMENT …]     some tests, against the built wheel: the arguments go to pytest

Each check is one line; what it printed stands in `.venv-checks.log`, and is shown where it fails.
The tests run in a second environment that has the wheel and, by a .pth file, the packages of the
first: the checkout itself is not importable there (PYTHONSAFEPATH keeps the working directory out).
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import venv
from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from scripts.drive.tools import postgresql
from scripts.setup import Waiting

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent
SIDE_BY_SIDE = ("-n", "auto", "--dist", "loadfile")
"""A process for each core; the tests of one file stay together, as their servers do."""
DEALT = (*SIDE_BY_SIDE[:2], "--dist", "each", "--deal")
"""The same, for all tests that are quick: none prepares the files of another."""
WHEEL_VENV = ROOT / f"{Path(sys.prefix).name}-wheel"
SCRIPTS = "Scripts" if os.name == "nt" else "bin"
LOG = ROOT / f"{Path(sys.prefix).name}-checks.log"
MOST_AGAIN = 10
"""Tests that may fail beside others and are tried once more, by themselves."""
TESTS_FAILED = 1
"""Pytest's exit code for it."""
AGAIN = ("-v", "-n", "0", "--last-failed", "--last-failed-no-failures", "none")
SUMMARY = re.compile(r"^(?:FAILED|ERROR) (tests/\S+)", re.MULTILINE)
FAILURES = re.compile(r"^=+ (?:FAILURES|ERRORS|short test summary info) =+$", re.MULTILINE)
MEND = {
    "ruff check": "scripts/lint mends what can be mended",
    "ruff format": "scripts/lint does it",
    "mypy": ".venv/bin/mypy FILE tries one file",
    "pyright": ".venv/bin/pyright FILE tries one file",
    "tests": "scripts/test tests/FILE.py -k WORD runs some tests",
}
"""What to do where a check failed."""
START = time.monotonic()


class Tests:
    """Counts the tests that ended, by the lines that `pytest -v -n auto` adds to the log."""

    OUTCOME = re.compile(rb"^\[gw\d+\] \[ *(\d+)%\] ([A-Z]+) (.*)\n", re.MULTILINE)

    def __init__(self, processes: int = 1) -> None:
        """Begin at the end of the log. Each of ``processes`` has tests of its own to count."""
        self.processes = processes
        self.read = LOG.stat().st_size
        self.counts: Counter[str] = Counter()
        self.share = 0

    def __call__(self) -> str:
        """Return how far the tests are; name each that failed since the last time."""
        with LOG.open("rb") as log:
            log.seek(self.read)
            added = log.read()
        added = added[: added.rfind(b"\n") + 1]
        self.read += len(added)
        for share, outcome, name in self.OUTCOME.findall(added):
            self.share = int(share) // self.processes
            self.counts[outcome.decode().lower()] += 1
            if outcome in (b"FAILED", b"ERROR"):
                print(f"{outcome.decode()} {name.decode(errors='replace')}", flush=True)
        counted = (f" · {count:,} {outcome}" for outcome, count in self.counts.items())
        return f" · {self.share} %{''.join(counted)}"


def step(name: str, command: Sequence[str | Path], env: Mapping[str, str] | None = None) -> str:
    """Run one check, print a line about it, and return its output; end at the first that fails."""
    waiting = Waiting(name)
    words = [str(part) for part in command]
    with LOG.open("ab") as log:
        begin = log.tell()
        process = subprocess.Popen(words, cwd=ROOT, env=env, stdout=log, stderr=log)
    processes = (os.cpu_count() or 1) if "--deal" in words else 1
    code = waiting.wait(process, Tests(processes) if "pytest" in words else str)
    output = LOG.read_bytes()[begin:].decode(errors="replace")
    report(name, code, waiting.seconds, output)
    return output


def report(name: str, code: int, seconds: float, output: str) -> None:
    """Print a line about a check that ended; show its output and end if it failed."""
    if code:
        failures = FAILURES.search(output)
        print(output[failures.start() if failures else 0 :], end="")
    print(f"{'FAILED' if code else 'ok':<6}  {name}, {seconds:.1f} s", flush=True)
    if code:
        print(f"Stopped after {minutes()}. All output: {LOG}")
        print(f"Next: mend that; {MEND.get(name, MEND['tests'])}.")
        sys.exit(code)


@contextmanager
def beside(name: str) -> Generator[None]:
    """Run a check of types while the body runs others: it keeps one processor busy."""
    with tempfile.TemporaryFile() as said, ThreadPoolExecutor(1) as watching:
        waiting = Waiting(name)
        process = subprocess.Popen([BIN / name], cwd=ROOT, stdout=said, stderr=said)
        ended = watching.submit(lambda: (process.wait(), waiting.seconds))
        try:
            yield
        finally:
            waiting.wait(process)  # pyright leaves a Node behind if it is killed
            said.seek(0)
            output = said.read().decode(errors="replace")
        report(name, *ended.result(), output)


def tests_of_ci(pytest: Sequence[str | Path], env: Mapping[str, str]) -> str:
    """Run all tests; a few that fail beside CI's other lane are tried once more, by themselves.

    One that passes then is said and counted: it needs a time that a busy machine does not keep.
    """
    command = [*pytest, "-v", *SIDE_BY_SIDE]
    try:
        return step("tests", command, env)
    except SystemExit:
        failed = sorted(set(SUMMARY.findall(LOG.read_text(encoding="utf-8", errors="replace"))))
        if not 0 < len(failed) <= MOST_AGAIN:
            raise
    output = step("tests that failed, by themselves", [*pytest, *AGAIN], env)
    for name in failed:
        print(f"UNSTEADY: {name}")
    return output


def code_of(
    name: str, command: Sequence[str | Path], env: Mapping[str, str], *first: str, cache: str
) -> int:
    """Run pytest; return its exit code. What failed beside CI's other lane is tried by itself.

    It is remembered apart from that of other runs, in a ``cache`` of its own.
    """
    command = [*command, "-o", f"cache_dir=build/failed-{cache}"]
    code = subprocess.run([*command, *first], cwd=ROOT, env=env, check=False).returncode
    if code == TESTS_FAILED:
        code = subprocess.run([*command, *AGAIN], cwd=ROOT, env=env, check=False).returncode
        if not code:
            print(f"UNSTEADY: {name}")
    return code


def minutes() -> str:
    """Return how long it has taken."""
    seconds = round(time.monotonic() - START)
    return f"{seconds // 60} min {seconds % 60} s" if seconds > 99 else f"{seconds} s"


def ended(output: str) -> None:
    """Print the last lines: what the tests counted, and what to do next."""
    counted = re.findall(r"^=+ (.* passed.*) in .* =+$", output, re.MULTILINE)
    print(f"All is well after {minutes()}: {counted[-1] if counted else 'style and imports'}.")
    print("Next: scripts/run demo shows what it does, scripts/run register adds it to your host.")


def wheel_environment() -> Path:
    """Return the Python of an environment that has the wheel; make both if sources changed."""
    python = WHEEL_VENV / SCRIPTS / Path(sys.executable).name
    stamp, source = WHEEL_VENV / "source", digest()
    if stamp.is_file() and stamp.read_text() == source:
        return python
    shutil.rmtree(WHEEL_VENV, ignore_errors=True)
    venv.create(WHEEL_VENV, with_pip=False, symlinks=os.name != "nt")
    ours: list[str | Path] = [sys.executable, "-P"]
    with tempfile.TemporaryDirectory() as folder:
        build: list[str | Path] = ["build", "--wheel", "--no-isolation", "--outdir", folder, ROOT]
        step("build the wheel", [*ours, "-m", *build])
        wheel = next(Path(folder).glob("*.whl"))
        if uv := shutil.which("uv"):
            install: list[str | Path] = [uv, "pip", "install", "--python", python]
        else:
            if find_spec("pip") is None:  # uv set the environment up, and leaves pip out
                step("install pip", [*ours, "-m", "ensurepip"])
            pip: list[str | Path] = ["-m", "pip", "--disable-pip-version-check", "--python", python]
            install = [*ours, *pip, "install"]
        step("install the wheel", [*install, "-q", "--no-deps", wheel])
    asked = ("-P", "-c", "import sysconfig as s; print(*map(s.get_path, ('purelib', 'platlib')))")
    of_ours, of_theirs = (
        subprocess.run([each, *asked], check=True, capture_output=True, text=True).stdout.split()
        for each in (sys.executable, python)
    )
    theirs = Path(of_theirs[0])
    (theirs / "locked-packages.pth").write_text("\n".join(dict.fromkeys(of_ours)), encoding="utf-8")
    stamp.write_text(source)
    return python


def digest() -> str:
    """Return a hash of all that the wheel is made of, and of the Python that it is for."""
    files = (p for p in (ROOT / "fetchstash").rglob("*") if p.is_file() and p.suffix != ".pyc")
    found = hashlib.sha256(sys.version.encode())
    for file in (*sorted(files), ROOT / "pyproject.toml", ROOT / "README.md"):
        found.update(f"{file.relative_to(ROOT)}\0{file.stat().st_size}\0".encode())
        found.update(file.read_bytes())
    return found.hexdigest()


def lint() -> None:
    """Check style and import rules."""
    step("ruff check", [BIN / "ruff", "check", "."])
    step("ruff format", [BIN / "ruff", "format", "--check", "."])
    paths = {**os.environ, "PYTHONPATH": str(ROOT)}
    step("import rules", [BIN / "lint-imports", "--no-cache"], paths)


def main() -> int:
    """Run all checks, the quick ones, or some tests; return the exit code."""
    arguments = sys.argv[1:]
    LOG.unlink(missing_ok=True)
    if arguments == ["--lint"]:
        step("ruff check, mended", [BIN / "ruff", "check", "--fix", "."])
        step("ruff format, mended", [BIN / "ruff", "format", "."])
        lint()
        return 0
    if arguments[:1] == ["--quick"]:
        lint()
        quick = [sys.executable, "-m", "pytest", "-v", "-m", "not slow", "--cases", "3"]
        # Files that are named are not dealt: whoever names one waits for few.
        quick += ["--cheap", "--durations=5", *(SIDE_BY_SIDE if arguments[1:] else DEALT)]
        memory = Path("/dev/shm")  # noqa: S108 - private folders, where nothing waits for a disk
        with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
            quick.append(f"--basetemp={folder}/tests")
            env = {**os.environ, "PYTHONPATH": str(ROOT)}
            output = step("quick tests", [*quick, *arguments[1:]], env)
        print(*re.findall(r"^[\d.]+s call .*", output, re.MULTILINE), sep="\n")
        ended(output)
        return 0
    every = arguments == ["--all"]
    if every or not arguments:
        lint()
    if every:
        with beside("pyright"):
            step("mypy", [BIN / "mypy"])
    python = wheel_environment()
    path = f"{python.parent}{os.pathsep}{os.environ['PATH']}"
    env = {**os.environ, "PYTHONSAFEPATH": "1", "PATH": path}
    env.pop("PYTHONPATH", None)
    pytest: list[str | Path] = [python, "-m", "pytest"]
    if arguments and not every:
        return subprocess.run([*pytest, *arguments], cwd=ROOT, env=env, check=False).returncode
    if every:
        postgresql()  # for the tests of a team's store
        ended(tests_of_ci(pytest, env))
    else:
        some = ("-m", "not long", "--cases", "4")
        with beside("mypy"):
            output = step("tests", [*pytest, "-v", *SIDE_BY_SIDE, *some], env)
        ended(output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
