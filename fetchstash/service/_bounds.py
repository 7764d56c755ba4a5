"""A server with bounded connections: what uvicorn leaves to a proxy in front.

A client must send the head of a request in time, and must read what is sent to it. The body has its
own bound (``_messages``). A connection above the number that a process takes ends the one that has
waited longest for a request; where all have one, it is answered 503.
"""

import asyncio
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, cast

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

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


def bounded_server(
    app: Any, protocol: "type[BoundedProtocol] | None" = None, **options: Any
) -> uvicorn.Server:
    """Return a server of bounded connections that leaves signals and logs to us.

    ``options`` are uvicorn's own.
    """
    config = uvicorn.Config(
        app,
        http=protocol or BoundedProtocol,
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        # So many are accepted in one turn of the loop, before any can be turned away.
        backlog=min(_MAX_BACKLOG, max(_files() // 8, 1)),
        **options,
    )
    return _Server(config)


class _Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Generator[None]:
        """Capture none."""
        yield


class BoundedProtocol(H11Protocol):
    """HTTP/1.1 on a connection that is ended where its client is too slow."""

    _head: asyncio.TimerHandle | None = None
    _reading: asyncio.TimerHandle | None = None
    waiting_since: float = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a connection, or turn it away."""
        self.begin(transport)
        most = min(MAX_CONNECTIONS, _files() // 2)
        if len(self.connections) > most and not self._end_another(most):
            self.turn_away()
        else:
            self.waiting_since = self.loop.time()
            self._head = self._later(HEAD_SECONDS)

    def begin(self, transport: asyncio.Transport) -> None:
        """Speak HTTP on a connection."""
        super().connection_made(transport)
        if self.client and "." in self.client[0]:
            # A socket of both versions shows an IPv4 address as one of IPv6 (RFC 4291, 2.5.5.2).
            self.client = self.client[0].removeprefix("::ffff:"), self.client[1]

    def data_received(self, data: bytes) -> None:
        """Read on."""
        if self.transport.is_closing():
            return
        super().data_received(data)
        if self.has_request:
            self._end_head()
        elif self._head is None:
            # A next request, or the rest of one that was answered already.
            self._head = self._later(HEAD_SECONDS)

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        self.waiting_since = self.loop.time()
        super().on_response_complete()

    def pause_writing(self) -> None:
        """Wait for the client to read, but not for ever."""
        super().pause_writing()
        self._reading = self._later(READ_SECONDS)

    def resume_writing(self) -> None:
        """Write on."""
        self._end_reading()
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._end_head()
        self._end_reading()
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
        """Say nothing of a client that offers another protocol (RFC 9110, section 7.8).

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

    def _end_reading(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            self._reading = None
