"""Send requests: follow redirects, obey robots.txt and retry, each hop vetted like the first.

robots.txt (RFC 9309) is read in linear time and bounded memory: only the rules of the groups that
name us are kept. A parser that keeps every group pays for each rule times each agent of its group:
40 KB of text cost protego 45 s.
"""

import re
import sys
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from urllib.parse import quote

import anyio
import anyio.to_thread

from fetchstash.errors import Call, FetchFailed, FetchstashError, RobotsRefused
from fetchstash.fetch._body import read_beginning
from fetchstash.fetch._coding import decode_beginning
from fetchstash.fetch._contract import Cached, FetchLimits
from fetchstash.fetch._exchange import Connections, Exchange
from fetchstash.fetch._policy import OriginHeaders, Policy
from fetchstash.fetch._responses import (
    after_redirect,
    conditions,
    next_target,
    wait_after_failure,
    wait_after_status,
)
from fetchstash.fetch._url import Target

MAX_BYTES = 500 * 1024  # RFC 9309, section 2.5: what a crawler has to read at least
MAX_REDIRECTS = 5  # section 2.3.1.2
SECONDS = 10  # a robots.txt that takes longer counts as unreachable
MAX_BYTES_KEPT = 2 * 2**20  # the rules of all sites together
_DAY = 24 * 3600.0  # section 2.4
_A_WHILE = 300.0
_USER_AGENT = frozenset({"user-agent", "useragent", "user agent"})  # as Google reads it
_ALLOW, _DISALLOW = "+", "-"
_KINDS = {"allow": _ALLOW, "disallow": _DISALLOW, "dissallow": _DISALLOW, "disalow": _DISALLOW}
_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})")
_UNRESERVED = re.compile(r"[A-Za-z0-9._~-]")  # RFC 3986, section 2.3
_SAFE = "%!&'()+,-./:;=?@[]^_|~\\"  # all that a request target may hold, but for * and $

_ROBOTS_KEPT = 256


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
    rules = sorted(set(_our_rules(text, product_token(agent))), key=_precedence)
    return Robots(_DAY, "\n".join(rules))


def product_token(agent: str) -> str:
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
            for_us |= product_token(value) == token
            for_everyone |= product_token(value) == "*"
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


def _precedence(rule: str) -> tuple[int, str]:
    """Sort longer patterns first, and allow before disallow (2.2.2)."""
    return -len(rule), rule[0]


def _pattern(value: str) -> str:
    """Return a rule's pattern in normal form: ``*`` matches any text, a final ``$`` the end."""
    end = "$" if value.endswith("$") else ""
    return re.sub(r"\*+", "*", _normal(value.removesuffix("$"), _SAFE + "*")) + end


def _normal(text: str, safe: str = _SAFE) -> str:
    """Return ``text`` percent-encoded, without escapes of unreserved characters (2.2.2)."""
    return _ESCAPE.sub(_unescaped, quote(text, safe=safe))


def _unescaped(escape: re.Match[str]) -> str:
    char = chr(int(escape[1], 16))
    return char if _UNRESERVED.match(char) else escape[0].upper()


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


