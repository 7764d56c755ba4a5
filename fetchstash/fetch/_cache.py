"""Decide whether a stored response is fresh, from its headers and times (RFC 9111).

Pure functions. hishel's state machine, which does no I/O, decides; its storage is not used, because
the store keeps every body already.
"""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime, parsedate_to_datetime
from typing import TYPE_CHECKING
from uuid import UUID

from fetchstash.fetch._contract import Cached
from fetchstash.fetch._mask import mask_url
from fetchstash.fetch._url import Target

if TYPE_CHECKING:
    from hishel import CacheOptions

# Ours is a private cache: one principal's, and it sends the same header fields each time.
_PRIVATE: "CacheOptions" = {"shared": False, "supported_methods": ["GET"], "allow_stale": False}
_NO_ID = UUID(int=0)


def conditions(cached: Cached | None, target: Target, redirects: int) -> dict[str, str]:
    """Return the headers of a conditional request (RFC 9110, section 13.1).

    A validator is sent only to the URL that gave it: another server could learn it, or answer 304
    for another document.
    """
    if cached is None or (mask_url(target.text) != cached.url if cached.url else redirects):
        return {}
    fields = {"If-None-Match": cached.etag, "If-Modified-Since": cached.last_modified}
    return {
        name: value
        for name, value in fields.items()
        if value and value.isascii() and value.isprintable()
    }


def is_fresh(cached: Cached) -> bool:
    """Say whether a stored response may be used without asking the server (RFC 9111, section 4).

    Needs ``headers`` and ``stored_at``. The first call takes some 0.1 s to import a library.
    """
    if cached.headers is None:
        return False
    from hishel import Entry, FromCache, Headers, IdleClient, Request, Response  # noqa: PLC0415 -- see above

    response = Response(cached.status, Headers(_dated(cached)))
    request = Request("GET", "")  # compared with itself: its URL plays no part
    state = IdleClient(options=_PRIVATE).next(request, [Entry(_NO_ID, request, response)])
    return isinstance(state, FromCache)


def may_keep(headers: Mapping[str, str]) -> bool:
    """Say whether a response may outlive its run: no-store forbids it (RFC 9111, 5.2.2.5)."""
    return "no-store" not in {
        part.strip().lower() for part in headers.get("cache-control", "").split(",")
    }


def age_seconds(cached: Cached, now: datetime) -> int:
    """Return the age of a stored response in seconds (RFC 9111, section 4.2.3)."""
    return max(0, round((now - _generated_at(cached)).total_seconds()))


def _generated_at(cached: Cached) -> datetime:
    """Return when the origin server made the response, by Date or by Age, whichever is earlier."""
    headers = cached.headers or {}
    age = headers.get("age", "")
    in_caches = timedelta(seconds=int(age[:9])) if age.isascii() and age.isdigit() else timedelta()
    return min(_date(headers.get("date", "")) or cached.stored_at, cached.stored_at - in_caches)


def _dated(cached: Cached) -> dict[str, str]:
    """Return the headers with Date and Expires moved by Age, which hishel does not read."""
    headers = {**(cached.headers or {})}
    generated = _generated_at(cached)
    if "expires" in headers:
        expires = _date(headers["expires"])
        date = _date(headers.get("date", "")) or cached.stored_at
        # RFC 9111, section 5.3: a date that cannot be read has passed.
        lifetime = max(timedelta(), expires - date) if expires else timedelta()
        headers["expires"] = format_datetime(generated + lifetime, usegmt=True)
    return headers | {"date": format_datetime(generated, usegmt=True)}


def _date(value: str) -> datetime | None:
    try:
        date = parsedate_to_datetime(value[:64])
        return (date if date.tzinfo else date.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
