"""A wrapped server over streamable HTTP. Large values in its answers go to files as they arrive."""

import json
import secrets
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import anyio
import httpx2
from anyio.streams.memory import MemoryObjectSendStream
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._stream_protocols import ReadStream
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCResponse

from fetchstash.config import WrappedServer, resolved
from fetchstash.gateway._framing import LINE_BYTES, MessageReader, Spooled, UnreadableMessage
from fetchstash.gateway._process import Received, Streams, as_message

CONNECT_SECONDS = 30.0


class _Marks:
    """Stand-ins for spooled values: the SDK parses strings, and gives us strings back."""

    def __init__(self) -> None:
        self._mark = secrets.token_hex(16)
        self._values: dict[str, Spooled] = {}

    def dump(self, message: dict[str, Any]) -> bytes:
        """Return a message as JSON, a stand-in for each spooled value."""
        return json.dumps(message, default=self._stand_in).encode()

    def filled(self, value: Any) -> Any:
        """Return a JSON value with the spooled values back in their places."""
        if not self._values:
            return value
        if isinstance(value, str):
            return self._values.pop(value, value) if value.startswith(self._mark) else value
        if isinstance(value, list):
            return [self.filled(item) for item in cast("Sequence[Any]", value)]
        if isinstance(value, dict):
            items = cast("dict[str, Any]", value).items()
            return {name: self.filled(item) for name, item in items}
        return value

    def _stand_in(self, value: object) -> str:
        name = f"{self._mark}:{secrets.token_hex(8)}"
        self._values[name] = cast("Spooled", value)
        return name


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

    def _written(self, messages: Iterator[dict[str, Any] | UnreadableMessage]) -> Iterator[bytes]:
        for message in messages:
            if isinstance(message, UnreadableMessage):
                replaced = as_message(self._server, message)
                if replaced is not None:
                    text = replaced.message.model_dump_json(by_alias=True, exclude_unset=True)
                    yield text.encode()
            else:
                yield self._marks.dump(message)


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
) -> AsyncGenerator[Streams]:
    """Yield the streams of a server over HTTP."""
    marks = _Marks()
    transport = _Transport(server, marks, lambda: MessageReader(spool, limit))
    headers = resolved(server.name, server.headers)
    timeout = httpx2.Timeout(CONNECT_SECONDS, read=None)
    to_us, received = anyio.create_memory_object_stream[Received](0)
    async with (
        httpx2.AsyncClient(transport=transport, headers=headers, timeout=timeout) as client,
        streamable_http_client(server.url, http_client=client) as (incoming, outgoing),
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(_receive, incoming, to_us, marks)
        yield received, cast("MemoryObjectSendStream[SessionMessage]", outgoing)
        tasks.cancel_scope.cancel()


async def _receive(
    incoming: ReadStream[Received], to_us: MemoryObjectSendStream[Received], marks: _Marks
) -> None:
    async with to_us:
        async for item in incoming:
            if isinstance(item, SessionMessage) and isinstance(item.message, JSONRPCResponse):
                item.message.result = marks.filled(item.message.result)
            await to_us.send(item)
