"""What scripts/test says: little where all is well, the failure and what to do next elsewhere."""

import contextlib
import importlib
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from compare._cases import SCORES, Case, judge, load
from compare._peers import PEERS, Call, named_calls, version
from compare._report import better, faults, page
from compare._web import Web, body_of, expand
from scripts.parts import checks

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
    tests = checks.Tests()
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


# --- test_compare


def case(**rules: Any) -> Case:
    known: dict[str, Any] = {"truth": ("blue",), **rules}
    return Case("a", "a", "reading", "", "", **known)


@pytest.mark.parametrize(
    ("rules", "answers", "inside", "outcome"),
    [
        ({}, ["The sea is **Blue**."], 0, "right"),
        ({"truth": ("sea", "blue")}, ["The sea", "is blue"], 0, "right"),
        ({"truth": ("sea is blue",)}, ["| sea |\n| `is` blue |"], 0, "wrong"),
        ({"truth": ("lease_seconds 9",)}, ["lease\\_seconds\n 9"], 0, "right"),
        ({}, ["red"], 0, "wrong"),
        ({"enough": ("red",)}, ["red"], 0, "tolerable"),
        ({"never": ("green",), "enough": ("red",)}, ["red, blue, green"], 0, "wrong"),
        ({}, ["blue"], 1, "wrong"),
        ({}, [], 0, "wrong"),
    ],
)
def test_an_answer_is_judged_by_its_rules(
    rules: dict[str, Any], answers: list[str], inside: int, outcome: str
) -> None:
    assert judge(case(**rules), answers, inside) == outcome


def test_every_case_can_be_served_and_asks_for_something_that_an_empty_answer_lacks() -> None:
    cases = load()
    sites = [each for each in cases if each.group.startswith("sites_")]
    assert len(sites) >= 60
    assert {each.score for each in cases} == set(SCORES)
    assert [
        each.name for each in cases if each.score != "safety" and judge(each, [""]) != "wrong"
    ] == []
    urls = [each.url for each in cases]
    assert len(set(urls)) == len(urls)
    web = Web([one for each in cases for one in each.pages if "url" in one], {})
    for each in cases:
        for one in each.pages:
            assert isinstance(body_of(one), bytes)
    assert len(web.pages) >= len(cases) - 12  # the hostile URLs that are no page of ours


def test_text_is_repeated_with_its_number() -> None:
    assert expand("a{{3*<{n}>*}}b") == "a<1><2><3>b"


def test_every_peer_is_pinned() -> None:
    for peer in PEERS:
        if peer.tool:
            assert version(peer).rpartition(" ")[2][0].isdigit(), peer.name


@pytest.mark.parametrize(
    ("answer", "calls"),
    [
        (
            'artifact_slice(artifact_ref="a", path="data")',
            [("artifact_slice", {"artifact_ref": "a", "path": "data"})],
        ),
        ('Use artifact_grep(artifact_ref=REF, pattern="x")', []),
        ("nothing", []),
    ],
)
def test_the_calls_that_an_answer_spells_out_are_read(answer: str, calls: list[Call]) -> None:
    assert list(named_calls(answer)) == calls


def result(outcome: str, score: str, tokens: int = 100) -> dict[str, Any]:
    common = {"group": "sites_reading", "seconds": [0.1], "calls": [], "inside": []}
    return {"outcome": outcome, "score": score, "tokens": tokens, "answers": ["x"], **common}


def results(planted: str, *, loses: bool) -> dict[str, Any]:
    ours = {f"{score} {n}": result("right", score) for score in SCORES for n in range(30)}
    outcome, tokens = "wrong" if loses else "right", 90
    if planted == "planted: floods":
        outcome, tokens = "right", 400 if loses else 90
    theirs = {name: result(outcome, row["score"], tokens) for name, row in ours.items()}
    return {
        "fetchstash": {"catalogue": 1, "cases": ours},
        planted: {"catalogue": 1, "cases": theirs},
    }


@pytest.mark.parametrize("planted", ["planted: leaks", "planted: floods", "planted: lies"])
def test_a_planted_server_that_does_not_lose_is_a_fault(planted: str) -> None:
    peers = [peer for peer in PEERS if peer.name in {"fetchstash", planted}]
    assert faults(results(planted, loses=True), peers) == []
    assert faults(results(planted, loses=False), peers) == [f"{planted}: it does not lose"]


def test_what_a_peer_does_better_is_said() -> None:
    ours = {"a": result("wrong", "truth"), "b": result("right", "reading", 900)}
    theirs = {"a": result("right", "truth"), "b": result("right", "reading", 90)}
    assert better(theirs, ours) == ["a: right, ours wrong", "b: 90 tokens, ours 900"]
    assert better(ours, theirs) == []


def test_a_peer_that_cannot_be_installed_is_a_line() -> None:
    peers = [peer for peer in PEERS if peer.name in {"fetchstash", "context-mode"}]
    told = {
        "fetchstash": {"catalogue": 1, "cases": {"a": result("right", "truth")}},
        "context-mode": {"missing": "it cannot be installed here: no npm"},
    }
    text = page(told, peers, Path(__file__).parents[2])
    assert "**not compared**, it cannot be installed here: no npm" in text
    assert max(map(len, text.splitlines())) <= 130
