"""HttpFetcher: a URL in, a file out, under one deadline.

Redirects are followed hop by hop: each is vetted, asks robots.txt and is retried like the first.
"""

import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from http import HTTPStatus
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import anyio
import anyio.to_thread

from fetchstash.errors import Call, FetchFailed, FetchstashError, HttpError, Refused, RobotsRefused
from fetchstash.fetch import _responses as responses, _robots as robots
from fetchstash.fetch._addresses import Interfaces, Resolver, SystemResolver, addresses_of
from fetchstash.fetch._body import Workers, read_beginning, spool_body
from fetchstash.fetch._causes import beginning_of, cause_of, excerpt
from fetchstash.fetch._coding import ACCEPT_ENCODING, decode_beginning
from fetchstash.fetch._contract import Cached, Fetched, FetchLimits, Progress, Rendered
from fetchstash.fetch._cookies import Jar
from fetchstash.fetch._exchange import Gates
from fetchstash.fetch._guard import Proxy, unused_proxy
from fetchstash.fetch._mask import mask_url
from fetchstash.fetch._own import OwnFields
from fetchstash.fetch._policy import Policy
from fetchstash.text.urls import Target, is_below, join, parse

if TYPE_CHECKING:
    from fetchstash.fetch._browser import Browser
    from fetchstash.fetch._exchange import Connections, Exchange

T = TypeVar("T")
_log = logging.getLogger("fetchstash.fetch")

_ACCEPT = "text/markdown, text/html;q=0.9, application/xhtml+xml;q=0.9, */*;q=0.8"
_ERROR_BODY_BYTES = 16 * 1024
_ERROR_BODY_SECONDS = 5
_ANY_LENGTH = 2**20  # of a URL that was fetched before


