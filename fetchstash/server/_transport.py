"""Messages of the SDK over our stdin and stdout, one JSON text a line."""

import os
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress

import anyio
import mcp_types as types
from anyio.streams.memory import MemoryObjectReceiveStream
from mcp.shared.message import SessionMessage

from fetchstash.server._streams import LineWriter, claim_streams, read_lines
from fetchstash.server._wire import Received, Sender

_WRITTEN_TOGETHER = 32
"""Messages that wait to be written; beyond them whoever sends one waits."""


@asynccontextmanager
async def transport() -> AsyncGenerator[tuple[AsyncIterator[Received], Sender]]:
    """Yield what the host sends, and a stream that takes messages to it until it is closed.

    Raises OSError when the host has closed our stdout.
    """
    sender, unwritten = anyio.create_memory_object_stream[SessionMessage](_WRITTEN_TOGETHER)
    with _claimed() as (stdin, stdout):
        async with anyio.create_task_group() as tasks, sender:
            tasks.start_soon(_write, stdout, unwritten)
            yield _messages(stdin), sender


@contextmanager
def _claimed() -> Generator[tuple[int, int]]:
    """Yield the descriptors of ``claim_streams``, and put stdin and stdout back at the end."""
    streams = claim_streams()
    try:
        yield streams
    finally:
        for standard, stream in enumerate(streams):
            os.dup2(stream, standard)


async def _messages(stdin: int) -> AsyncGenerator[Received]:
    """Yield what the host sends: a message, or why a line is none."""
    async for line in read_lines(stdin):
        try:
            text = line.decode("utf-8", "replace")
            message = types.jsonrpc_message_adapter.validate_json(text, by_name=False)
            yield SessionMessage(message)
        except ValueError as error:
            yield error


async def _write(stdout: int, unwritten: MemoryObjectReceiveStream[SessionMessage]) -> None:
    """Write what is sent until the stream is closed."""
    writer = LineWriter(stdout)
    async with unwritten:
        async for message in unwritten:
            await writer.write(*map(_line, (message, *_waiting(unwritten))))


def _waiting(stream: MemoryObjectReceiveStream[SessionMessage]) -> Iterator[SessionMessage]:
    """Yield the messages that are there already."""
    with suppress(anyio.WouldBlock, anyio.EndOfStream):
        while True:
            yield stream.receive_nowait()


def _line(message: SessionMessage) -> bytes:
    json = message.message.model_dump_json(by_alias=True, exclude_unset=True)
    return json.encode() + b"\n"
