"""Renew the locks: every package with its hashes, and no registry's address.

    scripts/lock [--upgrade] [NAME …]

Writes requirements/run.txt, team.txt (the image) and dev.txt for every platform, and for each tool
of requirements/tools.toml its part of tools.python.txt (Python's packages on Linux, which CI runs
on) or tools.node.json (npm's). With names it renews these tools alone. Needs uv and npm.

    scripts/lock --show NAME

prints what pip installs one of Python's tools from.
"""

import json
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT))  # no environment is needed, and `-P` leaves this folder out

from scripts.drive.tools import NODE_LOCKS, PYTHON_LOCKS, node_locks, python_locks  # noqa: E402

LOCKS = ROOT / "requirements"
UNIVERSAL = ("--universal", "--python-version", "3.11", "--quiet")
WHEEL = re.compile(
    r"-(py3|py2\.py3|cp3\d+-abi3|cp31[123]-cp31[123])\S*-(any|\S*linux\S*x86_64)\.whl"
)
HEAD = "# Written by scripts/lock: what each tool of tools.toml is installed from.\n"
KEPT = {
    *("version", "integrity", "dependencies", "optionalDependencies", "peerDependencies", "bin"),
    *("os", "cpu", "libc", "optional", "peer", "dev", "devOptional", "inBundle", "engines"),
    *("hasInstallScript", "peerDependenciesMeta", "bundleDependencies", "name"),
}
"""The fields of a package-lock.json that `npm ci` reads; the others may name a registry."""


def lock_program(upgrade: Sequence[str]) -> None:
    """Write what the program, the image and the tests are installed from."""
    options = ("--generate-hashes", "--no-header", "--no-annotate", "--extra", "magic")
    sources = ("pyproject.toml", "requirements/build.in")
    team = ("--extra", "team", "-c", "requirements/run.txt")
    for name, more in {
        "run": (),
        "team": team,
        "dev": (*team, "--extra", "heic", "--group", "dev"),
    }.items():
        output = ("-o", f"requirements/{name}.txt")
        uv = ("uv", "pip", "compile", *UNIVERSAL, *options, *more, *sources, *output, *upgrade)
        subprocess.run(uv, cwd=ROOT, check=True)


def lock_python(packages: Sequence[str], before: str | None, *, upgrade: bool) -> str:
    """Return the versions of Python packages, with the hashes of their wheels for Linux."""
    own = re.compile(r"^fetchstash\b(\S*)")
    with tempfile.TemporaryDirectory() as folder:
        asked, lock = Path(folder, "tool.in"), Path(folder, "pylock.toml")
        lines = [own.sub(rf"fetchstash\1 @ {ROOT.as_uri()}", package) for package in packages]
        asked.write_text("\n".join(lines))
        uv = ["uv", "pip", "compile", *UNIVERSAL, "--format", "pylock.toml"]
        uv += ["-o", str(lock), str(asked)]
        if before and not upgrade:  # the versions that it has, where they still go
            kept = Path(folder, "kept.txt")
            kept.write_text("\n".join(re.findall(r"(?m)^\S+==\S+", before)))
            if subprocess.run([*uv, "-c", str(kept)], capture_output=True, check=False).returncode:
                subprocess.run(uv, check=True)
        else:
            subprocess.run(uv, check=True)
        entries: list[dict[str, Any]] = tomllib.loads(lock.read_text())["packages"]
    return "".join(pinned(entry) for entry in entries if entry["name"] != "fetchstash")


def pinned(entry: dict[str, Any]) -> str:
    """Return the lines of a requirement, "" for a package that Linux does without."""
    hashes = [
        wheel["hashes"]["sha256"]
        for wheel in entry.get("wheels", [])
        if WHEEL.search(wheel.get("name") or wheel["url"])
    ]
    if not hashes:
        return ""
    marker = f" ; {entry['marker']}" if "marker" in entry else ""
    lines = [f"{entry['name']}=={entry['version']}{marker}"]
    return " \\\n".join([*lines, *(f"    --hash=sha256:{each}" for each in hashes)]) + "\n"


def lock_node(packages: Sequence[str], before: Any, *, upgrade: bool) -> Any:
    """Return the package-lock.json of npm's packages: their versions and checksums."""
    with tempfile.TemporaryDirectory() as folder:
        lock = Path(folder, "package-lock.json")
        if before and not upgrade:
            lock.write_text(json.dumps(before))
        npm = ["npm", "install", "--package-lock-only", "--omit-lockfile-registry-resolved"]
        quiet = ["--no-fund", "--no-audit", "--silent"]
        subprocess.run([*npm, *quiet, *packages], cwd=folder, check=True)
        entries = json.loads(lock.read_text())["packages"]
    packages_kept = {
        path: {name: entry[name] for name in sorted(KEPT & {*entry})}
        for path, entry in sorted(entries.items())
    }
    return {"lockfileVersion": 3, "packages": packages_kept}


def write_python(locks: Mapping[str, str]) -> None:
    """Write the locks of Python's tools into one file."""
    parts = "".join(f"# === {name}\n{lock}" for name, lock in sorted(locks.items()))
    PYTHON_LOCKS.write_text(f"{HEAD}{parts}", encoding="utf-8")


def write_node(locks: Mapping[str, Any]) -> None:
    """Write the locks of npm's tools into one file, a line for each package."""
    parts: list[str] = []
    for name, lock in sorted(locks.items()):
        lines = (f"{json.dumps(p)}: {json.dumps(e)}" for p, e in lock["packages"].items())
        packages = ",\n".join(lines)
        parts.append(
            f'{json.dumps(name)}: {{"lockfileVersion": 3, "packages": {{\n{packages}\n}}}}'
        )
    NODE_LOCKS.write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8")


def main() -> None:
    """Renew all locks, or those of the tools that are named; print one with --show."""
    options = {word for word in sys.argv[1:] if word.startswith("--")}
    names = {word for word in sys.argv[1:] if word not in options}
    tools = tomllib.loads((LOCKS / "tools.toml").read_text())
    known = {*tools["python"]} if "--show" in options else {*tools["python"], *tools["node"]}
    if unknown := names - known:
        sys.exit(f"requirements/tools.toml has no {', '.join(sorted(unknown))}. Name one of it.")
    if "--show" in options:
        print(end="".join(python_locks()[name] for name in sorted(names)))
        return
    upgrade = "--upgrade" in options
    if not names:
        lock_program(["--upgrade"] if upgrade else [])
    kinds: tuple[tuple[str, dict[str, Any], Any, Any], ...] = (
        ("python", python_locks(), lock_python, write_python),
        ("node", node_locks(), lock_node, write_node),
    )
    for kind, before, lock, write in kinds:
        locks = {name: before.get(name) for name in tools[kind]}
        for name, packages in tools[kind].items():
            if not names or name in names:
                print(name, flush=True)
                locks[name] = lock(packages, locks[name], upgrade=upgrade)
        write({name: locked for name, locked in locks.items() if locked})


if __name__ == "__main__":
    main()
