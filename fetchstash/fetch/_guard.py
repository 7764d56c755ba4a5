"""The guard: every connection is made here, and only to a vetted address.

A name is looked up once, every answer is vetted, a vetted address is dialled by number, directly or
through the operator's proxy (CONNECT, RFC 9110, section 9.3.6), and the peer's address is read
back. URL, Host, SNI and certificate stay those of the name. Nothing happens between check and use,
so a name that changes its answer (DNS rebinding) changes nothing. With fetch.proxy_resolves a name
goes to the proxy as it is, and what it leads to is the proxy's to vet; numbers are vetted here.
"""

import errno
import os
import re
import ssl
from base64 import b64encode
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import TYPE_CHECKING, cast
from urllib.parse import unquote, urlsplit

import anyio
import httpcore2

from fetchstash.errors import BadArgument, Call, FetchFailed, Refused
from fetchstash.fetch._addresses import (
    Address,
    Interfaces,
    Resolver,
    addresses_of,
    plain,
    target_of,
)
from fetchstash.fetch._contract import FetchLimits
from fetchstash.fetch._framing import GuardedStream
from fetchstash.fetch._policy import Policy
from fetchstash.system import telemetry
from fetchstash.text.urls import Target, join_host_port

if TYPE_CHECKING:
    from httpcore2 import AsyncNetworkStream

_MAX_ANSWER_BYTES = 16 * 1024
_STATUS = re.compile(rb"HTTP/1\.[01] ([0-9]{3})")

_NEXT_ATTEMPT_SECONDS = 0.25  # RFC 8305, section 5: the Connection Attempt Delay
_MAX_ATTEMPTS = 6
_CONNECT_SECONDS = 15

Dial = Callable[[Address], Awaitable[httpcore2.AsyncNetworkStream]]


@dataclass(frozen=True, slots=True)
class Proxy:
    """A proxy's address. ``credentials`` are for Basic authentication (RFC 7617), or "".

    ``ca_file`` is trusted beside the system's certificates.
    """

    host: str
    port: int
    tls: bool
    credentials: str = field(repr=False)
    ca_file: str = ""

    @classmethod
    def of(cls, limits: FetchLimits) -> "Proxy | None":
        """Parse ``http://host:port`` or ``https://user:password@host:port``; None for "".

        Raises BadArgument. The error does not repeat the setting, which may hold a password.
        """
        setting = limits.proxy
        if not setting:
            if limits.proxy_resolves:
                what = "fetch.proxy_resolves is set, and fetch.proxy is not."
                raise BadArgument(what, "Set fetch.proxy to the proxy that looks names up.")
            return None
        try:
            parts = urlsplit(setting)
            host, port = parts.hostname, parts.port
        except ValueError:
            host, port, parts = None, None, urlsplit("")
        if parts.scheme not in {"http", "https"} or not host:
            what = "fetch.proxy is no URL of an HTTP proxy."
            raise BadArgument(what, "Give one such as http://proxy.example.org:3128.")
        login = f"{unquote(parts.username or '')}:{unquote(parts.password or '')}"
        credentials = b64encode(login.encode()).decode() if parts.username else ""
        tls = parts.scheme == "https"
        return cls(host, port or (443 if tls else 80), tls, credentials, limits.ca_file)

    async def connect(self, stream: "AsyncNetworkStream", host: str, port: int) -> None:
        """Turn a ``stream`` to this proxy into a tunnel to ``host``. Raises FetchFailed."""
        authority = join_host_port(host, port)
        login = f"Proxy-Authorization: Basic {self.credentials}\r\n" if self.credentials else ""
        request = f"CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n{login}\r\n"
        await stream.write(request.encode("ascii"))
        advice = "Tell the operator to check fetch.proxy."
        answer = b""
        while b"\r\n\r\n" not in answer:
            some = await stream.read(_MAX_ANSWER_BYTES)
            answer += some
            if not some or len(answer) > _MAX_ANSWER_BYTES:
                raise FetchFailed("The proxy did not answer as a proxy.", advice)
        status = _STATUS.match(answer)
        if status is None or not status[1].startswith(b"2"):
            code = status[1].decode() if status else "nothing that is HTTP"
            raise FetchFailed(f"The proxy answered {code} and made no connection.", advice)
        # Bytes before a request answer none (RFC 9110, section 9.3.6).
        if not answer.endswith(b"\r\n\r\n"):
            raise FetchFailed("The proxy sent more than an answer.", advice)


