"""Send requests: follow redirects, obey robots.txt and retry, each hop vetted like the first."""

from collections import OrderedDict
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial

import anyio
import anyio.to_thread

from fetchstash.errors import Call, FetchFailed, FetchstashError, RobotsRefused
from fetchstash.fetch._body import read_beginning
from fetchstash.fetch._cache import conditions
from fetchstash.fetch._coding import decode_beginning
from fetchstash.fetch._contract import Cached
from fetchstash.fetch._exchange import Connections, Exchange
from fetchstash.fetch._headers import OriginHeaders
from fetchstash.fetch._limits import FetchLimits
from fetchstash.fetch._policy import Policy
from fetchstash.fetch._redirect import next_target
from fetchstash.fetch._refusals import after_redirect
from fetchstash.fetch._retry import wait_after_failure, wait_after_status
from fetchstash.fetch._robots import (
    MAX_BYTES,
    MAX_BYTES_KEPT,
    MAX_REDIRECTS,
    SECONDS,
    UNAVAILABLE,
    UNREACHABLE,
    Robots,
    read_robots,
)
from fetchstash.fetch._url import Target

_ROBOTS_KEPT = 256


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
        further: Target | None = None
        is_final = False
        try:
            further = next_target(
                exchange.status,
                exchange.headers,
                exchange.target,
                redirects,
                limit,
                self._limits.max_url_chars,
            )
            is_final = further is None
        finally:
            if not is_final:
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
