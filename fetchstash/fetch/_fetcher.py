"""HttpFetcher: a URL in, a file out, under one deadline; and the certificates it trusts."""

import logging
import os
import ssl
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from http import HTTPStatus
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread

from fetchstash.errors import BadArgument, FetchFailed, FetchstashError, HttpError, Refused
from fetchstash.fetch._addresses import Interfaces, Resolver, SystemResolver, addresses_of
from fetchstash.fetch._body import BodyReader, Spool, Workers, read_beginning, too_large
from fetchstash.fetch._coding import ACCEPT_ENCODING, BrokenCoding, codings, decoders
from fetchstash.fetch._contract import (
    Cached,
    Fetched,
    Fetcher,
    FetchLimits,
    Progress,
    Rendered,
    Renderer,
)
from fetchstash.fetch._exchange import Gates
from fetchstash.fetch._guard import Proxy
from fetchstash.fetch._mask import mask_url
from fetchstash.fetch._policy import Policy, origin_headers, without
from fetchstash.fetch._responses import (
    after_redirect,
    check_count,
    conditions,
    excerpt,
    file_name,
    nothing_came,
    retry_after_seconds,
    timed_out,
    what_next,
)
from fetchstash.fetch._url import Target, join, parse

if TYPE_CHECKING:
    from fetchstash.fetch._browser import Browser
    from fetchstash.fetch._client import Client
    from fetchstash.fetch._exchange import Exchange

_log = logging.getLogger("fetchstash.fetch")

_ACCEPT = "text/markdown, text/html;q=0.9, application/xhtml+xml;q=0.9, */*;q=0.8"
_ERROR_BODY_BYTES = 16 * 1024
_ERROR_BODY_SECONDS = 5
_ANY_LENGTH = 2**20  # of a URL that was fetched before
_UNKNOWN_CODING = "it has an unknown content coding and is kept as sent"


def tls_context() -> ssl.SSLContext:
    """Return the TLS context of all connections. Takes some 20 ms.

    SSL_CERT_FILE or SSL_CERT_DIR replace the system's certificates. Raises BadArgument if what
    they name cannot be read.
    """
    import httpx2  # noqa: PLC0415 -- it takes 0.1 s, and is not needed before the first fetch

    file, folder = (os.environ.get(name, "") for name in ("SSL_CERT_FILE", "SSL_CERT_DIR"))
    try:
        if folder and not file:
            os.scandir(folder).close()
        return httpx2.create_ssl_context()
    except ssl.SSLError:
        why = "holds no certificates in PEM format"
    except OSError as error:
        why = f"cannot be read: {error.strerror or error}"
    name, path = ("SSL_CERT_FILE", file) if file else ("SSL_CERT_DIR", folder)
    if not path:
        what = f"The system's certificates: the file or folder {why}."
        raise BadArgument(what, "Install the system's certificates (ca-certificates).")
    raise BadArgument(f"{name} is {path}, which {why}.", "The operator has to correct or unset it.")


def certificate_fault() -> str:
    """Return what is wrong with the certificates that servers are verified by, or ""."""
    try:
        tls_context()
    except BadArgument as error:
        return error.what
    return ""


