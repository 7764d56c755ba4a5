"""Send one request over httpcore2 in its turn with the host, and read its response.

A service shares one ``Gates`` among its tenants, so that a site sees one visitor. How often that
one asks is kept where all its processes and replicas see it: ``reserve``.
"""

import ssl
import time
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Awaitable,
    Callable,
    Mapping,
)
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from http import HTTPStatus
from typing import cast

import anyio
import anyio.lowlevel
import httpcore2

from fetchstash.errors import Call, FetchFailed, FetchstashError
from fetchstash.fetch._body import BrokenBody
from fetchstash.fetch._cookies import Jar
from fetchstash.fetch._framing import GuardedStream, NotHttp
from fetchstash.fetch._guard import Guard, tls_context
from fetchstash.text.urls import Target

Reserve = Callable[[str, float], Awaitable[float]]
"""Given a host and the seconds between two requests, how many seconds to wait for the next."""


@dataclass(slots=True)
class _Gate:
    slots: anyio.Semaphore
    users: int = 0
    next_at: float = 0.0


class Gates:
    """One gate for each host with a request in flight, or with one that ended just now."""

    def __init__(self, concurrency: int, rate: float, reserve: Reserve | None = None) -> None:
        """Allow ``concurrency`` requests at a time and ``rate`` a second (0: any) per host."""
        self._concurrency = max(1, concurrency)
        self._interval = 1 / rate if rate > 0 else 0.0
        self._reserve = reserve
        self._gates: dict[str, _Gate] = {}

    @asynccontextmanager
    async def turn(self, host: str) -> AsyncGenerator[None]:
        """Wait for a turn at ``host``, which lasts until the response is closed."""
        slots = anyio.Semaphore(self._concurrency, fast_acquire=True)
        gate = self._gates.setdefault(host, _Gate(slots))
        gate.users += 1
        try:
            async with gate.slots:
                if self._interval:
                    await anyio.sleep(await self._wait(host, gate))
                yield
        finally:
            gate.users -= 1
            now, gates = anyio.current_time(), self._gates
            self._gates = {name: g for name, g in gates.items() if g.users or g.next_at > now}

    async def _wait(self, host: str, gate: _Gate) -> float:
        """Return the seconds until the next request; without a shared schedule, by our own."""
        now = anyio.current_time()
        own = max(gate.next_at - now, 0.0)
        gate.next_at = now + own + self._interval
        if self._reserve:
            with suppress(FetchstashError):
                return await self._reserve(host, self._interval)
        return own


