"""What scripts/test says: little where all is well, the failure and what to do next elsewhere."""

import contextlib
import importlib
import os
import sys
from pathlib import Path
from types import ModuleType

import pytest

from scripts.parts import checks
from scripts.setup import Waiting

LINES = """\
[gw0] [ 12%] PASSED tests/test_a.py::test_one
tests/test_a.py::test_two
[gw1] [ 25%] FAILED tests/test_a.py::test_two
[gw1] [ 37%] SKIPPED tests/test_b.py::test_three
[gw0] [ 50%] PASS"""


@pytest.fixture(autouse=True)
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    file = tmp_path / "checks.log"
    monkeypatch.setattr(checks, "LOG", file)
    file.touch()
    return file


def test_tests_are_counted_and_a_failed_one_is_named_at_once(
    log: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tests = checks.Tests(Waiting("tests"))
    assert tests() == " · 0 %"
    log.write_text(LINES)
    assert tests() == " · 37 % · 1 passed · 1 failed · 1 skipped"
    log.write_text(LINES + "ED tests/test_b.py::test_four\n")
    assert tests() == " · 50 % · 2 passed · 1 failed · 1 skipped"
    assert capsys.readouterr().out == "FAILED tests/test_a.py::test_two\n"


@pytest.mark.slow
def test_a_check_that_passes_is_one_line_and_its_output_stands_in_the_log(
    log: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert checks.step("mypy", [sys.executable, "-c", "print('no issues')"]) == "no issues\n"
    assert capsys.readouterr().out.startswith("ok      mypy, ")
    assert log.read_text() == "no issues\n"


@pytest.mark.slow
def test_a_check_that_fails_shows_its_failures_and_what_to_do_next(
    log: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = "print('noise', '== FAILURES ==', 'assert 1 == 2', sep='\\n'); raise SystemExit(1)"
    with pytest.raises(SystemExit):
        checks.step("tests", [sys.executable, "-c", program])
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == ["== FAILURES ==", "assert 1 == 2"]
    assert lines[2].startswith("FAILED  tests, ")
    assert lines[3].endswith(f"All output: {log}")
    assert lines[4] == f"Next: mend that; {checks.MEND['tests']}."
    assert len(lines) == 5


@pytest.mark.long
@pytest.mark.parametrize("often", [2, 3], ids=["steady by itself", "broken"])
def test_a_test_that_fails_beside_others_is_tried_by_itself_and_named(
    often: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_a.py").write_text(
        "import pathlib\n"
        "def test_one():\n"
        "    seen = pathlib.Path(__file__).with_name('seen')\n"
        "    seen.open('a').write('x')\n"
        f"    assert len(seen.read_text()) == {often}\n"
    )
    monkeypatch.setattr(checks, "ROOT", tmp_path)
    program = [sys.executable, "-m", "pytest", "tests"]
    with contextlib.suppress(SystemExit) if often == 3 else contextlib.nullcontext():
        checks.tests_of_ci(program, os.environ)
    said = capsys.readouterr().out
    assert ("UNSTEADY: tests/test_a.py::test_one\n" in said) is (often == 2)
    assert ("Stopped after" in said.rpartition("FAILURES")[2]) is True


# --- What the runner of the benchmarks takes for a failure.

OTHER = 'import subprocess, sys; subprocess.run([sys.executable, "-c", "1 / 0"])'


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Return the runner, which finds its benchmarks in ``tmp_path``."""
    module = importlib.import_module("scripts.parts.bench")
    monkeypatch.setattr(module, "FOLDER", tmp_path)
    return module


@pytest.mark.slow
@pytest.mark.parametrize(
    ("program", "is_good"),
    [
        ("print(1)", True),
        ("raise SystemExit(1)", True),  # a bound is missed
        (f"{OTHER}", True),
        (f"{OTHER}; sys.exit(1)", True),
        ("1 / 0", False),
        ("import argparse; argparse.ArgumentParser().parse_args(['--what'])", False),
        ("import os; os.abort()", False),
        ("def", False),
    ],
)
def test_only_its_own_end_makes_a_benchmark_fail(
    bench: ModuleType, tmp_path: Path, program: str, *, is_good: bool
) -> None:
    tmp_path.joinpath("some.py").write_text(f"{program}{os.linesep}")
    assert bench.run("some", []) is is_good
