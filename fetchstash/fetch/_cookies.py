"""Cookies of one fetch (RFC 6265bis).

A jar lives as long as one fetch. What a response sets goes to the next address of that fetch where
it belongs, and is forgotten after it. Values are secrets: no error and no log has one.
"""

import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache

from fetchstash.text.urls import BadHost, Target, parse_host

# Least that a user agent should keep, and the most that it should (RFC 6265bis, 5.6 and 6.1).
MAX_PAIR_BYTES = 4_096
MAX_ATTRIBUTE_BYTES = 1_024
MAX_COOKIES_OF_A_DOMAIN = 50
MAX_COOKIES = 100
MAX_HEADER_BYTES = 8_192

CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_SECONDS = re.compile(r"-?[0-9]{1,15}")
_DATE_TOKENS = re.compile(r"[\x21-\x2f\x3b-\x40\x5b-\x60\x7b-\x7e\t ]+")
_TIME = re.compile(r"(\d{1,2}):(\d{1,2}):(\d{1,2})(?!\d)", re.ASCII)
_DAY = re.compile(r"(\d{1,2})(?!\d)", re.ASCII)
_YEAR = re.compile(r"(\d{2,4})(?!\d)", re.ASCII)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")


@dataclass(frozen=True, slots=True)
class Cookie:
    """One cookie; ``expires`` in Unix time. A ``host_only`` one goes to no sub-domain."""

    name: str
    value: str = field(repr=False)
    domain: str
    path: str
    host_only: bool
    secure: bool
    expires: float = math.inf

    @property
    def key(self) -> tuple[str, str, bool, str]:
        """The identity by which a later cookie replaces this one (RFC 6265bis, 5.7)."""
        return self.name, self.domain, self.host_only, self.path

    @property
    def pair(self) -> str:
        """Return it as the Cookie header has it."""
        return f"{self.name}={self.value}" if self.name else self.value

    def belongs_to(self, target: Target, now: float) -> bool:
        """Return whether a request for ``target`` may carry the cookie (RFC 6265bis, 5.8.3)."""
        is_host = target.host == self.domain
        return (
            self.expires > now
            and (is_host or (not self.host_only and _is_below(target, self.domain)))
            and _is_path_in(target.path.partition("?")[0], self.path)
            and (not self.secure or target.scheme == "https")
        )


def _is_below(target: Target, domain: str) -> bool:
    return target.address is None and target.host.endswith("." + domain)


def _is_path_in(path: str, folder: str) -> bool:
    """Return whether ``path`` is ``folder`` or below it (RFC 6265bis, 5.1.4)."""
    return path == folder or path.startswith(folder if folder.endswith("/") else folder + "/")


class Jar:
    """The cookies that the responses of one fetch set."""

    def __init__(self) -> None:
        self._cookies: dict[tuple[str, str, bool, str], Cookie] = {}

    def take(self, fields: Iterable[str], target: Target, now: float) -> None:
        """Keep what the Set-Cookie ``fields`` of a response from ``target`` may set. Blocking."""
        for text in fields:
            cookie = parsed(text, target, now)
            if cookie is None or self._hides_a_secure_one(cookie, target):
                continue
            self._cookies[cookie.key] = cookie  # in the place of the one that it replaces
            if cookie.expires <= now:
                del self._cookies[cookie.key]
                continue
            same = [key for key, kept in self._cookies.items() if kept.domain == cookie.domain]
            for key in same[:-MAX_COOKIES_OF_A_DOMAIN] or list(self._cookies)[:-MAX_COOKIES]:
                del self._cookies[key]

    def _hides_a_secure_one(self, cookie: Cookie, target: Target) -> bool:
        """Return whether plain HTTP would replace a secure cookie (RFC 6265bis, 5.7, step 16)."""
        return target.scheme != "https" and any(
            kept.secure
            and kept.name == cookie.name
            and (
                f".{kept.domain}".endswith(f".{cookie.domain}")
                or f".{cookie.domain}".endswith(f".{kept.domain}")
            )
            and _is_path_in(cookie.path, kept.path)
            for kept in self._cookies.values()
        )

    def header(self, target: Target, now: float, own: Iterable[Cookie] = ()) -> str:
        """Return the Cookie header for ``target``, "" for none (RFC 6265bis, 5.8.3).

        ``own`` are the operator's; what the fetch itself was given later replaces them.
        """
        known = {cookie.key: cookie for cookie in own} | self._cookies
        fitting = [cookie for cookie in known.values() if cookie.belongs_to(target, now)]
        pairs, size = list[str](), 0
        for cookie in sorted(fitting, key=lambda cookie: -len(cookie.path)):
            size += len(cookie.pair) + 2
            if size <= MAX_HEADER_BYTES:
                pairs.append(cookie.pair)
        return "; ".join(pairs)

    def values(self) -> list[str]:
        """Return the values of the cookies, which are secrets."""
        return [cookie.value for cookie in self._cookies.values()]


