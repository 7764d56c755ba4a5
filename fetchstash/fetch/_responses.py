"""Read a response's head: where it redirects, when to retry, whether it is fresh, its file name.

Pure functions, and the errors for responses that are no document. hishel's state machine, which
does no I/O, decides on freshness (RFC 9111); its storage is not used, because the store keeps every
body already.
"""

import random
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime, parsedate_to_datetime
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import unquote, unquote_to_bytes, urlsplit
from uuid import UUID

from fetchstash.errors import Call, FetchFailed, FetchstashError, Refused, RobotsRefused, TimedOut
from fetchstash.fetch._contract import Cached, FetchLimits
from fetchstash.fetch._mask import mask_url
from fetchstash.text.hygiene import clean_line
from fetchstash.text.urls import Target, join

if TYPE_CHECKING:
    from hishel import CacheOptions

    from fetchstash.fetch._exchange import Exchange

_MAX_CHARS = 200
_PARAMETER = re.compile(r""";\s*(filename\*?)\s*=\s*("(?:\\.|[^"\\])*"|[^;]*)""", re.IGNORECASE)
_EXTENDED = re.compile(r"\s*([\w-]+)'[\w-]*'(.*)", re.ASCII | re.DOTALL)  # RFC 8187, section 3.2.1
_NOT_IN_NAMES = re.compile(r'[<>:"|?*\x00-\x1f]')

_REDIRECTS = frozenset({301, 302, 303, 307, 308})

_MAX_RETRIES = 2
_FIRST_WAIT_SECONDS = 0.5
# Too Many Requests (RFC 6585, section 4), Bad Gateway, Service Unavailable, Gateway Timeout.
_TEMPORARY = frozenset({429, 502, 503, 504})
_MAX_VALUE_CHARS = 64  # far above any date
_MAX_SECONDS = 10 * 365 * 24 * 3600

# Ours is a private cache: one principal's, and it sends the same header fields each time.
_PRIVATE: "CacheOptions" = {"shared": False, "supported_methods": ["GET"], "allow_stale": False}
_NO_ID = UUID(int=0)

PAST_DEADLINE = "the deadline passed before its end"
_Error = TypeVar("_Error", bound=FetchstashError)


def file_name(headers: Mapping[str, str], target: Target) -> str:
    """Return a file name of at most 200 characters, without folders and control characters.

    Taken from Content-Disposition (RFC 6266, the extended form of RFC 8187 first), else from the
    URL's path, else from the host. Never ``.`` or ``..``.
    """
    from_header = disposition_name(headers.get("content-disposition", ""))
    from_path = unquote(mask_url(target.path.partition("?")[0]), errors="replace")
    return safe_name(from_header) or safe_name(PurePosixPath(from_path).name) or target.host


def disposition_name(header: str) -> str:
    """Return the file name in a Content-Disposition header, unchanged, or ""."""
    parameters: dict[str, str] = {}
    for match in _PARAMETER.finditer(header):
        value = match[2].strip()
        if value.startswith('"'):
            value = re.sub(r"\\(.)", r"\1", value[1:-1])
        parameters.setdefault(match[1].lower(), value)
    extended = _EXTENDED.fullmatch(parameters.get("filename*", ""))
    name = ""
    if extended and extended[1].lower() in {"utf-8", "iso-8859-1"}:
        name = unquote_to_bytes(extended[2]).decode(extended[1].lower(), "replace")
    return name or parameters.get("filename", "")


def safe_name(name: str) -> str:
    """Return ``name`` without folders and characters that file systems forbid; may be ""."""
    last = re.split(r"[/\\]", clean_line(name).rstrip("/\\"))[-1]
    plain = _NOT_IN_NAMES.sub("_", last).strip(" .") if last.strip(". ") else ""
    if len(plain) <= _MAX_CHARS:
        return plain
    suffix = PurePosixPath(plain).suffix[:20]
    return plain[: _MAX_CHARS - len(suffix)] + suffix


def next_target(exchange: "Exchange", hops: int, max_hops: int, max_chars: int) -> Target | None:
    """Return the target of a redirect, or None if the response is no redirect.

    The caller vets it like the first URL. Raises FetchFailed after ``max_hops`` redirects or if
    Location is missing, and what ``parse`` raises.
    """
    if exchange.status not in _REDIRECTS:
        return None
    location = exchange.headers.get("location", "")
    if not location:
        what = f"{exchange.target.host} redirected without saying where to."
        raise FetchFailed(what, "Check the URL.")
    check_count(hops + 1, max_hops)
    return join(exchange.target, location, max_chars)


