"""What only a real socket shows: streams, clients that go away, and clients that are slow."""

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from http.client import HTTPConnection, HTTPSConnection

import anyio
import h11
import httpx2
import pytest
from anyio.abc import SocketStream
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import Implementation, TextContent
from starlette.types import Receive, Scope, Send

from fetchstash.config import Settings
from fetchstash.service import exports
from fetchstash.service._exports import serving_metrics
from fetchstash.service._listen import Joined
from tests.loopback import Site
from tests.service.pages import Hanging, calling
from tests.service.sockets import Tls, echo, listening, serving, set_bound

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

ERAS = ("legacy", "2026-07-28")


@pytest.mark.parametrize("era", ERAS)
async def test_a_client_that_goes_away_closes_the_upstream_socket(
    era: str, settings: Settings, site: Site
) -> None:
    page = Hanging(site)
    async with listening(settings) as port, httpx2.AsyncClient() as http:
        async with anyio.create_task_group() as tasks:

            async def call() -> None:
                await http.post(f"http://127.0.0.1:{port}/mcp", **calling(page.url, era))

            tasks.start_soon(call)
            with anyio.fail_after(60):
                await page.begun.wait()
            tasks.cancel_scope.cancel()
        with anyio.fail_after(60):
            await page.left.wait()


@pytest.mark.long
@pytest.mark.parametrize("era", ERAS)
async def test_progress_arrives_while_a_call_runs(era: str, settings: Settings, site: Site) -> None:
    page, quick, reported = Hanging(site), site.put("/quick", "<p>words</p>"), anyio.Event()

    async def report(progress: float, total: float | None, message: str | None) -> None:
        reported.set()

    async with (
        listening(settings) as port,
        Client(streamable_http_client(f"http://127.0.0.1:{port}/mcp"), mode=era) as client,
        anyio.create_task_group() as tasks,
    ):

        async def call() -> None:
            arguments = {"urls": [page.url, quick]}
            await client.call_tool("fetch_content", arguments, progress_callback=report)

        tasks.start_soon(call)
        with anyio.fail_after(60):
            await reported.wait()
        assert not page.left.is_set()
        tasks.cancel_scope.cancel()


@pytest.mark.long
@pytest.mark.parametrize("era", ERAS)
async def test_the_limits_of_the_host_that_the_client_says_it_is_hold(
    era: str, settings: Settings, site: Site
) -> None:
    url = site.put("/long.txt", "word " * 12_000, "text/plain")
    codex = Implementation(name="codex-mcp-client", version="1")
    async with listening(settings) as port:
        transport = streamable_http_client(f"http://127.0.0.1:{port}/mcp")
        async with Client(transport, mode=era, client_info=codex) as client:
            await client.call_tool("fetch_content", {"url": url})
            arguments = {"artifact_ref": url, "maxChars": 60_000}
            answer = await client.call_tool("get_search_content", arguments)
    (content,) = answer.content
    assert isinstance(content, TextContent)
    assert "[Content truncated at 38000 bytes. Total: 60000 chars." in content.text


async def test_a_client_of_the_handshake_era_cancels_a_call_by_a_message(
    settings: Settings, site: Site
) -> None:
    page = Hanging(site)
    answers: list[httpx2.Response] = []
    async with listening(settings) as port, httpx2.AsyncClient() as http:
        http.headers["mcp-session-id"] = "of this client"
        url = f"http://127.0.0.1:{port}/mcp"
        async with anyio.create_task_group() as tasks:

            async def call() -> None:
                answers.append(await http.post(url, **calling(page.url, "legacy", 7)))

            tasks.start_soon(call)
            with anyio.fail_after(60):
                await page.begun.wait()
            method, headers = "notifications/cancelled", calling("", "legacy")["headers"]
            cancel = {"jsonrpc": "2.0", "method": method, "params": {"requestId": 7}}
            await http.post(url, json=cancel, headers=headers)
            with anyio.fail_after(60):
                await page.left.wait()
    assert "Request cancelled" in answers[0].text


Talk = Callable[[SocketStream], Awaitable[None]]


