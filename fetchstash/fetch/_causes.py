"""Classify error responses, and claim no more than the response shows.

The sentences are ours, chosen by the status, by header fields and by marks in the beginning of the
body; what the server wrote is handed on as an excerpt, which faces show as fetched text.
"""

import html
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import Any, cast

from fetchstash.fetch._coding import decode_beginning
from fetchstash.fetch._responses import retry_after_seconds
from fetchstash.text.hygiene import clean_line
from fetchstash.text.urls import Target

EXCERPT_CHARS = 300
_EXCERPT_BYTES = 64 * 1024
_MARK_CHARS = 16 * 1024
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


_ELSEWHERE = "Look for the same content elsewhere: asking again will not help."
_EXPIRED = ("expired_link", "the link has expired", "Get a new link from the page that gave it.")
_OTHER_SOURCE = "Look for a public source of it."


def _human(what: str) -> tuple[str, str, str]:
    return "human_check", f"{what} wants a human visitor", _ELSEWHERE


def _blocked(what: str) -> tuple[str, str, str]:
    return "blocked", what, _ELSEWHERE


_LOGIN = ("login", "it asks for a login", _OTHER_SOURCE)
_NO_OBJECT = ("not_found", "there is no such object", "Check the URL.")

# What an answer's header fields show: a name, a pattern of its value, and the cause.
_FIELDS: tuple[tuple[str, str, tuple[str, str, str]], ...] = (
    ("cf-mitigated", "challenge", _human("Cloudflare")),
    ("x-amzn-waf-action", "captcha|challenge", _human("AWS WAF")),
    ("x-datadome", "", _human("DataDome")),
    ("x-kpsdk-ct", "", _human("Kasada")),
    ("x-vercel-mitigated", "challenge", ("human_check", "Vercel wants a human", _ELSEWHERE)),
    ("www-authenticate", "", _LOGIN),
)

# The same of the beginning of its body. The first that is there counts.
_MARKS: tuple[tuple[str, tuple[str, str, str]], ...] = (
    (r"Request has expired|<Code>(?:ExpiredToken|RequestExpired)\b", _EXPIRED),
    (r"Signature not valid in the specified time frame|Signed expiry time", _EXPIRED),
    (
        r"<Code>SignatureDoesNotMatch\b",
        ("bad_link", "the link's signature does not fit", "Give the link whole and unchanged."),
    ),
    (r"<Code>(?:NoSuch(?:Key|Bucket)|(?:Blob|Container|Resource)NotFound)\b", _NO_OBJECT),
    (
        r"<Code>(?:AccessDenied|AllAccessDisabled|AuthenticationFailed|PublicAccessNotPermitted)\b",
        ("login", "the object is not public", _OTHER_SOURCE),
    ),
    (
        r"error(?: code)?:?\s{0,3}1015\b",
        ("rate_limit", "Cloudflare slows this address down (1015)", "Wait some minutes."),
    ),
    (
        r"error(?: code)?:?\s{0,3}10(?:06|09|10|12|20)\b|Attention Required! \| Cloudflare",
        _blocked("Cloudflare refuses this visitor"),
    ),
    (r"Sorry, you have been blocked", _blocked("Cloudflare refuses this visitor")),
    (r"_cf_chl_opt|challenges\.cloudflare\.com", _human("Cloudflare")),
    (r"captcha-delivery\.com", _human("DataDome")),
    (r"px-captcha|_pxAppId|px-c(?:loud|dn)\.net", _human("PerimeterX")),
    (
        r"anubis_challenge|/\.within\.website/|Making sure you(?:.|&#39;)re not a bot",
        _human("Anubis"),
    ),
    (r"awsWafCookieDomainList|gokuProps|\.awswaf\.com/", _human("AWS WAF")),
    (r"Generated by cloudfront", _blocked("CloudFront refuses this visitor")),
    (r"Sucuri WebSite Firewall", _blocked("Sucuri refuses this visitor")),
    (
        r"The requested URL was rejected\. Please consult with your administrator",
        _blocked("a firewall (F5) refuses this request"),
    ),
    (r"_Incapsula_Resource|Incapsula incident", _blocked("Imperva refuses it")),
    (
        r"errors\.edgesuite\.net|Reference(?:&#32;| )(?:&#35;|#)\d{1,3}(?:&#46;|\.)[0-9a-f]{6}",
        _blocked("Akamai refuses this visitor"),
    ),
    (
        r"blocked (?:by network security|due to a network policy)",
        _blocked("it refuses visitors without a login"),
    ),
    (
        r"Something went wrong, but don.t fret|is a private (?:publication|Substack)",
        ("login", "it is shown only to those who sign in", _OTHER_SOURCE),
    ),
    (
        r"for (?:paid|paying) subscribers|Keep reading with a \d",
        ("payment", "it is for paying subscribers", _OTHER_SOURCE),
    ),
    (r'"Bad credentials"', _LOGIN),
    # RFC 9457: problem types that IANA has registered.
    (r"http-problem-types#abnormal-usage-detected", _blocked("it finds this use abnormal")),
    (
        r"http-problem-types#temporary-reduced-capacity",
        ("", "its capacity is reduced for now", "Try again later."),
    ),
    (r"g-recaptcha|h-captcha|hcaptcha\.com|cf-turnstile|unusual traffic from your", _human("it")),
    (
        r"(?:API|secondary) rate limit|rate limit exceeded|UsageCapExceeded|types#quota-exceeded",
        ("rate_limit", "its rate limit is used up", "Wait before you ask this site again."),
    ),
)
_COMPILED = tuple((re.compile(mark, re.IGNORECASE), cause) for mark, cause in _MARKS)

