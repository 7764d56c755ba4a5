"""Make what fetchstash is handed out as, in dist/, validate each and start it.

    scripts/ci packages                    all of it
    scripts/ci packages wheel              dist/fetchstash-VERSION-py3-none-any.whl
    scripts/ci packages mcpb               dist/fetchstash-VERSION.mcpb, for Claude Desktop
    scripts/ci packages server.json        dist/server.json, for the registry of MCP servers
    scripts/ci packages docker             dist/docker/, a Dockerfile with all that it copies

A tool that cannot be installed here is skipped aloud. Exit code: how many checks failed.
"""

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from mcp import Client, StdioServerParameters

from fetchstash import __version__
from fetchstash.cli.demo.driver import ask
from fetchstash.cli.demo.site import Site
from fetchstash.config import load
from fetchstash.server.tools import tool_specs
from scripts.drive.containers import Engine, base_image
from scripts.drive.hosts import ROOT, npm_program, uv_folder

DIST = ROOT / "dist"
SOURCES = ROOT / "scripts" / "parts" / "packages.d"
NAME = "io.github.fetchstash/fetchstash"
"""The name in the registry; README says the same (mcp-name), which proves whose package it is."""
SUMMARY = "Fetch any web page or document without flooding an agent's context."
SCHEMA = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"


