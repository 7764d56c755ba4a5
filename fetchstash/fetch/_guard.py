"""The guard: every connection is made here, and only to a vetted address.

A name is looked up once, every answer is vetted, a vetted address is dialled by number, and the
peer's address is read back. URL, Host, SNI and certificate stay those of the name. Nothing happens
between check and use, so a name that changes its answer (DNS rebinding) changes nothing.
"""

import ssl
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, cast

import anyio
import anyio.lowlevel
import httpcore2

from fetchstash.errors import Call, FetchFailed, Refused, TooLarge
from fetchstash.fetch._addresses import Address, plain
from fetchstash.fetch._framing import Framing
from fetchstash.fetch._machine import Interfaces
from fetchstash.fetch._policy import Policy
from fetchstash.fetch._proxy import Proxy, open_tunnel
from fetchstash.fetch._resolve import Resolver, addresses_of
from fetchstash.fetch._url import Target

_NEXT_ATTEMPT_SECONDS = 0.25  # RFC 8305, section 5: the Connection Attempt Delay
_MAX_ATTEMPTS = 6
_CONNECT_SECONDS = 15
# The size of one read of asyncio. httpcore2 asks for a quarter; the rest would be copied thrice.
_BODY_READ_BYTES = 256 * 1024
_TURNS_TO_READ = 10  # turns of the event loop: what has arrived is read within three

_HTTP = b"HTTP/"  # RFC 9112, section 4
_PROTOCOLS = {
    b"\x15\x03": "TLS",  # RFC 8446, section 5.1: an alert, and a handshake
    b"\x16\x03": "TLS",
    b"SSH-": "SSH",
    b"220": "FTP or SMTP",
    b"+OK": "POP3",
    b"* OK": "IMAP",
    b"RFB ": "VNC",
}

Dial = Callable[[Address], Awaitable[httpcore2.AsyncNetworkStream]]


class NotHttp(httpcore2.RemoteProtocolError):
    """The first bytes of an answer are no HTTP. ``protocol`` is what they are, if known."""

    def __init__(self, beginning: bytes) -> None:
        super().__init__("no HTTP")
        self.protocol = next(
            (name for start, name in _PROTOCOLS.items() if beginning.startswith(start)), ""
        )


class GuardedStream(httpcore2.AsyncNetworkStream):
    """A connection that bounds each head, 1xx included, and answers no request with stray bytes.

    ``received`` counts all bytes since the start of the connection. A head begins when a request
    is written and ends when ``end_head`` is called.
    """

    def __init__(self, inner: httpcore2.AsyncNetworkStream, max_header_bytes: int) -> None:
        self._inner = inner
        self._max_header_bytes = max_header_bytes
        self._head_left: int | None = max_header_bytes
        self._framing = Framing()
        self._beginning = b""
        self._answered = False
        self._must_close = False
        self.received = 0

    @property
    def is_spoiled(self) -> bool:
        """Say whether the connection must not be used for another request."""
        return self._must_close or bool(self._framing.held_back)

    def end_head(self, status: int, headers: Mapping[str, str]) -> None:
        """Expect the body that this head announces."""
        self._head_left = None
        self._answered = True
        self._framing.end_head(status, headers)
        # RFC 9112, section 6.1: such a message may be an attack.
        self._must_close |= "transfer-encoding" in headers and "content-length" in headers

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Read some bytes of the response. Raises TooLarge if its head is above its limit."""
        if not self._framing.held_back:
            data = await self._inner.read(self._most(max_bytes), timeout)
            self.received += len(data)
            if not data:
                return b""
            if len(self._beginning) < len(_HTTP):
                self._beginning += data[:16]
                if not self._beginning.startswith(_HTTP[: len(self._beginning)]):
                    raise NotHttp(self._beginning)
            self._framing.receive(data)
        try:
            piece = self._framing.take()
        except ValueError as error:
            raise httpcore2.RemoteProtocolError(str(error)) from None
        if not piece:
            raise httpcore2.RemoteProtocolError("bytes after the end of a response")
        if self._head_left is not None:
            self._head_left -= len(piece)
        return piece

    def _most(self, max_bytes: int) -> int:
        if self._head_left is None:
            return _BODY_READ_BYTES
        if self._head_left <= 0:
            limit = self._max_header_bytes
            raise TooLarge(
                f"The response's header is larger than {limit} bytes.",
                "Fetch another page, or {}.",
                Call("setting", {"name": "fetch.max_header_bytes", "value": 2 * limit}),
            )
        return min(max_bytes, self._head_left)

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Write all of ``buffer``; the next bytes that come are a head.

        Raises ReadError if bytes have come that no request asked for.
        """
        if self._answered and (self.is_spoiled or await self._has_unread()):
            self._must_close = True
            raise httpcore2.ReadError("bytes before the request")  # a WriteError would be ignored
        self._answered = False
        self._head_left = self._max_header_bytes
        self._framing.begin()
        self._beginning = b""
        await self._inner.write(buffer, timeout)

    async def _has_unread(self) -> bool:
        """Say whether bytes, or the connection's end, wait below: in TLS records or a queue."""
        has_unread = False

        async def read() -> None:
            nonlocal has_unread
            with suppress(httpcore2.NetworkError, OSError):
                await self._inner.read(1)
            has_unread = True

        async with anyio.create_task_group() as reading:
            reading.start_soon(read)
            for _ in range(_TURNS_TO_READ):
                await anyio.lowlevel.checkpoint()
            reading.cancel_scope.cancel()
        return has_unread

    async def aclose(self) -> None:
        """Close the socket."""
        self._must_close = True
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
        """Return extra information of the wrapped connection; a spoiled one counts as readable.

        The pool closes an idle connection that is readable.
        """
        return (
            True if info == "is_readable" and self.is_spoiled else self._inner.get_extra_info(info)
        )


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
        return GuardedStream(await self.tunnel(_target(host, port)), self._max_header_bytes)

    async def tunnel(self, target: Target) -> httpcore2.AsyncNetworkStream:
        """Connect to a vetted address of ``target``. Raises as ``connect_tcp`` does."""
        addresses = await self.vetted(target)
        try:
            with anyio.fail_after(_CONNECT_SECONDS):
                return await race(addresses, lambda address: self._dial(address, target.port))
        except TimeoutError:
            raise httpcore2.ConnectTimeout from None

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
        addresses = await addresses_of(target, self._resolver)
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
