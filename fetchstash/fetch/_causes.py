"""Classify error responses, and claim no more than the response shows.

The sentences are ours, chosen by the status and by the table of walls (``fetchstash.text.walls``);
what the server wrote is handed on as an excerpt, which front ends show as fetched text.
"""

import html
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import Any

from fetchstash.fetch._coding import decode_beginning
from fetchstash.fetch._responses import retry_after_seconds
from fetchstash.text import walls
from fetchstash.text.hygiene import clean_line
from fetchstash.text.untyped import as_object, is_array
from fetchstash.text.urls import Target

EXCERPT_CHARS = 300
_EXCERPT_BYTES = 64 * 1024
# What nginx, Go and Apache answer to plain HTTP at a port for TLS.
_TLS_ALONE = re.compile(
    r"HTTP request (?:was sent )?to (?:an )?HTTPS (?:port|server)|HTTP to an SSL-enabled",
    re.IGNORECASE,
)
_DAY_SECONDS = 24 * 3600
_EPOCH_SECONDS = 10**9
"""A larger number in a header is a date in Unix time, a smaller one counts seconds from now."""

_LIMITS = ("x-ratelimit", "x-rate-limit", "ratelimit")
# draft-ietf-httpapi-ratelimit-headers, its newer form and its older one.
_NOTHING_LEFT = re.compile(r"(?:;\s*r|\bremaining)=0(?!\d)")
_RESET = re.compile(r"(?:;\s*t|\breset)=(\d{1,10})(?!\d)")

_CHARSET = re.compile(r"""charset\s?=\s?["']?([\w.:-]{1,40})""", re.ASCII | re.IGNORECASE)
_TEXT_TYPE = re.compile(r"text/|application/(?:[\w.-]+\+)?(?:json|xml|xhtml)|\Z")
_TITLE = re.compile(r"<title[^>]{0,200}>([^<]{1,300})", re.IGNORECASE)
# Unseen or chrome. Not header and aside: a heading or a notice of a move may stand in them.
_LEFT_OUT = re.compile(
    r"<!--.*?(?:-->|\Z)|"
    r"<(script|style|head|svg|template|nav|footer)\b[^>]{0,999}>.*?(?:</\1\s*>|\Z)",
    re.IGNORECASE | re.DOTALL,
)
_STARTS = (
    re.compile(r"""<main\b|<\w+\s[^<>]{0,300}\brole=["']?main\b""", re.IGNORECASE),
    re.compile(r"<(?:article|h1)\b", re.IGNORECASE),
)
"""Where the main text of a page begins, the surest sign first."""
_BEFORE_A_STOP = re.compile(r" (?=[.,;:!?])")
_LINK = re.compile(
    r"""<a\s(?:[^<>]{0,300}\s)?href=["']?([^\s"'<>#][^\s"'<>]{0,99})(?=[\s"'>])[^<>]{0,300}>"""
    r"((?:[^<]|<(?!/?a\b)[^<>]{0,100}>){0,300})",
    re.IGNORECASE,
)
_TAG = re.compile(r"<[^>]*(?:>|\Z)")


@dataclass(frozen=True, slots=True)
class Cause:
    """The reason of a failed request: a code for ``_meta``, half a sentence, the next step.

    ``seconds``: until the site may be asked again, None where it does not say.
    """

    code: str
    what: str
    next_step: str
    seconds: int | None = None


# What a status says where no wall shows; of a wall the table of walls says it.
_STATUSES: Mapping[int, tuple[str, str, str]] = {
    304: (
        "",
        "it has nothing newer, though it was not asked for that",
        "Look for the page elsewhere.",
    ),
    403: ("", "", "Look for the page elsewhere."),
    404: ("not_found", "", "Check the URL, or search for where the page is now."),
    407: ("", "a proxy asks for a login", "The operator can check fetch.proxy."),
    410: ("not_found", "", "It is gone for good: search for another copy."),
    429: ("rate_limit", "", "Wait before you ask this site again."),
}
_LATER = frozenset((408, 425, 500, 502, 503, 504, 520, 521, 522, 523, 524, 530))


