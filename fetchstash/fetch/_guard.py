"""The guard: every connection is made here, and only to a vetted address.

A name is looked up once, every answer is vetted, a vetted address is dialled by number, and the
peer's address is read back. URL, Host, SNI and certificate stay those of the name. Nothing happens
between check and use, so a name that changes its answer (DNS rebinding) changes nothing.
"""

import ssl
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, cast

import anyio
import httpcore2

from fetchstash.errors import FetchFailed, Refused, TooLarge
from fetchstash.fetch._addresses import Address, plain
from fetchstash.fetch._machine import Interfaces
from fetchstash.fetch._policy import Policy
from fetchstash.fetch._proxy import Proxy, open_tunnel
from fetchstash.fetch._resolve import Resolver
from fetchstash.fetch._url import Target

_NEXT_ATTEMPT_SECONDS = 0.25  # RFC 8305, section 5: the Connection Attempt Delay
_MAX_ATTEMPTS = 6
_CONNECT_SECONDS = 15
# What asyncio reads at a time. httpcore2 asks for a quarter, and the rest would be copied thrice.
_BODY_READ_BYTES = 256 * 1024

Dial = Callable[[Address], Awaitable[httpcore2.AsyncNetworkStream]]


class GuardedStream(httpcore2.AsyncNetworkStream):
    """A connection that counts received bytes and bounds a response's head, 1xx included.

    ``received`` counts from the start of the connection. A head begins when a request is written
    and ends when ``end_head`` is called.
    """

    def __init__(self, inner: httpcore2.AsyncNetworkStream, max_header_bytes: int) -> None:
        self._inner = inner
        self._max_header_bytes = max_header_bytes
        self._head_left: int | None = max_header_bytes
        self.received = 0

    def end_head(self) -> None:
        """Stop counting towards the limit of the head."""
        self._head_left = None

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Read some bytes. Raises TooLarge if a head does not end within its limit."""
        if self._head_left is not None:
            if self._head_left <= 0:
                raise TooLarge(
                    f"The response's header is larger than {self._max_header_bytes} bytes.",
                    "Ask the operator to raise fetch.max_header_bytes, or fetch another page.",
                )
            max_bytes = min(max_bytes, self._head_left)
        else:
            max_bytes = _BODY_READ_BYTES
        data = await self._inner.read(max_bytes, timeout)
        self.received += len(data)
        if self._head_left is not None:
            self._head_left -= len(data)
        return data

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Write all of ``buffer``; the next bytes that come are a head."""
        self._head_left = self._max_header_bytes
        await self._inner.write(buffer, timeout)

    async def aclose(self) -> None:
        """Close the socket."""
        await self._inner.aclose()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> "GuardedStream":
        """Return the same connection under TLS."""
        return GuardedStream(
            await self._inner.start_tls(ssl_context, server_hostname, timeout),
            self._max_header_bytes,
        )

    def get_extra_info(self, info: str) -> Any:
        """Return extra information of the wrapped connection."""
        return self._inner.get_extra_info(info)


