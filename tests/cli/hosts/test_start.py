import os
import sys
import sysconfig
from pathlib import Path

import pytest

import fetchstash.cli.hosts._register as start
from fetchstash.cli.hosts._register import start_command
from fetchstash.errors import StoreError

pytestmark = pytest.mark.skipif(os.name == "nt", reason="scripts of POSIX")


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the programs of a machine, which alone is PATH."""
    for name in ("fetchstash", "uvx"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o700)
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path


def test_a_checkout_is_started_by_its_own_script(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        start, "__file__", str(machine / "fetchstash" / "cli" / "hosts" / "_register.py")
    )
    (machine / "scripts").mkdir()
    (machine / "scripts" / "run").touch()
    monkeypatch.setattr(sys, "prefix", str(machine / ".venv"))
    # a package on PATH of that name is not this one
    (machine / "fetchstash").unlink()
    assert start_command() == [str(machine / "scripts" / "run"), "serve"]


def test_an_installed_package_is_started_by_the_command_beside_its_python(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(start, "__file__", "/site-packages/fetchstash/cli/hosts/_register.py")

    def scripts(_: str) -> str:
        return str(machine)

    monkeypatch.setattr(sysconfig, "get_path", scripts)
    assert start_command() == [str(machine / "fetchstash"), "serve"]


@pytest.mark.parametrize(
    ("origin", "words"),
    [
        ("", ["fetchstash"]),
        ('{"url": "file:///w/a%20b.whl"}', ["--from", "/w/a b.whl", "fetchstash"]),
        ('{"url": "https://h/a.whl"}', ["--from", "https://h/a.whl", "fetchstash"]),
        (
            '{"url": "https://h/r", "vcs_info": {"vcs": "git", "commit_id": "c0ffee"}}',
            ["--from", "git+https://h/r@c0ffee", "fetchstash"],
        ),
    ],
)
def test_a_package_that_uvx_runs_is_started_by_uvx(
    machine: Path, monkeypatch: pytest.MonkeyPatch, origin: str, words: list[str]
) -> None:
    class Installed:
        def __init__(self, _: str) -> None:
            pass

        def read_text(self, _: str) -> str:
            return origin

    monkeypatch.setattr(start, "__file__", "/site-packages/fetchstash/cli/hosts/_register.py")
    monkeypatch.setattr(start, "distribution", Installed)
    monkeypatch.setattr(sys, "prefix", "/home/u/.cache/uv/archive-v0/abc")
    assert start_command() == [str(machine / "uvx"), *words, "serve"]
    source = words[1].replace("/w/a b", "file:///w/a%20b") if len(words) > 1 else ""
    extra = f"fetchstash[browser] @ {source}" if source else "fetchstash[browser]"
    uvx = [str(machine / "uvx"), "--from", extra, "fetchstash"]
    assert start_command(browser=True) == [*uvx, "serve", "--browser", "auto"]


@pytest.mark.slow
@pytest.mark.parametrize("code", [0, 1])
def test_what_drives_a_browser_is_installed_where_it_is_missing(
    code: int, machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = machine / "python"
    python.write_text(f'#!/bin/sh\necho "$@" > {machine}/ran\nexit {code}\n')
    python.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(python))
    lacking = {"playwright"}

    def find_spec(name: str) -> str | None:
        return None if name in lacking else name

    monkeypatch.setattr(start, "find_spec", find_spec)
    command = [str(machine / "fetchstash"), "serve", "--browser", "auto"]
    steps = start.add_browser(command)
    assert "-m pip install --quiet" in next(steps)
    if code:
        with pytest.raises(StoreError, match=r"could not be installed\. Run this yourself: .*play"):
            next(steps)
    else:
        assert list(steps) == [
            (
                "There is no Chromium on this machine. Install Chromium or Google Chrome: it is "
                "used as soon as it is there."
            )
        ]
    assert (machine / "ran").read_text().startswith("-m pip install --quiet playwright>=")
    lacking.clear()
    assert not any(line.startswith("$") for line in start.add_browser(command))
    assert len(list(start.add_browser([str(machine / "uvx")]))) == 1
