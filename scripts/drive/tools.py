"""What the parts of CI need beside .venv, at the versions that the files of requirements/ lock.

Each tool has a folder of its own in the cache; one that its lock made is used as it is. What cannot
be had is a line that begins with SKIPPED, which scripts/ci counts.
"""

import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PYTHON_LOCKS = ROOT / "requirements" / "tools.python.txt"
NODE_LOCKS = ROOT / "requirements" / "tools.node.json"
SECTION = re.compile(r"^# === (\S+)\n", re.MULTILINE)
"""The line above the packages of each of Python's tools."""
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fetchstash" / "tools"
TRIES = 2
"""A registry that does not answer once is asked again."""
MAX_SECONDS = 600


def skip(what: str, why: str = "") -> None:
    """Say that something cannot be had here."""
    print(f"SKIPPED: {what} cannot be installed here{why and ': '}{why[-300:]}", flush=True)


def python_locks() -> dict[str, str]:
    """Return the requirements of each of Python's tools, as pip reads them."""
    _, *parts = SECTION.split(PYTHON_LOCKS.read_text(encoding="utf-8"))
    return dict(zip(parts[::2], parts[1::2], strict=True))


def node_locks() -> dict[str, Any]:
    """Return the package-lock.json of each of npm's tools."""
    locks: dict[str, Any] = json.loads(NODE_LOCKS.read_text(encoding="utf-8"))
    return locks


def python_tool(name: str) -> Path | None:
    """Return the folder of the programs of an environment, made if need be; None if it cannot."""
    folder = CACHE / name
    lock = folder.with_name(f".{name}.txt")  # beside the folder, which is made empty first
    programs = folder / "bin"
    python = programs / "python"
    # uv, which installs all the others, is installed by pip.
    installer = python if name == "uv" else Path(uv_program() or "uv")
    pip = ["-m", "pip", "install"] if name == "uv" else ["pip", "install", "--python", str(python)]
    bare = [] if name == "uv" else ["--without-pip"]
    make: list[str | Path] = [sys.executable, "-m", "venv", *bare, "--clear", folder]
    install: list[str | Path] = [
        installer,
        *pip,
        "-q",
        "--require-hashes",
        "--only-binary",
        ":all:",
        "-r",
        lock,
    ]
    return programs if _made(name, {lock: python_locks()[name]}, [make, install]) else None


def node_tool(name: str) -> Path | None:
    """Return the folder with the node_modules of a tool, made if need be; None if it cannot be."""
    folder = CACHE / name
    if shutil.which("npm") is None:
        skip(name, "there is no npm")
        return None
    lock = node_locks()[name]
    files = {
        folder / "package.json": json.dumps(lock["packages"][""]),
        folder / "package-lock.json": json.dumps(lock),
    }
    return folder if _made(name, files, [["npm", "ci", "--no-fund", "--no-audit"]]) else None


def node_program(tool: str, program: str) -> str | None:
    """Return the path of a program of an npm tool, or None."""
    folder = node_tool(tool)
    return str(folder / "node_modules" / ".bin" / program) if folder else None


def uv_program() -> str | None:
    """Return the path of uv, installed if it is not there; None if it cannot be had."""
    # Like pip, trust the system's certificates: uv's own list lacks a company's.
    for name in ("UV_SYSTEM_CERTS", "UV_NATIVE_TLS"):
        os.environ.setdefault(name, "1")
    if found := shutil.which("uv"):
        return found
    programs = python_tool("uv")
    return str(programs / "uv") if programs else None


def debian(program: str, *packages: str) -> bool:
    """Return whether a program is there; installs Debian's packages for it where root may.

    ``program`` is a name for PATH, or a pattern below / for what is not on it.
    """
    path = f"{os.environ.get('PATH', os.defpath)}{os.pathsep}/usr/sbin"

    def there() -> bool:
        return (
            any(Path("/").glob(program))
            if "/" in program
            else bool(shutil.which(program, path=path))
        )

    if there():
        return True
    fault = "that needs root on Debian"
    if os.geteuid() == 0 and shutil.which("apt-get"):
        # No service is to start by itself (invoke-rc.d(8)), and no cluster of PostgreSQL is made.
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}
        cluster = Path("/etc/postgresql-common/createcluster.conf")
        if "postgresql" in packages and not cluster.exists():
            cluster.parent.mkdir(exist_ok=True)
            cluster.write_text("create_main_cluster = false\n")
        options = ("-qq", "-o", "DPkg::Lock::Timeout=300")
        install = ["apt-get", "install", *options, "--no-install-recommends", *packages]
        for command in (["apt-get", "update", *options], [*install, "-y"]):
            fault = _fault(command, environment=environment)
    if not there():
        skip(" ".join(packages), fault)
    return there()


def postgresql() -> bool:
    """Return whether PostgreSQL's server is there, installed where root may."""
    return debian("usr/lib/postgresql/*/bin/initdb", "postgresql")


def node_folder(major: int) -> Path | None:
    """Return the folder of a Node of a version or newer, npm's own package of it if need be."""
    if found := shutil.which("node"):
        done = subprocess.run([found, "--version"], capture_output=True, text=True, check=False)
        if int(done.stdout.lstrip("v").partition(".")[0] or 0) >= major:
            return Path(found).parent
    own = node_program("node", "node")
    return Path(own).parent if own else None


def _made(name: str, files: dict[Path, str], steps: list[list[str | Path]]) -> bool:
    """Return whether a tool is installed from these files; makes it anew if they have changed."""
    folder = CACHE / name
    digest = hashlib.sha256("".join([*files.values(), sys.version]).encode()).hexdigest()
    stamp = folder / "lock-digest"
    import fcntl  # noqa: PLC0415 - checks runs on Windows, too, and installs none of these there

    folder.mkdir(parents=True, exist_ok=True)
    with folder.with_name(f".{name}.lock").open("ab") as file:  # two parts may want the same tool
        fcntl.flock(file, fcntl.LOCK_EX)
        if stamp.exists() and stamp.read_text() == digest:
            return True
        stamp.unlink(missing_ok=True)
        fault = ""
        for _ in range(TRIES):
            for path, text in files.items():
                path.write_text(text, encoding="utf-8")
            for step in steps:
                if fault := _fault(step, folder):
                    break
            else:
                stamp.write_text(digest)
                return True
    skip(name, fault)
    return False


def _fault(
    command: Sequence[str | Path],
    folder: Path | None = None,
    environment: dict[str, str] | None = None,
) -> str:
    """Run a step of an installation and return the end of what it said if it failed, else ""."""
    pipe = subprocess.PIPE
    options: Any = {"cwd": folder, "env": environment, "stdin": subprocess.DEVNULL, "text": True}
    try:
        with subprocess.Popen(
            command, stdout=pipe, stderr=subprocess.STDOUT, start_new_session=True, **options
        ) as process:
            try:
                said, _ = process.communicate(timeout=MAX_SECONDS)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)  # what npm builds would go on
                raise
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return "" if process.returncode == 0 else " ".join(said.split()) or "it failed"