def tls_context(ca_file: str = "") -> ssl.SSLContext:
    """Return the TLS context of all connections. Takes some 20 ms.

    SSL_CERT_FILE or SSL_CERT_DIR replace the system's certificates, ``ca_file`` adds to them.
    Raises BadArgument if what they name cannot be read.
    """
    import httpx2  # noqa: PLC0415 - it takes 0.1 s

    file, folder = (os.environ.get(name, "") for name in ("SSL_CERT_FILE", "SSL_CERT_DIR"))
    name, path = ("SSL_CERT_FILE", file) if file else ("SSL_CERT_DIR", folder)
    try:
        if folder and not file:
            os.scandir(folder).close()
        context = httpx2.create_ssl_context()
        # RFC 8996 ends the older ones, and Debian's Python leaves that to a file of the system.
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        if ca_file:
            name, path = "fetch.ca_file", ca_file
            context.load_verify_locations(ca_file)
    except ssl.SSLError:
        why = "holds no certificates in PEM format"
    except OSError as error:
        why = f"cannot be read: {error.strerror or error}"
    else:
        return context
    if not path:
        what = f"The system's certificates: the file or folder {why}."
        raise BadArgument(what, "Install the system's certificates (ca-certificates).")
    raise BadArgument(f"{name} is {path}, which {why}.", "The operator has to correct or unset it.")


def certificate_fault(ca_file: str = "") -> str:
    """Return why servers cannot be verified (bad certificate files), "" if they can."""
    try:
        tls_context(ca_file)
    except BadArgument as error:
        return error.what
    return ""


def unused_proxy(limits: FetchLimits, target: Target | None = None) -> tuple[str, str]:
    """Return a variable that names a proxy which fetch.proxy does not, and that proxy's URL.

    The URL has no login. Both are "" if there is none, or none for ``target``: a variable holds
    for one scheme or for all, and NO_PROXY takes hosts out.
    """
    if limits.proxy:
        return "", ""
    schemes = (target.scheme, "all") if target else ("https", "http", "all")
    names = [name for scheme in schemes for name in (f"{scheme}_proxy", f"{scheme}_PROXY".upper())]
    name = next((name for name in names if os.environ.get(name)), "")
    if not name:
        return "", ""
    if target is not None:
        from urllib.request import proxy_bypass  # noqa: PLC0415 - takes 10 ms

        if proxy_bypass(target.host_and_port):
            return "", ""
    try:
        parts = urlsplit(os.environ[name])
        host, port = parts.hostname, parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError:
        host, port, parts = None, 0, urlsplit("")
    if parts.scheme not in {"http", "https"} or not host:  # such as socks5://
        return name, "http://HOST:PORT"
    return name, f"{parts.scheme}://{join_host_port(host, port)}"


def _anyio_backend() -> httpcore2.AsyncNetworkBackend:
    # httpcore2 declares AnyIOBackend in two ways, one for where anyio is missing.
    return cast("httpcore2.AsyncNetworkBackend", httpcore2.AnyIOBackend())


