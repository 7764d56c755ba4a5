"""Bind, names of the service, TLS, and bounds of connections.

A client must send the head of a request in time, and must read what is sent to it. The body has its
own bound (``_messages``). A connection above the number that a process takes ends the one that has
waited longest for a request; where all have one, it is answered 503.

asyncio's own server hands a connection over only after its handshake, for which it allows 60 s, and
every handshake takes a third of a megabyte. So it is asked for plain connections, which count at
once, and TLS is begun on them here.
"""

import asyncio
import ipaddress
import re
import socket
import ssl
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, cast

import h11
import uvicorn
from mcp.server.transport_security import TransportSecuritySettings
from uvicorn.protocols.http.h11_impl import H11Protocol

from fetchstash.config import HttpLimits
from fetchstash.errors import BadArgument
from fetchstash.text.urls import join_host_port

HEAD_SECONDS = 10.0
"""From the first byte of a request (or the connection) to the end of its head."""
READ_SECONDS = 30.0
"""For 64 KiB of an answer, which the system holds more of."""
IDLE_SECONDS = 75
"""A connection is kept so long without a request: proxies keep theirs for 60 s."""
MAX_CONNECTIONS = 1_000
"""Or half as many as the process may open files, if that is fewer: the rest needs files, too."""
_MAX_FILES = 16_384
_MAX_BACKLOG = 2_048

_FULL = (
    b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\nconnection: close\r\n"
    b"content-length: 0\r\n\r\n"
)


def allow_files() -> None:
    """Let the process have files and sockets for as many connections, where the system does."""
    if sys.platform != "win32":
        import resource  # noqa: PLC0415 - POSIX

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        most = _MAX_FILES if hard == resource.RLIM_INFINITY else min(hard, _MAX_FILES)
        if soft != resource.RLIM_INFINITY and soft < most:
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def _files() -> int:
    """Return how many files and sockets the process may have open."""
    if sys.platform == "win32":
        return _MAX_FILES
    import resource  # noqa: PLC0415 - as above

    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _MAX_FILES if soft == resource.RLIM_INFINITY else soft


