"""JSON-RPC over stdin and stdout: lines in and out, and what no message may hold.

Each read takes all that the host has written, and each write all that waits. A thread of its own
for each line, as in the SDK's transport, gives the interpreter away several times for each message:
beside threads that are busy that is 5 ms each time (sys.setswitchinterval), and requests that come
faster than that wait in line.

The SDK drops a line that is no message, and its sender waits for the answer for ever. It also
starts a task for each request, although nobody may read the answers.
"""

import json
import os
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterable
from contextlib import asynccontextmanager
from typing import Any, Protocol, cast

import anyio
import anyio.to_thread
import mcp_types as types
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from fetchstash.errors import BadArgument, Busy

_READ_BYTES = 2**16


def claim_streams() -> tuple[int, int]:
    """Return new descriptors of stdin and stdout.

    From now on stdin is empty, and what else is written to stdout goes to stderr: only JSON-RPC may
    reach the host. Both stay open until the process ends: a thread may still be reading.
    """
    streams = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return streams


async def read_lines(descriptor: int) -> AsyncGenerator[bytes]:
    """Yield the lines that are read, without their ends."""
    # The thread that reads waits for ever, so it takes no place among the others.
    limiter, line = anyio.CapacityLimiter(1), bytearray()
    while data := await anyio.to_thread.run_sync(
        os.read, descriptor, _READ_BYTES, abandon_on_cancel=True, limiter=limiter
    ):
        *ends, rest = data.split(b"\n")
        for end in ends:
            yield bytes(line + end)
            line.clear()
        line += rest
    if line:
        yield bytes(line)


