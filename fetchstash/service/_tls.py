"""TLS on a connection that is bounded from the moment it is accepted.

asyncio's own server hands a connection over only after its handshake, for which it allows 60 s, and
every handshake takes a third of a megabyte. So it is asked for plain connections, which count at
once, and TLS is begun on them here.
"""

import asyncio
import ssl
from contextlib import suppress
from functools import partial
from typing import Any, cast

from fetchstash.config import HttpLimits
from fetchstash.service._bounds import BoundedProtocol

_CLOSING_SECONDS = 2.0
"""For a client to agree that a connection ends, which keeps it until then."""


def protocol_of(http: HttpLimits) -> type[BoundedProtocol]:
    """Return what speaks HTTP on each connection, under TLS where there is a certificate."""
    if not http.tls_cert:
        return BoundedProtocol
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
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
        """Read on. What comes with the end of the handshake waits until that is known here."""
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
