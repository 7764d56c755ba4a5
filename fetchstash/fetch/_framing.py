"""Hold back received bytes that do not belong to the current response.

h11 asks for bytes only while a response is not complete. It is handed none beyond the next place
where the response may end. Bytes after the response would answer another request: it came from a
server, or a proxy before it, that lost track of its responses (RFC 9112, section 11.2).
"""

import re
from collections.abc import Mapping

_HEAD_END = re.compile(rb"\n\r?\n")
# RFC 9112, section 7.1: the last chunk has the size 0. Its line may be cut by the buffer's end.
_LAST_CHUNK = re.compile(rb"\n0+(?:[ \t;\r]|\Z)")
# h11's pattern for a header takes quadratic time for blanks before a value: 10 s for 64 KB.
_BLANKS = re.compile(rb":[ \t\r\n]{256,}")
_TAIL_BYTES = 257
_LAST_CHUNK_HERE = re.compile(rb"0+(?:[ \t;\r]|\Z)")


class Framing:
    """The received bytes of a connection, handed out one response at a time."""

    def __init__(self) -> None:
        self._rest = b""
        self._tail = b""  # the last bytes that were handed out
        self._line = b""  # the beginning of the line that is being handed out
        self._in_head = True
        self._chunked = False
        self._by_line = False
        self._left: int | None = None

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
        self._left = 0 if status in {204, 304} else int(length) if length else None
        self._chunked = "transfer-encoding" in headers and self._left != 0
        if self._chunked:
            self._left = None

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
        if self._left is None:
            return len(self._rest)
        end = min(self._left, len(self._rest))
        self._left -= end
        return end

    def _last_chunk(self) -> int:
        """Return where the last chunk may begin; hand out line by line from there on."""
        if self._tail.endswith(b"\n") and _LAST_CHUNK_HERE.match(self._rest):
            self._by_line, self._line = True, b""
            return self._end_of_line()
        match = _LAST_CHUNK.search(self._rest)
        if match is None:
            return len(self._rest)
        self._by_line, self._line = True, b""
        return match.start() + 1

    def _end_of_line(self) -> int:
        """Return where the current line ends. An empty one ends the response, or it was data."""
        end = self._rest.find(b"\n") + 1 or len(self._rest)
        line = self._line + self._rest[: min(end, 3)]
        whole = self._rest[end - 1 : end] == b"\n"
        self._line = b"" if whole else line[:3]
        if whole and line in {b"\n", b"\r\n"}:
            self._by_line = False
        return end
