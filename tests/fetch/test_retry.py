"""When a request is sent again: twice at the most, and only where it may help."""

from datetime import UTC, datetime

import pytest
from hypothesis import given, strategies as st

from fetchstash.fetch._retry import retry_after_seconds, wait_after_failure, wait_after_status

NOW = datetime(2026, 11, 21, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("120", 120),
        (" 0 ", 0),
        ("Sat, 21 Nov 2026 12:01:30 GMT", 90),
        ("Sat, 21 Nov 2026 11:00:00 GMT", 0),
        ("Saturday, 21-Nov-26 12:00:10 GMT", 10),
        ("", None),
        ("soon", None),
        ("-5", None),
        ("1.5", None),
        ("٣", None),
        ("9" * 400, 315_360_000),
        ("Sat, 21 Nov 99999 12:00:10 GMT", None),
    ],
)
def test_retry_after_is_seconds_or_a_date(value: str, seconds: int | None) -> None:
    assert retry_after_seconds(value, NOW) == seconds


@given(st.text(max_size=60))
def test_any_retry_after_is_read_or_nothing(value: str) -> None:
    seconds = retry_after_seconds(value, NOW)
    assert seconds is None or 0 <= seconds <= 315_360_000


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_a_temporary_failure_is_retried_after_a_growing_wait(status: int) -> None:
    waits = [
        wait_after_status(status, {}, attempt, 60, NOW, jitter=lambda: 1.0) for attempt in range(3)
    ]
    assert waits == [0.5, 1.0, None]


@pytest.mark.parametrize("status", [200, 301, 304, 400, 401, 403, 404, 410, 500, 501])
def test_a_permanent_failure_is_not_retried(status: int) -> None:
    assert wait_after_status(status, {"retry-after": "1"}, 0, 60, NOW) is None


def test_retry_after_is_obeyed_once_and_within_half_of_what_is_left() -> None:
    assert wait_after_status(503, {"retry-after": "7"}, 0, 60, NOW) == 7
    assert wait_after_status(503, {"retry-after": "30"}, 0, 60, NOW) == 30
    assert wait_after_status(503, {"retry-after": "31"}, 0, 60, NOW) is None
    assert wait_after_status(503, {"retry-after": "7"}, 1, 60, NOW) is None


def test_jitter_spreads_the_wait_over_its_upper_half() -> None:
    assert wait_after_failure(1, 60, jitter=lambda: 0.0) == 0.5
    assert wait_after_failure(1, 60, jitter=lambda: 1.0) == 1.0


def test_no_wait_goes_past_the_deadline() -> None:
    assert wait_after_failure(0, 0.1) is None
