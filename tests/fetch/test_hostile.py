"""Hostile servers, each measured in a process of its own."""

from collections.abc import Generator

import pytest

from fetchstash.fetch import FetchLimits
from fetchstash.fetch._body import FIRST_PART
from tests.fetch.hostile import BOMBS, measured, serve

pytestmark = [
    pytest.mark.skipif(
        "sys.platform == 'win32'",
        reason="resident memory is read by resource, which Windows has not",
    ),
    pytest.mark.long,
]


ENDED = FIRST_PART.format(FetchLimits().max_wire_bytes, " as sent")


@pytest.fixture(scope="module")
def port() -> Generator[int]:
    port, stop = serve(size=2**30)
    yield port
    stop()


@pytest.mark.parametrize("coding", [name.replace(", ", "+") for name in BOMBS])
def test_a_bomb_ends_soon_and_takes_little_memory(port: int, coding: str) -> None:
    result = measured(port, f"/bomb/{coding}")
    assert result["outcomes"] == {"too_large": 1}
    assert result["extra_mb"] < 64


def test_many_bombs_at_once_take_bounded_memory(port: int) -> None:
    result = measured(port, "/bomb/zstd", count=20)
    assert result["outcomes"] == {"too_large": 20}
    assert result["extra_mb"] < 300


@pytest.mark.parametrize(
    ("path", "deadline", "outcomes"),
    [
        ("/silent", 0.5, {"timeout"}),
        ("/slow-body", 3, {"the deadline passed before its end"}),
        # Whichever limit the machine reaches first.
        ("/endless-body", 3, {"the deadline passed before its end", ENDED}),
        ("/huge-header", 30, {"too_large"}),
        ("/slow-header", 1, {"timeout"}),
        ("/one-byte-chunks", 30, {"it came in needlessly tiny chunks"}),
        ("/endless-1xx", 3, {"timeout", "too_large"}),
        ("/lying-length", 3, {"the deadline passed before its end"}),
        ("/lying-length-long", 30, {"whole"}),
        ("/blank-header", 30, {"fetch_failed"}),
    ],
)
def test_a_server_that_goes_on_for_ever_is_left_by_a_limit(
    port: int, path: str, deadline: float, outcomes: set[str]
) -> None:
    result = measured(port, path, deadline=deadline)
    (outcome,) = result["outcomes"]
    assert outcome in outcomes
