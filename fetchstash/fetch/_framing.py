"""A connection that hands out no byte that does not belong to the current response.

h11 asks for bytes only while a response is not complete. It is handed none beyond the next place
where the response may end. Bytes after the response would answer another request: it came from a
server, or a proxy before it, that lost track of its responses (RFC 9112, section 11.2).
"""

import asyncio
import re
import ssl
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import anyio
import httpcore2

from fetchstash.errors import Call, TooLarge

_HEAD_END = re.compile(rb"\n\r?\n")
# RFC 9112, section 7.1: the last chunk has the size 0. Its line may be cut by the buffer's end.
_LAST_CHUNK = re.compile(rb"\n0+(?:[ \t;\r]|\Z)")
# h11's pattern for a header takes quadratic time for blanks before a value: 10 s for 64 KB.
_BLANKS = re.compile(rb":[ \t\r\n]{256,}")
_TAIL_BYTES = 257
_LAST_CHUNK_HERE = re.compile(rb"0+(?:[ \t;\r]|\Z)")

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


class Framing:
    """The received bytes of a connection, handed out one response at a time."""

    def __init__(self) -> None:
        self._rest = b""
        self._tail = b""  # the last bytes that were handed out
        self._line = b""  # the beginning of the line that is being handed out
        self._in_head = True
        self._chunked = False
        self._by_line = False
        self.left: int | None = None

    @property
    def held_back(self) -> bytes:
        """Return the received bytes that were not handed out."""
        return self._rest

    def begin(self) -> None:
        """Expect the head of a response."""
        self._in_head, self._tail = True, b""

    def end_head(self, status: int, headers: Mapping[str, str]) -> None:
        """Expect the body that this head announces (RFC 9112, section 6.3)."""
        length = headers.get("content-length", "").partition(",")[0].strip()
        self._in_head = self._by_line = False
        self._tail = b"\n"
        self.left = 0 if status in {204, 304} else int(length) if length else None
        self._chunked = "transfer-encoding" in headers and self.left != 0
        if self._chunked:
            self.left = None

    def receive(self, data: bytes) -> None:
        """Add received bytes."""
        self._rest += data

    def take(self) -> bytes:
        """Return the next bytes of the response, b"" if what was received is beyond its end.

        Raises ValueError for a header that nobody sends but to keep its parser busy.
        """
        end = self._end()
        piece, self._rest = self._rest[:end], self._rest[end:]
        if (self._in_head or self._by_line) and _BLANKS.search(self._tail + piece):
            raise ValueError("a header of blanks")
        self._tail = (self._tail + piece[-_TAIL_BYTES:])[-_TAIL_BYTES:]
        if self._in_head and _HEAD_END.search(self._tail[-3:]):
            self._tail = b""  # a 1xx response has ended, and another head begins
        return piece

    def _end(self) -> int:
        """Return how many received bytes to hand out."""
        if self._in_head:
            before = self._tail[-2:]
            match = _HEAD_END.search(before + self._rest)
            return match.end() - len(before) if match else len(self._rest)
        if self._chunked:
            return self._end_of_line() if self._by_line else self._last_chunk()
        if self.left is None:
            return len(self._rest)
        end = min(self.left, len(self._rest))
        self.left -= end
        return end

    def _last_chunk(self) -> int:
        """Return where the last chunk may begin; from there on bytes are handed out by lines."""
        if self._tail.endswith(b"\n") and _LAST_CHUNK_HERE.match(self._rest):
            self._by_line, self._line = True, b""
            return self._end_of_line()
        match = _LAST_CHUNK.search(self._rest)
        if match is None:
            return len(self._rest)
        self._by_line, self._line = True, b""
        return match.start() + 1

    def _end_of_line(self) -> int:
        """Return where the current line ends. An empty one ends the response, unless it is data."""
        end = self._rest.find(b"\n") + 1 or len(self._rest)
        line = self._line + self._rest[: min(end, 3)]
        whole = self._rest[end - 1 : end] == b"\n"
        self._line = b"" if whole else line[:3]
        if whole and line in {b"\n", b"\r\n"}:
            self._by_line = False
        return end


class NotHttp(httpcore2.RemoteProtocolError):
    """An answer that does not begin as HTTP. ``protocol`` names its protocol if it is known."""

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
        """Whether the connection must not be used for another request."""
        return self._must_close or bool(self._framing.held_back)

    @property
    def left(self) -> int:
        """Return the bytes of the body that were not read yet, 0 if its length is not known."""
        return self._framing.left or 0

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
        """Return whether unread bytes, or the end, wait in TLS records or a queue."""
        loop = asyncio.get_running_loop()

        def end_after(turns: int) -> None:
            if turns:
                loop.call_soon(end_after, turns - 1)
            else:
                reading.cancel()

        with anyio.CancelScope() as reading:
            end_after(_TURNS_TO_READ)
            with suppress(httpcore2.NetworkError, OSError):
                await self._inner.read(1)
        return not reading.cancelled_caught

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
