"""Read robots.txt (RFC 9309) in linear time and bounded memory.

Only the rules of the groups that name us are kept. A parser that keeps every group pays for each
rule times each agent of its group: 40 KB of text cost protego 45 s.
"""

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import quote

MAX_BYTES = 500 * 1024  # RFC 9309, section 2.5: what a crawler has to read at least
MAX_REDIRECTS = 5  # section 2.3.1.2
SECONDS = 10  # a robots.txt that takes longer counts as unreachable
MAX_SITES_KEPT = 256
MAX_BYTES_KEPT = 2 * 2**20  # the rules of all sites together
_DAY = 24 * 3600.0  # section 2.4
_A_WHILE = 300.0
_USER_AGENT = frozenset({"user-agent", "useragent", "user agent"})  # as Google reads it
_ALLOW, _DISALLOW = "+", "-"
_KINDS = {"allow": _ALLOW, "disallow": _DISALLOW, "dissallow": _DISALLOW, "disalow": _DISALLOW}
_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})")
_UNRESERVED = re.compile(r"[A-Za-z0-9._~-]")  # RFC 3986, section 2.3
_SAFE = "%!&'()+,-./:;=?@[]^_|~\\"  # all that a request target may hold, but for * and $


@dataclass(frozen=True, slots=True)
class Robots:
    """One origin's rules, one a line. Without rules all is allowed, or nothing if unreachable.

    A line is + or - and a pattern. The longest pattern stands first, and so decides (2.2.2).
    """

    keep_seconds: float
    rules: str = ""
    unreachable: bool = False

    @property
    def size_bytes(self) -> int:
        """Return the memory that the rules take."""
        return sys.getsizeof(self.rules)

    def allows(self, path: str) -> bool:
        """Say whether ``path``, with its query, may be fetched. Call it in a thread."""
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
    # Longer patterns first, and allow before disallow (2.2.2).
    rules = sorted(set(_our_rules(text, _product_token(agent))), key=lambda r: (-len(r), r[0]))
    return Robots(_DAY, "\n".join(rules))


def _product_token(agent: str) -> str:
    """Return the product token of a user agent: fetchstash of ``fetchstash/1.0`` (2.2.1)."""
    return agent.partition("/")[0].partition(" ")[0].lower()


def _our_rules(text: str, token: str) -> list[str]:
    """Return the rules of the groups for ``token``, or else those for ``*`` (2.2.1)."""
    our_rules: list[str] = []
    general_rules: list[str] = []
    named = for_us = for_everyone = in_agents = False
    for key, value in _records(text.lstrip("\ufeff\ufffd")):  # a byte order mark, or a part of it
        if key in _USER_AGENT:
            if not in_agents:
                for_us = for_everyone = False
            in_agents = True
            for_us |= _product_token(value) == token
            for_everyone |= _product_token(value) == "*"
            named |= for_us
        elif key in _KINDS:
            in_agents = False
            if value and (for_us or for_everyone):
                rule = _KINDS[key] + _pattern(value)
                (our_rules if for_us else general_rules).append(rule)
                if for_us and for_everyone:
                    general_rules.append(rule)
    return our_rules if named else general_rules


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
    """Say whether ``pattern`` matches a beginning of ``path``, or with ``$`` all of it."""
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
