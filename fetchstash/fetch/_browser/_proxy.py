"""The proxy that a browser's every connection goes through: on loopback, for one page.

It takes CONNECT (RFC 9110, section 9.3.6) and plain HTTP in absolute form (RFC 9112, section
3.2.2), looks each name up once, vets every address, and dials a vetted one: the guard's rules, with
the operator's domains, hosts, nets and ports. Whoever asks must show the page's token, because any
process of the machine can reach loopback.
"""

import asyncio
import contextlib
import secrets
from base64 import b64encode
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Self

import anyio
import httpcore2

from fetchstash.errors import FetchstashError
from fetchstash.fetch._addresses import target_of
from fetchstash.fetch._policy import Policy
from fetchstash.text.urls import BadHost, Target, parse, parse_host

Tunnel = Callable[[Target], Awaitable[httpcore2.AsyncNetworkStream]]
"""Connects to a vetted address of a target. Raises Refused, FetchFailed, httpcore2's errors."""

USER = "fetchstash"
_MAX_HEAD = 64 * 2**10
_MAX_OPEN = 64
_HEAD_SECONDS = 10
_READ = 64 * 2**10
_HOP_BY_HOP = frozenset(
    {
        "connection",
        "keep-alive",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
"""RFC 9110, section 7.6.1."""
_REFUSED = b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
_UNREACHED = b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
_BAD = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
_WHO = (
    b'HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm="page"\r\n'
    b"Content-Length: 0\r\nConnection: close\r\n\r\n"
)


class _Full(Exception):
    """The page has transferred as many bytes as it may."""


_ENDINGS = (
    OSError,
    EOFError,
    ValueError,
    asyncio.LimitOverrunError,
    httpcore2.NetworkError,
    _Full,
    asyncio.CancelledError,
)
"""What ends one connection and nothing else; it is cancelled by the end of the page."""


@dataclass(slots=True)
class PageProxy:
    """A proxy for one page. ``refused`` and ``connections`` count its requests.

    ``max_bytes`` bounds what all its connections receive together.
    """

    policy: Policy
    tunnel: Tunnel
    max_bytes: int
    max_url_chars: int
    token: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    received: int = 0
    connections: int = 0
    refused: int = 0
    _server: asyncio.Server | None = None
    _open: set[asyncio.Task[None]] = field(default_factory=set[asyncio.Task[None]])

    @classmethod
    @contextlib.asynccontextmanager
    async def listening(
        cls, policy: Policy, tunnel: Tunnel, max_bytes: int, max_url_chars: int
    ) -> AsyncGenerator[Self]:
        """Listen on a free port of loopback; at the end every connection is closed."""
        proxy = cls(policy, tunnel, max_bytes, max_url_chars)
        proxy._server = await asyncio.start_server(proxy._accept, "127.0.0.1", 0, limit=_MAX_HEAD)
        try:
            yield proxy
        finally:
            proxy._server.close()
            for task in proxy._open:
                task.cancel()
            with anyio.CancelScope(shield=True):
                await asyncio.gather(*proxy._open, return_exceptions=True)

    @property
    def port(self) -> int:
        """The port that it listens on."""
        assert self._server
        return int(self._server.sockets[0].getsockname()[1])

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task
        self._open.add(task)
        try:
            if len(self._open) <= _MAX_OPEN:
                await self._serve(reader, writer)
        except _ENDINGS:
            pass
        finally:
            self._open.discard(task)
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with asyncio.timeout(_HEAD_SECONDS):
            head = await reader.readuntil(b"\r\n\r\n")
        request, *lines = head.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
        fields = [line.partition(":")[::2] for line in lines]
        headers = [(name.strip(), value.strip()) for name, value in fields]
        if not self._is_ours(headers):
            writer.write(_WHO)
            return
        self.connections += 1
        method, address, _ = request.split(" ")
        target = _authority(address) if method == "CONNECT" else self._absolute(address)
        if target is None:
            self.refused += 1
            writer.write(_BAD)
            return
        stream = await self._dialled(target, writer)
        if stream is None:
            return
        try:
            if method == "CONNECT":
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
                await self._relay(reader, writer, stream, None)
            else:
                body = _body_length(headers)
                await stream.write(_origin_form(method, target, headers))
                await self._relay(reader, writer, stream, body)
        finally:
            with anyio.CancelScope(shield=True):
                await stream.aclose()

    def _is_ours(self, headers: list[tuple[str, str]]) -> bool:
        """Return whether the request shows the token (RFC 7617)."""
        expected = f"Basic {b64encode(f'{USER}:{self.token}'.encode()).decode()}"
        shown = next((v for n, v in headers if n.lower() == "proxy-authorization"), "")
        return secrets.compare_digest(shown.encode("latin-1"), expected.encode())

    def _absolute(self, address: str) -> Target | None:
        try:
            target = parse(address, self.max_url_chars)
        except FetchstashError:
            return None
        return target if target.scheme == "http" else None

    async def _dialled(
        self, target: Target, writer: asyncio.StreamWriter
    ) -> httpcore2.AsyncNetworkStream | None:
        """Connect to a vetted address, or answer why not."""
        try:
            self.policy.check(target)
            return await self.tunnel(target)
        except FetchstashError:
            self.refused += 1
            writer.write(_REFUSED)
        except (httpcore2.NetworkError, httpcore2.TimeoutException, OSError):
            writer.write(_UNREACHED)
        return None

    async def _relay(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        stream: httpcore2.AsyncNetworkStream,
        body: int | None,
    ) -> None:
        """Pass bytes on both ways until the server closes; of a request, ``body`` bytes at most.

        What a browser sent behind a plain request would be a second one, for another host perhaps.
        """

        async def send() -> None:
            left = body
            while left is None or left > 0:
                data = await reader.read(_READ if left is None else min(left, _READ))
                if not data:
                    break
                await stream.write(data)
                left = None if left is None else left - len(data)

        sending = asyncio.create_task(send())
        try:
            while data := await stream.read(_READ):
                self.received += len(data)
                if self.received > self.max_bytes:
                    raise _Full
                writer.write(data)
                await writer.drain()
        finally:
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)


def _authority(address: str) -> Target | None:
    """Return the target of CONNECT: a host and a port."""
    host, _, port = address.rpartition(":")
    if not (port.isascii() and port.isdigit() and 0 < int(port) < 65_536):
        return None
    try:
        return target_of("https", str(parse_host(host)), int(port))
    except BadHost:
        return None


def _body_length(headers: list[tuple[str, str]]) -> int:
    """Return the length of a request's body. Raises ValueError for one of unknown length."""
    if any(name.lower() == "transfer-encoding" for name, _ in headers):
        raise ValueError
    lengths = {value for name, value in headers if name.lower() == "content-length"}
    return int(lengths.pop()) if len(lengths) == 1 else 0


def _origin_form(method: str, target: Target, headers: list[tuple[str, str]]) -> bytes:
    """Return the head of a request as the server sees it, for this one request."""
    kept = [f"{n}: {v}" for n, v in headers if n.lower() not in _HOP_BY_HOP | {"host"}]
    lines = (f"{method} {target.path} HTTP/1.1", f"Host: {target.authority}", *kept)
    return "\r\n".join((*lines, "Connection: close\r\n\r\n")).encode("latin-1")
