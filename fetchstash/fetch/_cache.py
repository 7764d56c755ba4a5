"""What a stored answer is still worth: pure functions over its headers and times (RFC 9111; RFC 9110, section 13).

hishel decides, through its state machine that does no I/O; its own storage is not used, because the store keeps every body already.
"""

from collections.abc import Mapping
from datetime import datetime
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
    return {name: value for name, value in fields.items() if value and value.isascii() and value.isprintable()}


def is_fresh(cached: Cached) -> bool:
    """Say whether a stored answer may be used without asking the server (RFC 9111, section 4).

    It needs ``headers`` and ``stored_at``. The first call imports a library for some 0.1 s.
    """
    if cached.headers is None:
        return False
    from hishel import Entry, FromCache, Headers, IdleClient, Response  # noqa: PLC0415 -- see above

    response = Response(cached.status, Headers(_dated(cached.headers, cached.stored_at)))
    state = IdleClient(options=_PRIVATE).next(_request(), [Entry(_NO_ID, _request(), response)])
    return isinstance(state, FromCache)


def may_keep(status: int, headers: Mapping[str, str]) -> bool:
    """Say whether an answer may be kept beyond the run that fetched it: ``no-store`` and its like may not (RFC 9111, section 3)."""
    directives = {part.strip().partition("=")[0].lower() for part in headers.get("cache-control", "").split(",")}
    return status in _KEEPABLE and "no-store" not in directives


def age_seconds(cached: Cached, now: datetime) -> int:
    """Return how old a stored answer is (RFC 9111, section 4.2.3), in seconds."""
    return round((now - cached.stored_at).total_seconds() + _age_when_stored(cached.headers or {}, cached.stored_at))