def check_count(redirects: int, limit: int) -> None:
    """Raise FetchFailed if so many ``redirects`` are too many."""
    if redirects > limit:
        what = f"The URL leads through more redirects than {limit}."
        raise FetchFailed(what, "Look for the document under another URL.", redirects=limit)


# What the address of a form to sign in has: its last part, or its host's first label.
_SIGN_IN = re.compile(
    r"(?:log|sign)[-_]?(?:in|on)|sso|wp-login|users?[-_]sign[-_]in|authori[sz]e", re.IGNORECASE
)
_RETURN = re.compile(
    r"(?:return|redirect|next|continue|goto|dest|back|forward|from|target|service|client_id|relay|"
    r"saml|state)",
    re.IGNORECASE,
)
_SIGN_IN_HOSTS = re.compile(
    r"(?:login|signin|logon|sso|idp|accounts?|auth|oauth|cas)\.", re.IGNORECASE
)
# Of a home page: nothing, a language, or a file that stands for a folder.
_NO_PLACE = re.compile(
    r"[a-z]{2}(?:[-_][a-z]{2,4})?|(?:index|default|home)(?:\.\w{2,5})?", re.IGNORECASE
)
_NO_PAGE = re.compile(
    r"(?:utm_\w+|ref\w*|src|source|from|err\w*|status|redirect\w*|lang|locale|hl)=?"
)


def landing(url: str, final_url: str) -> str:
    """Return "home" or "login" if redirects led there instead of to ``url``'s page, else "".

    It is what the two addresses show: a deep one that ends at a site's root, or at a form to sign
    in. A short link to a home page is none.
    """
    asked, final = urlsplit(url), urlsplit(final_url)
    hosts = [(parts.hostname or "").removeprefix("www.") for parts in (asked, final)]
    here, there = (_places(parts.path) for parts in (asked, final))
    if _signs_in(final.path) and not _signs_in(asked.path):
        return "login"
    is_other = hosts[0] != hosts[1]
    if is_other and _SIGN_IN_HOSTS.match(hosts[1]) and _RETURN.search(final.query):
        return "login"
    queries = final.query.split("&") if final.query else []
    if there or not all(map(_NO_PAGE.match, queries)):
        return ""
    return "home" if len(here) > is_other else ""


def _places(path: str) -> list[str]:
    """Return the parts of a path that name a page."""
    return [part for part in path.split("/") if part and not _NO_PLACE.fullmatch(part)]


def _signs_in(path: str) -> bool:
    last = path.rstrip("/").rpartition("/")[2].partition(".")[0]
    return _SIGN_IN.fullmatch(last) is not None


def retry_after_seconds(value: str, now: datetime) -> int | None:
    """Return the seconds of a Retry-After header (a number or an HTTP date), or None."""
    value = value.strip()[:_MAX_VALUE_CHARS]
    if value.isascii() and value.isdigit():
        return min(int(value), _MAX_SECONDS)
    date = _date(value)
    seconds = 0 if date is None else round((date - now).total_seconds())
    return None if date is None else min(max(0, seconds), _MAX_SECONDS)


OUR_TYPES = "application/vnd.fetchstash."
"""What a rule of ours says that an answer of an API is (_rules.py)."""


def without_our_types(headers: Mapping[str, str]) -> Mapping[str, str]:
    """Return a response's header without a media type of ours, which no server may claim."""
    if headers.get("content-type", "").strip().lower().startswith(OUR_TYPES):
        return {**headers, "content-type": "application/octet-stream"}
    return headers


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


def may_be_fresh(cached: Cached) -> bool:
    """Return False if Cache-Control alone shows that ``is_fresh`` would be False (5.2.2.4)."""
    return "no-cache" not in _directives(cached.headers or {})


