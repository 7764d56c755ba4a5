"""What an agent pays for taking the client in."""

import os
import re
import runpy
import subprocess
import sys
import tomllib
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from types import ModuleType

import pytest

from fetchstash import client


def test_names_that_were_not_imported_yet_are_shown_too() -> None:
    assert set(client.__all__) <= set(dir(client))


@pytest.mark.slow
def test_no_third_party_module_is_imported_by_any_part_of_the_client() -> None:
    use = "from fetchstash.client import *; classify('prompt is too long');"
    tell = (
        "import sys; {} print(*{{name.split('.')[0] for name in sys.modules}}"
        " - set(sys.stdlib_module_names))"
    )
    run, bare = (_run(tell.format(what)) for what in (use, "import fetchstash;"))
    # What the interpreter itself brings in (a .pth of the environment) is not the client's doing.
    assert set(run.split()) <= set(bare.split())


def _run(program: str) -> str:
    root = str(client.__file__).partition("fetchstash")[0]
    environment = {**os.environ, "PYTHONPATH": root}
    return subprocess.run(
        [sys.executable, "-P", "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    ).stdout


ROOT = Path(__file__).parents[2]
ADAPTERS = ROOT / "fetchstash/client/adapters"
NEEDS = {
    path.stem: found.groups()
    for path in sorted(ADAPTERS.glob("[a-z]*.py"))
    if (found := re.search(r'Needs\("(.+?)", "(.+?)", "(.+?)"\)', path.read_text("utf-8")))
}


@pytest.mark.parametrize("adapter", NEEDS)
def test_an_adapter_names_the_version_that_its_extra_asks_for(adapter: str) -> None:
    extra, package, minimum = NEEDS[adapter]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["optional-dependencies"][extra] == [f"{package}>={minimum}"]
    assert extra.replace("-", "_") == adapter


def test_every_adapter_says_what_it_needs() -> None:
    public = {path.stem for path in ADAPTERS.glob("[a-z]*.py")}
    assert set(NEEDS) == public


@pytest.mark.parametrize(
    ("adapter", "found"),
    # LiteLLM's adapter imports no name of it that an older version may lack.
    [(name, found) for name in NEEDS for found in ("0.1.2", "") if name != "litellm" or not found],
)
def test_an_adapter_whose_sdk_is_missing_or_too_old_says_what_is_there_and_what_is_needed(
    adapter: str, found: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    extra, package, minimum = NEEDS[adapter]

    def version(_: str) -> str:
        if not found:
            raise PackageNotFoundError
        return found

    root = "google" if adapter == "google_genai" else adapter
    for name in [name for name in sys.modules if name.partition(".")[0] == root]:
        monkeypatch.delitem(sys.modules, name)
    # A module that has nothing of what is imported from it, or one that is not there.
    monkeypatch.setitem(sys.modules, root, ModuleType(root) if found else None)
    monkeypatch.setattr("fetchstash.client.adapters.version", version)
    said = f"version {found} is installed" if found else "it is not installed"
    expected = f"needs {package} {minimum} or later, and {said}.*fetchstash\\[{extra}\\]"
    with pytest.raises(ImportError, match=expected):
        runpy.run_path(str(ADAPTERS / f"{adapter}.py"))
