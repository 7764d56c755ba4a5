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
INSTALL = """
import os, subprocess, sys, setup
program = '''
import os, time
with open(f"/proc/{os.getppid()}/fd/1", "w") as to_the_test:
    print("installing", file=to_the_test)
time.sleep(60)
'''
with setup.only_one() as lock:
    setup.run_installer("installing", [sys.executable, "-c", program], lock)
"""
USE = """
import sys, time, setup
setup.mark_in_use()
print("in use", flush=True)
time.sleep(60)
"""

pytestmark = [pytest.mark.skipif(os.name == "nt", reason="POSIX locks"), pytest.mark.slow]


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

        def install(kind: str, _: int) -> None:
            self.installed.append(kind)
            self.python.parent.mkdir(parents=True, exist_ok=True)
            if not self.python.exists():
                self.python.unlink(missing_ok=True)
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
            stderr=subprocess.STDOUT,
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
        process.wait(60)


def test_a_set_up_that_was_killed_does_not_block_the_next_one(checkout: Checkout) -> None:
    end(checkout.start(HOLD))
    checkout.set_up()
    assert checkout.installed == ["run"]


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the next set-up waits for them")
def test_the_installers_of_a_set_up_that_was_killed_end_with_it(checkout: Checkout) -> None:
    end(checkout.start(INSTALL))
    checkout.setup.LOCK_SECONDS = 10  # type: ignore[attr-defined]
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


def replace_python(checkout: Checkout, target: Path) -> None:
    checkout.python.unlink()
    checkout.python.symlink_to(target)


def test_an_environment_whose_python_was_uninstalled_is_made_anew(checkout: Checkout) -> None:
    python = checkout.folder / "python-of-the-system"
    checkout.set_up()
    replace_python(checkout, python)
    checkout.setup.STAMP.write_text(json.dumps(checkout.setup.expected_stamp("run")))
    checkout.set_up()
    assert checkout.installed == ["run", "run"]


def test_an_environment_whose_python_was_updated_is_used_as_it_is(
    checkout: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    checkout.set_up()
    python = checkout.folder / "python-updated"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    python.chmod(0o700)
    replace_python(checkout, python)
    checkout.set_up()
    assert checkout.installed == ["run"]
    assert checkout.setup.ready("run")


def test_an_environment_in_use_whose_python_is_gone_is_left_alone(
    checkout: Checkout, capfd: pytest.CaptureFixture[str]
) -> None:
    checkout.set_up()
    server = checkout.start(USE)
    checkout.python.unlink()
    with pytest.raises(SystemExit):
        checkout.set_up()
    end(server)
    assert checkout.installed == ["run"]
    assert "is gone, and a program still runs from there" in capfd.readouterr().err


def test_uv_trusts_the_certificates_of_the_system_and_pip_takes_over_where_it_fails(
    checkout: Checkout, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    programs = checkout.folder / "programs"
    programs.mkdir()
    uv = programs / "uv"
    uv.write_text('#!/bin/sh\necho "certificates: $UV_SYSTEM_CERTS $UV_NATIVE_TLS"\nexit 2\n')
    uv.chmod(0o700)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    for name in ("UV_SYSTEM_CERTS", "UV_NATIVE_TLS"):
        monkeypatch.delenv(name, raising=False)
    run_installer = checkout.setup.run_installer
    commands: list[list[str]] = []

    def run(what: str, command: list[str], lock: int) -> None:
        commands.append(command)
        if command[0] == str(uv):
            run_installer(what, command, lock)
        elif "venv" in command:
            checkout.python.parent.mkdir(parents=True)
            checkout.python.symlink_to(sys.executable)

    checkout.setup.run_installer = run  # type: ignore[attr-defined]
    checkout.setup.set_up("run")
    out, err = capfd.readouterr()
    assert out == ""
    log = checkout.folder / ".venv.log"
    assert log.read_text() == "certificates: 1 1\n"
    assert f"what the installers said: {log}\n" in err
    assert "uv could not do it; trying pip" in err
    assert [str(checkout.python), "-P", "-m", "pip"] == commands[-1][:4]
    assert checkout.setup.ready("run")


def test_a_set_up_that_fails_shows_the_end_of_the_log_and_names_it(
    checkout: Checkout, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    program = "for n in range(9): print('line', n)\nraise SystemExit(4)"

    def fail(_: str, lock: int) -> None:
        checkout.setup.run_installer("installing", [sys.executable, "-c", program], lock)

    checkout.setup.install = fail  # type: ignore[attr-defined]
    monkeypatch.setattr(sys, "argv", ["setup.py", "run"])
    assert checkout.setup.main() == 1
    out, err = capfd.readouterr()
    assert out == ""
    assert "ended with exit code 4" in err
    assert "    line 4\n" in err
    assert "line 3" not in err
    assert err.endswith(".venv.log. Mend the cause, then start this again.\n")


def test_long_work_shows_that_it_goes_on(
    checkout: Checkout, capsys: pytest.CaptureFixture[str]
) -> None:
    waiting = checkout.setup.Waiting("installing")
    waiting.show()
    for seconds in (3, 14, 20, 21):
        waiting.start -= seconds - waiting.seconds
        waiting.show(f" · {seconds} of 21")
    assert capsys.readouterr().err == "fetchstash: installing … 20 s · 20 of 21\n"


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


@pytest.mark.slow
def test_the_python_of_the_environment_serves_where_no_other_is_on_path(tmp_path: Path) -> None:
    scripts, programs = tmp_path / "scripts", tmp_path / "programs"
    own = tmp_path / ".venv" / "bin" / "python"
    for folder in (scripts, programs, own.parent):
        folder.mkdir(parents=True)
    shutil.copy(ROOT / "scripts" / "with-python", scripts)
    for name in ("dirname", "sh"):
        (programs / name).symlink_to(shutil.which(name) or name)
    old = programs / "python3"
    old.write_text("#!/bin/sh\nexit 1\n")
    old.chmod(0o700)
    own.symlink_to(sys.executable)
    program = [str(scripts / "with-python"), "-c", "import sys; print(sys.flags.safe_path)"]
    environment = {"PATH": str(programs)}
    done = subprocess.run(program, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"
    own.unlink()
    done = subprocess.run(program, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "Python 3.11 or newer is needed" in done.stderr


def test_a_part_of_ci_may_keep_bytecode_where_others_may_not(checkout: Checkout) -> None:
    checkout.set_up("dev")
    parts = checkout.folder / "scripts" / "parts"
    parts.mkdir()
    (parts / "shown.py").write_text("import sys; print(sys.dont_write_bytecode)")
    done = subprocess.run(
        [sys.executable, "-P", checkout.folder / "scripts" / "setup.py", "shown"],
        env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "False\n"
