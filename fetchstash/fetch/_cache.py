"""What a stored answer is still worth: pure functions over its headers and times (RFC 9111; RFC 9110, section 13).

hishel decides, through its state machine that does no I/O; its own storage is not used, because the
store keeps every body already.
"""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime, parsedate_to_datetime
from typing import TYPE_CHECKING
from uuid import UUID

from fetchstash.fetch._contract import Cached

if TYPE_CHECKING:
    from hishel import CacheOptions

# Ours is a private cache: one principal's, and it sends the same header fields each time.
_PRIVATE: "CacheOptions" = {"shared": False, "supported_methods": ["GET"], "allow_stale": False}
_NO_ID = UUID(int=0)


def conditions(cached: Cached | None) -> dict[str, str]:
    """Return the request headers that ask whether ``cached`` is still what the server has (RFC 9110, section 13.1)."""
    if cached is None:
        return {}
    fields = {"If-None-Match": cached.etag, "If-Modified-Since": cached.last_modified}
    return {
        name: value
        for name, value in fields.items()
        if value and value.isascii() and value.isprintable()
    }


def is_fresh(cached: Cached) -> bool:
    """Say whether a stored answer may be used without asking the server (RFC 9111, section 4).

    It needs ``headers`` and ``stored_at``. The first call imports a library for some 0.1 s.
    """
    if cached.headers is None:
        return False
    from hishel import Entry, FromCache, Headers, IdleClient, Request, Response  # noqa: PLC0415 -- see above

    response = Response(cached.status, Headers(_dated(cached)))
    request = Request("GET", "")  # one answer is compared with itself, so its URL plays no part
    state = IdleClient(options=_PRIVATE).next(request, [Entry(_NO_ID, request, response)])
    return isinstance(state, FromCache)


def may_keep(headers: Mapping[str, str]) -> bool:
    """Say whether an answer may be kept beyond the run that fetched it: ``no-store`` forbids it (RFC 9111, section 5.2.2.5)."""
    return "no-store" not in {
        part.strip().lower() for part in headers.get("cache-control", "").split(",")
    }


def age_seconds(cached: Cached, now: datetime) -> int:
    """Return how old a stored answer is (RFC 9111, section 4.2.3), in seconds."""
    return max(0, round((now - _generated_at(cached)).total_seconds()))


def _generated_at(cached: Cached) -> datetime:
    """Return when the origin server made the answer: by its Date, or by the Age that caches on the way told, if that is more."""
    headers = cached.headers or {}
    age = headers.get("age", "")
    told = timedelta(seconds=int(age[:9])) if age.isascii() and age.isdigit() else timedelta()
    return min(_date(headers.get("date", "")) or cached.stored_at, cached.stored_at - told)


def _dated(cached: Cached) -> dict[str, str]:
    """Return the headers with Date and Expires moved to where hishel, which looks at no Age, counts right."""
    headers = {**(cached.headers or {})}
    generated = _generated_at(cached)
    if "expires" in headers:
        expires, date = (
            _date(headers["expires"]),
            _date(headers.get("date", "")) or cached.stored_at,
        )
        lifetime = (
            max(timedelta(), expires - date) if expires else timedelta()
        )  # RFC 9111, section 5.3: invalid is in the past
        headers["expires"] = format_datetime(generated + lifetime, usegmt=True)
    return headers | {"date": format_datetime(generated, usegmt=True)}


def _date(value: str) -> datetime | None:
    try:
        date = parsedate_to_datetime(value[:64])
        return (date if date.tzinfo else date.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
