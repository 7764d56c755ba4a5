"""What retention removes, as a table: candidates from the least to the most recently used."""

from pathlib import Path

import pytest

from fetchstash.store import StoreLimits
from fetchstash.store._retention import Candidate, Total, plan

NOW = 1000.0


@pytest.mark.parametrize(
    ("sizes", "expiries", "count", "size", "expected"),
    [
        pytest.param([], [], 2, 10, [], id="nothing there"),
        pytest.param([5, 5], [2000, 2000], 2, 10, [], id="within all limits"),
        pytest.param([5, 5], [999, 1000], 2, 10, ["0 age", "1 age"], id="too old, to the second"),
        pytest.param(
            [1, 1, 1], [2000] * 3, 2, 10, ["0 count"], id="one too many: the least recently used"
        ),
        pytest.param([5, 5, 5], [2000] * 3, 9, 10, ["0 bytes"], id="too many bytes"),
        pytest.param([5, 1, 9], [2000] * 3, 9, 10, ["0 bytes"], id="no more than must go"),
        pytest.param(
            [1, 9, 9],
            [2000] * 3,
            9,
            10,
            ["0 bytes", "1 bytes"],
            id="small ones go too, in order of use",
        ),
        pytest.param(
            [5, 5, 5, 5],
            [2000, 999, 2000, 2000],
            2,
            7,
            ["1 age", "0 count", "2 bytes"],
            id="age, then count, then bytes",
        ),
        pytest.param([50], [2000], 9, 10, ["0 bytes"], id="one that is larger than all"),
    ],
)
def test_plan(
    sizes: list[int], expiries: list[float], count: int, size: int, expected: list[str]
) -> None:
    candidates = [
        Candidate(n, str(n), one, expiry)
        for n, (one, expiry) in enumerate(zip(sizes, expiries, strict=True))
    ]
    limits = StoreLimits(Path("unused"), max_artifacts=count, max_total_bytes=size)
    overdue = [candidate for candidate in candidates if candidate.expires_at <= NOW]
    planned = plan(overdue, candidates, Total(len(sizes), sum(sizes)), limits)
    assert [f"{candidate.ref} {reason}" for candidate, reason in planned] == expected
