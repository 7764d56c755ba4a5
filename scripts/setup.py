"""Makes and reuses .venv from the locks; then runs what it was asked to run. Standard library only.

    scripts/setup.py run [ARGUMENT …]      the command fetchstash, from this checkout
    scripts/setup.py test [ARGUMENT …]     everything that CI runs (scripts/checks.py)
    scripts/setup.py torture [ARGUMENT …]  the long tests (scripts/torture.py)

Everything it says goes to stderr: a host that starts `scripts/run` reads JSON-RPC on stdout. The
stamp names the checksums of what was installed and is written last, so that a set-up that was
broken off starts over; a lock lets two hosts start at once.
"""

import contextlib
import hashlib
import os
import shutil
import subprocess
import sys
import time
import venv
from collections.abc import Generator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
STAMP = VENV / "fetchstash-stamp"
BIN = VENV / ("Scripts" if os.name == "nt" else "bin")
PYTHON = BIN / ("python.exe" if os.name == "nt" else "python")
LOCK_SECONDS = 600


def say(text: str) -> None:
    """Tell the person who waits; never on stdout."""
    print(f"fetchstash: {text}", file=sys.stderr, flush=True)


def wanted(kind: str) -> str:
    """Return what the stamp must hold for this set of packages: any change of Python, lock or project makes it another."""
    parts = [sys.version, str(ROOT), (ROOT / "pyproject.toml").read_text(encoding="utf-8")]
    parts.append((ROOT / "requirements" / f"{kind}.txt").read_text(encoding="utf-8"))
    return f"{kind} {hashlib.sha256(chr(0).join(parts).encode()).hexdigest()}"


@contextlib.contextmanager
def only_one() -> Generator[None]:
    """Hold a lock while setting up. A lock that is older than a set-up can take is of a process that died."""
    lock = ROOT / ".venv-lock"
    end = time.monotonic() + LOCK_SECONDS
    while True:
        try:
            lock.mkdir()
            break
        except FileExistsError:
            with contextlib.suppress(OSError):
                if time.time() - lock.stat().st_mtime > LOCK_SECONDS:
                    lock.rmdir()
            if time.monotonic() > end:
                say(
                    f"another set-up holds {lock}. If none is running, remove that folder and try again."
                )
                sys.exit(1)
            time.sleep(0.2)
    try:
        yield
    finally:
        lock.rmdir()


def ready(kind: str) -> bool:
    """Return whether .venv holds what is wanted. The packages of the tests hold those of the program."""
    kinds = ("run", "dev") if kind == "run" else ("dev",)
    try:
        return (
            STAMP.read_text(encoding="utf-8") in {wanted(one) for one in kinds} and PYTHON.exists()
        )
    except OSError:
        return False


def install(kind: str) -> None:
    """Install the locked packages, checked by their hashes, and this checkout; uv where it is there, pip where it is not."""
    say(f"setting up {VENV} (once; about half a minute)")
    STAMP.unlink(missing_ok=True)
    if not PYTHON.exists():
        shutil.rmtree(VENV, ignore_errors=True)
        venv.create(VENV, with_pip=True, symlinks=os.name != "nt")
    uv = shutil.which("uv")
    pip = (
        [uv, "pip", "install", "--quiet", "--python", str(PYTHON)]
        if uv
        else [str(PYTHON), "-P", "-m", "pip", "install", "-q"]
    )
    if not uv:
        pip += ["--disable-pip-version-check", "--only-binary", ":all:"]
    lock = str(ROOT / "requirements" / f"{kind}.txt")
    subprocess.run([*pip, "--require-hashes", "-r", lock], check=True, stdout=sys.stderr)
    editable = [option for option in pip if option not in ("--only-binary", ":all:")]
    subprocess.run(
        [*editable, "--no-build-isolation", "--no-deps", "-e", str(ROOT)],
        check=True,
        stdout=sys.stderr,
    )
    STAMP.write_text(wanted(kind), encoding="utf-8")


def main() -> int:
    """Set up what is missing, and run; return the exit code, where this process is still there to have one."""
    what, *arguments = sys.argv[1:]
    kind = "run" if what == "run" else "dev"
    try:
        if not ready(kind):
            with only_one():
                if not ready(kind):
                    install(kind)
    except (subprocess.CalledProcessError, OSError) as error:
        say(
            f"the set-up failed: {error}. Its own messages stand above; mend the cause and run this again."
        )
        return 1
    if what == "run":
        program = [str(BIN / "fetchstash"), *arguments]
    else:
        script = {"test": "checks.py", "torture": "torture.py"}[what]
        program = [str(PYTHON), "-P", str(ROOT / "scripts" / script), *arguments]
    if os.name != "nt":  # the host talks to the program itself, and its signals reach it
        os.execv(program[0], program)  # noqa: S606 - no shell is wanted
    return subprocess.run(program, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