class Guard(httpcore2.AsyncNetworkBackend):
    """The network backend of our connection pool."""

    def __init__(
        self,
        policy: Policy,
        resolver: Resolver,
        interfaces: Interfaces,
        max_header_bytes: int,
        proxy: Proxy | None = None,
        network: httpcore2.AsyncNetworkBackend | None = None,
    ) -> None:
        self._policy = policy
        self._resolver = resolver
        self._interfaces = interfaces
        self._max_header_bytes = max_header_bytes
        self._proxy = proxy
        # httpcore2 declares AnyIOBackend in two ways, one for where anyio is missing.
        self._network = network or cast("httpcore2.AsyncNetworkBackend", httpcore2.AnyIOBackend())

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> GuardedStream:
        """Connect to ``host`` if policy allows it.

        Raises Refused, FetchFailed and httpcore2's own errors.
        """
        # The pool sets none of these: one deadline covers the whole fetch.
        del timeout, local_address, socket_options
        addresses = await self.vetted(_target(host, port))
        try:
            with anyio.fail_after(_CONNECT_SECONDS):
                stream = await race(addresses, lambda address: self._dial(address, port))
        except TimeoutError:
            raise httpcore2.ConnectTimeout from None
        return GuardedStream(stream, self._max_header_bytes)

    async def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Raise Refused: a Unix socket is no public server."""
        del path, timeout, socket_options
        raise Refused(
            "Sockets in the file system are not fetched from.", "Give an http or https URL."
        )

    async def sleep(self, seconds: float) -> None:
        """Sleep."""
        await anyio.sleep(seconds)

    async def vetted(self, target: Target) -> list[Address]:
        """Look the name up once and return its vetted addresses. Raises Refused and FetchFailed."""
        if target.address is not None:
            addresses = [plain(target.host)]
        else:
            addresses = await self._resolver.look_up(target.host)
        self._policy.vet(target, addresses, self._interfaces.machine())
        return addresses

    async def _dial(self, address: Address, port: int) -> httpcore2.AsyncNetworkStream:
        """Connect to a vetted address, directly or by proxy, and check the peer's address."""
        if self._proxy is not None:
            return await self._dial_through(self._proxy, address, port)
        stream = await self._network.connect_tcp(str(address), port)
        peer = stream.get_extra_info("server_addr")
        if peer is None or plain(str(peer[0])) != address:
            await stream.aclose()
            what = "The connection went elsewhere than it was sent."
            raise FetchFailed(what, "Tell the operator that something redirects connections.")
        return stream

    async def _dial_through(
        self, proxy: Proxy, address: Address, port: int
    ) -> httpcore2.AsyncNetworkStream:
        stream = await self._network.connect_tcp(proxy.host, proxy.port)
        try:
            if proxy.tls:
                stream = await stream.start_tls(ssl.create_default_context(), proxy.host)
            await open_tunnel(stream, proxy, address, port)
        except BaseException:
            with anyio.CancelScope(shield=True):
                await stream.aclose()
            raise
        return stream


async def race(addresses: Sequence[Address], dial: Dial) -> httpcore2.AsyncNetworkStream:
    """Return the first connection that succeeds (Happy Eyeballs, RFC 8305).

    Address families alternate. A new attempt begins after 250 ms or when one fails. Raises the
    first error if none succeeds.
    """
    attempts = interleaved(addresses)[:_MAX_ATTEMPTS]
    if len(attempts) == 1:
        return await dial(attempts[0])
    winner: httpcore2.AsyncNetworkStream | None = None
    errors: list[Exception] = []

    async def attempt(address: Address, failed: anyio.Event) -> None:
        nonlocal winner
        try:
            stream = await dial(address)
        except (httpcore2.NetworkError, httpcore2.TimeoutException, FetchFailed) as error:
            errors.append(error)
            failed.set()
            return
        if winner is None:
            winner = stream
            attempting.cancel_scope.cancel()
        else:
            with anyio.CancelScope(shield=True):
                await stream.aclose()

    try:
        async with anyio.create_task_group() as attempting:
            for address in attempts:
                failed = anyio.Event()
                attempting.start_soon(attempt, address, failed)
                with anyio.move_on_after(_NEXT_ATTEMPT_SECONDS):
                    await failed.wait()
    except BaseException:
        if winner is not None:
            with anyio.CancelScope(shield=True):
                await winner.aclose()
        raise
    if winner is None:
        raise errors[0]
    return winner


def interleaved(addresses: Sequence[Address]) -> list[Address]:
    """Return ``addresses`` with alternating families, the first one's first (RFC 8305, 4)."""
    first = [address for address in addresses if address.version == addresses[0].version]
    other = [address for address in addresses if address.version != addresses[0].version]
    mixed: list[Address] = []
    while first or other:
        mixed += first[:1] + other[:1]
        del first[:1], other[:1]
    return mixed


def _target(host: str, port: int) -> Target:
    """Return host and port as a Target; the URL's scheme was checked before."""
    try:
        address = plain(host)
    except ValueError:
        return Target("http", host, None, port, "/")
    return Target("http", host, address, port, "/")