async def ended(port: int, talk: Talk) -> bytes:
    """Return what a connection was answered until the service closed it."""
    answer = b""
    async with await anyio.connect_tcp("127.0.0.1", port) as stream:
        await talk(stream)
        with anyio.fail_after(60):
            try:
                while True:
                    answer += await stream.receive()
            except (anyio.EndOfStream, anyio.BrokenResourceError):
                return answer


HEAD = b"POST /mcp HTTP/1.1\r\nHost: localhost:%d\r\nContent-Type: application/json\r\n"


async def test_a_client_that_sends_no_head_is_cut_off(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_bound(monkeypatch, "HEAD_SECONDS", 0.2)

    async def silent(_: SocketStream) -> None: ...

    async def slow(stream: SocketStream) -> None:
        await stream.send(b"POST /mcp HTTP/1.1\r\nHost: local")

    async def slow_again(stream: SocketStream) -> None:
        await stream.send(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        while not (await stream.receive()).endswith(b"ok\n"):
            pass
        await stream.send(b"GET /hea")

    async with listening(settings) as port:
        assert await ended(port, silent) == b""
        assert await ended(port, slow) == b""
        assert await ended(port, slow_again) == b""


async def test_a_client_that_asks_for_no_metrics_is_let_go(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_bound(monkeypatch, "HEAD_SECONDS", 0.05)
    metered = replace(settings, http=replace(settings.http, metrics="127.0.0.1:0"))
    async with exports(metered) as measure, serving_metrics(metered.http, measure) as url:
        port = httpx2.URL(url).port
        assert port
        async with await anyio.connect_tcp("127.0.0.1", port) as stream:
            with (
                anyio.fail_after(60),
                pytest.raises((anyio.EndOfStream, anyio.BrokenResourceError)),
            ):
                await stream.receive()


async def test_a_client_that_trickles_a_body_after_its_answer_is_cut_off(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_bound(monkeypatch, "HEAD_SECONDS", 0.2)
    head = b"POST /none HTTP/1.1\r\nHost: localhost:%d\r\nContent-Length: 1000\r\n\r\n"

    async with listening(settings) as port:

        async def trickle(stream: SocketStream) -> None:
            await stream.send(head % port)
            await stream.receive()
            await stream.send(b"x")

        assert await ended(port, trickle) == b""


async def test_a_client_that_sends_its_body_too_slowly_is_told_so(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_bound(monkeypatch, "BODY_SECONDS", 0.2)

    async with listening(settings) as port:

        async def slow(stream: SocketStream) -> None:
            await stream.send(HEAD % port + b"Content-Length: 100\r\n\r\n{")

        answer = await ended(port, slow)
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b"[timeout] " in answer


@pytest.mark.parametrize("declares", [True, False])
@pytest.mark.parametrize("secure", [False, True], ids=["plain", "tls"])
async def test_a_client_that_sends_too_much_reads_why(
    secure: bool, declares: bool, settings: Settings, tls: Tls
) -> None:
    http = tls.limits if secure else settings.http
    body, headers = b" " * 2**24, {"Connection": "close", "Content-Type": "application/json"}

    def post(port: int) -> tuple[int, bytes]:
        """Send all before reading, as most clients do."""
        client = HTTPConnection("localhost", port, timeout=60)
        if secure:
            client = HTTPSConnection("localhost", port, context=tls.trusting, timeout=60)
        client.request("POST", "/mcp", body if declares else iter([body]), headers)
        answer = client.getresponse()
        return answer.status, answer.read()

    async with listening(replace(settings, http=http)) as port:
        status, answer = await anyio.to_thread.run_sync(post, port)
    assert status == 413
    assert b"[too_large] A request has at most 1048576 bytes. Send a shorter one." in answer


@pytest.mark.parametrize("bound", ["DROPPED_BYTES", "DROP_SECONDS"])
async def test_the_rest_of_a_body_that_is_too_long_is_not_read_forever(
    bound: str, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_bound(monkeypatch, bound, 0.2)
    sent = b"x" * 2**20 if bound == "DROPPED_BYTES" else b"{"

    async with listening(settings) as port:

        async def much(stream: SocketStream) -> None:
            await stream.send(HEAD % port + b"Content-Length: 1000000000\r\n\r\n" + sent)

        with anyio.fail_after(5):
            assert (await ended(port, much)).startswith(b"HTTP/1.1 413 ")


class Endless:
    """An application whose answers never end. Knows when a client left."""

    def __init__(self) -> None:
        self.left = anyio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await echo(scope, receive, send)
            return
        await send({"type": "http.response.start", "status": 200, "headers": []})
        async with anyio.create_task_group() as tasks:

            async def watch() -> None:
                while (await receive())["type"] != "http.disconnect":
                    pass
                self.left.set()
                tasks.cancel_scope.cancel()

            tasks.start_soon(watch)
            while True:
                part = {"type": "http.response.body", "body": b"x" * 2**20, "more_body": True}
                await send(part)
                await anyio.lowlevel.checkpoint()


async def test_a_client_that_reads_no_answer_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    set_bound(monkeypatch, "READ_SECONDS", 0.2)
    app = Endless()
    async with serving(app) as port, await anyio.connect_tcp("127.0.0.1", port) as stream:
        await stream.send(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        with anyio.fail_after(60):
            await app.left.wait()


@pytest.mark.parametrize("bound", ["connections", "files"])
async def test_a_connection_too_many_ends_the_one_that_waits_longest(
    bound: str, monkeypatch: pytest.MonkeyPatch
) -> None:

    def four(_: int) -> tuple[int, int]:
        return 4, 4

    if bound == "connections":
        set_bound(monkeypatch, "MAX_CONNECTIONS", 2)
    else:
        pytest.importorskip("resource", reason="Windows has no limit of files")
        monkeypatch.setattr("resource.getrlimit", four)
    app = Endless()
    async with serving(app) as port, AsyncExitStack() as stack:

        async def connect(sent: bytes) -> SocketStream:
            opened = await anyio.connect_tcp("127.0.0.1", port)
            stream = await stack.enter_async_context(opened)
            await stream.send(sent)
            return stream

        waiting = await connect(b"GET / HT")
        asking = await connect(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert (await asking.receive()).startswith(b"HTTP/1.1 200 ")
        third = await connect(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert (await third.receive()).startswith(b"HTTP/1.1 200 ")
        with anyio.fail_after(60), pytest.raises((anyio.EndOfStream, anyio.BrokenResourceError)):
            await waiting.receive()
        fourth = await connect(b"")
        assert (await fourth.receive()).startswith(b"HTTP/1.1 503 ")


async def test_a_client_that_offers_another_protocol_is_answered_in_this_one(
    settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    offer = {"connection": "Upgrade, HTTP2-Settings", "upgrade": "h2c", "http2-settings": ""}
    async with listening(settings) as port, httpx2.AsyncClient() as http:
        answer = await http.get(f"http://127.0.0.1:{port}/healthz", headers=offer)
    assert answer.text == "ok\n"
    assert not [record for record in caplog.records if record.levelname == "WARNING"]


@pytest.mark.parametrize("path", [b"/mcp", b"/healthz"])
async def test_what_stands_behind_a_request_of_two_lengths_is_no_request(
    settings: Settings, path: bytes
) -> None:
    hidden = b"0\r\n\r\nGET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    head = b"POST %s HTTP/1.1\r\nHost: localhost:%d\r\nContent-Type: application/json\r\n"
    lengths = b"Transfer-Encoding: chunked\r\nContent-Length: %d\r\n\r\n" % len(hidden)

    async with listening(settings) as port:

        async def smuggle(stream: SocketStream) -> None:
            await stream.send(head % (path, port) + lengths + hidden)

        answer = await ended(port, smuggle)
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert answer.count(b"HTTP/1.1 ") == 1


async def test_the_head_of_a_stream_does_not_wait_for_what_follows() -> None:
    connection = Joined(h11.SERVER)
    connection.receive_data(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n")
    connection.next_event()
    assert connection.send(h11.Response(status_code=200, headers=[]))
