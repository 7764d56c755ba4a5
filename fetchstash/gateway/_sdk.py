"""Connections through the SDK: to a server over streamable HTTP, and to our own in this process.

Large values in answers over HTTP go to files as they arrive.
"""

import json
import logging
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Callable,
    Iterator,
    Mapping,
)
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, cast

import anyio
import httpx2
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.inbound import encode_header_value, mcp_param_headers, x_mcp_header_map
from mcp.shared.message import ClientMessageMetadata, SessionMessage
from mcp_types import jsonrpc_message_adapter

from fetchstash.config import Settings, WrappedServer, resolved
from fetchstash.gateway._framing import LINE_BYTES, MessageReader, UnreadableMessage
from fetchstash.gateway._process import readable, say
from fetchstash.gateway._protocol import PROTOCOL_VERSION_KEY, meta_of
from fetchstash.gateway._rpc import (
    Connection,
    ConnectionEnded,
    Message,
    RequestId,
    StandIns,
    walked,
)
from fetchstash.server import LazyStash, build_server
from fetchstash.text.untyped import as_object, as_objects

CONNECT_SECONDS = 30.0
_NAME_HEADERS = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}


class _Headers:
    """The headers that a server wants with each message (basic/transports)."""

    def __init__(self) -> None:
        self._version = ""
        self._schemas: dict[str, Any] = {}

    def learn(self, message: Message) -> None:
        """Remember the version agreed on, and which arguments of a tool go into headers, too."""
        result = as_object(message.get("result"))
        self._version = str(result.get("protocolVersion", self._version))
        for tool in as_objects(result.get("tools")):
            self._schemas[str(tool.get("name"))] = x_mcp_header_map(tool.get("inputSchema"))

    def of(self, message: Message) -> dict[str, str]:
        """Return the headers of a message to the server."""
        method, params = message.get("method", ""), as_object(message.get("params"))
        modern_version = meta_of(params).get(PROTOCOL_VERSION_KEY)
        if modern_version is None:
            return {"mcp-protocol-version": self._version} if self._version else {}
        headers = {"mcp-protocol-version": str(modern_version), "mcp-method": method}
        name = params.get(_NAME_HEADERS.get(method, ""))
        if isinstance(name, str):
            headers["mcp-name"] = encode_header_value(name)
            if method == "tools/call" and name in self._schemas:
                arguments = as_object(params.get("arguments"))
                headers |= mcp_param_headers(self._schemas[name], arguments)
        return headers


class _SessionEnded(Exception):
    """The server no longer knows our session: the client must begin a new one (2025-11-25)."""

    def __init__(self) -> None:
        super().__init__("its session is gone")


