"""Messages over our stdin and stdout, one JSON text a line.

Each read takes all that the host has written, and each write all that waits. A thread of its own
for each line, as in the SDK's transport, gives the interpreter away several times for each message:
beside threads that are busy that is 5 ms each time (sys.setswitchinterval), and requests that come
faster than that wait in line.
"""

import os
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress

import anyio
import anyio.to_thread
import mcp_types as types
from anyio.streams.memory import MemoryObjectReceiveStream
from mcp.shared.message import SessionMessage

from fetchstash.server._streams import claim_streams
from fetchstash.server._wire import Received, Sender

_READ_BYTES = 2**16
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
    # The thread that reads waits for ever, so it takes no place among the others.
    limiter = anyio.CapacityLimiter(1)
    line = bytearray()
    while data := await anyio.to_thread.run_sync(os.read, stdin, _READ_BYTES, limiter=limiter):
        *ends, rest = data.split(b"\n")
        for end in ends:
            line += end
            yield _message(line)
            line.clear()
        line += rest
    if line:
        yield _message(line)


def _message(line: bytearray) -> Received:
    try:
        text = line.decode("utf-8", "replace")
        return SessionMessage(types.jsonrpc_message_adapter.validate_json(text, by_name=False))
    except ValueError as error:
        return error


async def _write(stdout: int, unwritten: MemoryObjectReceiveStream[SessionMessage]) -> None:
    """Write what is sent until the stream is closed."""
    limiter = anyio.CapacityLimiter(1)
    async with unwritten:
        async for message in unwritten:
            lines = b"".join(map(_line, (message, *_waiting(unwritten))))
            await anyio.to_thread.run_sync(_write_all, stdout, lines, limiter=limiter)


def _waiting(stream: MemoryObjectReceiveStream[SessionMessage]) -> Iterator[SessionMessage]:
    """Yield the messages that are there already."""
    with suppress(anyio.WouldBlock, anyio.EndOfStream):
        while True:
            yield stream.receive_nowait()


def _line(message: SessionMessage) -> bytes:
    json = message.message.model_dump_json(by_alias=True, exclude_unset=True)
    return json.encode() + b"\n"


def _write_all(stdout: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(stdout, left) :]
