"""Bytes after a response: they are held back, close the connection and answer nobody."""

import os
import re
import socket
import ssl
import sys
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import anyio
import anyio.lowlevel
import anyio.to_thread
import h11
import httpcore2
import pytest
import trustme
from hypothesis import given, strategies as st

from fetchstash.fetch import FetchLimits, HttpFetcher
from fetchstash.fetch._exchange import joined
from fetchstash.fetch._framing import Framing, GuardedStream

pytestmark = pytest.mark.whole

# It is read past the parser.
LARGE = b"HTTP/1.1 200 OK\r\nContent-Length: 5000000\r\n\r\n" + bytes(5_000_000)
STRAY = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nstray"
RESPONSES = {
    "length": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
    "no content": b"HTTP/1.1 204 No Content\r\n\r\n",
    "redirect": b"HTTP/1.1 302 Found\r\nLocation: /end\r\nContent-Length: 0\r\n\r\n",
    "interim": b"HTTP/1.1 103 Early Hints\r\nA: b\r\n\r\n"
    b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
    "bare line feeds": b"HTTP/1.1 200 OK\nContent-Length: 2\n\nok",
    "chunks": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
    "no chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "trailer": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"a\r\n\n0\r\n\r\n0\r\nx\r\n000;a=b\r\nA: b\r\nC: d\r\n\r\n",
    "length and chunks": b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
}


def handed_out(received: bytes, sizes: Sequence[int]) -> tuple[bytes, h11.Connection]:
    """Feed h11 through a Framing, in pieces of ``sizes``; return what was held back."""
    framing, parser = Framing(), h11.Connection(h11.CLIENT)
    parser.send(h11.Request(method="GET", target="/", headers=[("Host", "a")]))
    parser.send(h11.EndOfMessage())
    framing.begin()
    pieces = [received[begin : begin + sizes[0]] for begin in range(0, len(received), sizes[0])]
    while True:
        event = parser.next_event()
        if event is h11.NEED_DATA:
            if not framing.held_back:
                framing.receive(pieces.pop(0))
            parser.receive_data(framing.take())
        elif isinstance(event, h11.Response):
            framing.end_head(event.status_code, joined(event.headers.raw_items()))
        elif isinstance(event, h11.EndOfMessage):
            return framing.held_back + b"".join(pieces), parser


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1_000])
@pytest.mark.parametrize("response", RESPONSES.values(), ids=RESPONSES)
def test_the_parser_is_handed_exactly_one_response(response: bytes, size: int) -> None:
    held_back, parser = handed_out(response + STRAY, [size])
    assert held_back == STRAY
    assert parser.trailing_data[0] == b""


@given(
    st.lists(st.text("0\r\n; a", min_size=1, max_size=30), max_size=5),
    st.lists(st.text("a", max_size=3), max_size=2),
    st.integers(1, 40),
)
def test_no_chunks_hide_where_a_response_ends(
    chunks: list[str], trailers: list[str], size: int
) -> None:
    body = "".join(f"{len(chunk):x}\r\n{chunk}\r\n" for chunk in chunks)
    end = "00\r\n" + "".join(f"t: {trailer}\r\n" for trailer in trailers) + "\r\n"
    head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    held_back, parser = handed_out((head + body + end).encode() + STRAY, [size])
    assert held_back == STRAY
    assert parser.trailing_data[0] == b""


def left_at_once(received: bytes) -> bytes | None:
    """Return what h11 leaves of all bytes at once, None where they are no whole response."""
    parser = h11.Connection(h11.CLIENT)
    parser.send(h11.Request(method="GET", target="/", headers=[("Host", "a")]))
    parser.send(h11.EndOfMessage())
    parser.receive_data(received)
    with suppress(h11.RemoteProtocolError):
        while (event := parser.next_event()) is not h11.NEED_DATA:
            if isinstance(event, h11.EndOfMessage):
                return parser.trailing_data[0]
    return None


HEADS = [
    b"",
    b"HTTP/1.1 200 OK\r\n",
    b"HTTP/1.1 103 Early Hints\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
]


@given(st.sampled_from(HEADS), st.binary(max_size=300), st.integers(1, 50))
def test_any_bytes_in_pieces_are_the_response_that_they_are_at_once(
    head: bytes, received: bytes, size: int
) -> None:
    left = None
    try:
        with suppress(h11.RemoteProtocolError, IndexError):  # the pieces are no whole response
            left, _ = handed_out(head + received, [size])
    except ValueError:  # a header of blanks
        return
    assert left == left_at_once(head + received)


BLANKS = {
    "in one line": b"A:" + b" \t" * 500 + b"\0\r\n\r\n",
    "folded": b"A:\r\n" + b" \r\n" * 300 + b" \0\r\n\r\n",
}


@pytest.mark.parametrize("size", [1, 100, 5_000])
@pytest.mark.parametrize("header", BLANKS.values(), ids=BLANKS)
@pytest.mark.parametrize(
    "before",
    [
        b"HTTP/1.1 200 OK\r\n",
        b"HTTP/1.1 103 Early Hints\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n",
    ],
    ids=["head", "interim", "trailer"],
)
def test_blanks_that_a_header_parser_takes_long_for_never_reach_it(
    before: bytes, header: bytes, size: int
) -> None:
    with pytest.raises(ValueError, match="a header of blanks"):
        handed_out(before + header, [size])


