"""Test each of the client's adapters against its real SDK, in an environment of its own.

    scripts/ci adapters [NAME …]

Checks the types of the adapter and of its example there, too. "adapters" is one environment with
all their extras: they resolve together, every adapter is imported, and openai's is tested with the
older major that this takes. Exit code: how many failed.
"""

import os
import subprocess
import sys
from pathlib import Path

from scripts.drive.tools import CACHE, ROOT, python_tool

NAMES = ("anthropic", "google-genai", "langchain", "litellm", "openai", "pydantic-ai", "adapters")
TESTS = ("adapters", "adapter_reach", "adapter_loops", "sdk_errors")
OWN_TESTS = ("sdk_types", "pydantic_messages")


def fails(python: Path, adapter: str, *arguments: str | Path) -> bool:
    """Run a module of Python in an environment, for one adapter, and return whether it failed."""
    about = {"ADAPTER_UNDER_TEST": adapter, "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    environment = {**os.environ, **about, "PYTHONPATH": str(ROOT)}
    command = [python, "-P", "-m", *arguments]
    return bool(subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode)


def tests(*names: str) -> list[str]:
    """Return the arguments of pytest for test modules of the client."""
    quiet = ["pytest", "-q", "-p", "no:cacheprovider", "--no-header", "-rfE"]
    return [*quiet, *(f"tests/client/test_{name}.py" for name in names)]


def check(name: str) -> bool:
    """Test one adapter, or all together; return whether anything failed."""
    programs = python_tool(name)
    if programs is None:
        return False
    python, adapter = programs / "python", name.replace("-", "_")
    print(f"== {name}", flush=True)
    if name == "adapters":
        source = ROOT / "fetchstash" / "client" / "adapters"
        modules = [f"fetchstash.client.adapters.{path.stem}" for path in source.glob("[a-z]*.py")]
        imports = f"import {', '.join(modules)}"
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        done = subprocess.run([python, "-P", "-c", imports], env=environment, check=False)
        return bool(done.returncode) | fails(python, "openai", *tests(*TESTS), "-m", "not slow")
    folder = Path("fetchstash", "client", "adapters")
    checked = (folder / "_wrapped.py", folder / f"{adapter}.py", f"examples/client_{adapter}.py")
    types = ("--cache-dir", CACHE / name / ".mypy_cache", "--follow-imports=silent", *checked)
    wrong_types = fails(python, adapter, "mypy", *types)
    return fails(python, adapter, *tests(*TESTS, *OWN_TESTS)) | wrong_types


def main() -> int:
    """Test the adapters that are named, or all; return how many failed."""
    names = sys.argv[1:] or NAMES
    if unknown := {*names} - {*NAMES}:
        sys.exit(f"There is no {', '.join(unknown)} here, but: {', '.join(NAMES)}.")
    return sum(check(name) for name in names)


if __name__ == "__main__":
    sys.exit(main())