def parsed(text: str, target: Target, now: float) -> Cookie | None:
    """Return the cookie that a Set-Cookie field of ``target`` sets, or None (RFC 6265bis, 5.6f).

    ``text`` is the field's value as ISO 8859-1.
    """
    pair, *attributes = text.split(";")
    name, value = pair.split("=", 1) if "=" in pair else ("", pair)
    name, value = name.strip(" \t"), value.strip(" \t")
    size = len(name) + len(value)
    if CONTROL.search(text) or not 0 < size <= MAX_PAIR_BYTES:
        return None
    expires, max_age, named = math.inf, None, dict[str, str]()
    for attribute in attributes:
        key, _, content = (part.strip(" \t") for part in attribute.partition("="))
        key = key.lower()
        if len(content) > MAX_ATTRIBUTE_BYTES:
            continue
        named[key] = content
        if key == "expires" and (date := cookie_date(content)) is not None:
            expires = date
        elif key == "max-age" and _SECONDS.fullmatch(content):
            max_age = int(content)
    if max_age is not None:  # precedes Expires
        expires = now + max_age if max_age > 0 else -math.inf
    domain = _domain(named.get("domain", ""), target)
    path, secure = named.get("path", ""), "secure" in named
    folder = path if path.startswith("/") else _default_path(target)
    needs_secure = secure or named.get("samesite", "").lower() == "none"
    if domain is None or (needs_secure and not (secure and target.scheme == "https")):
        return None
    host_only = domain == ""
    prefix = (name or value).lower()
    if prefix.startswith(("__secure-", "__host-")) and not (name and secure):
        return None
    if prefix.startswith("__host-") and not (host_only and path == "/"):
        return None
    return Cookie(name, value, domain or target.host, folder, host_only, secure, expires)


def _domain(attribute: str, target: Target) -> str | None:
    """Return the domain of a Domain attribute, "" for the host alone, None where it is foreign."""
    if not attribute:
        return ""
    try:
        domain = str(parse_host(attribute.removeprefix(".")))
    except BadHost:
        return None
    is_host = domain == target.host
    if target.address is not None or domain.endswith("."):
        return "" if is_host else None
    if not is_host and not _is_below(target, domain):
        return None
    if _is_public_suffix()(domain):  # of many sites: com, co.uk, github.io
        return "" if is_host else None
    return domain


@cache
def _is_public_suffix() -> Callable[[str], bool]:
    """Return a function that knows public suffixes; loads the list on first use, in some 0.2 s."""
    from publicsuffixlist import PublicSuffixList  # noqa: PLC0415 -- see above

    return PublicSuffixList().is_public


def _default_path(target: Target) -> str:
    """Return the folder of a page (RFC 6265bis, 5.1.4)."""
    return target.path.partition("?")[0].rpartition("/")[0] or "/"


def cookie_date(text: str) -> float | None:
    """Return the Unix time of a date in any form that servers write (RFC 6265bis, 5.1.1)."""
    clock = day = month = year = None
    for token in _DATE_TOKENS.split(text):
        if clock is None and (match := _TIME.match(token)):
            clock = [int(number) for number in match.groups()]
        elif day is None and (match := _DAY.match(token)):
            day = int(match[1])
        elif month is None and token[:3].lower() in _MONTHS:
            month = _MONTHS.index(token[:3].lower()) + 1
        elif year is None and (match := _YEAR.match(token)):
            year = int(match[1])
            year += 1900 if 70 <= year <= 99 else 2000 if year < 70 else 0
    if clock is None or day is None or month is None or year is None or year < 1601:
        return None
    try:
        return datetime(year, month, day, clock[0], clock[1], clock[2], tzinfo=UTC).timestamp()
    except ValueError:
        return None