def backlog() -> int:
    """Return how many connections may wait to be accepted.

    So many are accepted in one turn of the loop, before any can be turned away.
    """
    return min(_MAX_BACKLOG, max(_files() // 8, 1))


def bounded_server(
    app: Any, protocol: "type[BoundedProtocol] | None" = None, **options: Any
) -> uvicorn.Server:
    """Return a server of bounded connections that leaves signals and logs to us.

    ``options`` are uvicorn's own.
    """
    options.setdefault("backlog", backlog())
    config = uvicorn.Config(
        app,
        http=protocol or BoundedProtocol,
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        **options,
    )
    return _Server(config)


class _Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


class Joined(h11.Connection):
    """Gives the head of an answer of known length with its body: one write for both.

    That of a stream goes ahead, as nobody knows when something follows.
    """

    _kept: Sequence[bytes] = ()

    def send_with_data_passthrough(self, event: h11.Event) -> list[bytes] | None:
        """Return the bytes that are to be written now."""
        parts = super().send_with_data_passthrough(event)
        headers = event.headers if isinstance(event, h11.Response) else ()
        if parts and any(name == b"content-length" for name, _ in headers):
            self._kept, parts = parts, []
        elif self._kept and parts is not None:
            self._kept, parts = (), [*self._kept, *parts]
        return parts


class BoundedProtocol(H11Protocol):
    """HTTP/1.1 on a connection that is ended where its client is too slow."""

    _head: asyncio.TimerHandle | None = None
    _reading: asyncio.TimerHandle | None = None
    waiting_since: float = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self.conn = Joined(h11.SERVER)
        self.begin(transport)
        most = min(MAX_CONNECTIONS, _files() // 2)
        if len(self.connections) > most and not self._end_another(most):
            self.turn_away()
        else:
            self.waiting_since = self.loop.time()
            self._head = self._later(HEAD_SECONDS)

    def begin(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        if self.client and "." in self.client[0]:
            # A socket of both versions shows an IPv4 address as one of IPv6 (RFC 4291, 2.5.5.2).
            self.client = self.client[0].removeprefix("::ffff:"), self.client[1]

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        super().data_received(data)
        if self.has_request:
            self._end_head()
        elif self._head is None:
            # A next request, or the rest of one that was answered already.
            self._head = self._later(HEAD_SECONDS)

    def on_response_complete(self) -> None:
        self.waiting_since = self.loop.time()
        super().on_response_complete()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._reading = self._later(READ_SECONDS)

    def resume_writing(self) -> None:
        if self._reading:
            self._reading.cancel()
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end_head()
        self.resume_writing()
        super().connection_lost(exc)

    def turn_away(self) -> None:
        """Answer a connection too many, and close it."""
        self.transport.write(_FULL)
        self.transport.close()

    @property
    def has_request(self) -> bool:
        """Whether a request is being answered, and not the next one awaited."""
        return bool(self.cycle) and not self.cycle.response_complete

    def _unsupported_upgrade_warning(self) -> None:
        """Suppress the warning about a client that offers another protocol (RFC 9110, 7.8).

        Some do so with each request, and uvicorn would advise to install one.
        """

    def _end_another(self, most: int) -> bool:
        """End the connection that waited longest; return whether there is room now."""
        connections = cast("set[BoundedProtocol]", self.connections)
        others = [other for other in connections if not other.transport.is_closing()]
        waiting = [other for other in others if other is not self and not other.has_request]
        if len(others) > most and waiting:
            longest = min(waiting, key=lambda other: other.waiting_since)
            longest.transport.abort()
            return True
        return len(others) <= most

    def _later(self, seconds: float) -> asyncio.TimerHandle:
        return self.loop.call_later(seconds, self.transport.abort)

    def _end_head(self) -> None:
        if self._head is not None:
            self._head.cancel()
            self._head = None


def host_and_port(address: str, setting: str = "--http") -> tuple[str, int]:
    """Return host and port of HOST:PORT or [ADDRESS]:PORT. Raises BadArgument."""
    host, _, port = address.rpartition(":")
    bare = host.removeprefix("[").removesuffix("]")
    if not bare or not port.isdecimal() or int(port) > 65_535 or (":" in bare and bare == host):
        what = f"{setting} is {address!r}, which is no HOST:PORT."
        raise BadArgument(what, "Write one such as 127.0.0.1:8080.")
    return bare, int(port)


def check_certificate(http: HttpLimits) -> None:
    """Read the certificate and its key. Raises BadArgument where they cannot be used."""
    if not http.tls_cert and not http.tls_key:
        return
    for key, path in (("http.tls_cert", http.tls_cert), ("http.tls_key", http.tls_key)):
        if not path:
            raise BadArgument(f"{key} is not set, but its other half is.", "Set both or none.")
        try:
            Path(path).open("rb").close()
        except OSError as error:
            what = f"{key} {path} cannot be read: {error.strerror}."
            raise BadArgument(what, "Name a file that this user may read.") from None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2  # RFC 8996
    try:
        # A key with a passphrase would be asked for on the terminal.
        context.load_cert_chain(http.tls_cert, http.tls_key, password="")
    except (ssl.SSLError, ValueError) as error:
        reason = getattr(error, "reason", None) or "no PEM, or with a passphrase"
        what = f"{http.tls_cert} and {http.tls_key} are no certificate and its key: {reason}."
        next_step = "Name a chain in PEM and its private key without a passphrase."
        raise BadArgument(what, next_step) from None


def invalid_now(path: str) -> str:
    """Return why a certificate is not valid at this time, "" where it is."""
    from cryptography import x509  # noqa: PLC0415 - it takes 0.05 s

    try:
        certificate = x509.load_pem_x509_certificate(Path(path).read_bytes())
    except ValueError:  # stricter than OpenSSL, which has read it
        return ""
    begin, end = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    now = datetime.now(UTC)
    if begin > now:
        return f"it is valid from {begin:%Y-%m-%d %H:%M} UTC on"
    return f"it ended at {end:%Y-%m-%d %H:%M} UTC" if end < now else ""


def listener(host: str, port: int, setting: str = "--http") -> socket.socket:
    """Return a socket that listens. Raises BadArgument where the address cannot be had."""
    try:
        flags = socket.AI_PASSIVE
        addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=flags)
        family, kind, protocol, _, address = addresses[0]
        opened = socket.socket(family, kind, protocol)
        try:
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if hasattr(socket, "TCP_USER_TIMEOUT"):  # Linux; what is accepted inherits it
                milliseconds = int(READ_SECONDS * 1_000)
                opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, milliseconds)
            opened.bind(address)
            opened.listen()  # else two could bind the address (SO_REUSEADDR), and one fail later
        except OSError:
            opened.close()
            raise
    except OSError as error:
        what = f"{host}:{port} cannot be used: {error.strerror or error}."
        raise BadArgument(what, f"Choose another {setting}.") from error
    return opened


_CLOSING_SECONDS = 2.0
"""For a client to agree that a connection ends, which keeps it until then."""


def protocol_of(http: HttpLimits) -> type[BoundedProtocol]:
    """Return the HTTP protocol class of a connection, with TLS if there is a certificate."""
    if not http.tls_cert:
        return BoundedProtocol
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2  # RFC 8996
    context.load_cert_chain(http.tls_cert, http.tls_key)
    return cast("type[BoundedProtocol]", partial(TlsProtocol, context))


class TlsProtocol(BoundedProtocol):
    """HTTP/1.1 under TLS. Handshake and first head together have the time of a head."""

    def __init__(self, context: ssl.SSLContext, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self._context = context
        self._early: bytearray | None = bytearray()
        self._handshake: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a connection and begin TLS on it, or turn it away."""
        super().connection_made(transport)
        if not transport.is_closing():
            transport.pause_reading()  # the first bytes are for TLS
            self._handshake = self.loop.create_task(self._begin())

    def data_received(self, data: bytes) -> None:
        """Receive data. Bytes behind the handshake are held until it has ended here."""
        if self._early is not None:
            self._early += data
        else:
            super().data_received(data)

    def turn_away(self) -> None:
        """Close a connection too many: nothing can be said before the handshake."""
        self.transport.abort()

    async def _begin(self) -> None:
        plain, context, secure = self.transport, self._context, None
        if plain.is_closing():  # another one took its place already
            return
        closing: Any = {"ssl_shutdown_timeout": _CLOSING_SECONDS}
        with suppress(OSError):  # also ssl.SSLError, and TimeoutError
            secure = await self.loop.start_tls(plain, self, context, server_side=True, **closing)
        if secure is None or self not in self.connections:  # ended meanwhile, by either side
            plain.abort()
            self.connection_lost(None)
            return
        self.begin(secure)
        early, self._early = bytes(self._early or b""), None
        if early:
            self.data_received(early)


def security_of(http: HttpLimits, host: str, port: int) -> TransportSecuritySettings:
    """Return the hosts and origins that are let in by a service that listens at an address."""
    own = [join_host_port(host, port).lower()]
    if is_loopback(host):
        own = [f"{name}:{port}" for name in ("127.0.0.1", "localhost", "[::1]")]
    elif host in ("0.0.0.0", "::"):  # noqa: S104 - nothing is bound here
        own = []
    hosts = [*own]
    for name in http.hosts:
        has_port = ":" in name.rpartition("]")[2]
        hosts += [name] if has_port else [name, f"{name}:*"]
    scheme = "https" if http.tls_cert else "http"
    origins = [f"{scheme}://{name}" for name in own]
    return TransportSecuritySettings(allowed_hosts=hosts, allowed_origins=[*origins, *http.origins])


def is_loopback(host: str) -> bool:
    """Return whether only this machine reaches an address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


_HOST = r"(?:[a-z0-9_][a-z0-9_.-]*|\[[0-9a-f:.]+\])(?::\d{1,5})?"
_ORIGIN = rf"[a-z][a-z0-9+.-]*://{_HOST}"


def check_names(http: HttpLimits) -> None:
    """Refuse hosts, origins and proxies that no request can have. Raises BadArgument."""
    for name in http.hosts:
        if not re.fullmatch(_HOST, name):
            what = f"http.hosts has {name[:200]!r}, which no request names as its host."
            raise BadArgument(what, "Give NAME, NAME:PORT or [ADDRESS]:PORT, in lower case.")
    for origin in http.origins:
        if not re.fullmatch(_ORIGIN, origin):
            what = f"http.origins has {origin[:200]!r}, which is no origin of a web page."
            raise BadArgument(what, "Give one such as https://app.example.org, without a path.")
    for entry in http.forwarded:
        try:
            ipaddress.ip_network(entry)
        except ValueError:
            what = f"http.forwarded has {entry[:200]!r}, which is no address and no network."
            raise BadArgument(what, "Give those of the proxies, such as 10.0.0.0/8.") from None


def check_exposure(http: HttpLimits, host: str, *, asks_for_tokens: bool) -> None:
    """Refuse to serve other machines without tokens, or under no name. Raises BadArgument."""
    if not asks_for_tokens:
        step = "Create a token with these settings (fetchstash token create), or set oauth.issuer."
        if not is_loopback(host):
            raise BadArgument(f"Other machines reach {host}, and nobody needs a token.", step)
        if http.hosts or http.forwarded:
            key = "http.hosts" if http.hosts else "http.forwarded"
            what = f"{key} is set, as for a proxy in front, and nobody needs a token."
            raise BadArgument(what, step)
    if host in ("0.0.0.0", "::") and not http.hosts:  # noqa: S104 - as above
        raise BadArgument(
            f"{host} is no name that a request can have, and http.hosts names none.",
            'Name the hosts of the service: http.hosts = ["stash.example.org"].',
        )