class LineWriter:
    """Writes lines of several tasks, in the order of their calls."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._unwritten: list[bytes] = []
        self._lock = anyio.Lock()
        self._limiter = anyio.CapacityLimiter(1)

    async def write(self, *lines: bytes) -> None:
        """Write lines, and return when they are written. Raises OSError."""
        self._unwritten += lines
        async with self._lock:
            data = b"".join(self._unwritten)  # nothing where the task before took ours along
            self._unwritten.clear()
            if data:
                await anyio.to_thread.run_sync(self._write_all, data, limiter=self._limiter)

    def _write_all(self, data: bytes) -> None:
        left = memoryview(data)
        while left:
            left = left[os.write(self._descriptor, left) :]


MAX_WAITING = 256
"""Requests whose answers the client has not read yet; more are held back."""

MAX_HELD = 1_024
"""Requests held back; more are refused. Reading goes on, since what comes next may cancel some."""

Received = SessionMessage | Exception
Streams = tuple[
    MemoryObjectReceiveStream[Received], MemoryObjectSendStream[SessionMessage], anyio.Event
]


class Sender(Protocol):
    """A stream of the transport that takes messages to the client."""

    async def send(self, item: SessionMessage, /) -> None:
        """Send one message."""
        ...

    async def aclose(self) -> None:
        """Close the stream, which ends the transport."""
        ...


class _Relay:
    """Passes messages on, and counts the requests that wait for their answer."""

    def __init__(self) -> None:
        self._waiting: dict[types.RequestId | None, str] = {}  # the method of each request
        self._held: deque[tuple[types.JSONRPCRequest, SessionMessage]] = deque()
        self._client_ended = False
        self._answered = anyio.Event()
        self.listed = anyio.Event()

    async def receive(
        self,
        client: AsyncIterable[Received],
        server: MemoryObjectSendStream[Received],
        answers: MemoryObjectSendStream[SessionMessage],
    ) -> None:
        """Pass on what the client sends; answer what is no message."""
        async with server, answers, anyio.create_task_group() as tasks:
            tasks.start_soon(self._pass_held_on, server)
            async for received in client:
                if isinstance(received, Exception):
                    if error := unreadable(received):
                        await answers.send(SessionMessage(error))
                    continue
                match received.message:
                    case types.JSONRPCRequest() as request if len(self._held) >= MAX_HELD:
                        await answers.send(SessionMessage(_too_many(request)))
                        continue
                    case types.JSONRPCRequest() as request if self._held or self._is_full:
                        self._held.append((request, received))
                        continue
                    case types.JSONRPCRequest(id=number, method=method):
                        self._waiting[number] = method
                    case types.JSONRPCNotification(
                        method="notifications/cancelled", params={"requestId": number}
                    ):
                        held = [item for item in self._held if item[0].id == number]
                        if held:
                            self._held.remove(held[0])
                            continue
                        self._forget(number)
                    case _:
                        pass
                await server.send(received)
            self._client_ended = True
            self._answered.set()

    async def send(self, server: MemoryObjectReceiveStream[SessionMessage], client: Sender) -> None:
        """Pass on what the server sends, for as long as the transport takes it."""
        async with server:
            async for sent in server:
                try:
                    await client.send(sent)
                except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                    return
                match sent.message:
                    case types.JSONRPCResponse(id=request) | types.JSONRPCError(id=request):
                        if self._forget(request) == "tools/list":
                            self.listed.set()
                    case _:
                        pass

    @property
    def _is_full(self) -> bool:
        return len(self._waiting) >= MAX_WAITING

    async def _pass_held_on(self, server: MemoryObjectSendStream[Received]) -> None:
        """Pass on what was held back, in order, as others are answered."""
        while True:
            while self._held and not self._is_full:
                request, received = self._held.popleft()
                self._waiting[request.id] = request.method
                await server.send(received)
            if self._client_ended and not self._held:
                return
            self._answered = anyio.Event()
            await self._answered.wait()

    def _forget(self, request: types.RequestId | None) -> str | None:
        """Wait for a request no longer; return its method."""
        self._answered.set()
        return self._waiting.pop(request, None)


@asynccontextmanager
async def relayed(incoming: AsyncIterable[Received], outgoing: Sender) -> AsyncGenerator[Streams]:
    """Yield the streams for a server, in place of the transport's own.

    The event is set when the client was sent a list of the tools.
    At the end what the server has sent is still passed on, and ``outgoing`` is closed.
    """
    to_server, for_server = anyio.create_memory_object_stream[Received](0)
    from_server, for_client = anyio.create_memory_object_stream[SessionMessage](0)
    relay = _Relay()
    async with anyio.create_task_group() as sending:
        sending.start_soon(relay.send, for_client, outgoing)
        async with anyio.create_task_group() as receiving, for_server:
            receiving.start_soon(relay.receive, incoming, to_server, from_server.clone())
            async with from_server:
                yield for_server, from_server, relay.listed
            receiving.cancel_scope.cancel()
    await outgoing.aclose()


def _too_many(request: types.JSONRPCRequest) -> types.JSONRPCError:
    error = Busy("Too many requests are unanswered.", "Wait for some of them.")
    problem = types.ErrorData(code=types.INTERNAL_ERROR, message=error.line())
    return types.JSONRPCError(jsonrpc="2.0", id=request.id, error=problem)


def unreadable(error: Exception) -> types.JSONRPCError | None:
    """Return the answer to a line that is no message, None if it has no id to answer to."""
    request = _request_of(error)
    number: Any = request.get("id")
    if "method" not in request or not is_request_id(number):
        return None
    problem = types.ErrorData(code=types.INVALID_REQUEST, message=no_message().line())
    return types.JSONRPCError(jsonrpc="2.0", id=number, error=problem)


def no_message() -> BadArgument:
    """Return the error for what is JSON, and no message that the SDK can read."""
    return BadArgument(
        "The request is no message of MCP, or holds half of a surrogate pair.",
        "Send JSON-RPC in valid Unicode.",
    )


def is_request_id(value: object) -> bool:
    """Return whether a value can be the id of a request, and be sent back."""
    if isinstance(value, bool) or not isinstance(value, int | str):
        return False
    try:
        str(value).encode()
    except UnicodeEncodeError:  # half of a surrogate pair
        return False
    return True


def _request_of(error: Exception) -> dict[str, Any]:
    """Return the request that pydantic could not read. Python's JSON takes lone surrogates."""
    if not isinstance(error, ValidationError):
        return {}
    inputs = [detail["input"] for detail in error.errors(include_url=False)]
    for value in inputs:
        try:
            request: Any = json.loads(value) if isinstance(value, str) else value
        except (ValueError, RecursionError):
            continue
        if isinstance(request, dict) and "id" in request:
            return cast("dict[str, Any]", request)
    return {}
