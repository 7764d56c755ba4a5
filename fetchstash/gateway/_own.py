"""fetchstash itself behind the gateway: its MCP server, run like one of the others."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream
from mcp.shared.message import SessionMessage

from fetchstash.config import Settings
from fetchstash.gateway._rpc import Connection, ConnectionEnded, Message
from fetchstash.gateway._sdk import from_sdk, to_sdk
from fetchstash.server import LazyStash, build_server


@asynccontextmanager
async def connected(settings: Settings) -> AsyncGenerator[Connection]:
    """Yield the connection to a server in this process."""
    to_us, received = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    to_send, from_us = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    server = build_server(LazyStash(settings, owns_process=True))

    async def send(message: Message) -> None:
        try:
            await to_send.send(to_sdk(message))
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            raise ConnectionEnded from None

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(server.run, from_us, to_us, server.create_initialization_options())
        yield _messages(received), send
        tasks.cancel_scope.cancel()


async def _messages(
    received: MemoryObjectReceiveStream[SessionMessage | Exception],
) -> AsyncGenerator[Message]:
    async for item in received:
        if isinstance(item, SessionMessage):
            yield from_sdk(item)