class _Transport(httpx2.AsyncBaseTransport):
    """Sends requests as usual, and takes large values out of the answers."""

    def __init__(
        self, server: WrappedServer, stand_ins: StandIns, reader: Callable[[], MessageReader]
    ) -> None:
        self._inner = httpx2.AsyncHTTPTransport()
        self._server = server
        self._stand_ins = stand_ins
        self._reader = reader

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send one request. Its placeholders are replaced by the spooled values."""
        request.headers["accept-encoding"] = "identity"
        number = _request_id(request.method, await request.aread())
        if number is None and request.method == "POST":
            # The SDK sends nothing else until this is accepted.
            request.extensions["timeout"] = httpx2.Timeout(CONNECT_SECONDS).as_dict()
        response = await self._inner.handle_async_request(request)
        in_session = number is not None and "mcp-session-id" in request.headers
        if response.status_code == 404 and in_session:
            await response.aclose()
            raise _SessionEnded
        if response.status_code in (401, 403):
            advice = "it wants other headers (--header, or headers in the settings file)"
            say(self._server, f"fetchstash: HTTP {response.status_code}: {advice}.")
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        body = cast("httpx2.AsyncByteStream", response.stream)
        if kind == "text/event-stream":
            response.stream = _Body(body, self._events(body, number))
        elif kind == "application/json":
            response.stream = _Body(body, self._document(body, number))
            response.headers.pop("content-length", None)
        return response

    async def aclose(self) -> None:
        """Close the connections."""
        await self._inner.aclose()

    async def _document(
        self, body: httpx2.AsyncByteStream, number: RequestId | None
    ) -> AsyncGenerator[bytes]:
        reader = self._reader()
        try:
            async for data in body:
                await reader.beside_loop(partial(reader.add, data))
            for line in await self._finished(reader, number):
                yield line
        finally:
            reader.discard()

    async def _events(
        self, body: httpx2.AsyncByteStream, number: RequestId | None
    ) -> AsyncGenerator[bytes]:
        """Pass an event stream on (HTML Living Standard, 9.2), the data of each event in one line.

        Lines of other fields are cut at ``LINE_BYTES``.
        """
        reader, line, in_data, has_data = self._reader(), bytearray(), False, False
        try:
            async for received in body:
                for piece in received.splitlines(keepends=True):
                    if not in_data:
                        line += piece
                        del line[LINE_BYTES:-1]
                        in_data = line.startswith(b"data:")
                        piece = bytes(line[5:])  # noqa: PLW2901
                    if in_data:
                        has_data = True
                        line.clear()
                        await reader.beside_loop(partial(reader.add, piece))
                        in_data = not piece.endswith(b"\n")
                    elif line.endswith(b"\n"):
                        if has_data and not line.strip():
                            texts = await self._finished(reader, number)
                            for text in texts or [b""]:
                                yield b"data: " + text + b"\n"
                            has_data = False
                        yield bytes(line)
                        line.clear()
        finally:
            reader.discard()

    async def _finished(self, reader: MessageReader, number: RequestId | None) -> list[bytes]:
        """Return the message that ends here as it is passed on, or none."""
        return await reader.beside_loop(lambda: list(self._written(reader.finish(), number)))

    def _written(
        self, messages: Iterator[Message | UnreadableMessage], number: RequestId | None
    ) -> Iterator[bytes]:
        for message in messages:
            if isinstance(message, UnreadableMessage) and message.request_id is None:
                message.request_id = number
            if (item := readable(self._server, message)) is not None:
                yield json.dumps(item, default=self._stand_ins.name).encode()


def _request_id(http_method: str, body: bytes) -> RequestId | None:
    """Return the id of the request that is sent, None for any other message."""
    message = as_object(json.loads(body)) if http_method == "POST" else {}
    return message.get("id") if "method" in message else None


class _Body(httpx2.AsyncByteStream):
    """A response's body as it is passed on."""

    def __init__(self, body: httpx2.AsyncByteStream, pieces: AsyncGenerator[bytes]) -> None:
        self._body = body
        self._pieces = pieces

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._pieces:
            yield piece

    async def aclose(self) -> None:
        """Close the body."""
        await self._pieces.aclose()
        await self._body.aclose()


def _to_sdk(message: Message, headers: Mapping[str, str] | None = None) -> SessionMessage:
    """Return a message for the SDK, which sends ``headers`` with it over HTTP."""
    parsed = jsonrpc_message_adapter.validate_python(message, by_name=False)
    return SessionMessage(parsed, ClientMessageMetadata(headers=dict(headers)) if headers else None)


async def _from_sdk(incoming: AsyncIterable[SessionMessage | Exception]) -> AsyncGenerator[Message]:
    async for item in incoming:
        if isinstance(item, SessionMessage):
            yield item.message.model_dump(mode="json", by_alias=True, exclude_unset=True)


@asynccontextmanager
async def connected_over_http(
    server: WrappedServer, spool: Callable[[], Path], limit: int
) -> AsyncGenerator[Connection]:
    """Yield the connection to a server over HTTP."""
    # What it logs of a server would show without the server's name, and with its secrets.
    logging.getLogger("mcp.client.streamable_http").setLevel(logging.CRITICAL + 1)
    stand_ins, protocol_headers = StandIns(), _Headers()
    transport = _Transport(server, stand_ins, lambda: MessageReader(spool, limit))
    headers = resolved(server.name, server.headers)
    timeout = httpx2.Timeout(CONNECT_SECONDS, read=None)
    async with (
        httpx2.AsyncClient(transport=transport, headers=headers, timeout=timeout) as client,
        streamable_http_client(server.url, http_client=client, max_sse_event_size=None) as (
            incoming,
            outgoing,
        ),
    ):

        async def send(message: Message) -> None:
            try:
                await outgoing.send(_to_sdk(message, protocol_headers.of(message)))
            except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                raise ConnectionEnded from None

        async def messages() -> AsyncGenerator[Message]:
            async for message in _from_sdk(incoming):
                await walked(protocol_headers.learn, message)
                yield await walked(stand_ins.filled, message)

        yield messages(), send


@asynccontextmanager
async def connected_to_own(settings: Settings) -> AsyncGenerator[Connection]:
    """Yield the connection to fetchstash itself, a server in this process."""
    to_us, received = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    to_send, from_us = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    server = build_server(LazyStash(settings, owns_process=True))

    async def send(message: Message) -> None:
        try:
            await to_send.send(_to_sdk(message))
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            raise ConnectionEnded from None

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(server.run, from_us, to_us, server.create_initialization_options())
        yield _from_sdk(received), send
        tasks.cancel_scope.cancel()
