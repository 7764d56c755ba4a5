from pathlib import Path
from typing import Any

import pytest

from compare._cases import SCORES, Case, judge, load
from compare._peers import PEERS, Call, named_calls, version
from compare._report import better, faults, page
from compare._web import Web, body_of, expand


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
