#!/usr/bin/env python3
"""Fuzz where responses end: h11 is handed all of a response, and no byte beyond it.

scripts/ci fuzz runs it. Takes libFuzzer's arguments, such as ``-max_total_time=60``.
"""

import sys

import atheris

with atheris.instrument_imports(include=["fetchstash.fetch._framing", "h11"]):
    import h11

    from fetchstash.fetch._exchange import joined
    from fetchstash.fetch._framing import Framing

HEADS = [
    b"",
    b"HTTP/1.1 200 OK\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
    b"HTTP/1.1 103 Early Hints\r\n\r\n",
    b"HTTP/1.1 204 No Content\r\n\r\n",
]


def parser() -> h11.Connection:
    """Return a parser that waits for a response."""
    connection = h11.Connection(h11.CLIENT, max_incomplete_event_size=100 * 1024)
    connection.send(h11.Request(method="GET", target="/", headers=[("Host", "a")]))
    connection.send(h11.EndOfMessage())
    return connection


def whole(received: bytes) -> tuple[bytes, bytes] | None:
    """Return the body that h11 reads out of all bytes at once, and what is left over."""
    connection = parser()
    connection.receive_data(received)
    body = b""
    try:
        while True:
            event = connection.next_event()
            if isinstance(event, h11.Data):
                body += event.data
            elif isinstance(event, h11.EndOfMessage):
                return body, connection.trailing_data[0]
            elif event is h11.NEED_DATA or event is h11.PAUSED:
                return None
    except h11.RemoteProtocolError:
        return None


def framed(received: bytes, size: int) -> tuple[bytes, bytes] | None:
    """Do the same by way of a Framing, in pieces. Raises ValueError as that does."""
    connection, framing = parser(), Framing()
    framing.begin()
    body, unread = b"", received
    while True:
        try:
            event = connection.next_event()
        except h11.RemoteProtocolError:
            return None
        if isinstance(event, h11.Data):
            body += event.data
        elif isinstance(event, h11.Response):
            framing.end_head(event.status_code, joined(event.headers.raw_items()))
        elif isinstance(event, h11.EndOfMessage):
            assert connection.trailing_data[0] == b"", "a byte beyond the end"
            return body, framing.held_back + unread
        elif event is h11.NEED_DATA and (unread or framing.held_back):
            if not framing.held_back:
                framing.receive(unread[:size])
                unread = unread[size:]
            piece = framing.take()
            assert piece, "h11 waits for bytes that are held back"
            connection.receive_data(piece)
        elif event is h11.NEED_DATA or event is h11.PAUSED:
            return None


def check(data: bytes) -> None:
    """Read one response in both ways."""
    provider = atheris.FuzzedDataProvider(data)
    head = provider.PickValueInList(HEADS)
    size = provider.ConsumeIntInRange(1, 50)
    received = head + provider.ConsumeBytes(sys.maxsize)
    try:
        seen = framed(received, size)
    except ValueError:  # a header of blanks
        return
    assert seen == whole(received)


atheris.Setup(sys.argv, check)
atheris.Fuzz()
