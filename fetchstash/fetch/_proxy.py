"""Connect through an operator's proxy: CONNECT to a vetted address (RFC 9110, section 9.3.6)."""

import re
from base64 import b64encode
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from fetchstash.errors import BadArgument, FetchFailed
from fetchstash.fetch._addresses import Address
from fetchstash.fetch._host import join_host_port

if TYPE_CHECKING:
    from httpcore2 import AsyncNetworkStream

_MAX_ANSWER_BYTES = 16 * 1024
_STATUS = re.compile(rb"HTTP/1\.[01] ([0-9]{3})")


@dataclass(frozen=True, slots=True)
class Proxy:
    """A proxy's address. ``credentials`` are for Basic authentication (RFC 7617), or ""."""

    host: str
    port: int
    tls: bool
    credentials: str = field(repr=False)

    @classmethod
    def of(cls, setting: str) -> "Proxy | None":
        """Parse ``http://host:port`` or ``https://user:password@host:port``; None for "".

        Raises BadArgument. The error does not repeat the setting, which may hold a password.
        """
        if not setting:
            return None
        try:
            parts = urlsplit(setting)
            host, port = parts.hostname, parts.port
        except ValueError:
            host, port, parts = None, None, urlsplit("")
        if parts.scheme not in {"http", "https"} or not host:
            raise BadArgument(
                "fetch.proxy is no URL of an HTTP proxy.",
                "Give one such as http://proxy.example.org:3128.",
            )
        login = f"{unquote(parts.username or '')}:{unquote(parts.password or '')}"
        credentials = b64encode(login.encode()).decode() if parts.username else ""
        return cls(
            host,
            port or (443 if parts.scheme == "https" else 80),
            parts.scheme == "https",
            credentials,
        )

    def request(self, address: Address, port: int) -> bytes:
        """Return the CONNECT request for a numeric address."""
        authority = join_host_port(str(address), port)
        login = f"Proxy-Authorization: Basic {self.credentials}\r\n" if self.credentials else ""
        return f"CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n{login}\r\n".encode("ascii")


async def open_tunnel(
    stream: "AsyncNetworkStream", proxy: Proxy, address: Address, port: int
) -> None:
    """Turn ``stream`` to ``proxy`` into a tunnel to ``address``. Raises FetchFailed."""
    await stream.write(proxy.request(address, port))
    answer = b""
    while b"\r\n\r\n" not in answer:
        some = await stream.read(_MAX_ANSWER_BYTES)
        answer += some
        if not some or len(answer) > _MAX_ANSWER_BYTES:
            raise FetchFailed(
                "The proxy did not answer as a proxy.", "Tell the operator to check fetch.proxy."
            )
    status = _STATUS.match(answer)
    if status is None or not status[1].startswith(b"2"):
        code = status[1].decode() if status else "nothing that is HTTP"
        raise FetchFailed(
            f"The proxy answered {code} and made no connection.",
            "Tell the operator to check fetch.proxy.",
        )
    if not answer.endswith(b"\r\n\r\n"):  # bytes before a request answer none (RFC 9110, 9.3.6)
        raise FetchFailed(
            "The proxy sent more than an answer.", "Tell the operator to check fetch.proxy."
        )