class Client:
    """Sends requests. Deadlines are on the event loop's clock; callers enforce them by a scope."""

    def __init__(
        self,
        limits: FetchLimits,
        policy: Policy,
        connections: Connections,
        agent: str,
        own_headers: OriginHeaders,
    ) -> None:
        self._own_headers = own_headers
        self._limits = limits
        self._policy = policy
        self._connections = connections
        self._agent = agent
        self._robots: OrderedDict[str, tuple[float, Robots]] = OrderedDict()
        self._asking: dict[str, anyio.Lock] = {}

    async def open(
        self,
        target: Target,
        headers: Mapping[str, str],
        deadline: float,
        cached: Cached | None,
        first: Target,
        redirects: int,
        *,
        left_origin: bool = False,
    ) -> Exchange:
        """Return the response after all redirects. Raises what the contract of fetch names.

        ``first`` led to ``target`` by so many ``redirects``; ``left_origin`` says that one of them
        led to another origin.
        """
        headers = {"User-Agent": self._agent, **headers}
        while True:
            # A server that is asked first, or in between, chose this URL: it must not choose what
            # the operator's headers open.
            left_origin = left_origin or target.origin != first.origin
            own: Mapping[str, str] = {}
            if not left_origin:
                own = self._own_headers.get(target.origin, own)
            try:
                self._policy.check(target)
                if self._limits.respect_robots:
                    await self.ask_robots(target, deadline)
                fields = {name: value for name, value in headers.items() if name.lower() not in own}
                fields |= {**own, **conditions(cached, target, redirects)}
                exchange = await self._send(target, fields, deadline)
                further = await self._next(exchange, redirects, self._limits.max_redirects)
            except FetchstashError as error:
                raise (after_redirect(error, first, target) if redirects else error) from None
            if further is None:
                exchange.redirects, exchange.left_origin = redirects, left_origin
                return exchange
            target, redirects = further, redirects + 1

    async def aclose(self) -> None:
        """Close all connections."""
        await self._connections.aclose()

    async def _next(self, exchange: Exchange, redirects: int, limit: int) -> Target | None:
        """Return where a response redirects to, and close it then; None if it does not redirect."""
        try:
            further = next_target(exchange, redirects, limit, self._limits.max_url_chars)
        except BaseException:
            await exchange.aclose()
            raise
        if further is not None:
            await exchange.aclose()
        return further

    async def _follow(self, target: Target, headers: Mapping[str, str], until: float) -> Exchange:
        """Return the robots.txt after all redirects, each vetted like the first URL."""
        redirects = 0
        while True:
            self._policy.check(target)
            exchange = await self._send(target, headers, until)
            further = await self._next(exchange, redirects, MAX_REDIRECTS)
            if further is None:
                return exchange
            target, redirects = further, redirects + 1

    async def _send(self, target: Target, headers: Mapping[str, str], deadline: float) -> Exchange:
        """Send one request, and up to twice more if that may help; a refusal is never retried."""
        attempt = 0
        while True:
            try:
                exchange = await self._connections.get(target, headers)
            except FetchFailed as failed:
                wait = wait_after_failure(attempt, deadline - anyio.current_time())
                if wait is None or not failed.details.get("temporary"):
                    raise
            else:
                left = deadline - anyio.current_time()
                wait = wait_after_status(
                    exchange.status, exchange.headers, attempt, left, datetime.now(UTC)
                )
                if wait is None:
                    return exchange
                await exchange.aclose()
            await anyio.sleep(wait)
            attempt += 1

    async def ask_robots(self, target: Target, deadline: float) -> None:
        """Raise RobotsRefused unless the origin's robots.txt lets us fetch ``target``."""
        if target.path == "/robots.txt":  # RFC 9309, section 2.2.2
            return
        robots = await self._robots_of(target, deadline)
        allowed = await anyio.to_thread.run_sync(partial(robots.allows, target.path))
        if not allowed:
            ignore = Call("setting", {"name": "fetch.respect_robots", "value": False})
            if robots.unreachable:
                what = f"The robots.txt of {target.host} is unavailable, which forbids every page."
                raise RobotsRefused(what, "Try again in some minutes; or {}.", ignore)
            what = f"The robots.txt of {target.host} forbids this URL."
            raise RobotsRefused(what, "Look for the document elsewhere; or {}.", ignore)

    async def _robots_of(self, target: Target, deadline: float) -> Robots:
        """Return the origin's rules. Fetches that wait for the same rules share one request."""
        lock = self._asking.setdefault(target.origin, anyio.Lock())
        try:
            async with lock:
                now = anyio.current_time()
                kept = self._robots.get(target.origin)
                if kept is None or kept[0] <= now:
                    robots = await self._fetch_robots(target, deadline)
                    self._robots[target.origin] = kept = now + robots.keep_seconds, robots
                    self._forget_oldest()
                return kept[1]
        finally:
            if not lock.statistics().tasks_waiting and not lock.locked():
                self._asking.pop(target.origin, None)

    def _forget_oldest(self) -> None:
        """Bound the cache of rules by sites and by bytes."""
        size = sum(robots.size_bytes for _, robots in self._robots.values())
        while len(self._robots) > _ROBOTS_KEPT or (size > MAX_BYTES_KEPT and len(self._robots) > 1):
            size -= self._robots.popitem(last=False)[1][1].size_bytes

    async def _fetch_robots(self, target: Target, deadline: float) -> Robots:
        """Fetch and read robots.txt. Raises FetchFailed if the site cannot be reached."""
        robots_txt = Target(target.scheme, target.host, target.address, target.port, "/robots.txt")
        headers = {
            "User-Agent": self._agent,
            "Accept": "text/plain, */*;q=0.5",
            "Accept-Encoding": "gzip",
        }
        until = min(deadline, anyio.current_time() + SECONDS)
        exchange: Exchange | None = None
        with anyio.move_on_at(until):
            try:
                exchange = await self._follow(robots_txt, headers, until)
            except FetchstashError as failed:
                if isinstance(failed, FetchFailed) and "redirects" not in failed.details:
                    raise
                return UNAVAILABLE  # redirected to a forbidden place, or in circles
        if exchange is None:
            return UNREACHABLE
        try:
            body = await read_beginning(exchange, MAX_BYTES, until)
        finally:
            await exchange.aclose()
        coding = exchange.headers.get("content-encoding", "")
        return await anyio.to_thread.run_sync(
            lambda: read_robots(
                exchange.status, decode_beginning(body, coding, MAX_BYTES), self._agent
            )
        )
