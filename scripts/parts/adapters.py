"""Test each of the client's adapters against its real SDK, and its types and its example's, too.

    scripts/ci adapters [NAME …]

"adapters" is one environment with the extras of all: they resolve together, every adapter is
imported, and openai's is tested with the older major that this takes. The others have an
environment of their own for the versions that do not go with all. Exit code: how many failed.
"""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from scripts.drive.programs import options
from scripts.drive.tools import CACHE, ROOT, python_tool

TESTED: Mapping[str, Sequence[str]] = {
    "adapters": ("anthropic", "google_genai", "litellm", "openai"),
    "langchain": ("langchain",),
    "openai": ("openai",),
    "pydantic-ai": ("pydantic_ai",),
}
"""The adapters that are tested in each environment."""
TESTS = [
    *("adapters", "adapter_reach", "adapter_loops"),
    *("sdk_errors", "sdk_types", "pydantic_messages", "refusals", "screenshots", "ceilings"),
]
ELSEWHERE = "not repeats_its_sentence"
"""What needs no SDK, and takes long: checks has it."""


def fails(python: Path, adapters: Sequence[str], *arguments: str | Path) -> bool:
    """Run Python in an environment, for some adapters, and return whether it failed."""
    about = {"ADAPTERS_UNDER_TEST": ",".join(adapters), "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    environment = {**os.environ, **about, "PYTHONPATH": str(ROOT)}
    command = [python, "-P", *arguments]
    return bool(subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode)


def check(name: str) -> bool:
    """Test the adapters of an environment; return whether anything failed."""
    programs = python_tool(name)
    if programs is None:
        return False
    python, adapters = programs / "python", TESTED[name]
    print(f"== {name}", flush=True)
    folder = Path("fetchstash", "client", "adapters")
    imported = [path.stem for path in (ROOT / folder).glob("[a-z]*.py")]
    typed = [adapter for adapter in adapters if name != "adapters" or adapter not in TESTED]
    checked = [folder / "__init__.py", *(folder / f"{adapter}.py" for adapter in typed)]
    checked += [Path("examples", f"client_{adapter}.py") for adapter in typed]
    types = ("mypy", "--cache-dir", CACHE / name / ".mypy_cache", "--follow-imports=silent")
    tests = ["pytest", "-q", "-p", "no:cacheprovider", "--no-header", "-rfE"]
    older = " and not openais_types" if name == "adapters" else ""  # an older openai lacks some
    tests += ["-k", ELSEWHERE + older]
    failed = [
        fails(python, adapters, "-m", *types, *checked),
        fails(python, adapters, "-m", *tests, *(f"tests/client/test_{test}.py" for test in TESTS)),
    ]
    if name == "adapters":
        modules = (f"fetchstash.client.adapters.{adapter}" for adapter in imported)
        failed.append(fails(python, adapters, "-c", f"import {', '.join(modules)}"))
    return any(failed)


def main() -> int:
    """Test in the environments that are named, or in all; return how many failed."""
    return sum(check(name) for name in options(__doc__, names=TESTED).names)


if __name__ == "__main__":
    sys.exit(main())
