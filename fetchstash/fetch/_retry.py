"""Decide when to retry (RFC 9110, sections 9.2.2 and 10.2.3). Pure functions."""

import random
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

_MAX_RETRIES = 2
_FIRST_WAIT_SECONDS = 0.5
# Too Many Requests (RFC 6585, section 4), Bad Gateway, Service Unavailable, Gateway Timeout.
_TEMPORARY = frozenset({429, 502, 503, 504})
_MAX_VALUE_CHARS = 64  # far above any date
_MAX_SECONDS = 10 * 365 * 24 * 3600


def retry_after_seconds(value: str, now: datetime) -> int | None:
    """Return the seconds of a Retry-After header (a number or an HTTP date), or None."""
    value = value.strip()[:_MAX_VALUE_CHARS]
    if value.isascii() and value.isdigit():
        return min(int(value), _MAX_SECONDS)
    try:
        date = parsedate_to_datetime(value)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    try:
        seconds = ((date if date.tzinfo else date.replace(tzinfo=UTC)) - now).total_seconds()
    except OverflowError:
        return None
    return min(max(0, round(seconds)), _MAX_SECONDS)


def wait_after_failure(
    attempt: int, seconds_left: float, jitter: Callable[[], float] = random.random
) -> float | None:
    """Return the seconds to wait before the next attempt, or None if there is none.

    There are two retries at most, within ``seconds_left``. ``attempt`` counts from 0. The wait
    doubles; jitter spreads it over its upper half.
    """
    wait = _FIRST_WAIT_SECONDS * 2**attempt * (0.5 + jitter() / 2)
    return wait if attempt < _MAX_RETRIES and wait < seconds_left else None


def wait_after_status(
    status: int,
    headers: Mapping[str, str],
    attempt: int,
    seconds_left: float,
    now: datetime,
    jitter: Callable[[], float] = random.random,
) -> float | None:
    """Return the seconds to wait before the request is repeated, or None to take the response.

    Retry-After is obeyed exactly, once, and only within half of ``seconds_left``.
    """
    if status not in _TEMPORARY or attempt >= _MAX_RETRIES:
        return None
    asked = retry_after_seconds(headers.get("retry-after", ""), now)
    if asked is None:
        return wait_after_failure(attempt, seconds_left, jitter)
    return float(asked) if attempt == 0 and asked <= seconds_left / 2 else None
