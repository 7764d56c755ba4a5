"""Renew the locks: every package with its hashes, and no registry's address.

    scripts/lock [--upgrade] [NAME …]

Writes requirements/run.txt, team.txt (the image) and dev.txt for every platform, and the folder
requirements/tools by requirements/tools.toml: NAME.txt for Python's packages on Linux, which CI
runs on, and NAME.json for npm's. With names it writes these of the tools alone. Needs uv and npm.
"""

import json
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
LOCKS = ROOT / "requirements"
UNIVERSAL = ("--universal", "--python-version", "3.11", "--quiet")
WHEEL = re.compile(
    r"-(py3|py2\.py3|cp3\d+-abi3|cp31[123]-cp31[123])\S*-(any|\S*linux\S*x86_64)\.whl"
)
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
    for name, more in {"run": (), "team": team, "dev": (*team, "--group", "dev")}.items():
        output = ("-o", f"requirements/{name}.txt")
        uv = ("uv", "pip", "compile", *UNIVERSAL, *options, *more, *sources, *output, *upgrade)
        subprocess.run(uv, cwd=ROOT, check=True)


def lock_python(packages: Sequence[str], output: Path, *, upgrade: bool) -> None:
    """Write the versions of Python packages, with the hashes of their wheels for Linux."""
    own = re.compile(r"^fetchstash\b(\S*)")
    with tempfile.TemporaryDirectory() as folder:
        asked, lock = Path(folder, "tool.in"), Path(folder, "pylock.toml")
        lines = [own.sub(rf"fetchstash\1 @ {ROOT.as_uri()}", package) for package in packages]
        asked.write_text("\n".join(lines))
        uv = ["uv", "pip", "compile", *UNIVERSAL, "--format", "pylock.toml"]
        uv += ["-o", str(lock), str(asked)]
        if output.exists() and not upgrade:  # the versions that it has, where they still go
            kept = Path(folder, "kept.txt")
            kept.write_text("\n".join(re.findall(r"(?m)^\S+==\S+", output.read_text())))
            if subprocess.run([*uv, "-c", str(kept)], capture_output=True, check=False).returncode:
                subprocess.run(uv, check=True)
        else:
            subprocess.run(uv, check=True)
        entries: list[dict[str, Any]] = tomllib.loads(lock.read_text())["packages"]
    output.write_text("".join(pinned(entry) for entry in entries if entry["name"] != "fetchstash"))


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


def lock_node(packages: Sequence[str], output: Path, *, upgrade: bool) -> None:
    """Write the versions of npm's packages and their checksums."""
    with tempfile.TemporaryDirectory() as folder:
        lock = Path(folder, "package-lock.json")
        if output.exists() and not upgrade:
            lock.write_bytes(output.read_bytes())
        npm = ["npm", "install", "--package-lock-only", "--omit-lockfile-registry-resolved"]
        quiet = ["--no-fund", "--no-audit", "--silent"]
        subprocess.run([*npm, *quiet, *packages], cwd=folder, check=True)
        entries = json.loads(lock.read_text())["packages"]
    lines = [
        f"{json.dumps(path)}: {json.dumps({name: entry[name] for name in sorted(KEPT & {*entry})})}"
        for path, entry in sorted(entries.items())
    ]
    listed = ",\n".join(lines)  # a line for each package, for who reads the difference
    output.write_text(f'{{"lockfileVersion": 3, "packages": {{\n{listed}\n}}}}\n')


def main() -> None:
    """Renew all locks, or those of the tools that are named."""
    upgrade = "--upgrade" in sys.argv
    names = {name for name in sys.argv[1:] if name != "--upgrade"}
    tools = tomllib.loads((LOCKS / "tools.toml").read_text())
    if unknown := names - {*tools["python"], *tools["node"]}:
        sys.exit(f"requirements/tools.toml has no {', '.join(sorted(unknown))}. Name one of it.")
    if not names:
        lock_program(["--upgrade"] if upgrade else [])
    for kind, suffix, lock in (("python", "txt", lock_python), ("node", "json", lock_node)):
        for name, packages in tools[kind].items():
            if not names or name in names:
                print(name, flush=True)
                lock(packages, LOCKS / "tools" / f"{name}.{suffix}", upgrade=upgrade)


if __name__ == "__main__":
    main()