@dataclass(eq=False)
class Guard(httpcore2.AsyncNetworkBackend):
    """The network backend of our connection pool. It connects to no Unix socket."""

    policy: Policy
    resolver: Resolver | None
    interfaces: Interfaces
    max_header_bytes: int
    proxy: Proxy | None = None
    network: httpcore2.AsyncNetworkBackend = field(default_factory=_anyio_backend)

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
        target = target_of("http", host, port)  # the URL's scheme was checked before
        return GuardedStream(await self.tunnel(target), self.max_header_bytes)

    async def tunnel(self, target: Target) -> httpcore2.AsyncNetworkStream:
        """Connect to a vetted address of ``target``. Raises as ``connect_tcp`` does."""
        outcome = "failed"
        addresses: list[Address] = []
        try:
            addresses = await addresses_of(target, self.resolver)  # the one look-up
            self.policy.vet(target, addresses, self.interfaces.machine())
            with anyio.fail_after(_CONNECT_SECONDS):
                if addresses or self.proxy is None:
                    stream = await race(addresses, lambda some: self._dial(some, target.port))
                else:  # the proxy looks the name up
                    stream = await self._tunnel_by(self.proxy, target.host, target.port)
            outcome = "opened"
        except TimeoutError:
            raise httpcore2.ConnectTimeout from None
        except Refused:
            outcome = "refused"
            raise
        except httpcore2.ConnectError as error:
            if self.proxy is None and has_no_ipv6(addresses, error):
                what = f"{target.host} has IPv6 addresses alone, and there is no IPv6 here."
                proxy = Call("setting", {"name": "fetch.proxy", "value": "http://HOST:PORT"})
                advice = "Look for the document on another site; for a proxy with IPv6, {}."
                raise FetchFailed(what, advice, proxy, unreached=True) from None
            raise
        finally:
            telemetry.count("connections", outcome=outcome)
        return stream

    async def _dial(self, address: Address, port: int) -> httpcore2.AsyncNetworkStream:
        """Connect to a vetted address, directly or by proxy, and check the peer's address."""
        proxy = self.proxy
        if proxy is None:
            stream = await self.network.connect_tcp(str(address), port)
            peer = stream.get_extra_info("server_addr")
            if peer is None or plain(str(peer[0])) != address:
                await stream.aclose()
                what = "The connection went elsewhere than it was sent."
                raise FetchFailed(what, "Tell the operator that something redirects connections.")
            return stream
        return await self._tunnel_by(proxy, str(address), port)

    async def _tunnel_by(self, proxy: Proxy, host: str, port: int) -> httpcore2.AsyncNetworkStream:
        check = "Tell the operator to check fetch.proxy."
        try:
            stream = await self.network.connect_tcp(proxy.host, proxy.port)
        except (httpcore2.ConnectError, httpcore2.ConnectTimeout):
            # Told of the page's host, it would send a model to look for another page.
            raise FetchFailed("The proxy cannot be reached.", check, temporary=True) from None
        try:
            if proxy.tls:
                stream = await stream.start_tls(tls_context(proxy.ca_file), proxy.host)
            await proxy.connect(stream, host, port)
        except httpcore2.ConnectError:  # of start_tls
            what = "No secure connection to the proxy could be made."
            advice = "Tell the operator to check fetch.proxy and fetch.ca_file."
            with anyio.CancelScope(shield=True):
                await stream.aclose()
            raise FetchFailed(what, advice) from None
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


_NO_ROUTE = frozenset((errno.ENETUNREACH, errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT))


def has_no_ipv6(addresses: Sequence[Address], error: BaseException) -> bool:
    """Return whether a connection failed because the host has IPv6 alone, and we have none."""
    if not addresses or any(address.version == 4 for address in addresses):
        return False
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, OSError):
        cause = cause.__cause__ or cause.__context__
    return cause is not None and cause.errno in _NO_ROUTE


def interleaved(addresses: Sequence[Address]) -> list[Address]:
    """Return ``addresses`` with alternating families, the first one's first (RFC 8305, 4)."""
    first = [address for address in addresses if address.version == addresses[0].version]
    other = [address for address in addresses if address.version != addresses[0].version]
    return [address for pair in zip_longest(first, other) for address in pair if address]