def cause_of(
    target: Target, status: int, headers: Mapping[str, str], body: str, now: datetime
) -> Cause:
    """Return the cause of a server's error ``status`` (RFC 9110, section 15; RFC 6585).

    ``body`` is the beginning of what it sent as ``beginning_of`` gives it.
    """
    seconds = _seconds(headers, now)
    if status == HTTPStatus.TOO_MANY_REQUESTS or _is_used_up(headers):
        code, what = "rate_limit", "its rate limit is used up"
        return Cause(code, what, _when(seconds, now) or "Wait before you ask it again.", seconds)
    is_bad, is_tls = status == HTTPStatus.BAD_REQUEST, target.port in {443, 8443}
    if is_bad and target.scheme == "http" and (is_tls or _TLS_ALONE.search(body[:2_000])):
        return Cause("", "", "This is a port for TLS: write https:// in the URL.")
    later = ("", "", "Try again later." if status in _LATER else "Check the URL.")
    code, what, next_step = _STATUSES.get(status, later)
    if wall := walls.of_error(status, headers, body):
        code, what, next_step = wall.name, wall.what, wall.next_step
    if seconds is not None and status in _LATER:
        next_step = _when(seconds, now)
    return Cause(code, what, next_step, seconds)


def _is_used_up(headers: Mapping[str, str]) -> bool:
    is_used_up = any(headers.get(f"{name}-remaining", "").strip() == "0" for name in _LIMITS)
    return is_used_up or _NOTHING_LEFT.search(headers.get("ratelimit", "")[:500]) is not None


def _seconds(headers: Mapping[str, str], now: datetime) -> int | None:
    """Return the seconds that the server asks to wait: Retry-After, else the end of its limit."""
    asked = retry_after_seconds(headers.get("retry-after", ""), now)
    if asked is not None or not _is_used_up(headers):
        return asked
    field = _RESET.search(headers.get("ratelimit", "")[:500])
    values = [headers.get(f"{name}-reset", "").strip() for name in _LIMITS]
    for value in (*values, field[1] if field else ""):
        if value.isascii() and value.isdigit() and len(value) <= 10:
            number = int(value)
            return max(number - int(now.timestamp()), 0) if number > _EPOCH_SECONDS else number
    return None


def _when(seconds: int | None, now: datetime) -> str:
    """Return the advice to wait: for seconds, or until a date where that is a day or more."""
    if seconds is None:
        return ""
    if seconds < _DAY_SECONDS:
        return f"Ask this site again in {seconds} s, not before."
    date = (now + timedelta(seconds=seconds)).astimezone(UTC)
    return f"Ask this site again on {date:%Y-%m-%d} at {date:%H:%M} UTC, not before."


def beginning_of(body: bytes, headers: Mapping[str, str]) -> str:
    """Return the beginning of a body as text, "" where it is none."""
    if not _TEXT_TYPE.match(headers.get("content-type", "").lower()):
        return ""
    decoded = decode_beginning(body, headers.get("content-encoding", ""), _EXCERPT_BYTES)
    charset = _CHARSET.search(headers.get("content-type", ""))
    try:
        return decoded.decode(charset[1] if charset else "utf-8", "replace")
    except (LookupError, ValueError):
        return decoded.decode("utf-8", "replace")


def excerpt(body: str) -> str:
    """Return where the main text of a body begins, at most 300 characters on one clean line.

    Of an error in JSON that is its title and detail (RFC 9457), or what other APIs call them.
    """
    words = _words_of(body) if body.lstrip()[:1] in {"{", "["} else ""
    if words or "<" not in body[: walls.SOURCE_CHARS]:
        return clean_line(words or body)[:EXCERPT_CHARS].strip()
    title = _TITLE.search(body[: walls.SOURCE_CHARS])
    heading = " ".join(html.unescape(title[1]).split()) if title else ""
    page = _LEFT_OUT.sub(" ", body[: walls.SOURCE_CHARS])
    starts = [match.start() for pattern in _STARTS if (match := pattern.search(page))]
    words = next(filter(None, (_text(page[start:]) for start in (*starts, 0))), "")
    both = words if words.startswith(heading) else ": ".join(filter(None, (heading, words)))
    return clean_line(both)[:EXCERPT_CHARS].strip()


def _text(page: str) -> str:
    """Return a page's text, with the address of each link after its words."""
    page = _TAG.sub(" ", _LINK.sub(r" \2 (\1) ", page))
    return _BEFORE_A_STOP.sub("", " ".join(html.unescape(page).split()))


_WORDS_OF_ERRORS = ("title", "error", "code", "error_description", "message", "detail", "msg")


def _words_of(body: str) -> str:
    """Return the message of an error in JSON, "" if it has no known field."""
    try:
        table = _table(json.loads(body))
    except (ValueError, RecursionError):
        return ""
    for _ in range(3):  # {"errors": [{"message": …}]}
        inner = _table(table.get("errors") or table.get("error"))
        table = inner or table
    words = [table[name] for name in _WORDS_OF_ERRORS if isinstance(table.get(name), str)]
    return ": ".join(dict.fromkeys(words)).replace(".: ", ". ")


def _table(value: object) -> dict[str, Any]:
    """Return a table, or the first of a list of them, {} for anything else."""
    return as_object(value[0] if is_array(value) and value else value)