def is_fresh(cached: Cached) -> bool:
    """Return whether a stored response may be used without revalidation (RFC 9111, 4).

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
    """Return whether a response may outlive its run: no-store forbids it (RFC 9111, 5.2.2.5)."""
    return "no-store" not in _directives(headers)


def _directives(headers: Mapping[str, str]) -> set[str]:
    return {part.strip().lower() for part in headers.get("cache-control", "").split(",")}


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
        date = parsedate_to_datetime(value[:_MAX_VALUE_CHARS])
        return (date if date.tzinfo else date.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


def nothing_came(target: Target, reason: str, limits: FetchLimits) -> FetchFailed | TimedOut:
    """Return the error for a body of which nothing could be kept; ``reason`` is half a sentence."""
    if reason == PAST_DEADLINE:
        return timed_out(target, limits)
    what = f"Nothing of {target.host}'s answer could be kept: {reason}."
    return FetchFailed(what, "Look for the document elsewhere.")


def timed_out(target: Target, limits: FetchLimits) -> TimedOut:
    """Return the error for a deadline that passed before anything came."""
    most, whole = round(limits.fetch_seconds, 1), limits.deadline_seconds
    what = f"{target.host} did not answer within {most:g} s (a call has {whole:g} s)."
    more = Call("setting", {"name": "fetch.deadline_seconds", "value": 2 * whole})
    return TimedOut(what, "Try again later, or {}.", more)


def after_redirect(error: _Error, first: Target, target: Target) -> _Error:
    """Return ``error`` worded for the case that ``first`` redirected to ``target``.

    A server chooses where it redirects to. So the host is not named, unless it belongs with the
    first one, and a refusal says nothing about how to allow it.
    """
    is_refusal = isinstance(error, (Refused, RobotsRefused))
    hosts = f".{first.host}", f".{target.host}"
    if not is_refusal and (hosts[0].endswith(hosts[1]) or hosts[1].endswith(hosts[0])):
        return error
    what = error.what.replace(f"{target.host} redirected", f"{first.host} redirected")
    # One pass: the words that are put in may have the host in them, too.
    names = sorted({target.host_and_port, target.authority, target.host}, key=len, reverse=True)
    chosen = "|".join(map(re.escape, names))
    site = f"the site that {first.host} redirected to"
    what = re.sub(rf"(?<![\w.-])(?:{chosen})(?![\w-])(?! redirected)", site, what)
    what = what[:1].upper() + what[1:] if what.startswith("the site") else what
    if is_refusal:
        return type(error)(what, "Look for the document elsewhere.", redirected=True)
    told = {"excerpt": error.excerpt, "source": error.source, **error.details}
    return type(error)(what, error.next_step, *error.calls, **told)


_LINK = re.compile(r"<([^<>]{1,2000})>([^<]{0,2000})")
_REL = re.compile(r';\s*rel\s*=\s*(?:"([^"]*)"|([^\s;,"]+))', re.IGNORECASE)
_PAGE_OF = re.compile(
    r"(?:[?&](?:p|pg|paged|page(?:[-_]?(?:no|num|number|index)|\[number\]|%5bnumber%5d)?)=|/page/)"
    r"(\d{1,9})(?!\d)",
    re.IGNORECASE,
)
_TOTAL = ("x-total-count", "x-total", "total-count", "x-wp-total", "x-pagination-total-count")
_PAGES = ("x-total-pages", "x-wp-totalpages", "x-pagination-page-count", "x-pagination-total-pages")
# RFC 9110, section 14.4, of other units than bytes: "items 0-29/1000".
_RANGE = re.compile(r"(?!bytes)[\w-]{0,40}[ =]?(?:\d{1,12}-\d{1,12}|\*)/(\d{1,12})", re.ASCII)
# In the JSON of X-Pagination.
_IN_JSON = re.compile(
    r'"total_?(?:count|items|records|results)?"\s*:\s*(\d{1,12})(?!\d)', re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Pager:
    """A list's pagination, from header fields: the next page, and the total."""

    next_url: str = ""
    last_page: int | None = None
    items_total: int | None = None


def pager(headers: Mapping[str, str]) -> Pager:
    """Read the Link field (RFC 8288, section 3) and the counts that APIs add to it."""
    targets: dict[str, str] = {}
    for target, more in _LINK.findall(headers.get("link", "")):
        match = _REL.search(more)
        for relation in (match[1] or match[2]).lower().split() if match else ():
            targets.setdefault(relation, target.strip())
    last = _PAGE_OF.search(targets.get("last", ""))
    pages = int(last[1]) if last else _first_count(headers, _PAGES)
    total = _first_count(headers, _TOTAL)
    if total is None:
        ranged = _RANGE.fullmatch(headers.get("content-range", "").strip())
        match = ranged or _IN_JSON.search(headers.get("x-pagination", "")[:1_000])
        total = int(match[1]) if match else None
    return Pager(targets.get("next", ""), pages, total)


def _first_count(headers: Mapping[str, str], names: Iterable[str]) -> int | None:
    values = (headers[name].strip() for name in names if name in headers)
    return next((int(v) for v in values if v.isascii() and v.isdigit() and len(v) < 13), None)
