"""Decide where a redirect leads (RFC 9110, section 15.4)."""

from collections.abc import Mapping

from fetchstash.errors import FetchFailed
from fetchstash.fetch._url import Target, join

_REDIRECTS = frozenset({301, 302, 303, 307, 308})


def next_target(
    status: int,
    headers: Mapping[str, str],
    target: Target,
    hops: int,
    max_hops: int,
    max_chars: int,
) -> Target | None:
    """Return the target of a redirect, or None if the response is no redirect.

    The caller vets it like the first URL. Raises FetchFailed after ``max_hops`` redirects or if
    Location is missing, and what ``parse`` raises.
    """
    if status not in _REDIRECTS:
        return None
    location = headers.get("location", "")
    if not location:
        raise FetchFailed(f"{target.host} redirected without saying where to.", "Check the URL.")
    check_count(hops + 1, max_hops)
    return join(target, location, max_chars)


def check_count(redirects: int, limit: int) -> None:
    """Raise FetchFailed if so many ``redirects`` are too many."""
    if redirects > limit:
        what = f"There were more than {limit} redirects."
        raise FetchFailed(what, "Look for the document under another URL.", redirects=limit)
