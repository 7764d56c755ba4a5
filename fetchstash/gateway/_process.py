"""A wrapped server as a child process: its streams, its stderr, its end."""

import logging
import os
import signal
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import anyio
import mcp_types as types
from anyio.abc import ByteReceiveStream, Process
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from fetchstash.config import WrappedServer
from fetchstash.errors import ServerFailed
from fetchstash.gateway._framing import MessageReader, UnreadableMessage
from fetchstash.hygiene import clean_line
from fetchstash.text import clip

END_SECONDS = 2.0
"""How long a server may take to end: after its stdin is closed, and again after SIGTERM."""

STDERR_LINE_CHARS = 1_000

Received = SessionMessage | Exception
Streams = tuple[MemoryObjectReceiveStream[Received], MemoryObjectSendStream[SessionMessage]]

_log = logging.getLogger("fetchstash.gateway")


@asynccontextmanager
async def connected(
    server: WrappedServer, process: Process, spool: Callable[[], Path], limit: int
) -> AsyncGenerator[Streams]:
    """Yield the streams of a process that was started; end it, and its children, at the end."""
    to_us, received = anyio.create_memory_object_stream[Received](0)
    to_send, from_us = anyio.create_memory_object_stream[SessionMessage](0)
    reader = MessageReader(spool, limit)
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_receive, server, process, reader, to_us)
            tasks.start_soon(_send, process, from_us)
            tasks.start_soon(_pass_stderr_on, server, process)
            yield received, to_send
            tasks.cancel_scope.cancel()
    finally:
        reader.discard()
        with anyio.CancelScope(shield=True):
            await end(process)


async def end(process: Process) -> None:
    """End a process: close its stdin, then SIGTERM, then SIGKILL, to its whole group."""
    if process.stdin is not None:
        with suppress(OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
            await process.stdin.aclose()
    for ending in (None, signal.SIGTERM, getattr(signal, "SIGKILL", signal.SIGTERM)):
        if ending is not None:
            _signal_group(process, ending)
        with anyio.move_on_after(END_SECONDS):
            await process.wait()
            break
    _signal_group(process, getattr(signal, "SIGKILL", signal.SIGTERM))  # its children
    await process.aclose()


def _signal_group(process: Process, number: int) -> None:
    with suppress(OSError):
        if sys.platform == "win32":
            process.send_signal(number)
        else:
            os.killpg(process.pid, number)


async def _receive(
    server: WrappedServer,
    process: Process,
    reader: MessageReader,
    to_us: MemoryObjectSendStream[Received],
) -> None:
    """Pass on what the server writes. What is no message is logged in one line."""
    async with to_us:
        async for data in _pieces(process.stdout):
            for message in reader.feed(data):
                if (item := as_message(server, message)) is not None:
                    await to_us.send(item)


def as_message(
    server: WrappedServer, message: dict[str, object] | UnreadableMessage
) -> SessionMessage | None:
    """Return what a server sent as a message of the SDK, None for what is none.

    A call whose answer cannot be read gets an error in its place.
    """
    if isinstance(message, UnreadableMessage):
        _log.warning("%s sent %s.", server.name, clip(clean_line(str(message)), 200))
        if message.request_id is None:
            return None
        what = f"{server.name} sent {message}."
        line = ServerFailed(what, "Ask it for less, or for a part of it.").line()
        error = types.ErrorData(code=types.INTERNAL_ERROR, message=line)
        return SessionMessage(types.JSONRPCError(jsonrpc="2.0", id=message.request_id, error=error))
    try:
        return SessionMessage(types.jsonrpc_message_adapter.validate_python(message, by_name=False))
    except ValidationError:
        _log.warning("%s sent JSON that is no message of JSON-RPC.", server.name)
        return None


async def _send(process: Process, from_us: MemoryObjectReceiveStream[SessionMessage]) -> None:
    async with from_us:
        async for item in from_us:
            line = item.message.model_dump_json(by_alias=True, exclude_unset=True) + "\n"
            if process.stdin is None:
                return
            try:
                await process.stdin.send(line.encode())
            except (anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
                return  # it has ended: reading its stdout tells the rest


async def _pass_stderr_on(server: WrappedServer, process: Process) -> None:
    """Write the server's stderr to ours, each line under its name, without its secrets."""
    secrets = server.secrets()
    line = bytearray()
    async for data in _pieces(process.stderr):
        *whole, rest = (bytes(line) + data).split(b"\n")
        line[:] = rest[: 4 * STDERR_LINE_CHARS]
        for written in whole:
            say(server, written.decode("utf-8", "replace"), secrets)
    if line:
        say(server, line.decode("utf-8", "replace"), secrets)


def say(server: WrappedServer, text: str, secrets: tuple[str, ...] = ()) -> None:
    """Write one line about a server to stderr."""
    for secret in secrets:
        text = text.replace(secret, "***")
    if text := clip(clean_line(text), STDERR_LINE_CHARS):
        print(f"[{server.name}] {text}", file=sys.stderr, flush=True)  # noqa: T201 - stderr


async def _pieces(stream: ByteReceiveStream | None) -> AsyncGenerator[bytes]:
    if stream is None:
        return
    with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
        async for data in stream:
            yield data
