"""What the packages are made of; `scripts/ci packages` validates and starts each."""

import json
import re
import tomllib
import zipfile
from pathlib import Path

import pytest

from fetchstash import __version__
from fetchstash.config import load
from fetchstash.server.tools import tool_specs
from scripts.parts import packages

ROOT = Path(__file__).parents[2]


@pytest.fixture
def bundle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> zipfile.ZipFile:
    monkeypatch.setattr(packages, "DIST", tmp_path)
    wheel = tmp_path / f"fetchstash-{__version__}-py3-none-any.whl"
    wheel.write_bytes(b"a wheel")
    return zipfile.ZipFile(packages.make_bundle(wheel))


def test_the_bundle_holds_what_its_manifest_and_its_project_name(bundle: zipfile.ZipFile) -> None:
    names = set(bundle.namelist())
    server = json.loads(bundle.read("manifest.json"))["server"]
    project = tomllib.loads(bundle.read("pyproject.toml").decode())
    assert server["entry_point"] in names
    assert server["entry_point"] in server["mcp_config"]["args"]
    assert project["tool"]["uv"]["sources"]["fetchstash"]["path"] in names


def test_the_bundle_installs_the_versions_of_the_lock(bundle: zipfile.ZipFile) -> None:
    project = tomllib.loads(bundle.read("pyproject.toml").decode())
    lock = (ROOT / "requirements" / "run.txt").read_text()
    pins = project["tool"]["uv"]["constraint-dependencies"]
    assert [pin.partition(" ")[0] for pin in pins] == re.findall(r"(?m)^[^ #]+==[^ ]+", lock)


def test_the_manifest_lists_the_tools() -> None:
    tools = json.loads((ROOT / "manifest.json").read_text())["tools"]
    named = {tool["name"]: tool["description"] for tool in tools}
    assert named == {spec.name: spec.description for spec in tool_specs(load({}))}


def test_all_that_names_a_version_names_this_one() -> None:
    said = json.loads((ROOT / "server.json").read_text())
    named = [said, *said["packages"], json.loads((ROOT / "manifest.json").read_text())]
    assert {item["version"] for item in named} == {__version__}
    assert f"version: {__version__}\n" in (ROOT / "CITATION.cff").read_text()


def test_server_json_keeps_the_rules_of_the_registry_and_readme_proves_its_name() -> None:
    said, readme = json.loads((ROOT / "server.json").read_text()), (ROOT / "README.md").read_text()
    assert re.fullmatch(r"[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+", said["name"])
    assert f"<!-- mcp-name: {said['name']} -->" in readme
    assert all(1 <= len(said[name]) <= 100 for name in ("title", "description"))


def test_the_container_is_no_root_and_writes_to_one_volume() -> None:
    lines = (ROOT / "Dockerfile").read_text().splitlines()
    assert "USER 10001:10001" in lines
    assert [line for line in lines if line.startswith("VOLUME")] == ["VOLUME /data"]
    written = next(line for line in lines if line.startswith("ENV ")).split()[1:]
    assert {name.partition("=")[2][:5] for name in written} <= {"/data", "1"}
