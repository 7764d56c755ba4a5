"""Our own server, in the gateway's process."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream
from mcp.shared.message import ClientMessageMetadata, SessionMessage
from mcp_types import jsonrpc_message_adapter

from fetchstash.config import Settings
from fetchstash.gateway._rpc import Connection, ConnectionEnded, Message
from fetchstash.server import LazyStash, build_server


def to_sdk(message: Message, headers: Mapping[str, str] | None = None) -> SessionMessage:
    """Return a message for the SDK, which sends ``headers`` with it over HTTP."""
    parsed = jsonrpc_message_adapter.validate_python(message, by_name=False)
    return SessionMessage(parsed, ClientMessageMetadata(headers=dict(headers)) if headers else None)


def from_sdk(item: SessionMessage) -> Message:
    """Return a message of the SDK as data."""
    return item.message.model_dump(mode="json", by_alias=True, exclude_unset=True)


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