def wait_for_arrival(connection: socket.socket) -> None:
    """Return when the peer's system holds all that was sent (tcp(7), SIOCOUTQ), on Linux.

    On loopback too the system may deliver later than ``sendall`` returns: a busy machine does.
    """
    if sys.platform == "linux":
        import fcntl
        import termios

        for _ in range(1_000_000):
            left = fcntl.ioctl(connection.fileno(), termios.TIOCOUTQ, bytes(4))
            if not any(left):
                return
            os.sched_yield()


def answer(connection: socket.socket, first: Sequence[bytes], sent: threading.Event) -> None:
    """Answer ``/first`` with ``first`` as it is, which is ``sent`` then; others truthfully."""
    request = b""
    while more := connection.recv(65_536):
        request += more
        while match := re.match(rb"GET (\S+).*?\r\n\r\n", request, re.DOTALL):
            request = request[match.end() :]
            if match[1] == b"/first":
                try:
                    for part in first:
                        connection.sendall(part)
                    wait_for_arrival(connection)
                finally:
                    sent.set()
            else:
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ntrue")


@contextmanager
def serving(
    first: Sequence[bytes], context: ssl.SSLContext | None, sent: threading.Event
) -> Generator[int]:
    """Serve on loopback, with TLS if there is a ``context``; yield the port."""
    threads: list[threading.Thread] = []

    def respond(connection: socket.socket) -> None:
        connection.settimeout(5)
        with suppress(OSError):
            if context:
                connection = context.wrap_socket(connection, server_side=True)
            answer(connection, first, sent)
        connection.close()

    def accept() -> None:
        with suppress(OSError):
            while True:
                thread = threading.Thread(target=respond, args=(server.accept()[0],))
                threads.append(thread)
                thread.start()

    with socket.create_server(("127.0.0.1", 0)) as server:
        threads.append(threading.Thread(target=accept))
        threads[0].start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)
    for thread in threads:
        thread.join(5)


@pytest.mark.slow
@pytest.mark.anyio
@pytest.mark.parametrize("secured", [False, True], ids=["plain", "TLS"])
@pytest.mark.parametrize("together", [False, True], ids=["apart", "together"])
@pytest.mark.parametrize("response", [*RESPONSES.values(), LARGE], ids=[*RESPONSES, "large"])
async def test_bytes_after_a_body_answer_no_other_fetch(
    response: bytes, together: bool, secured: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = None
    if secured:
        authority = trustme.CA()
        authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert("127.0.0.1").configure_cert(context)  # pyright: ignore[reportUnknownMemberType] -- pyOpenSSL is not here
    first = [response + STRAY] if together else [response, STRAY]
    sent = threading.Event()
    with serving(first, context, sent) as port:
        url = f"{'https' if secured else 'http'}://127.0.0.1:{port}"
        http = HttpFetcher(FetchLimits(allow_hosts=("127.0.0.1",), respect_robots=False))
        await http.fetch(f"{url}/first", tmp_path)
        assert await anyio.to_thread.run_sync(
            sent.wait, 5
        )  # what comes later nobody can tell apart
        fetched = await http.fetch(f"{url}/second", tmp_path)
        await http.aclose()
    assert fetched.path is not None
    assert fetched.path.read_bytes() == b"true"


class Arriving(httpcore2.AsyncNetworkStream):
    """A connection whose bytes come ``turns`` of the event loop after they are asked for."""

    def __init__(self, *pieces: bytes, turns: int) -> None:
        self._pieces = list(pieces)
        self._turns = turns

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ARG002 - as declared
        for _ in range(self._turns):
            await anyio.lowlevel.checkpoint()
        if not self._pieces:
            await anyio.sleep_forever()
        return self._pieces.pop(0)

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Send it nowhere."""

    async def aclose(self) -> None:
        """Close nothing."""


@pytest.mark.anyio
@pytest.mark.parametrize("turns", [0, 3])
@pytest.mark.parametrize("stray", [[], [STRAY], [b""]], ids=["nothing", "bytes", "end"])
async def test_what_has_come_before_a_request_ends_the_connection(
    stray: list[bytes], turns: int
) -> None:
    """No poll of the socket shows it: it waits in a TLS record or a queue."""
    stream = GuardedStream(Arriving(RESPONSES["length"], *stray, turns=turns), 1_000)
    await stream.write(b"GET /")
    assert await stream.read(1_000)
    stream.end_head(200, {"content-length": "2"})
    assert await stream.read(1_000) == b"ok"
    if stray:
        with pytest.raises(httpcore2.ReadError):
            await stream.write(b"GET /")
    else:
        await stream.write(b"GET /")
    assert stream.is_spoiled == bool(stray)


@pytest.mark.anyio
async def test_a_response_with_both_framings_ends_its_connection() -> None:
    """RFC 9112, section 6.1: one of its two lengths may hide another response."""
    both = {"content-length": "5", "transfer-encoding": "chunked"}
    for names, ends in ((list(both)[:1], False), (list(both)[1:], False), (list(both), True)):
        stream = GuardedStream(Arriving(turns=0), 1_000)
        stream.end_head(200, {name: both[name] for name in names})
        assert stream.is_spoiled == ends
