"""JSON-RPC over stdin and stdout: checks of each message, and how many may wait.

The SDK drops a line that is no message, and its sender waits for the answer for ever. It also
starts a task for each request, although nobody may read the answers.
"""

import json
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

import anyio
import mcp_types as types
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from fetchstash.errors import BadArgument, Busy
from fetchstash.text.untyped import is_object

MAX_WAITING = 256
"""Requests whose answers the client has not read yet; more are held back."""

MAX_HELD = 1_024
"""Requests held back; more are refused. Reading goes on, since what comes next may cancel some."""

Received = SessionMessage | Exception
Streams = tuple[
    MemoryObjectReceiveStream[Received], MemoryObjectSendStream[SessionMessage], anyio.Event
]
Write = Callable[[Sequence[SessionMessage]], Awaitable[None]]
"""Takes messages to the client, and returns when they are written."""

_WRITTEN_TOGETHER = 32
"""Messages that wait to be written; beyond them whoever sends one waits."""


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
        """Pass on the client's messages; answer invalid ones with an error."""
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

    async def send(self, server: MemoryObjectReceiveStream[SessionMessage], write: Write) -> None:
        """Pass on what the server sends, all that waits at a time."""
        async with server:
            async for first in server:
                sent = [first]
                with suppress(anyio.WouldBlock, anyio.EndOfStream):
                    while True:
                        sent.append(server.receive_nowait())
                await write(sent)
                for item in sent:
                    match item.message:
                        case types.JSONRPCResponse(id=request) | types.JSONRPCError(id=request):
                            if self._forget(request) == "tools/list":
                                self.listed.set()
                        case _:
                            pass

    @property
    def _is_full(self) -> bool:
        return len(self._waiting) >= MAX_WAITING

    async def _pass_held_on(self, server: MemoryObjectSendStream[Received]) -> None:
        """Pass on the requests that were held back, in order, as earlier ones are answered."""
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
async def relayed(incoming: AsyncIterable[Received], write: Write) -> AsyncGenerator[Streams]:
    """Yield the streams for a server, in place of the transport's own.

    The event is set when the client was sent a list of the tools.
    At the end what the server has sent is still written.
    """
    to_server, for_server = anyio.create_memory_object_stream[Received](0)
    from_server, for_client = anyio.create_memory_object_stream[SessionMessage](_WRITTEN_TOGETHER)
    relay = _Relay()
    async with anyio.create_task_group() as sending:
        sending.start_soon(relay.send, for_client, write)
        async with anyio.create_task_group() as receiving, for_server:
            receiving.start_soon(relay.receive, incoming, to_server, from_server.clone())
            async with from_server:
                yield for_server, from_server, relay.listed
            receiving.cancel_scope.cancel()


def _too_many(request: types.JSONRPCRequest) -> types.JSONRPCError:
    error = Busy("Too many requests are unanswered.", "Wait for some of them.")
    problem = types.ErrorData(code=types.INTERNAL_ERROR, message=error.line())
    return types.JSONRPCError(jsonrpc="2.0", id=request.id, error=problem)


def unreadable(error: Exception) -> types.JSONRPCError | None:
    """Return the error for an invalid message, None if it has no id to answer."""
    request = _request_of(error)
    number: Any = request.get("id")
    if "method" not in request or not is_request_id(number):
        return None
    problem = types.ErrorData(code=types.INVALID_REQUEST, message=no_message().line())
    return types.JSONRPCError(jsonrpc="2.0", id=number, error=problem)


def no_message() -> BadArgument:
    """Return the error for JSON that the SDK cannot parse as a message."""
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
        if is_object(request) and "id" in request:
            return request
    return {}
