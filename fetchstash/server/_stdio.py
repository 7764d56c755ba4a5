"""Serve over stdin and stdout."""

import logging
import os
import signal
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from importlib import import_module

import anyio
import anyio.to_thread
import mcp_types as types
from anyio.streams.memory import MemoryObjectReceiveStream
from mcp.server import NotificationOptions
from mcp.shared.message import SessionMessage

from fetchstash.config import Settings
from fetchstash.server._lazy import LazyStash
from fetchstash.server._server import build_server
from fetchstash.server._streams import LineWriter, claim_streams, hide_memory, read_lines
from fetchstash.server._wire import Received, Sender, relayed

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


_log = logging.getLogger("fetchstash.server")


async def serve_stdio(settings: Settings) -> None:
    """Serve until the host closes our stdin or ends us, then close the store."""
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING)
    logging.getLogger("fetchstash.fetch").setLevel(logging.INFO)  # what a refused request was told
    hide_memory()
    stash = LazyStash(settings, owns_process=True)
    server = build_server(stash)
    try:
        async with anyio.create_task_group() as tasks:
            if sys.platform != "win32":
                tasks.start_soon(_end_on_signal, stash)
            async with transport() as streams, relayed(*streams) as (incoming, outgoing, listed):
                tasks.start_soon(_import_rooms, listed, settings)
                changes = NotificationOptions(resources_changed=True)
                options = server.create_initialization_options(changes)
                await server.run(incoming, outgoing, options)
            tasks.cancel_scope.cancel()
    except* BrokenPipeError:
        _log.info("The host has closed our stdout: nobody is left to answer.")
        await stash.aclose()
        os._exit(0)  # for the same reason as in _end_on_signal


async def _import_rooms(listed: anyio.Event, settings: Settings) -> None:
    """Import what a call needs once the host has the tools, so that neither waits for it."""
    await listed.wait()
    await anyio.to_thread.run_sync(import_module, "fetchstash.server._call")
    handlers = await anyio.to_thread.run_sync(import_module, "fetchstash.handlers")
    handlers.warn_unconfined(settings.extract)


async def _end_on_signal(stash: LazyStash) -> None:
    """Close the stash and exit at once.

    The thread that reads stdin blocks until the host writes, so no task could end it.
    """
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async for number in signals:
            await stash.aclose()
            os._exit(128 + number)
