"""Word the errors for responses that are no document: 4xx, 5xx, nothing, too late."""

import re
from collections.abc import Mapping
from typing import TypeVar

from fetchstash.errors import Call, FetchFailed, FetchstashError, Refused, RobotsRefused, TimedOut
from fetchstash.fetch._body import PAST_DEADLINE
from fetchstash.fetch._coding import decode_beginning
from fetchstash.fetch._limits import FetchLimits
from fetchstash.fetch._url import Target
from fetchstash.text.hygiene import clean_line

_EXCERPT_CHARS = 500
_EXCERPT_BYTES = 8 * 1024
_CHARSET = re.compile(r"""charset\s?=\s?["']?([\w.:-]{1,40})""", re.ASCII | re.IGNORECASE)
_Error = TypeVar("_Error", bound=FetchstashError)
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


def what_next(target: Target, status: int, wait_seconds: int | None) -> str:
    """Return the next step after ``status`` (RFC 9110, section 15) and its Retry-After."""
    if wait_seconds is not None and status in {429, 503}:
        return f"Ask this site again in {wait_seconds} s, not before."
    if status == 400 and target.scheme == "http" and target.port in {443, 8443}:
        return "This is a port for TLS: write https:// in the URL."
    if status in {401, 403, 407}:
        return "The page is not open to everybody: look for it elsewhere."
    if status in {404, 410}:
        return "Check the URL, or search for where the page is now."
    if status == 429:
        return "Wait before you ask this site again."
    return "Try again later." if status in {408, 425, 500, 502, 503, 504} else "Check the URL."


def nothing_came(target: Target, reason: str, limits: FetchLimits) -> FetchFailed | TimedOut:
    """Return the error for a body of which nothing could be kept; ``reason`` is half a sentence."""
    if reason == PAST_DEADLINE:
        return timed_out(target, limits)
    what = f"Nothing of {target.host}'s answer could be kept: {reason}."
    return FetchFailed(what, "Look for the document elsewhere.")


def timed_out(target: Target, limits: FetchLimits) -> TimedOut:
    """Return the error for a deadline that passed before anything came."""
    what = f"{target.host} did not answer within {round(limits.fetch_seconds, 1):g} s."
    more = Call("setting", {"name": "fetch.deadline_seconds", "value": 2 * limits.deadline_seconds})
    return TimedOut(what, "Try again later, or {}.", more)


def after_redirect(error: _Error, first: Target, target: Target) -> _Error:
    """Return ``error`` as it is worded if ``first`` redirected to ``target``.

    A server chooses where it redirects to. So the host is not named, unless it belongs with the
    first one, and a refusal says nothing about how to allow it.
    """
    is_refusal = isinstance(error, (Refused, RobotsRefused))
    if _belong_together(first.host, target.host) and not is_refusal:
        return error
    what = error.what
    for name in (target.host_and_port, target.authority, target.host):
        what = what.replace(name, f"the site that {first.host} redirected to")
    what = what[:1].upper() + what[1:] if what.startswith("the site") else what
    if is_refusal:
        return type(error)(what, "Look for the document elsewhere.", redirected=True)
    return type(error)(what, error.next_step, *error.calls, excerpt=error.excerpt, **error.details)


def _belong_together(first: str, second: str) -> bool:
    return f".{first}".endswith(f".{second}") or f".{second}".endswith(f".{first}")
