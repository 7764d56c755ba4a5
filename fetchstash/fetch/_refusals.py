"""Word the errors for responses that are no document: 4xx, 5xx, nothing, too late."""

import re
from collections.abc import Mapping

from fetchstash.errors import FetchFailed, TimedOut
from fetchstash.fetch._body import PAST_DEADLINE
from fetchstash.fetch._coding import decode_beginning
from fetchstash.fetch._url import Target
from fetchstash.hygiene import clean_line

_EXCERPT_CHARS = 500
_EXCERPT_BYTES = 8 * 1024
_CHARSET = re.compile(r"""charset\s?=\s?["']?([\w.:-]{1,40})""", re.ASCII | re.IGNORECASE)
_TEXT_TYPE = re.compile(r"text/|application/(?:[\w.-]+\+)?(?:json|xml)|\Z")


def excerpt(body: bytes, headers: Mapping[str, str]) -> str:
    """Return at most 500 characters of ``body`` on one clean line, or "" if it is no text."""
    if not _TEXT_TYPE.match(headers.get("content-type", "").lower()):
        return ""
    decoded = decode_beginning(body, headers.get("content-encoding", ""), _EXCERPT_BYTES)
    charset = _CHARSET.search(headers.get("content-type", ""))
    try:
        text = decoded.decode(charset[1] if charset else "utf-8", "replace")
    except (LookupError, ValueError):
        text = decoded.decode("utf-8", "replace")
    return clean_line(text)[:_EXCERPT_CHARS]


def what_next(status: int, wait_seconds: int | None) -> str:
    """Return the next step after ``status`` (RFC 9110, section 15) and its Retry-After."""
    if wait_seconds is not None and status in {429, 503}:
        return f"Ask this site again in {wait_seconds} s, not before."
    if status in {401, 403, 407}:
        return "The page is not open to everybody: look for it elsewhere."
    if status in {404, 410}:
        return "Check the URL, or search for where the page is now."
    if status == 429:
        return "Wait before you ask this site again."
    if status >= 500:
        return "Try again later."
    return "Check the URL."


def nothing_came(target: Target, reason: str, deadline_seconds: float) -> FetchFailed | TimedOut:
    """Return the error for a body of which nothing could be kept; ``reason`` is half a sentence."""
    if reason == PAST_DEADLINE:
        return timed_out(target, deadline_seconds)
    return FetchFailed(
        f"Nothing of {target.host}'s answer could be kept: {reason}.", "Try again later."
    )


def timed_out(target: Target, deadline_seconds: float) -> TimedOut:
    """Return the error for a deadline that passed before anything came."""
    what = f"{target.host} did not answer within {deadline_seconds:g} s."
    return TimedOut(what, "Try again later, or ask the operator to raise fetch.deadline_seconds.")
