"""Make and reuse .venv from the locks, then run a program in it. Standard library only.

    scripts/setup.py run [ARGUMENT …]      the command fetchstash, from this checkout
    scripts/setup.py PART [ARGUMENT …]     a program of scripts/parts, with the tests' packages

Set CHECKOUT_VENV to keep another environment: scripts/ci matrix has one for each interpreter.

Everything here prints to stderr, because a host that starts `scripts/run` reads JSON-RPC on stdout.
What the installers print goes to `.venv.log`.
The stamp names what was installed and is written last, so that an interrupted set-up starts over.
Locks belong to the operating system and end with the process that holds them:

- one set-up at a time holds `.venv.lock`, and so do the installers that it started;
- every program that runs from the environment shares `.venv/fetchstash-in-use` until it ends, and
  an environment in use is never rebuilt.
"""

import contextlib
import ctypes
import functools
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from pathlib import Path
from typing import IO

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / os.environ.get("CHECKOUT_VENV", ".venv")
STAMP = VENV / "fetchstash-stamp"
IN_USE = VENV / "fetchstash-in-use"
LOCK = VENV.with_name(f"{VENV.name}.lock")
LOG = VENV.with_name(f"{VENV.name}.log")
BIN = VENV / ("Scripts" if os.name == "nt" else "bin")
PYTHON = BIN / ("python.exe" if os.name == "nt" else "python")
LOCK_SECONDS = 600
PARTS = ROOT / "scripts" / "parts"
PR_SET_PDEATHSIG = 1
LINE_SECONDS = 15


def say(text: str) -> None:
    """Print a line for the person who waits; never on stdout."""
    print(f"fetchstash: {text}", file=sys.stderr, flush=True)


class Waiting:
    """What is waited for and for how long: a line on stderr every 15 s."""

    def __init__(self, what: str) -> None:
        """Begin to count the seconds of ``what``."""
        self.what, self.start, self.shown = what, time.monotonic(), 0.0

    @property
    def seconds(self) -> float:
        """Return how long it has taken."""
        return time.monotonic() - self.start

    def show(self, more: str = "") -> None:
        """Show how far it is, if the last time is long enough ago."""
        if self.seconds - self.shown >= LINE_SECONDS:
            self.shown = self.seconds
            say(f"{self.what} … {self.seconds:.0f} s{more}")

    def wait(self, process: "subprocess.Popen[bytes]", more: Callable[[], str] = str) -> int:
        """Wait for a process, show how far it is, and return its exit code."""
        with process:
            while True:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    return process.wait(0.2)
                self.show(more())


def try_lock(file: IO[bytes]) -> bool:
    """Take the operating system's lock on an open file, and return whether it was free."""
    try:
        if os.name == "nt":
            import msvcrt  # noqa: PLC0415 - Windows alone has it

            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined,unused-ignore]
        else:
            import fcntl  # noqa: PLC0415 - POSIX alone has it

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


@contextlib.contextmanager
def only_one() -> Generator[int]:
    """Wait for the lock of the set-up and hold it; yield its descriptor, for what is started.

    The lock ends with this process and its installers, however they end.
    """
    end = time.monotonic() + LOCK_SECONDS
    with LOCK.open("ab") as file:
        if not try_lock(file):
            say("another set-up is running; waiting for it")
            while not try_lock(file):
                if time.monotonic() > end:
                    say(f"another set-up has held {LOCK} for {LOCK_SECONDS} s. End it, try again.")
                    sys.exit(1)
                time.sleep(0.2)
        yield file.fileno()


def digest(*files: str) -> str:
    """Return the checksum of this checkout's place and of some of its files."""
    contents = (str(ROOT), *((ROOT / file).read_text(encoding="utf-8") for file in files))
    return hashlib.sha256("\0".join(contents).encode()).hexdigest()


def expected_stamp(kind: str) -> dict[str, str]:
    """Return the stamp of an environment that has the packages of the program, or of the tests."""
    tests = digest("requirements/dev.txt") if kind == "dev" else ""
    program = digest("pyproject.toml", "requirements/run.txt")
    return {"program": program, "tests": tests, "python": str(PYTHON.resolve())}


def read_stamp() -> dict[str, str]:
    """Return the stamp of the environment as it is, {} if it has none."""
    try:
        stamp: dict[str, str] = json.loads(STAMP.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return stamp


def ready(kind: str) -> bool:
    """Return whether the environment holds what is needed and its own Python is still there.

    The Python that runs this script does not matter: the environment belongs to the one that made
    it. The packages of the tests include those of the program.
    """
    return PYTHON.exists() and read_stamp() == needed_stamp(kind)


def needed_stamp(kind: str) -> dict[str, str]:
    """Return the stamp that is wanted; a program is content with the packages of the tests."""
    expected = expected_stamp(kind)
    return expected | {"tests": read_stamp().get("tests", "")} if kind == "run" else expected


def in_use() -> bool:
    """Return whether a program runs from the environment."""
    try:
        with IN_USE.open("rb+") as file:
            return not try_lock(file)
    except OSError:
        return False


def mark_in_use() -> None:
    """Share the lock of the environment for as long as this process, or what replaces it, lives."""
    if os.name == "nt":  # Windows does not let a running program be overwritten
        return
    import fcntl  # noqa: PLC0415 - POSIX alone has it

    with contextlib.suppress(OSError):
        descriptor = os.open(IN_USE, os.O_RDWR | os.O_CREAT, 0o600)
        os.set_inheritable(descriptor, True)
        fcntl.flock(descriptor, fcntl.LOCK_SH)


def run_installer(what: str, command: list[str], lock: int) -> None:
    """Run a step of the set-up, which says all it says in the log and does not outlive the set-up.

    It shares the lock: the next set-up waits until nothing writes to the environment any more. On
    Linux it ends with the set-up (PR_SET_PDEATHSIG, prctl(2)), so that there is nothing to wait
    for. Raises CalledProcessError if it fails.
    """
    end_with_us = None
    if sys.platform == "linux":
        prctl = ctypes.CDLL(None).prctl
        end_with_us = functools.partial(prctl, PR_SET_PDEATHSIG, signal.SIGKILL)
    with LOG.open("ab") as log:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=() if os.name == "nt" else (lock,),
            preexec_fn=end_with_us,  # noqa: PLW1509 - nothing here has threads
        )
    if code := Waiting(what).wait(process):
        raise subprocess.CalledProcessError(code, command)


