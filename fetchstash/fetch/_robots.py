"""Read robots.txt (RFC 9309) in linear time and bounded memory.

Only the rules of the groups that name us are kept. A parser that keeps every group pays for each
rule times each agent of its group: 40 KB of text cost protego 45 s.
"""

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from urllib.parse import quote

MAX_BYTES = 500 * 1024  # RFC 9309, section 2.5: what a crawler has to read at least
MAX_REDIRECTS = 5  # section 2.3.1.2
SECONDS = 10  # a robots.txt that takes longer counts as unreachable
MAX_SITES_KEPT = 256
MAX_SITEMAPS = 50
"""Of one robots.txt: no fetch of a site reads more."""
MAX_BYTES_KEPT = 2 * 2**20  # what is kept of all sites together
_DAY = 24 * 3600.0  # section 2.4
_A_WHILE = 300.0
_USER_AGENT = frozenset({"user-agent", "useragent", "user agent"})  # as Google reads it
_ALLOW, _DISALLOW = "+", "-"
_CRAWL_DELAY, _SITEMAP = "crawl-delay", "sitemap"  # of no RFC, and obeyed all the same
_KINDS = {"allow": _ALLOW, "disallow": _DISALLOW, "dissallow": _DISALLOW, "disalow": _DISALLOW}
_DELAY = re.compile(r"\d{1,5}(?:\.\d{1,3})?")
_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})")
_UNRESERVED = re.compile(r"[A-Za-z0-9._~-]")  # RFC 3986, section 2.3
_SAFE = "%!&'()+,-./:;=?@[]^_|~\\"  # all that a request target may hold, but for * and $


@dataclass(frozen=True, slots=True)
class Robots:
    """One origin's rules, one a line. Without rules all is allowed, or nothing if unreachable.

    A line is + or - and a pattern. The longest pattern stands first, and so decides (2.2.2).
    ``delay`` is the seconds to leave between two requests (Crawl-delay), ``sitemaps`` are the
    addresses of sitemaps, one a line: RFC 9309 defines neither.
    """

    keep_seconds: float
    rules: str = ""
    unreachable: bool = False
    delay: float = 0.0
    sitemaps: str = ""

    @property
    def size_bytes(self) -> int:
        """Return the memory that the rules and the sitemaps take."""
        return sys.getsizeof(self.rules) + sys.getsizeof(self.sitemaps)

    def allows(self, path: str) -> bool:
        """Return whether ``path``, with its query, may be fetched. Call it in a thread."""
        if not self.rules:
            return not self.unreachable
        normal = _normal(path)
        rules = self.rules.split("\n")
        decisive = next((rule for rule in rules if _matches(rule[1:], normal)), _ALLOW)
        return decisive[0] == _ALLOW


UNREACHABLE = Robots(_A_WHILE, unreachable=True)
UNAVAILABLE = Robots(_DAY)


def read_robots(status: int, body: bytes, agent: str) -> Robots:
    """Parse a robots.txt for ``agent``. A 4xx allows all, a 5xx nothing for a while (2.3.1)."""
    if status >= 500:
        return UNREACHABLE
    if not 200 <= status < 300:
        return UNAVAILABLE
    text = body[:MAX_BYTES].decode("utf-8", "replace")
    ours = _our_records(text, _product_token(agent))
    patterns = {_KINDS[key] + _pattern(value) for key, value in ours if key in _KINDS}
    delays = [float(v) for key, v in ours if key == _CRAWL_DELAY and _DELAY.fullmatch(v)]
    sitemaps = dict.fromkeys(value for key, value in _records(text) if key == _SITEMAP)
    return Robots(
        _DAY,
        # Longer patterns first, and allow before disallow (2.2.2).
        "\n".join(sorted(patterns, key=lambda rule: (-len(rule), rule[0]))),
        delay=max(delays, default=0.0),
        sitemaps="\n".join(islice(sitemaps, MAX_SITEMAPS)),
    )


def _product_token(agent: str) -> str:
    """Return the product token of a user agent: fetchstash of ``fetchstash/1.0`` (2.2.1)."""
    return agent.partition("/")[0].partition(" ")[0].lower()


def _our_records(text: str, token: str) -> list[tuple[str, str]]:
    """Return rules and delays of the groups for ``token``, or else of those for ``*`` (2.2.1)."""
    ours: list[tuple[str, str]] = []
    general: list[tuple[str, str]] = []
    named = for_us = for_everyone = in_agents = False
    for key, value in _records(text.lstrip("\ufeff\ufffd")):  # a byte order mark, or a part of it
        if key in _USER_AGENT:
            if not in_agents:
                for_us = for_everyone = False
            in_agents = True
            for_us |= _product_token(value) == token
            for_everyone |= _product_token(value) == "*"
            named |= for_us
        elif key in _KINDS or key == _CRAWL_DELAY:
            in_agents = in_agents and key == _CRAWL_DELAY
            if value and for_us:
                ours.append((key, value))
            if value and for_everyone:
                general.append((key, value))
    return ours if named else general


def _records(text: str) -> Iterator[tuple[str, str]]:
    """Yield the records of a robots.txt as (lower-case key, value). Other lines yield nothing."""
    for line in re.split(r"[\r\n]+", text):
        key, colon, value = line.partition("#")[0].partition(":")
        if colon:
            yield key.strip().lower(), value.strip()


def _pattern(value: str) -> str:
    """Return a rule's pattern in normal form: ``*`` matches any text, a final ``$`` the end."""
    end = "$" if value.endswith("$") else ""
    return re.sub(r"\*+", "*", _normal(value.removesuffix("$"), _SAFE + "*")) + end


def _normal(text: str, safe: str = _SAFE) -> str:
    """Return ``text`` percent-encoded, without escapes of unreserved characters (2.2.2)."""

    def unescaped(escape: re.Match[str]) -> str:
        char = chr(int(escape[1], 16))
        return char if _UNRESERVED.match(char) else escape[0].upper()

    return _ESCAPE.sub(unescaped, quote(text, safe=safe))


def _matches(pattern: str, path: str) -> bool:
    """Return whether ``pattern`` matches a prefix of ``path``, or all of it if it ends with $."""
    first, *further = pattern.removesuffix("$").split("*")
    if not path.startswith(first):
        return False
    at = len(first)
    for place, part in enumerate(further, 1):
        if pattern.endswith("$") and place == len(further):
            return path.endswith(part) and len(path) - len(part) >= at
        begin = path.find(part, at)
        if begin < 0:
            return False
        at = begin + len(part)
    return at == len(path) or not pattern.endswith("$")
