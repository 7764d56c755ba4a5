"""Run the tests of the quick run on other interpreters, of each test's table one case.

    scripts/ci matrix              Debian 12's Python, the oldest that README promises, and a newer
    scripts/ci matrix PYTHON …     these

Each has an environment of its own. `checks` runs every case; what a table holds is data, and what
takes long are many or large inputs: neither depends on the interpreter. Exit code: how many failed.
"""

import os
import subprocess
import sys
from pathlib import Path

from scripts.drive.tools import ROOT, skip, uv_program
from scripts.parts.checks import DEALT, code_of

PYENV = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
WANTED = {
    "the system's Python": ["/usr/bin/python3"],
    "Python 3.13 or newer": [
        *("python3.14", "python3.13"),
        *map(str, sorted(PYENV.glob("3.1[34]*/bin/python"), reverse=True)),
    ],
}


def version(python: str) -> tuple[int, ...]:
    """Return the version of an interpreter, () if it does not run."""
    command = [python, "-c", "import platform; print(platform.python_version())"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return ()
    return tuple(int(part) for part in done.stdout.split(".") if part.strip().isdigit())


def main() -> int:
    """Test on the interpreters that are named, or found; return how many failed."""
    pythons = sys.argv[1:]
    for name, candidates in () if pythons else WANTED.items():
        if python := next((each for each in candidates if version(each) >= (3, 11)), ""):
            pythons.append(python)
        else:
            skip(name, "no such interpreter is here")
    failed = 0
    for python in pythons:
        number = ".".join(map(str, version(python)))
        print(f"--- matrix: Python {number} ({python})", flush=True)
        path = os.pathsep.join((str(Path(uv_program() or "uv").parent), os.environ["PATH"]))
        own = {"PYTHON": python, "CHECKOUT_VENV": f".venv-{number}", "PATH": path}
        environment = {**os.environ, **own}
        # Failures are explained where they are tried again: it takes long to prepare all modules.
        tests = ["-q", "-m", "not slow", "--cases", "1", "--cheap", "--assert", "plain", *DEALT]
        command = [ROOT / "scripts" / "test"]
        code = code_of(f"tests on Python {number}", command, environment, *tests, cache=number)
        failed += bool(code)
    return failed


if __name__ == "__main__":
    sys.exit(main())