def install(kind: str, lock: int) -> None:
    """Install the locked packages, checked by their hashes, and this checkout.

    uv does it where it is installed and succeeds, pip elsewhere.
    """
    start = time.monotonic()
    say(f"setting up {VENV} (once; half a minute, a few seconds with uv)")
    if not os.isatty(0):
        say("a host may give up before that: `scripts/run --version` in a terminal does it first")
    STAMP.unlink(missing_ok=True)
    LOG.unlink(missing_ok=True)
    if not usable():
        shutil.rmtree(VENV, ignore_errors=True)
        make = [sys.executable, "-m", "venv", "--without-pip", str(VENV)]
        run_installer("making the environment", make, lock)
    packages = ["--require-hashes", "-r", str(ROOT / "requirements" / f"{kind}.txt")]
    checkout = ["--no-build-isolation", "--no-deps", "-e", str(ROOT)]
    what, ours = "installing the locked packages", "installing this checkout"
    uv = shutil.which("uv")
    if uv:
        # Like pip and browsers, trust the system's certificates: uv's own list lacks a company's.
        for name in ("UV_SYSTEM_CERTS", "UV_NATIVE_TLS"):
            os.environ.setdefault(name, "1")
        quick = [uv, "pip", "install", "--quiet", "--python", str(PYTHON)]
        try:
            run_installer(what, [*quick, *packages], lock)
            run_installer(ours, [*quick, *checkout], lock)
        except subprocess.CalledProcessError:
            say("uv could not do it; trying pip")
            uv = None
    if not uv:
        if not usable("pip"):
            run_installer("unpacking pip", [str(PYTHON), "-P", "-m", "ensurepip"], lock)
        pip = [str(PYTHON), "-P", "-m", "pip", "install", "--disable-pip-version-check"]
        run_installer(what, [*pip, "--only-binary", ":all:", *packages], lock)
        run_installer(ours, [*pip, *checkout], lock)
    say(f"set up after {time.monotonic() - start:.0f} s; what the installers said: {LOG}")
    STAMP.write_text(json.dumps(expected_stamp(kind)), encoding="utf-8")


def usable(module: str = "sys") -> bool:
    """Return whether the environment's own Python runs and has a module."""
    try:
        command = [str(PYTHON), "-P", "-c", f"import {module}"]
        done = subprocess.run(command, check=False, capture_output=True)
    except OSError:
        return False
    return done.returncode == 0


def set_up(kind: str) -> None:
    """Install what is missing, once, whoever else starts at the same time."""
    if ready(kind):
        return
    with only_one() as lock:
        if ready(kind):
            return
        stamp, needed = read_stamp(), needed_stamp(kind)
        if stamp and stamp | {"python": ""} == needed | {"python": ""} and usable("fetchstash"):
            # Its Python was updated in its place, and still has the packages.
            STAMP.write_text(json.dumps(needed), encoding="utf-8")
            return
        # Adding the packages of the tests does not disturb a program that runs.
        if in_use() and not usable():
            say(f"the Python of {VENV} is gone, and a program still runs from there.")
            say("End that program, then start this again to make it anew.")
            sys.exit(1)
        if in_use() and stamp.get("program") != needed["program"]:
            say(f"{VENV} is out of date, and used as it is: a program still runs from it.")
            say("End that program, then start this again to bring it up to date.")
            return
        install(kind, lock)


def main() -> int:
    """Set up what is missing and run the program; return the exit code if it was not replaced."""
    name, *arguments = sys.argv[1:]
    if name != "run" and not (PARTS / f"{name}.py").is_file():
        say(
            f"there is no {name}, but: {', '.join(sorted(p.stem for p in PARTS.glob('[a-z]*.*')))}."
        )
        return 2
    try:
        set_up("run" if name == "run" else "dev")
    except subprocess.CalledProcessError as error:
        tool = "pip" if "pip" in error.cmd else Path(error.cmd[0]).name
        said = LOG.read_text(encoding="utf-8", errors="replace").splitlines()
        say(f"the set-up failed: {tool} ended with exit code {error.returncode}. It said last:")
        print("\n".join(f"    {line}" for line in said[-5:]), file=sys.stderr)
        say(f"All that it said is in {LOG}. Mend the cause, then start this again.")
        return 1
    except OSError as error:
        say(f"the set-up failed: {error}. Mend that, then start this again.")
        return 1
    program = [str(BIN / "fetchstash"), *arguments]
    if name != "run":
        program = [str(PYTHON), "-P", str(PARTS / f"{name}.py"), *arguments]
        # Each of the many processes would compile the tests and all that it imports anew.
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    mark_in_use()
    if os.name != "nt":  # replaced, so that the host's signals reach the program itself
        os.execv(program[0], program)  # noqa: S606 - no shell is wanted
    return subprocess.run(program, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
