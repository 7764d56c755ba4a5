"""Run everything that CI runs of lint, types, import rules and tests.

    scripts/test                  all of it but the long tests, against the built wheel
    scripts/test --all            all of it, as CI runs it
    scripts/test --quick          lint, import rules and the quick tests, on the checkout
    scripts/lint                  lint and import rules; mends the style that can be mended
    scripts/test [ARGUMENT …]     some tests, against the built wheel: the arguments go to pytest

The tests run in a second environment that has the wheel and, by a .pth file, the packages of the
first: the checkout itself is not importable there (PYTHONSAFEPATH keeps the working directory out).
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent
SIDE_BY_SIDE = ("-n", "auto", "--dist", "loadfile")
"""A process for each core; the tests of one file stay together, as their servers do."""
WHEEL_VENV = ROOT / f"{Path(sys.prefix).name}-wheel"
SCRIPTS = "Scripts" if os.name == "nt" else "bin"


def step(name: str, command: Sequence[str | Path], env: Mapping[str, str] | None = None) -> None:
    """Run one check, say how long it took, and stop at the first that fails."""
    print(f"--- {name}", flush=True)
    start = time.monotonic()
    done = subprocess.run([str(part) for part in command], cwd=ROOT, env=env, check=False)
    ended = "FAILED" if done.returncode else "ok"
    print(f"--- {name}: {ended} after {time.monotonic() - start:.1f} s", flush=True)
    if done.returncode:
        sys.exit(done.returncode)


def wheel_environment() -> Path:
    """Build the wheel, install it in an environment of its own, and return its Python."""
    shutil.rmtree(WHEEL_VENV, ignore_errors=True)
    venv.create(WHEEL_VENV, with_pip=False, symlinks=os.name != "nt")
    python = WHEEL_VENV / SCRIPTS / Path(sys.executable).name
    with tempfile.TemporaryDirectory() as folder:
        build: list[str | Path] = [
            sys.executable,
            "-P",
            "-m",
            "build",
            "--wheel",
            "--no-isolation",
            "--outdir",
            folder,
            ROOT,
        ]
        step("build the wheel", build)
        wheel = next(Path(folder).glob("*.whl"))
        install: list[str | Path] = [
            "install",
            "-q",
            "--no-deps",
            "--disable-pip-version-check",
            wheel,
        ]
        step("install the wheel", [sys.executable, "-P", "-m", "pip", "--python", python, *install])
    paths = [
        sys.executable,
        "-P",
        "-c",
        "import sysconfig; print(sysconfig.get_path('purelib'), sysconfig.get_path('platlib'))",
    ]
    of_ours = subprocess.run(paths, check=True, capture_output=True, text=True).stdout.split()
    paths[0] = str(python)
    theirs = Path(
        subprocess.run(paths, check=True, capture_output=True, text=True).stdout.split()[0]
    )
    (theirs / "locked-packages.pth").write_text("\n".join(dict.fromkeys(of_ours)), encoding="utf-8")
    return python


def lint() -> None:
    """Check style and import rules."""
    step("ruff check", [BIN / "ruff", "check", "."])
    step("ruff format", [BIN / "ruff", "format", "--check", "."])
    paths = {**os.environ, "PYTHONPATH": str(ROOT)}
    step("import rules", [BIN / "lint-imports", "--no-cache"], paths)


def main() -> None:
    """Run all checks, the quick ones, or some tests."""
    arguments = sys.argv[1:]
    if arguments == ["--lint"]:
        step("ruff check, mended", [BIN / "ruff", "check", "--fix", "."])
        step("ruff format, mended", [BIN / "ruff", "format", "."])
        lint()
        return
    if arguments[:1] == ["--quick"]:
        lint()
        quick = [sys.executable, "-m", "pytest", "-q", "-m", "not slow", "--durations=5"]
        quick.extend(SIDE_BY_SIDE)
        memory = Path("/dev/shm")  # noqa: S108 - private folders, where nothing waits for a disk
        with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
            quick.append(f"--basetemp={folder}/tests")
            step("quick tests", [*quick, *arguments[1:]], {**os.environ, "PYTHONPATH": str(ROOT)})
        return
    every = arguments == ["--all"]
    if every or not arguments:
        lint()
        step("mypy", [BIN / "mypy"])
        step("pyright", [BIN / "pyright"])
    python = wheel_environment()
    path = f"{python.parent}{os.pathsep}{os.environ['PATH']}"
    env = {**os.environ, "PYTHONSAFEPATH": "1", "PATH": path}
    env.pop("PYTHONPATH", None)
    chosen = SIDE_BY_SIDE if every else arguments or (*SIDE_BY_SIDE, "-m", "not long")
    step("tests", [python, "-m", "pytest", *chosen], env)


if __name__ == "__main__":
    main()
