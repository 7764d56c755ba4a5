"""The set-up of .venv, as two hosts, a killed one and another Python on PATH would start it."""

import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
HOLD = """
import sys, time, setup
with setup.only_one():
    print("held", flush=True)
    time.sleep(60)
"""
USE = """
import sys, time, setup
setup.mark_in_use()
print("in use", flush=True)
time.sleep(60)
"""

pytestmark = pytest.mark.skipif(os.name == "nt", reason="POSIX locks")


class Checkout:
    """A copy of what the set-up needs of a checkout, with an environment that it may rebuild."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.installed: list[str] = []
        for name in ("scripts", "requirements"):
            (folder / name).mkdir()
        shutil.copy(ROOT / "scripts" / "setup.py", folder / "scripts")
        shutil.copy(ROOT / "pyproject.toml", folder)
        for lock in ("run.txt", "dev.txt"):
            (folder / "requirements" / lock).write_text(lock)
        self.python = folder / ".venv" / "bin" / "python"
        self.setup = self._load()

    def _load(self) -> ModuleType:
        path = self.folder / "scripts" / "setup.py"
        spec = importlib.util.spec_from_file_location("setup_of_a_test", path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    def set_up(self, kind: str = "run") -> None:
        """Set up; the packages themselves are not installed."""
        setup = self.setup

        def install(kind: str) -> None:
            self.installed.append(kind)
            self.python.parent.mkdir(parents=True, exist_ok=True)
            if not self.python.exists():
                self.python.symlink_to(sys.executable)
            setup.STAMP.write_text(json.dumps(setup.expected_stamp(kind)))

        setup.install = install  # type: ignore[attr-defined]
        setup.set_up(kind)

    def start(self, program: str) -> subprocess.Popen[str]:
        """Run a program beside the set-up until it has printed its line."""
        process = subprocess.Popen(
            [sys.executable, "-c", program],
            env=os.environ | {"PYTHONPATH": str(self.folder / "scripts"), "PYTHONSAFEPATH": "1"},
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        assert process.stdout.readline()
        return process


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Checkout:
    monkeypatch.delenv("CHECKOUT_VENV", raising=False)
    return Checkout(tmp_path)


def end(process: subprocess.Popen[str], number: int = signal.SIGKILL) -> None:
    process.send_signal(number)
    with process:
        process.wait(10)


def test_a_set_up_that_was_killed_does_not_block_the_next_one(checkout: Checkout) -> None:
    end(checkout.start(HOLD))
    checkout.set_up()
    assert checkout.installed == ["run"]


def test_a_set_up_waits_for_the_one_that_runs_and_says_so(
    checkout: Checkout, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    holder = checkout.start(HOLD)
    monkeypatch.setattr(checkout.setup, "LOCK_SECONDS", 0)
    with pytest.raises(SystemExit):
        checkout.set_up()
    end(holder)
    out, err = capfd.readouterr()
    assert out == ""
    assert "waiting for it" in err
    assert checkout.installed == []


def test_another_python_uses_the_environment_that_is_there(
    checkout: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkout.set_up()
    monkeypatch.setattr(sys, "version", "another Python")
    monkeypatch.setattr(sys, "executable", "/usr/bin/another-python")
    checkout.set_up()
    assert checkout.installed == ["run"]


def test_an_environment_whose_python_is_gone_is_made_anew(checkout: Checkout) -> None:
    checkout.set_up()
    checkout.python.unlink()
    checkout.set_up()
    assert checkout.installed == ["run", "run"]


def test_a_new_lock_updates_the_environment(checkout: Checkout) -> None:
    checkout.set_up()
    (checkout.folder / "requirements" / "run.txt").write_text("another lock")
    checkout.set_up()
    assert checkout.installed == ["run", "run"]


def test_the_packages_of_the_tests_serve_the_program_too(checkout: Checkout) -> None:
    checkout.set_up("dev")
    checkout.set_up("run")
    assert checkout.installed == ["dev"]


def test_an_environment_in_use_is_not_rebuilt(
    checkout: Checkout, capfd: pytest.CaptureFixture[str]
) -> None:
    checkout.set_up()
    server = checkout.start(USE)
    (checkout.folder / "requirements" / "run.txt").write_text("another lock")
    checkout.set_up()
    assert checkout.installed == ["run"]
    assert "a program still runs from it" in capfd.readouterr().err
    end(server)
    checkout.set_up()
    assert checkout.installed == ["run", "run"]


def test_the_packages_of_the_tests_are_added_beside_a_running_server(checkout: Checkout) -> None:
    checkout.set_up()
    server = checkout.start(USE)
    checkout.set_up("dev")
    end(server)
    assert checkout.installed == ["run", "dev"]
