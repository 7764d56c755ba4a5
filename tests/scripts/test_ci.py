"""CI's last line, its limit of time, and the locks that it installs from."""

import json
import re
import sys
import time
import tomllib
import zipfile
from pathlib import Path

import pytest

from fetchstash import __version__
from fetchstash.config import load
from fetchstash.server.tools import tool_specs
from scripts.drive.tools import node_locks, python_locks
from scripts.parts import all as ci, frameworks, packages

ROOT = Path(__file__).parents[2]
REGISTRIES = ROOT / "deploy" / "registries"
TOOLS = tomllib.loads((ROOT / "requirements" / "tools.toml").read_text())
PART = """
import subprocess, sys
match sys.argv[1]:
    case "good":
        print("SKIPPED: a browser cannot be installed here")
    case "bad":
        sys.exit(3)
    case "shaky":
        open("seen", "a").write("x")
        sys.exit(len(open("seen").read()) == 1)
    case "endless":
        with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]) as child:
            print("child", child.pid, flush=True)
            child.wait()
"""


@pytest.fixture
def parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / "setup.py").write_text(PART)
    monkeypatch.setattr(ci, "ROOT", tmp_path)
    monkeypatch.setattr(ci, "LOGS", tmp_path)


@pytest.mark.slow
@pytest.mark.usefixtures("parts")
def test_the_last_line_counts_what_failed_and_what_could_not_be_had(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(ci, "PARTS", ("good", "bad --short"))
    assert ci.main() == 1
    last = capfd.readouterr().out.splitlines()[-1]
    assert "1 of 2 parts ok | 1 FAILED: bad --short" in last
    assert last.endswith("1 not to be had: good: a browser cannot be installed here")


@pytest.mark.slow
@pytest.mark.usefixtures("parts")
def test_a_part_that_failed_beside_others_is_run_again_and_named(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(ci, "PARTS", ("shaky",))
    assert ci.main() == 0
    last = capfd.readouterr().out.splitlines()[-1]
    assert last.endswith("1 of 1 parts ok | 1 passed by themselves: shaky")


@pytest.mark.long
@pytest.mark.skipif(sys.platform == "win32", reason="CI's parts run on POSIX")
@pytest.mark.usefixtures("parts")
def test_at_the_end_of_its_time_a_part_is_ended_with_its_children_and_others_are_named(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(ci, "PARTS", ("endless", "good"))
    monkeypatch.setattr(ci, "LANES", 1)
    monkeypatch.setattr(ci, "MAX_SECONDS", 6)
    monkeypatch.setattr(ci, "LAST_BEGIN_SECONDS", 0.5)
    assert ci.main() == 1
    last = capfd.readouterr().out.splitlines()[-1]
    assert "1 FAILED: endless" in last
    assert "1 NOT BEGUN for want of time: good" in last
    child = int(re.findall(r"child (\d+)", (ci.LOGS / "endless.log").read_text())[0])
    assert any(has_ended(child) for _ in range(1_000)), "a killed process needs a moment to end"


def has_ended(process: int) -> bool:
    """Return whether a process is gone, or waits for whoever adopted it; else after a moment."""
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return True
    if state != "Z":
        time.sleep(0.01)
    return state == "Z"


def test_each_tool_has_a_lock_with_a_hash_for_every_package_and_no_address() -> None:
    assert python_locks().keys() == TOOLS["python"].keys()
    assert node_locks().keys() == TOOLS["node"].keys()
    for lock in python_locks().values():
        for entry in re.split(r"\n(?=\S)", lock):
            assert re.match(r"[a-z0-9.-]+==\S+.*(\n    --hash=sha256:[0-9a-f]{64}( \\)?)+", entry)
        assert "://" not in lock
    for lock in node_locks().values():
        own = {path: entry for path, entry in lock["packages"].items() if path}
        assert all("integrity" in entry or entry.get("inBundle") for entry in own.values())
        assert not any("resolved" in entry for entry in own.values())


def test_each_example_of_a_framework_is_run_and_shown() -> None:
    run = {f"with_{row.name}" for row in frameworks.FRAMEWORKS if not row.example}
    assert run == {path.stem for path in (ROOT / "examples" / "frameworks").iterdir()}
    assert {row.tool for row in frameworks.FRAMEWORKS} <= {*TOOLS["python"], *TOOLS["node"]}
    page = (ROOT / "docs" / "frameworks.md").read_text()
    assert all(f"examples/frameworks/{name}." in page for name in run)


# --- What the packages are made of; `scripts/ci packages` validates and starts each.


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
    tools = json.loads((REGISTRIES / "manifest.json").read_text())["tools"]
    named = {tool["name"]: tool["description"] for tool in tools}
    assert named == {spec.name: spec.description for spec in tool_specs(load({}))}


def test_all_that_names_a_version_names_this_one() -> None:
    said = json.loads((REGISTRIES / "server.json").read_text())
    named = [said, *said["packages"], json.loads((REGISTRIES / "manifest.json").read_text())]
    assert {item["version"] for item in named} == {__version__}
    assert f"version: {__version__}\n" in (ROOT / "CITATION.cff").read_text()


def test_server_json_keeps_the_rules_of_the_registry_and_readme_proves_its_name() -> None:
    said = json.loads((REGISTRIES / "server.json").read_text())
    readme = (ROOT / "README.md").read_text()
    assert re.fullmatch(r"[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+", said["name"])
    assert f"<!-- mcp-name: {said['name']} -->" in readme
    assert all(1 <= len(said[name]) <= 100 for name in ("title", "description"))


def test_the_container_is_no_root_and_writes_to_one_volume() -> None:
    lines = (ROOT / "Dockerfile").read_text().splitlines()
    assert "USER 10001:10001" in lines
    assert [line for line in lines if line.startswith("VOLUME")] == ["VOLUME /data"]
    written = next(line for line in lines if line.startswith("ENV ")).split()[1:]
    assert {name.partition("=")[2][:5] for name in written} <= {"/data", "1"}