_MAX_CONNECTIONS = 100
_KEPT_CONNECTIONS = 20
_KEPT_SECONDS = 15
_LARGE_BYTES = 4 * 2**20  # above it, another connection costs less than what is copied
# Chunks of one byte that lie in one buffer would block the event loop until the last of them.
_YIELD_SECONDS = 0.01
_TINY_CHUNKS = 50_000
_TINY_CHUNK_BYTES = 16
# OpenSSL's reasons when the first bytes of a server are no TLS record.
_NO_TLS = frozenset(
    {"WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "PACKET_LENGTH_TOO_LONG", "HTTP_REQUEST"}
)
_FAILURES = (
    httpcore2.NetworkError,
    httpcore2.TimeoutException,
    httpcore2.ProtocolError,
    OSError,
    ValueError,
)


class Exchange:
    """A response whose body has not been read.

    ``headers`` have lower-case names; repeated ones are joined by ", " (RFC 9110, section 5.3).
    Set-Cookie is not among them: ``cookies`` has each as ISO 8859-1.
    ``redirects`` led to ``target``; ``left_origin``: one of them to another origin. ``jar`` has the
    cookies of the fetch. ``is_conditional``: the request had validators.
    """

    def __init__(self, target: Target, response: httpcore2.Response) -> None:
        stream = cast("object", response.extensions["network_stream"])  # pyright: ignore[reportUnknownMemberType] -- a bare dict
        self.target = target
        self.status = response.status
        set_cookie = [value for name, value in response.headers if name.lower() == b"set-cookie"]
        self.cookies = [value.decode("iso-8859-1") for value in set_cookie]
        self.headers = joined(response.headers)
        self.headers.pop("set-cookie", None)
        # httpcore2 wraps the stream of a 101, which nobody asked for.
        if not isinstance(stream, GuardedStream):
            raise httpcore2.RemoteProtocolError("another protocol")
        stream.end_head(self.status, self.headers)
        self.redirects = 0
        self.left_origin = self.is_conditional = False
        self.jar = Jar()
        peer = stream.get_extra_info("server_addr")
        self.address = str(peer[0]) if peer else ""
        self._response = response
        self.turn = AsyncExitStack()
        self._stream = stream
        self._received_before = stream.received
        self._yielded = 0

    @property
    def received(self) -> int:
        """Return how many bytes of the body came, as sent, framing included."""
        return max(self._yielded, self._stream.received - self._received_before)

    @property
    def announced(self) -> int | None:
        """Return Content-Length in bytes, or None where there is none."""
        value = self.headers.get("content-length", "")
        return int(value) if value.isascii() and value.isdigit() and len(value) < 19 else None

    @property
    def phrase(self) -> str:
        """Return the status and its standard phrase, never the server's own words."""
        try:
            return f"{self.status} {HTTPStatus(self.status).phrase}"
        except ValueError:
            return str(self.status)

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield the body as it comes; let other tasks run often. Raises BrokenBody."""
        chunks = tiny = 0
        yielded_at = time.monotonic()
        try:
            async for chunk in self._pieces():
                self._yielded += len(chunk)
                yield chunk
                chunks += 1
                tiny += len(chunk) < _TINY_CHUNK_BYTES
                if tiny > _TINY_CHUNKS and tiny * 2 > chunks:
                    raise BrokenBody("it came in needlessly tiny chunks")
                if time.monotonic() - yielded_at > _YIELD_SECONDS:
                    await anyio.lowlevel.checkpoint()
                    yielded_at = time.monotonic()
        except httpcore2.RemoteProtocolError as error:
            if "complete message body" in str(error) or "closed connection" in str(error):
                raise BrokenBody("the connection closed before its end") from None
            raise BrokenBody("its chunked framing is broken") from None
        except (httpcore2.NetworkError, httpcore2.TimeoutException, OSError):
            raise BrokenBody("the connection broke") from None

    async def _pieces(self) -> AsyncGenerator[bytes]:
        """Yield the body: a large one, of known length, straight from its connection.

        h11 would copy it three times. As it never sees the end, the connection is closed then.
        """
        if self._stream.left < _LARGE_BYTES:
            async for piece in cast("AsyncIterable[bytes]", self._response.stream):
                yield piece
            return
        while left := self._stream.left:
            piece = await self._stream.read(left)
            if not piece:
                raise BrokenBody("the connection closed before its end")
            yield piece

    async def aclose(self) -> None:
        """Return the connection to the pool if the body was read to its end, else close it."""
        try:
            with anyio.CancelScope(shield=True):
                await self._response.aclose()
                if self._stream.is_spoiled:
                    await self._stream.aclose()
        finally:
            await self.turn.aclose()


class Connections:
    """The connection pool over the guard. HTTP/1.1 only: HTTP/2 is one more parser to attack."""

    def __init__(self, guard: Guard, gates: Gates, ca_file: str = "") -> None:
        self._gates = gates
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=tls_context(ca_file),
            max_connections=_MAX_CONNECTIONS,
            max_keepalive_connections=_KEPT_CONNECTIONS,
            keepalive_expiry=_KEPT_SECONDS,
            network_backend=guard,
        )

    async def get(self, target: Target, headers: Mapping[str, str]) -> Exchange:
        """Wait for the host's turn, send a GET request and return the response with its header.

        Raises Refused, FetchFailed and TooLarge.
        """
        fields = [("Host", target.authority), *headers.items()]
        octets = [(name.encode("ascii"), value.encode("iso-8859-1")) for name, value in fields]
        request = httpcore2.Request(
            "GET",
            httpcore2.URL(
                scheme=target.scheme, host=target.host, port=target.port, target=target.path
            ),
            headers=octets,
            # RFC 6066, section 3: without the trailing dot
            extensions={"sni_hostname": target.host.removesuffix(".")},
        )
        async with AsyncExitStack() as turn:
            await turn.enter_async_context(self._gates.turn(target.host))
            response: httpcore2.Response | None = None
            try:
                response = await self._pool.handle_async_request(request)
                exchange = Exchange(target, response)
            except BaseException as error:
                if response is not None:
                    with anyio.CancelScope(shield=True):
                        await response.aclose()
                if isinstance(error, _FAILURES):
                    raise failure(target, error) from None
                raise
            exchange.turn = turn.pop_all()
            return exchange

    async def aclose(self) -> None:
        """Close all connections."""
        await self._pool.aclose()


def joined(fields: list[tuple[bytes, bytes]]) -> dict[str, str]:
    """Return fields by lower-case name, repeats joined by ", ", as UTF-8 or else ISO 8859-1."""
    values: dict[str, list[str]] = {}
    for name, raw in fields:
        try:
            value = raw.decode("utf-8")
        except UnicodeDecodeError:
            value = raw.decode("iso-8859-1")
        values.setdefault(name.decode("ascii", "replace").lower(), []).append(value)
    return {name: ", ".join(several) for name, several in values.items()}


_ANOTHER_SITE = "Look for the document on another site."
_TRUST = Call("setting", {"name": "fetch.ca_file", "value": "/path/to/ca.pem"})
_UNKNOWN_ISSUER = (
    "is of an issuer that is not known here, or the server leaves out one in between",
    "If the issuer is your own network's, {}.",
    _TRUST,
)
_CERTIFICATES: Mapping[int, tuple[str, str] | tuple[str, str, Call]] = {
    9: ("is not valid yet", "The operator can check the clock of this machine."),
    10: ("has expired", f"{_ANOTHER_SITE} If many have expired, check this machine's clock."),
    18: ("is self-signed: nobody vouches for it", "If it is your own network's, {}.", _TRUST),
    19: _UNKNOWN_ISSUER,
    20: _UNKNOWN_ISSUER,
    21: _UNKNOWN_ISSUER,
    23: ("was revoked", _ANOTHER_SITE),
    62: ("is for other names", f"Check the spelling of the host. {_ANOTHER_SITE}"),
    64: ("is for names, not for this address", "Write the name of the host in the URL."),
}
"""What is wrong with a certificate, and what to do, by OpenSSL's code (X509_V_ERR_…)."""

_OLD_TLS = ": it speaks only old versions of TLS, which are not safe"
_HANDSHAKES = {
    "UNSUPPORTED_PROTOCOL": _OLD_TLS,
    "TLSV1_ALERT_PROTOCOL_VERSION": _OLD_TLS,
}
"""What a failed handshake shows, by OpenSSL's reason."""

_HTTP_PORT = 80


def failure(target: Target, error: Exception) -> FetchFailed:
    """Return the error for a connection that failed. details: temporary, if a retry may help."""
    later = "Check the URL, or try again later."
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, ssl.SSLError):
        cause = cause.__cause__ or cause.__context__
    if isinstance(cause, ssl.SSLCertVerificationError):
        other = f"is not valid: {cause.verify_message.rstrip('.')}"
        fault, advice, *calls = _CERTIFICATES.get(cause.verify_code, (other, _ANOTHER_SITE))
        return FetchFailed(f"The certificate of {target.host} {fault}.", advice, *calls)
    if cause is not None and cause.reason in _NO_TLS:
        what = f"{target.host_and_port} does not speak TLS."
        return FetchFailed(what, "Check the port. For a plain web server, write http://.")
    if cause is not None:
        fault = _HANDSHAKES.get(cause.reason, "")
        what = f"No secure connection to {target.authority} could be made{fault}."
        return FetchFailed(what, _ANOTHER_SITE)
    if isinstance(error, NotHttp) and error.protocol == "TLS":
        return FetchFailed(f"{target.host_and_port} speaks TLS.", "Write https:// in the URL.")
    if isinstance(error, NotHttp) and error.protocol:
        what = f"{target.host_and_port} speaks {error.protocol}, no HTTP."
        return FetchFailed(what, "Check the URL and its port.")
    if isinstance(error, httpcore2.ConnectTimeout):  # and once more would take as long again
        return FetchFailed(f"{target.authority} does not answer.", later, unreached=True)
    if isinstance(error, httpcore2.ConnectError):
        what = f"{target.authority} cannot be reached."
        return FetchFailed(what, later, temporary=True, unreached=True)
    is_answer = isinstance(error, (httpcore2.ProtocolError, ValueError))
    if is_answer and "disconnected" not in str(error):
        what = f"What {target.authority} answered is no HTTP."
        return FetchFailed(what, "Check the URL and its port.")
    what = f"{target.authority} closed the connection without an answer."
    # As many servers of TLS do that are asked without it.
    advice = "If this port speaks TLS, write https:// in the URL. Else try again later."
    may_be_tls = target.scheme == "http" and target.port != _HTTP_PORT
    return FetchFailed(what, advice if may_be_tls else "Try again later.", temporary=True)
