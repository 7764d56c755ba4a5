"""Decide what a stored artifact is worth when its URL is asked for again (RFC 9111)."""

from dataclasses import replace
from datetime import UTC, datetime

from fetchstash.fetch import Cached, Fetched, age_seconds, is_fresh
from fetchstash.stash._values import CacheUse
from fetchstash.store import Facts
from fetchstash.text.hygiene import clean_line

# The response's fields that freshness is computed from (RFC 9111, sections 4.1, 4.2, 5.1 to 5.3).
_CACHING = ("age", "cache-control", "date", "expires", "pragma", "vary")


def with_response(facts: Facts, fetched: Fetched) -> Facts:
    """Return ``facts`` with those of a response. Header values are untrusted: clean them."""
    headers = {name: clean_line(value) for name, value in fetched.headers.items()}
    renewed = replace(
        facts,
        source_url=clean_line(fetched.masked_url),
        final_url=clean_line(fetched.masked_final_url),
        http_status=fetched.status,
        etag=headers.get("etag", ""),
        last_modified=headers.get("last-modified", ""),
        incomplete=clean_line(fetched.incomplete),
    )
    return revalidated(renewed, fetched)


def revalidated(facts: Facts, fetched: Fetched) -> Facts:
    """Return ``facts`` with the freshness that a response gives them (RFC 9111, section 4.3.4)."""
    caching = {
        name: clean_line(fetched.headers[name]) for name in _CACHING if name in fetched.headers
    }
    return replace(facts, validated_at=fetched.fetched_at, caching=caching)


def cached_of(facts: Facts) -> Cached | None:
    """Return the validators to ask the server by; None where the body must be fetched again."""
    if facts.incomplete or facts.extraction_error or facts.validated_at is None:
        return None
    return Cached(
        facts.validated_at,
        facts.etag,
        facts.last_modified,
        facts.caching,
        facts.http_status or 200,
        facts.final_url,
    )


def fresh_use(cached: Cached) -> CacheUse | None:
    """Return the use of a copy that is still fresh; None where the server has to be asked."""
    if not is_fresh(cached):
        return None
    return CacheUse(age_seconds(cached, datetime.now(UTC)))


def same_again(known: Facts, renewed: Facts, sha256: str) -> bool:
    """Return whether the same bytes came again from the same place."""
    same_place = (known.final_url, known.incomplete) == (renewed.final_url, renewed.incomplete)
    return known.sha256 == sha256 and same_place and not known.extraction_error