class HttpFetcher:
    """The Fetcher over HTTP. Imports no HTTP library before the first fetch."""

    def __init__(self, limits: FetchLimits, *, resolver: Resolver | None = None) -> None:
        """Read the limits. Raises BadArgument for a host, net, domain, proxy or header in error."""
        self._limits = limits
        self._policy = Policy.of(limits)
        self._proxy = Proxy.of(limits.proxy)
        self._own_headers = origin_headers(limits.headers)
        self._resolver = resolver or SystemResolver()
        self._agent = limits.user_agent or f"fetchstash/{_version()}"
        self._interfaces = Interfaces()
        self._client: Client | None = None
        self._browser: Browser | None = None
        self._connecting = anyio.Lock()
        self._workers = Workers()

    async def fetch(
        self,
        url: str,
        folder: Path,
        *,
        cached: Cached | None = None,
        progress: Progress | None = None,
        after: Fetched | None = None,
        seconds: float | None = None,
    ) -> Fetched:
        """Fetch ``url`` and spool its decoded body to a new file in ``folder``; see Fetcher."""
        left = self._limits.fetch_seconds if seconds is None else seconds
        deadline = anyio.current_time() + min(left, self._limits.fetch_seconds)
        first, target, redirects = self._begin(url, after)
        exchange: Exchange | None = None
        with anyio.move_on_at(deadline):
            if after is not None:
                await self._check_leaving(parse(after.final_url, _ANY_LENGTH))
            if not redirects:
                self._policy.check(target)  # a plain refusal waits for no library
            client = await self._connect()
            headers = {"Accept": _ACCEPT, "Accept-Encoding": ACCEPT_ENCODING}
            exchange = await client.open(
                target,
                headers,
                deadline,
                cached,
                first,
                redirects,
                left_origin=after is not None and after.left_origin,
            )
        if exchange is None:
            raise timed_out(first, self._limits)
        source = after.url if after else url
        try:
            return await self._keep(source, exchange, folder, deadline, cached, progress)
        except FetchstashError as error:
            if exchange.redirects:
                raise after_redirect(error, first, exchange.target) from None
            raise
        finally:
            await exchange.aclose()

    async def check(self, url: str, final_url: str = "") -> None:
        """Raise BadArgument or Refused if ``url`` may not be fetched now; see Fetcher."""
        first = parse(url, self._limits.max_url_chars)
        await self._check(first)
        final = parse(final_url or url, _ANY_LENGTH)
        if final.origin != first.origin:
            try:
                await self._check(final)
            except Refused as refused:
                raise after_redirect(refused, first, final) from None

    async def render(
        self, url: str, folder: Path, *, seconds: float, edge: int = 0, max_bytes: int = 0
    ) -> Rendered:
        """Render ``url`` in a browser behind the guard; see Renderer."""
        client = await self._connect()
        assert self._browser is not None  # made with the client
        deadline = anyio.current_time() + seconds
        rendered = await self._browser.render(
            url, folder, seconds=seconds, edge=edge, max_bytes=max_bytes
        )
        try:
            if self._limits.respect_robots:  # its scripts may have changed the address
                await client.ask_robots(parse(rendered.url, _ANY_LENGTH), deadline)
        except BaseException:
            rendered.path.unlink(missing_ok=True)
            raise
        return rendered

    def grant(self, host: str, port: int) -> None:
        """Let a private host pass the address and port rules until this fetcher is closed.

        A person said so. Rules on domains hold, and metadata services are never let through.
        """
        self._policy.grant(host, port)

    async def _check(self, target: Target) -> None:
        self._policy.check(target)
        if self._policy.is_exempt(target.host, target.port):
            return
        try:
            addresses = await addresses_of(target, self._resolver)
        except FetchFailed:
            return
        self._policy.vet(target, addresses, self._interfaces.machine())

    async def _check_leaving(self, page: Target) -> None:
        """Raise Refused for a page inside, whose text an address could carry outside."""
        if self._policy.is_inside(page, await addresses_of(page, self._resolver)):
            what = f"A page of {page.host}, which the operator allowed, leads to another address."
            raise Refused(what, "Fetch that, if it is the right one.", rule="inside")

    def _begin(self, url: str, after: Fetched | None) -> tuple[Target, Target, int]:
        """Return the first URL's target, the one to fetch now, and the redirects between them."""
        if after is None:
            target = parse(url, self._limits.max_url_chars)
            return target, target, 0
        redirects = after.redirects + 1
        check_count(redirects, self._limits.max_redirects)
        first, page = (parse(text, _ANY_LENGTH) for text in (after.url, after.final_url))
        return first, join(page, url, self._limits.max_url_chars), redirects

    async def aclose(self) -> None:
        """Close all connections."""
        if self._client is not None:
            client, self._client = self._client, None
            await client.aclose()

    async def _connect(self) -> "Client":
        async with self._connecting:
            if self._client is None:
                self._client = await anyio.to_thread.run_sync(
                    self._new_client, limiter=self._workers.threads
                )
            return self._client

    def _new_client(self) -> "Client":
        """Import the HTTP library and read the certificates: 0.1 s, so run it in a thread."""
        from fetchstash.fetch._browser import Browser  # noqa: PLC0415 -- see above
        from fetchstash.fetch._client import Client  # noqa: PLC0415 -- see above
        from fetchstash.fetch._exchange import Connections  # noqa: PLC0415 -- see above
        from fetchstash.fetch._guard import Guard  # noqa: PLC0415 -- see above

        for logger in ("httpx2", "httpcore2"):  # they log URLs, secrets included
            logging.getLogger(logger).setLevel(logging.CRITICAL)

        def guard_of(policy: Policy) -> Guard:
            most = self._limits.max_header_bytes
            return Guard(policy, self._resolver, self._interfaces, most, self._proxy)

        guard = guard_of(self._policy)
        self._browser = Browser(
            self._limits, self._policy, self._resolver, lambda policy: guard_of(policy).tunnel
        )
        gates = Gates(self._limits.per_host_concurrency, self._limits.per_host_rate)
        return Client(
            self._limits,
            self._policy,
            Connections(guard, tls_context(), gates),
            self._agent,
            self._own_headers,
        )

    async def _keep(
        self,
        url: str,
        exchange: "Exchange",
        folder: Path,
        deadline: float,
        cached: Cached | None,
        progress: Progress | None,
    ) -> Fetched:
        """Spool the body of a response, and describe both. Raises what the contract names."""
        fetched = Fetched(
            path=None,
            url=url,
            final_url=exchange.target.text,
            masked_url=mask_url(url),
            masked_final_url=mask_url(exchange.target.text),
            status=exchange.status,
            headers=exchange.headers,
            size_bytes=0,
            sha256="",
            fetched_at=datetime.now(UTC),
            name=file_name(exchange.headers, exchange.target),
            redirects=exchange.redirects,
            left_origin=exchange.left_origin,
            address=exchange.address,
        )
        was_asked = bool(conditions(cached, exchange.target, exchange.redirects))
        if exchange.status == HTTPStatus.NOT_MODIFIED and was_asked:
            return replace(fetched, not_modified=True)
        if exchange.status >= HTTPStatus.BAD_REQUEST or exchange.status == HTTPStatus.NOT_MODIFIED:
            raise await self._http_error(exchange, deadline)
        if (exchange.announced or 0) > self._limits.max_wire_bytes:
            raise too_large("wire", self._limits.max_wire_bytes)
        applied = codings(exchange.headers.get("content-encoding", ""))
        try:
            stages = decoders(applied or ())
        except BrokenCoding as broken:
            raise nothing_came(exchange.target, f"it {broken}", self._limits) from None
        spool = Spool(folder, stages, self._limits.max_decoded_bytes)
        in_thread = partial(anyio.to_thread.run_sync, limiter=self._workers.threads)
        try:
            await in_thread(spool.open)
            reader = BodyReader(exchange, spool, self._limits, self._workers)
            await reader.read(deadline, progress)
            incomplete = reader.incomplete or (_UNKNOWN_CODING if applied is None else "")
            try:
                await in_thread(partial(spool.finish, whole=not incomplete))
            except BrokenCoding as broken:
                incomplete = f"it {broken}"
            if exchange.status == HTTPStatus.PARTIAL_CONTENT:  # unasked for (RFC 9110, 15.3.7)
                incomplete = incomplete or "the server sent only a part of it"
            if incomplete and not spool.size:
                raise nothing_came(exchange.target, incomplete, self._limits)  # noqa: TRY301 -- see below
            if not spool.size:
                incomplete = f"the server answered {exchange.phrase} and sent no content"
        except BaseException:
            with anyio.CancelScope(shield=True):  # whatever went wrong, no file stays
                await in_thread(spool.discard)
            raise
        size, digest = spool.size, spool.sha256
        return replace(
            fetched, path=spool.path, size_bytes=size, sha256=digest, incomplete=incomplete
        )

    async def _http_error(self, exchange: "Exchange", deadline: float) -> HttpError:
        """Return the error for a 4xx or 5xx, with the beginning of its body in the details."""
        body = await read_beginning(
            exchange, _ERROR_BODY_BYTES, min(deadline, anyio.current_time() + _ERROR_BODY_SECONDS)
        )
        own = self._own_headers.get(exchange.target.origin, {})
        text = without(own.values(), excerpt(body, exchange.headers))
        wait = retry_after_seconds(exchange.headers.get("retry-after", ""), datetime.now(UTC))
        details = {"status": exchange.status} | (
            {} if wait is None else {"retry_after_seconds": wait}
        )
        what = f"{exchange.target.host} answered {exchange.phrase}."
        _log.info("%s The answer begins: %s", what, text)
        return HttpError(
            what,
            what_next(exchange.target, exchange.status, wait),
            excerpt=text,
            **details,
        )


def _version() -> str:
    try:
        return version("fetchstash")
    except PackageNotFoundError:  # a checkout that was never installed
        return "0"


async def browser_fault() -> str:
    """Return why no browser starts on this machine, as a sentence; "" if one does."""
    from fetchstash.fetch import _browser  # noqa: PLC0415 -- it imports the HTTP library

    return await _browser.browser_fault()


def browser_of(fetcher: Fetcher, limits: FetchLimits) -> Renderer | None:
    """Return the browser of a fetcher, None where there is none or it is switched off."""
    is_on = any(entry != "off" for entry in limits.browser)
    return fetcher if is_on and isinstance(fetcher, HttpFetcher) else None


def open_fetcher(limits: FetchLimits) -> Fetcher:
    """Return a fetcher with these limits. Raises BadArgument for an invalid one."""
    return HttpFetcher(limits)