class HttpFetcher:
    """The Fetcher over HTTP. Imports no HTTP library before the first fetch."""

    def __init__(
        self, limits: FetchLimits, *, resolver: Resolver | None = None, gates: Gates | None = None
    ) -> None:
        """Read the limits. Raises BadArgument for a host, net, domain, proxy or header in error.

        ``gates`` may be those of several fetchers, so that a site has one pace.
        """
        self._limits = limits
        self._policy = Policy.of(limits)
        self._proxy = Proxy.of(limits)
        self._gates = gates or Gates(limits.per_host_concurrency, limits.per_host_rate)
        self._own = OwnFields(limits.headers)
        self._resolver = resolver or (None if limits.proxy_resolves else SystemResolver())
        self._agent = limits.user_agent or f"fetchstash/{_version()}"
        self._interfaces = Interfaces()
        self._connections: Connections | None = None
        self._browser: Browser | None = None
        self._connecting = anyio.Lock(fast_acquire=True)
        self._workers = Workers()
        self._robots: OrderedDict[str, tuple[float, robots.Robots]] = OrderedDict()
        self._asking: dict[str, anyio.Lock] = {}

    async def fetch(
        self,
        url: str,
        folder: Path,
        *,
        cached: Cached | None = None,
        progress: Progress | None = None,
        after: Fetched | None = None,
        seconds: float | None = None,
        within: str = "",
    ) -> Fetched:
        """Fetch ``url`` and spool its decoded body to a new file in ``folder``; see Fetcher."""
        most = self._limits.fetch_seconds
        deadline = anyio.current_time() + (most if seconds is None else min(seconds, most))
        jar = (after.cookies if after else None) or Jar()
        exchange: Exchange | None = None
        page: Target | None = None
        if after is None:
            first = target = parse(url, self._limits.max_url_chars)
            redirects, left_origin = 0, False
        else:
            redirects, left_origin = after.redirects + 1, after.left_origin
            responses.check_count(redirects, self._limits.max_redirects)
            first, page = (parse(text, _ANY_LENGTH) for text in (after.url, after.final_url))
            target = join(page, url, self._limits.max_url_chars)
        with anyio.move_on_at(deadline):
            if page is None:
                self._policy.check(target)  # a plain refusal waits for no library
            elif self._policy.is_inside(page, await addresses_of(page, self._resolver)):
                # An address could carry what the page says outside.
                what = f"A page of {page.host}, which the operator allowed, leads"
                advice = "Fetch that, if it is the right one."
                raise Refused(f"{what} to another address.", advice, rule="inside")
            exchange = await self._open(
                first,
                target,
                redirects,
                deadline,
                cached,
                jar,
                left_origin=left_origin,
                within=within,
            )
        if exchange is None:
            raise responses.timed_out(first, self._limits)
        source = after.url if after else url
        try:
            return await self._keep(source, exchange, folder, deadline, progress)
        except FetchstashError as error:
            if exchange.redirects:
                raise responses.after_redirect(error, first, exchange.target) from None
            raise
        finally:
            await exchange.aclose()

    async def site_rules(self, url: str) -> tuple[float, Sequence[str]]:
        """Return the crawl delay and the sitemaps of robots.txt, read once a day; see Fetcher."""
        target = parse(url, self._limits.max_url_chars)
        deadline = anyio.current_time() + self._limits.fetch_seconds
        rules = await self._robots_of(target, deadline)
        delay = rules.delay if self._limits.respect_robots else 0.0
        return delay, rules.sitemaps.splitlines()

    async def check(self, url: str, final_url: str = "") -> None:
        """Raise BadArgument or Refused if ``url`` may not be fetched now; see Fetcher."""
        first = parse(url, self._limits.max_url_chars)
        await self._check(first)
        final = parse(final_url or url, _ANY_LENGTH)
        if final.origin != first.origin:
            try:
                await self._check(final)
            except Refused as refused:
                raise responses.after_redirect(refused, first, final) from None

    async def render(
        self, url: str, folder: Path, *, seconds: float, edge: int = 0, max_bytes: int = 0
    ) -> Rendered:
        """Render ``url`` in a browser behind the guard; see Renderer."""
        await self._connect()
        assert self._browser is not None  # made with the connections
        deadline = anyio.current_time() + seconds
        rendered = await self._browser.render(
            url, folder, seconds=seconds, edge=edge, max_bytes=max_bytes
        )
        try:
            if self._limits.respect_robots:  # its scripts may have changed the address
                await self._ask_robots(parse(rendered.url, _ANY_LENGTH), deadline)
        except BaseException:
            rendered.path.unlink(missing_ok=True)
            raise
        return rendered

    def grant(self, host: str, port: int) -> None:
        """Let a private host pass the address and port rules until this fetcher is closed.

        A person said so. Rules on domains hold, and metadata services are never let through.
        """
        self._policy.grant(host, port)

    async def aclose(self) -> None:
        """Close all connections."""
        if self._connections is not None:
            connections, self._connections = self._connections, None
            await connections.aclose()

    async def _check(self, target: Target) -> None:
        self._policy.check(target)
        if self._policy.is_exempt(target.host, target.port):
            return
        try:
            addresses = await addresses_of(target, self._resolver)
        except FetchFailed:
            return
        self._policy.vet(target, addresses, self._interfaces.machine())

    async def _connect(self) -> "Connections":
        async with self._connecting:
            if self._connections is None:
                self._connections = await self._in_thread(self._new_connections)
            return self._connections

    def _new_connections(self) -> "Connections":
        """Import the HTTP library and read the certificates: 0.1 s, so run it in a thread."""
        from fetchstash.fetch._browser import Browser  # noqa: PLC0415 -- see above
        from fetchstash.fetch._exchange import Connections  # noqa: PLC0415 -- see above
        from fetchstash.fetch._guard import Guard  # noqa: PLC0415 -- see above

        for logger in ("httpx2", "httpcore2"):  # they log URLs, secrets included
            logging.getLogger(logger).setLevel(logging.CRITICAL)
        limits = self._limits

        def guard_of(policy: Policy) -> Guard:
            most = limits.max_header_bytes
            return Guard(policy, self._resolver, self._interfaces, most, self._proxy)

        self._browser = Browser(
            limits, self._policy, self._resolver, lambda policy: guard_of(policy).tunnel
        )
        return Connections(guard_of(self._policy), self._gates, limits.ca_file)

    async def _open(
        self,
        first: Target,
        target: Target,
        redirects: int,
        deadline: float,
        cached: Cached | None,
        jar: Jar,
        *,
        left_origin: bool,
        within: str,
    ) -> "Exchange":
        """Return the response after all redirects, each hop vetted like the first.

        ``first`` led to ``target`` by so many ``redirects``; ``left_origin`` says that one of them
        led to another origin. ``jar`` has the cookies that were set on the way.
        """
        headers = {"User-Agent": self._agent, "Accept": _ACCEPT, "Accept-Encoding": ACCEPT_ENCODING}
        while True:
            left_origin = left_origin or target.origin != first.origin
            try:
                if within and not is_below(target.text, within):
                    what = "The address leads out of the site that is fetched."
                    raise Refused(what, "Fetch it by itself.", rule="site")
                self._policy.check(target)
                if self._limits.respect_robots:
                    await self._ask_robots(target, deadline)
                own = partial(self._own.fields, target, jar, left_origin=left_origin)
                added = await self._in_thread(own) if self._own.has_file(target) else own()
                fields = {
                    name: value for name, value in headers.items() if name.lower() not in added
                }
                conditions = responses.conditions(cached, target, redirects)
                fields |= added | conditions
                exchange, further = await self._hop(
                    target, fields, deadline, redirects, self._limits.max_redirects
                )
                if exchange.cookies:
                    await self._in_thread(partial(jar.take, exchange.cookies, target, time.time()))
            except FetchstashError as error:
                if not redirects:
                    raise
                raise responses.after_redirect(error, first, target) from None
            if further is None:
                exchange.redirects, exchange.left_origin = redirects, left_origin
                exchange.jar, exchange.is_conditional = jar, bool(conditions)
                return exchange
            target, redirects = further, redirects + 1

    async def _in_thread(self, function: Callable[[], T]) -> T:
        return await anyio.to_thread.run_sync(function, limiter=self._workers.threads)

    async def _hop(
        self,
        target: Target,
        headers: Mapping[str, str],
        deadline: float,
        redirects: int,
        max_redirects: int,
    ) -> "tuple[Exchange, Target | None]":
        """Send a request; return the response, and where it redirects to, after closing it."""
        exchange = await self._send(target, headers, deadline)
        is_last = False
        try:
            further = responses.next_target(
                exchange, redirects, max_redirects, self._limits.max_url_chars
            )
            is_last = further is None
        finally:
            if not is_last:
                await exchange.aclose()
        return exchange, further

    async def _send(
        self, target: Target, headers: Mapping[str, str], deadline: float
    ) -> "Exchange":
        """Send one request, and up to twice more if that may help; a refusal is never retried."""
        connections = await self._connect()
        attempt = 0
        while True:
            try:
                exchange = await connections.get(target, headers)
            except FetchFailed as failed:
                wait = responses.wait_after_failure(attempt, deadline - anyio.current_time())
                if wait is None or not failed.details.get("temporary"):
                    raise self._with_proxy(failed, target) from None
            else:
                left = deadline - anyio.current_time()
                wait = responses.wait_after_status(
                    exchange.status, exchange.headers, attempt, left, datetime.now(UTC)
                )
                if wait is None:
                    return exchange
                await exchange.aclose()
            await anyio.sleep(wait)
            attempt += 1

    def _with_proxy(self, failed: FetchFailed, target: Target) -> FetchFailed:
        """Return the error, which names a proxy that only the environment names, if it may help."""
        unreached = failed.details.get("unreached")
        name, proxy = unused_proxy(self._limits, target) if unreached else ("", "")
        if not name or any(call.arguments.get("name") == "fetch.proxy" for call in failed.calls):
            return failed
        use = Call("setting", {"name": "fetch.proxy", "value": proxy})
        advice = f"{failed.next_step} {name} is set here and not used: {{}}."
        return FetchFailed(failed.what, advice, *failed.calls, use, **failed.details)

    async def _ask_robots(self, target: Target, deadline: float) -> None:
        """Raise RobotsRefused unless the origin's robots.txt lets us fetch ``target``."""
        if target.path == "/robots.txt":  # RFC 9309, section 2.2.2
            return
        rules = await self._robots_of(target, deadline)
        allows = partial(rules.allows, target.path)  # a site's patterns may take long
        if await anyio.to_thread.run_sync(allows) if rules.rules else allows():
            return
        ignore = Call("setting", {"name": "fetch.respect_robots", "value": False})
        if rules.unreachable:
            what = f"The robots.txt of {target.host} is unavailable, which forbids every page."
            raise RobotsRefused(what, "Try again in some minutes; or {}.", ignore)
        what = f"The robots.txt of {target.host} forbids this URL."
        raise RobotsRefused(what, "Look for the document elsewhere; or {}.", ignore)

    async def _robots_of(self, target: Target, deadline: float) -> robots.Robots:
        """Return the origin's rules. Fetches that wait for the same rules share one request."""
        lock = self._asking.setdefault(target.origin, anyio.Lock(fast_acquire=True))
        try:
            async with lock:
                now = anyio.current_time()
                until, rules = self._robots.get(target.origin, (now, robots.UNREACHABLE))
                if until <= now:
                    rules = await self._fetch_robots(target, deadline)
                    self._robots[target.origin] = now + rules.keep_seconds, rules
                    size = sum(kept.size_bytes for _, kept in self._robots.values())
                    while len(self._robots) > robots.MAX_SITES_KEPT or (
                        size > robots.MAX_BYTES_KEPT and len(self._robots) > 1
                    ):
                        size -= self._robots.popitem(last=False)[1][1].size_bytes
                return rules
        finally:
            if not lock.statistics().tasks_waiting and not lock.locked():
                self._asking.pop(target.origin, None)

    async def _fetch_robots(self, target: Target, deadline: float) -> robots.Robots:
        """Fetch and read robots.txt. Raises FetchFailed if the site cannot be reached."""
        headers = {
            "User-Agent": self._agent,
            "Accept": "text/plain, */*;q=0.5",
            "Accept-Encoding": "gzip",
        }
        until = min(deadline, anyio.current_time() + robots.SECONDS)
        exchange: Exchange | None = None
        further: Target | None = replace(target, path="/robots.txt")
        redirects = 0
        with anyio.move_on_at(until):
            try:
                while further is not None:
                    self._policy.check(further)
                    exchange, further = await self._hop(
                        further, headers, until, redirects, robots.MAX_REDIRECTS
                    )
                    redirects += 1
            except FetchstashError as failed:
                if isinstance(failed, FetchFailed) and "redirects" not in failed.details:
                    raise
                return robots.UNAVAILABLE  # redirected to a forbidden place, or in circles
        if exchange is None or further is not None:
            return robots.UNREACHABLE
        try:
            body = await read_beginning(exchange, robots.MAX_BYTES, until)
        finally:
            await exchange.aclose()
        coding = exchange.headers.get("content-encoding", "")
        status, agent = exchange.status, self._agent
        return await anyio.to_thread.run_sync(
            lambda: robots.read_robots(
                status, decode_beginning(body, coding, robots.MAX_BYTES), agent
            )
        )

    async def _keep(
        self,
        url: str,
        exchange: "Exchange",
        folder: Path,
        deadline: float,
        progress: Progress | None,
    ) -> Fetched:
        """Spool the body of a response and describe both. Raises as ``Fetcher.fetch`` does."""
        final_url, masked_url = exchange.target.text, mask_url(url)
        is_same = exchange.status == HTTPStatus.NOT_MODIFIED and exchange.is_conditional
        fetched = Fetched(
            path=None,
            url=url,
            final_url=final_url,
            masked_url=masked_url,
            masked_final_url=masked_url if final_url == url else mask_url(final_url),
            status=exchange.status,
            headers=responses.without_our_types(exchange.headers),
            size_bytes=0,
            sha256="",
            fetched_at=datetime.now(UTC).replace(microsecond=0),  # as it is kept
            redirects=exchange.redirects,
            left_origin=exchange.left_origin,
            address=exchange.address,
            cookies=exchange.jar,
            not_modified=is_same,
        )
        if is_same:
            # It has no body (RFC 9110, section 15.4.5). Read to its end, the connection is kept.
            await read_beginning(exchange, 0, deadline)
            return fetched
        if exchange.status >= HTTPStatus.BAD_REQUEST or exchange.status == HTTPStatus.NOT_MODIFIED:
            raise await self._http_error(url, exchange, deadline)
        spool, incomplete = await spool_body(
            exchange, folder, self._limits, self._workers, deadline, progress
        )
        size, sha256 = spool.size, spool.hash.hexdigest()
        name = responses.file_name(exchange.headers, exchange.target)
        kept = replace(fetched, path=spool.path, size_bytes=size, sha256=sha256, name=name)
        return replace(kept, incomplete=incomplete) if incomplete else kept

    async def _http_error(self, url: str, exchange: "Exchange", deadline: float) -> HttpError:
        """Return the error for a 4xx or 5xx, with the beginning of its body in the details."""
        until = min(deadline, anyio.current_time() + _ERROR_BODY_SECONDS)
        body = await read_beginning(exchange, _ERROR_BODY_BYTES, until)
        target, headers, now = exchange.target, exchange.headers, datetime.now(UTC)
        beginning = self._own.hidden(beginning_of(body, headers), target, exchange.jar)
        cause = cause_of(target, exchange.status, headers, beginning, now)
        if cause.code == "login" and not exchange.left_origin and self._own.is_set(target):
            refused = "it does not take the login that the operator set"
            cause = replace(cause, what=refused, next_step="Tell the operator to renew it.")
        details: dict[str, Any] = {"status": exchange.status}
        if cause.code:
            details["cause"] = cause.code
        if cause.seconds is not None:
            details["retry_after_seconds"] = cause.seconds
        reason = f": {cause.what}" if cause.what else ""
        what = f"{target.host} answered {exchange.phrase}{reason}."
        text = excerpt(beginning)
        _log.info("%s The answer begins: %s", what, text)
        source = mask_url(url)
        return HttpError(what, cause.next_step, excerpt=text, source=source, **details)


def _version() -> str:
    try:
        return version("fetchstash")
    except PackageNotFoundError:  # a checkout that was never installed
        return "0"
