"""A wrapped server as a child process: its messages, its stderr, its end."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import IO

import anyio
import anyio.to_thread

from fetchstash.config import WrappedServer
from fetchstash.errors import ServerFailed
from fetchstash.gateway._framing import MessageReader, UnreadableMessage
from fetchstash.gateway._protocol import INTERNAL_ERROR, as_line
from fetchstash.gateway._rpc import Connection, ConnectionEnded, Message, RpcError
from fetchstash.gateway._start import Process
from fetchstash.text import clip
from fetchstash.text.hygiene import clean_line

END_SECONDS = 2.0
"""How long a server may take to end: after its stdin is closed, and again after SIGTERM."""

LAST_WORDS_SECONDS = 0.5
"""How long the stderr of an ended server is read on, where a child of its own holds it open."""

STDERR_LINE_CHARS = 1_000
READ_BYTES, PIPE_BYTES = 2**16, 2**20
"""Pieces are small, so that the loop goes on between them. Pipes are large: a server waits less."""

if sys.platform == "linux":
    import fcntl


@asynccontextmanager
async def connected(
    server: WrappedServer, process: Process, spool: Callable[[], Path], limit: int
) -> AsyncGenerator[Connection]:
    """Yield the connection to a process that was started; end it, and its children, at the end."""
    reader = MessageReader(spool, limit)
    output, errors = await _reader(process.stdout), await _reader(process.stderr)
    writer = await _writer(process.stdin)

    async def send(message: Message) -> None:
        try:
            writer.write(as_line(message))
            await writer.drain()
        except OSError:
            raise ConnectionEnded from None

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_pass_stderr_on, server, errors[0])
        try:
            yield _messages(server, output[0], reader), send
        finally:
            reader.discard()
            if not writer.is_closing():
                writer.transport.abort()
            with anyio.CancelScope(shield=True):
                await end(process)
            tasks.cancel_scope.deadline = anyio.current_time() + LAST_WORDS_SECONDS
    for _, transport in (output, errors):
        transport.close()


async def _reader(pipe: IO[bytes] | None) -> tuple[asyncio.StreamReader, asyncio.ReadTransport]:
    """Return a reader of a process's pipe; the process may have started before the event loop."""
    if sys.platform == "linux" and pipe:
        with suppress(OSError):  # what all pipes of a person may hold has a bound
            fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
    reader = asyncio.StreamReader(READ_BYTES)
    protocol = asyncio.StreamReaderProtocol(reader)
    connecting = asyncio.get_running_loop().connect_read_pipe(lambda: protocol, pipe)
    return reader, (await connecting)[0]


async def _writer(pipe: IO[bytes] | None) -> asyncio.StreamWriter:
    loop = asyncio.get_running_loop()
    transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, pipe)
    return asyncio.StreamWriter(transport, protocol, None, loop)


async def end(process: Process) -> None:
    """End a process: close its stdin, then SIGTERM, then SIGKILL, to its whole group."""
    if process.stdin is not None:
        with suppress(OSError):
            process.stdin.close()
    for ending in (None, signal.SIGTERM, getattr(signal, "SIGKILL", signal.SIGTERM)):
        if ending is not None:
            _signal_group(process, ending)
        with suppress(subprocess.TimeoutExpired):
            await anyio.to_thread.run_sync(process.wait, END_SECONDS)
            break
    _signal_group(process, getattr(signal, "SIGKILL", signal.SIGTERM))  # its children


def _signal_group(process: Process, number: int) -> None:
    with suppress(OSError):
        if sys.platform == "win32":
            process.send_signal(number)
        else:
            os.killpg(process.pid, number)


async def _messages(
    server: WrappedServer, output: asyncio.StreamReader, reader: MessageReader
) -> AsyncGenerator[Message]:
    """Yield the server's messages. Other output is logged, one line each."""
    while data := await output.read(READ_BYTES):
        for message in await reader.beside_loop(partial(reader.messages, data)):
            if (item := readable(server, message)) is not None:
                yield item


def readable(server: WrappedServer, message: Message | UnreadableMessage) -> Message | None:
    """Return a message of the server, None if it cannot be parsed as one.

    A call whose answer cannot be read gets an error in its place.
    """
    if not isinstance(message, UnreadableMessage):
        return message
    say(server, f"fetchstash: it sent {clip(str(message), 200)}.")
    if message.request_id is None:
        return None
    failed = ServerFailed(f"{server.name} sent {message}.", "Ask it for less, or for a part of it.")
    error = RpcError(INTERNAL_ERROR, failed.line()).as_object
    return {"jsonrpc": "2.0", "id": message.request_id, "error": error}


async def _pass_stderr_on(server: WrappedServer, errors: asyncio.StreamReader) -> None:
    """Write the server's stderr to ours, each line under its name."""
    line = bytearray()
    while data := await errors.read(READ_BYTES):
        *whole, rest = (bytes(line) + data).split(b"\n")
        line[:] = rest[: 4 * STDERR_LINE_CHARS]
        for written in whole:
            say(server, written.decode("utf-8", "replace"))
    if line:
        say(server, line.decode("utf-8", "replace"))


def without_secrets(server: WrappedServer, text: str) -> str:
    """Return a text with stars in place of the server's secrets."""
    for secret in server.secrets():
        text = text.replace(secret, "***")
    return text


def say(server: WrappedServer, text: str) -> None:
    """Write one line about a server to stderr, without its secrets."""
    if text := clip(clean_line(without_secrets(server, text)), STDERR_LINE_CHARS):
        print(f"[{server.name}] {text}", file=sys.stderr, flush=True)  # noqa: T201 - stderr