_STATUSES: Mapping[int, tuple[str, str, str]] = {
    304: ("", "it has nothing newer, though it was not asked for that", "Try again."),
    401: _LOGIN,
    402: ("payment", "it asks for a payment", _OTHER_SOURCE),
    403: ("", "", "Look for the page elsewhere."),
    404: ("not_found", "", "Check the URL, or search for where the page is now."),
    407: ("", "a proxy asks for a login", "The operator can check fetch.proxy."),
    410: ("not_found", "", "It is gone for good: search for another copy."),
    429: ("rate_limit", "", "Wait before you ask this site again."),
    451: ("legal", "the page is withheld for legal reasons", "Look for it elsewhere."),
    999: _blocked("the site refuses programs"),
}
_LATER = frozenset((408, 425, 500, 502, 503, 504, 520, 521, 522, 523, 524, 530))


def cause_of(
    target: Target, status: int, headers: Mapping[str, str], body: str, now: datetime
) -> Cause:
    """Return why a server answered with ``status`` (RFC 9110, section 15; RFC 6585).

    ``body`` is the beginning of what it sent as ``beginning_of`` gives it.
    """
    seconds = _seconds(headers, now)
    if status == HTTPStatus.TOO_MANY_REQUESTS or _is_used_up(headers):
        code, what = "rate_limit", "its rate limit is used up"
        return Cause(code, what, _when(seconds, now) or "Wait before you ask it again.", seconds)
    if status == HTTPStatus.BAD_REQUEST and target.scheme == "http" and target.port in {443, 8443}:
        return Cause("", "", "This is a port for TLS: write https:// in the URL.")
    shown = [
        cause
        for name, value, cause in _FIELDS
        if name in headers and re.search(value, headers[name], re.IGNORECASE)
    ]
    shown += [cause for mark, cause in _COMPILED if mark.search(body[:_MARK_CHARS])][:1]
    later = ("", "", "Try again later." if status in _LATER else "Check the URL.")
    code, what, next_step = shown[0] if shown else _STATUSES.get(status, later)
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
    if words or "<" not in body[:_MARK_CHARS]:
        return clean_line(words or body)[:EXCERPT_CHARS].strip()
    title = _TITLE.search(body[:_MARK_CHARS])
    heading = " ".join(html.unescape(title[1]).split()) if title else ""
    page = _LEFT_OUT.sub(" ", body[:_MARK_CHARS])
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
    if isinstance(value, list) and value:
        value = cast("list[object]", value)[0]
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
