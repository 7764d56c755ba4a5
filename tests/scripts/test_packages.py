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
    manifest = packages.manifest()
    assert [tool["name"] for tool in manifest["tools"]] == [
        spec.name for spec in tool_specs(load())
    ]
    assert manifest["version"] == __version__


def test_readme_proves_the_name_of_server_json() -> None:
    assert packages.check_server_json() == 0


def test_the_container_is_no_root_and_writes_to_one_volume() -> None:
    lines = (ROOT / "scripts" / "parts" / "packages.d" / "Dockerfile").read_text().splitlines()
    assert "USER 10001:10001" in lines
    assert [line for line in lines if line.startswith("VOLUME")] == ["VOLUME /data"]
    written = next(line for line in lines if line.startswith("ENV ")).split()[1:]
    assert {name.partition("=")[2][:5] for name in written} <= {"/data", "1"}
