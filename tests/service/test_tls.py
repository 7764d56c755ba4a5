"""TLS by the service itself: its handshakes are bounded as the requests of a connection are."""

import asyncio
import ssl
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import anyio
import httpx2
import pytest
from anyio.abc import ByteStream, SocketStream
from anyio.streams.tls import TLSStream

from fetchstash.service._listen import HEAD_SECONDS
from tests.service.sockets import Tls, echo, serving, set_bound

pytestmark = [pytest.mark.anyio, pytest.mark.slow]


async def test_it_speaks_tls_with_its_own_certificate(tls: Tls) -> None:
    async with serving(echo, tls.limits) as port, httpx2.AsyncClient(verify=tls.trusting) as http:
        answer = await http.get(f"https://localhost:{port}/")
        with pytest.raises(httpx2.RemoteProtocolError):
            await http.get(f"http://localhost:{port}/")
    assert answer.text == "https 127.0.0.1"


async def ended(stream: ByteStream) -> None:
    """Return once the service has closed a connection."""
    with anyio.fail_after(60), suppress(anyio.EndOfStream, anyio.BrokenResourceError):
        while True:
            await stream.receive()


@pytest.mark.parametrize("sent", [b"", bytes.fromhex("160301"), b"GET / HTTP/1.1\r\n"])
async def test_a_client_that_ends_no_handshake_is_cut_off(
    tls: Tls, sent: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_bound(monkeypatch, "HEAD_SECONDS", 0.2)
    async with serving(echo, tls.limits) as port, await connected(port) as stream:
        await stream.send(sent)
        await ended(stream)


async def test_a_client_that_is_secure_and_sends_no_head_is_cut_off(
    tls: Tls, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = asyncio.get_running_loop()
    time = loop.time
    async with serving(echo, tls.limits) as port, await connected(port) as stream:
        secure = await TLSStream.wrap(stream, hostname="localhost", ssl_context=tls.trusting)
        # The handshake has all the time that it takes: the clock jumps when it is done.
        monkeypatch.setattr(loop, "time", lambda: time() + HEAD_SECONDS)
        await ended(secure)


async def test_a_connection_counts_before_its_handshake(
    tls: Tls, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_bound(monkeypatch, "MAX_CONNECTIONS", 2)
    async with (
        serving(echo, tls.limits) as port,
        await connected(port) as first,
        await connected(port),
        httpx2.AsyncClient(verify=tls.trusting) as http,
    ):
        answer = await http.get(f"https://localhost:{port}/")
        await ended(first)
    assert answer.text == "https 127.0.0.1"


async def test_a_request_that_comes_with_the_end_of_the_handshake_is_answered(tls: Tls) -> None:
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = tls.trusting.wrap_bio(incoming, outgoing, server_hostname="localhost")
    answer = b""
    async with serving(echo, tls.limits) as port, await connected(port) as stream:
        await _until_done(client.do_handshake, stream, incoming, outgoing)
        client.write(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        await stream.send(outgoing.read())  # the end of the handshake, and the request
        with anyio.fail_after(60):
            while not answer.endswith(b"https 127.0.0.1"):
                answer += await _until_done(client.read, stream, incoming, outgoing)
    assert answer.startswith(b"HTTP/1.1 200 ")


async def connected(port: int) -> SocketStream:
    """Open a connection, without TLS yet."""
    return await anyio.connect_tcp("127.0.0.1", port)


async def _until_done(
    step: Callable[[], Any], stream: SocketStream, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO
) -> Any:
    """Repeat a step of TLS with what the server sends, and return what it returns."""
    while True:
        try:
            return step()
        except ssl.SSLWantReadError:
            if sent := outgoing.read():
                await stream.send(sent)
            incoming.write(await stream.receive())