def build_wheel(folder: Path = DIST) -> Path:
    """Build the wheel and return its path."""
    command = [sys.executable, "-P", "-m", "build", "--wheel", "--no-isolation", "--outdir"]
    done = subprocess.run([*command, folder, ROOT], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{done.stdout}{done.stderr}\nthe wheel could not be built")
    return max(folder.glob("fetchstash-*.whl"), key=os.path.getmtime)


def manifest() -> dict[str, Any]:
    """Return the manifest of the MCP bundle (version 0.4, type uv)."""
    tools = [{"name": spec.name, "description": spec.description} for spec in tool_specs(load({}))]
    # Company networks have certificates that uv's own list lacks; the second name is the old one.
    certificates = {"UV_SYSTEM_CERTS": "1", "UV_NATIVE_TLS": "1"}
    start = ["run", "--directory", "${__dirname}", "server.py"]
    return {
        "manifest_version": "0.4",
        "name": "fetchstash",
        "display_name": "fetchstash",
        "version": __version__,
        "description": SUMMARY,
        "author": {"name": "The fetchstash authors"},
        "license": "Apache-2.0",
        "keywords": ["fetch", "web", "pdf", "context"],
        "server": {
            "type": "uv",
            "entry_point": "server.py",
            "mcp_config": {"command": "uv", "args": start, "env": certificates},
        },
        "tools": tools,
        "compatibility": {
            "platforms": ["darwin", "win32", "linux"],
            "runtimes": {"python": ">=3.11"},
        },
    }


def bundle_project(wheel: Path) -> str:
    """Return the pyproject.toml of the bundle: the wheel, and the versions of the lock."""
    lock = (ROOT / "requirements" / "run.txt").read_text(encoding="utf-8")
    pins = re.findall(r"^([\w.\-\[\]]+==\S+(?: ; [^\\\n]+)?)", lock, re.MULTILINE)
    constraints = "\n".join(f"    {json.dumps(pin.strip())}," for pin in pins)
    return f"""\
[project]
name = "fetchstash-bundle"
version = "{__version__}"
requires-python = ">=3.11"
dependencies = ["fetchstash"]

[tool.uv]
package = false
constraint-dependencies = [
{constraints}
]

[tool.uv.sources]
fetchstash = {{ path = "{wheel.name}" }}
"""


def make_bundle(wheel: Path) -> Path:
    """Write the MCP bundle, which is a zip, and return its path."""
    bundle = DIST / f"fetchstash-{__version__}.mcpb"
    with zipfile.ZipFile(bundle, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("manifest.json", json.dumps(manifest(), indent=2))
        file.writestr("pyproject.toml", bundle_project(wheel))
        file.write(SOURCES / "server.py", "server.py")
        file.write(wheel, wheel.name)
    return bundle


async def answers_a_fetch(command: str, arguments: list[str], env: Mapping[str, str]) -> str:
    """Start a server, fetch a PDF of the demonstration, and return what is wrong ("" if nothing).

    ``{port}`` in the environment becomes the port of the site.
    """
    async with Site() as site:
        filled = {name: value.replace("{port}", str(site.port)) for name, value in env.items()}
        arguments = [argument.replace("{port}", str(site.port)) for argument in arguments]
        server = StdioServerParameters(command=command, args=arguments, env=filled)
        async with Client(server, read_timeout_seconds=300) as client:
            answer = await ask(client, "fetch_content", url=site.url("/report.pdf"))
    return "" if "[Fetched PDF artifact" in answer.text else answer.text[:500]


def check_bundle(bundle: Path) -> int:
    """Validate the bundle, unpack it and start it as a host does; return how much failed."""
    failed = 0
    mcpb = npm_program("@anthropic-ai/mcpb", "mcpb")
    uv = uv_folder()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "bundle"
        with zipfile.ZipFile(bundle) as file:
            file.extractall(folder)
        if mcpb is None:
            print("SKIPPED: mcpb, which validates the bundle, cannot be installed here")
        else:
            validate = [mcpb, "validate", str(folder / "manifest.json")]
            failed += report("mcpb validate", lambda: fault_of(validate))
            unpack = [mcpb, "unpack", str(bundle), str(Path(name) / "again")]
            failed += report("mcpb unpack", lambda: fault_of(unpack))
        server = json.loads((folder / "manifest.json").read_text())["server"]
        there = (folder / server["entry_point"]).is_file()
        failed += report("its entry point", lambda: "" if there else "it is not in the bundle")
        if uv is None:
            print("SKIPPED: uv, which starts the bundle, cannot be installed here")
            return failed
        config = server["mcp_config"]
        arguments = [part.replace("${__dirname}", str(folder)) for part in config["args"]]
        environment = {
            **config["env"],
            "HOME": name,
            "PATH": f"{uv}{os.pathsep}{os.environ['PATH']}",
            "FETCHSTASH_FETCH_ALLOW_HOSTS": "127.0.0.1:{port}",
        }
        command = str(uv / config["command"])
        # What a host does at the first start; a registry that does not answer once is asked again.
        sync = ([command, "sync", "--directory", str(folder)], environment)
        failed += report("its packages are installed", lambda: fault_of(*sync) and fault_of(*sync))
        failed += report(
            "the unpacked bundle answers a fetch",
            lambda: asyncio.run(answers_a_fetch(command, arguments, environment)),
        )
    return failed


def server_json() -> dict[str, Any]:
    """Return the description for the registry of MCP servers."""
    return {
        "$schema": SCHEMA,
        "name": NAME,
        "title": "fetchstash",
        "description": SUMMARY,
        "version": __version__,
        "packages": [
            {
                "registryType": "pypi",
                "identifier": "fetchstash",
                "version": __version__,
                "runtimeHint": "uvx",
                "transport": {"type": "stdio"},
            }
        ],
    }


def check_server_json() -> int:
    """Check the fields that the schema's documentation names; return how much failed."""
    print("SKIPPED: mcp-publisher, which validates server.json, is in no registry that we reach;")
    print("         its fields are checked against the rules of the schema's documentation")
    said, text = server_json(), (ROOT / "README.md").read_text(encoding="utf-8")
    rules = {
        "name": re.fullmatch(r"[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+", said["name"]),
        "name in README": f"<!-- mcp-name: {said['name']} -->" in text,
        "title": 1 <= len(said["title"]) <= 100,
        "description": 1 <= len(said["description"]) <= 100,
        "version": re.fullmatch(r"\d+\.\d+\.\d+", said["version"]),
        "version of the package": said["packages"][0]["version"] == said["version"],
        "no field that the schema does not know": set(said)
        <= {"$schema", "name", "title", "description", "version", "packages", "repository"},
    }
    broken = [rule for rule, holds in rules.items() if not holds]
    return report("server.json", lambda: ", ".join(broken))


def make_docker(wheel: Path) -> Path:
    """Write the folder that the image is built from, and return it."""
    folder = DIST / "docker"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    shutil.copy(SOURCES / "Dockerfile", folder)
    shutil.copy(ROOT / "requirements" / "team.txt", folder / "requirements.txt")
    shutil.copy(wheel, folder)
    return folder


def build_image(folder: Path) -> tuple[Engine | None, int]:
    """Build the image; return what runs it, None if nothing does, and how much failed."""
    engine = Engine.find()
    if engine is None:
        print("SKIPPED: neither a docker daemon nor podman runs here: no image is built")
        return None, 0
    try:
        base = base_image(engine)
    except RuntimeError as error:
        print(f"SKIPPED: no base image can be had here: {error}")
        return None, 0
    command = engine.build(folder, "fetchstash", base)
    # pip fetches in it: a registry that does not answer once is asked again.
    failed = report("the image is built", lambda: fault_of(command) and fault_of(command))
    return None if failed else engine, failed


def check_docker(folder: Path) -> int:
    """Build the image, run it with a read-only root, and return how much failed."""
    engine, failed = build_image(folder)
    if engine is None:
        return failed
    with tempfile.TemporaryDirectory() as volume:
        Path(volume).chmod(0o777)
        command = engine.run("fetchstash", Path(volume), "--allow-host", "127.0.0.1:{port}")
        failed += report(
            "the container answers a fetch",
            lambda: asyncio.run(answers_a_fetch(command[0], command[1:], dict(os.environ))),
        )
        owners = {path.stat().st_uid for path in Path(volume).rglob("*")}
        failed += report(
            "its files belong to its own user", lambda: "" if owners == {10001} else f"{owners}"
        )
    return failed


def fault_of(command: Sequence[object], environment: Mapping[str, str] | None = None) -> str:
    """Run a command and return the end of what it said if it failed, else ""."""
    done = subprocess.run(
        [str(word) for word in command],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
        timeout=900,
    )
    return "" if done.returncode == 0 else (done.stdout + done.stderr)[-2_000:] or "it failed"


def report(name: str, check: Callable[[], str]) -> int:
    """Print how a check ended, and return whether it failed."""
    try:
        fault = check()
    except Exception as error:  # noqa: BLE001 - whatever it is, the check failed
        fault = f"{type(error).__name__}: {error}"
    print(f"{'FAILED' if fault else 'ok':<6}  {name}{fault and f': {fault}'}", flush=True)
    return bool(fault)


def main() -> int:
    """Make what is named, or all; return how many checks failed."""
    known = ("wheel", "mcpb", "server.json", "docker")
    names = sys.argv[1:] or known
    if unknown := set(names) - set(known):
        print(f"There is no {', '.join(unknown)} here, but: {', '.join(known)}.", file=sys.stderr)
        return 2
    failed = 0
    DIST.mkdir(exist_ok=True)
    wheel = build_wheel()
    print(wheel)
    if "mcpb" in names:
        bundle = make_bundle(wheel)
        print(bundle)
        failed += check_bundle(bundle)
    if "server.json" in names:
        file = DIST / "server.json"
        file.write_text(json.dumps(server_json(), indent=2) + "\n", encoding="utf-8")
        print(file)
        failed += check_server_json()
    if "docker" in names:
        folder = make_docker(wheel)
        print(folder)
        failed += check_docker(folder)
    return failed


if __name__ == "__main__":
    sys.exit(main())
