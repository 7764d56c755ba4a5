"""A wrapped server over streamable HTTP. Large values in its answers go to files as they arrive."""

import json
import secrets
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import anyio
import httpx2
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.inbound import encode_header_value, mcp_param_headers, x_mcp_header_map
from mcp.shared.message import SessionMessage

from fetchstash.config import WrappedServer, resolved
from fetchstash.gateway._framing import LINE_BYTES, MessageReader, UnreadableMessage
from fetchstash.gateway._json import as_object, as_objects, meta_of
from fetchstash.gateway._process import readable, say
from fetchstash.gateway._protocol import PROTOCOL_VERSION_KEY
from fetchstash.gateway._rpc import Connection, ConnectionEnded, Message
from fetchstash.gateway._sdk import from_sdk, to_sdk
from fetchstash.gateway._spooled import Spooled, filled

CONNECT_SECONDS = 30.0
_NAME_HEADERS = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}


class _Marks:
    """Stand-ins for spooled values: the SDK parses strings, and gives us strings back."""

    def __init__(self) -> None:
        self._mark = secrets.token_hex(16)
        self._values: dict[str, Spooled] = {}

    def dump(self, message: Message) -> bytes:
        """Return a message as JSON, a stand-in for each spooled value."""
        return json.dumps(message, default=self._stand_in).encode()

    def filled(self, message: Message) -> Message:
        """Return a message with the spooled values back in their places."""
        return cast("Message", filled(message, self._mark, self._values))

    def _stand_in(self, value: object) -> str:
        name = f"{self._mark}:{secrets.token_hex(8)}"
        self._values[name] = cast("Spooled", value)
        return name


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


class _Transport(httpx2.AsyncBaseTransport):
    """Sends requests as usual, and takes large values out of the answers."""

    def __init__(
        self, server: WrappedServer, marks: _Marks, reader: Callable[[], MessageReader]
    ) -> None:
        self._inner = httpx2.AsyncHTTPTransport()
        self._server = server
        self._marks = marks
        self._reader = reader

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send one request. What was taken out is found again by its stand-in."""
        request.headers["accept-encoding"] = "identity"
        response = await self._inner.handle_async_request(request)
        if response.status_code in (401, 403):
            advice = "it wants other headers (--header, or headers in the settings file)"
            say(self._server, f"fetchstash: HTTP {response.status_code}: {advice}.")
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        body = cast("httpx2.AsyncByteStream", response.stream)
        if kind == "text/event-stream":
            response.stream = _Body(body, self._events(body))
        elif kind == "application/json":
            response.stream = _Body(body, self._document(body))
            response.headers.pop("content-length", None)
        return response

    async def aclose(self) -> None:
        """Close the connections."""
        await self._inner.aclose()

    async def _document(self, body: httpx2.AsyncByteStream) -> AsyncGenerator[bytes]:
        reader = self._reader()
        try:
            async for data in body:
                reader.add(data)
            for line in self._written(reader.finish()):
                yield line
        finally:
            reader.discard()

    async def _events(self, body: httpx2.AsyncByteStream) -> AsyncGenerator[bytes]:
        """Pass the lines of an event stream on (HTML Living Standard, 9.2), long ones shortened."""
        reader, line, is_long = self._reader(), bytearray(), False
        try:
            async for data in body:
                *ended, rest = data.split(b"\n")
                for piece in ended:
                    if is_long:
                        reader.add(piece)
                        for written in self._written(reader.finish()):
                            yield b"data: " + written + b"\n"
                        is_long = False
                    else:
                        yield bytes(line) + piece + b"\n"
                        line.clear()
                if is_long:
                    reader.add(rest)
                    continue
                line += rest
                if len(line) > LINE_BYTES and line.startswith(b"data:"):
                    reader.add(bytes(line[5:]))
                    line.clear()
                    is_long = True
            yield bytes(line)
        finally:
            reader.discard()

    def _written(self, messages: Iterator[Message | UnreadableMessage]) -> Iterator[bytes]:
        for message in messages:
            if (item := readable(self._server, message)) is not None:
                yield self._marks.dump(item)


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


@asynccontextmanager
async def connected(
    server: WrappedServer, spool: Callable[[], Path], limit: int
) -> AsyncGenerator[Connection]:
    """Yield the connection to a server over HTTP."""
    marks, protocol_headers = _Marks(), _Headers()
    transport = _Transport(server, marks, lambda: MessageReader(spool, limit))
    headers = resolved(server.name, server.headers)
    timeout = httpx2.Timeout(CONNECT_SECONDS, read=None)
    async with (
        httpx2.AsyncClient(transport=transport, headers=headers, timeout=timeout) as client,
        streamable_http_client(server.url, http_client=client) as (incoming, outgoing),
    ):

        async def send(message: Message) -> None:
            try:
                await outgoing.send(to_sdk(message, protocol_headers.of(message)))
            except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                raise ConnectionEnded from None

        yield _messages(incoming, marks, protocol_headers), send


async def _messages(
    incoming: AsyncIterable[SessionMessage | Exception], marks: _Marks, protocol_headers: _Headers
) -> AsyncGenerator[Message]:
    async for item in incoming:
        if isinstance(item, SessionMessage):
            message = from_sdk(item)
            protocol_headers.learn(message)
            yield marks.filled(message)
