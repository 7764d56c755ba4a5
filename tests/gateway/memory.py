"""A gateway in memory: a host and scripted servers that speak JSON-RPC as data."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from anyio.abc import ObjectReceiveStream, ObjectSendStream

from fetchstash.config import WrappedServer, load
from fetchstash.gateway import _rpc
from fetchstash.gateway._gateway import Gateway
from fetchstash.gateway._lean import LISTED
from fetchstash.gateway._protocol import (
    CLIENT_CAPABILITIES_KEY,
    CLIENT_INFO_KEY,
    METHOD_NOT_FOUND,
    PROTOCOL_VERSION_KEY,
)
from fetchstash.gateway._rpc import Connection, ConnectionEnded, Message, Params, Peer
from fetchstash.gateway._upstream import Upstream
from fetchstash.stash import Stash

__all__ = [
    "AT_ONCE",
    "MODERN_META",
    "Line",
    "Message",
    "Peer",
    "Server",
    "asking",
    "gateway",
    "initialize",
    "let_wait",
    "names",
    "silent",
    "tools",
]

AT_ONCE = _rpc.AT_ONCE
OPENING = ("initialize", "server/discover")
MODERN_META: dict[str, Any] = {
    PROTOCOL_VERSION_KEY: "2026-07-28",
    CLIENT_INFO_KEY: {"name": "host", "version": "1"},
    CLIENT_CAPABILITIES_KEY: {"elicitation": {}},
}


def let_wait(monkeypatch: pytest.MonkeyPatch, calls: int) -> None:
    """Let no more calls of a host wait."""
    monkeypatch.setattr(_rpc, "MAX_WAITING", calls)


class Line:
    """One side of a connection."""

    def __init__(
        self, incoming: ObjectReceiveStream[Message], outgoing: ObjectSendStream[Message]
    ) -> None:
        self.incoming = incoming
        self.outgoing = outgoing
        self._last_id = 100

    async def send(self, message: Message) -> None:
        """Send a message. Raises ConnectionEnded."""
        try:
            await self.outgoing.send({"jsonrpc": "2.0", **message})
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            raise ConnectionEnded from None

    async def next(self) -> Message:
        """Return the next message."""
        with anyio.fail_after(60):
            return await self.incoming.receive()

    async def ask(self, method: str, params: Params | None = None) -> int:
        """Send a request; return its id."""
        self._last_id += 1
        await self.send({"id": self._last_id, "method": method, "params": dict(params or {})})
        return self._last_id

    async def call(self, method: str, params: Params | None = None) -> Message:
        """Send a request; return its answer. What comes before it is passed over."""
        number = await self.ask(method, params)
        while "method" in (message := await self.next()) or message["id"] != number:
            pass
        return message

    async def aclose(self) -> None:
        """End the connection."""
        await self.outgoing.aclose()
        await self.incoming.aclose()

    @property
    def connection(self) -> Connection:
        """This side as the gateway sees it."""
        return self.incoming, self.send


def connected() -> tuple[Line, Line]:
    """Return the two sides of a connection."""
    to_right, right = anyio.create_memory_object_stream[Message](64)
    to_left, left = anyio.create_memory_object_stream[Message](64)
    return Line(left, to_right), Line(right, to_left)


Script = Callable[[Line, Message], Awaitable[None]]


async def silent(_: Line, __: Message) -> None:
    """Answer nothing."""


def asking(method: str, params: Params) -> Script:
    """Return a script that asks the host something at each call of a tool."""

    async def asks(line: Line, message: Message) -> None:
        if message["method"] == "tools/call":
            await line.send({"id": 7, "method": method, "params": params})

    return asks


def tools(*words: str) -> dict[str, Any]:
    """Return the answer of a server that lists these tools."""
    return {"tools/list": {"tools": [{"name": word} for word in words]}}


class Server:
    """A server of one era. ``answers`` has its results by method, ``script`` handles the rest.

    ``opening`` handles ``initialize`` and ``server/discover`` where there is no answer to them.
    """

    def __init__(
        self,
        name: str,
        answers: Mapping[str, Any] | None = None,
        script: Script | None = None,
        *,
        era: str = "legacy",
        opening: Script | None = None,
        **settings: Any,
    ) -> None:
        self.settings = WrappedServer(name, command="none", **settings)
        self.era = era
        self.line: Line | None = None
        self.starts = 0
        self.received: list[Message] = []
        self._script = script
        self._opening = opening
        about: dict[str, Any] = {"capabilities": {"tools": {}, "resources": {}, "prompts": {}}}
        opened: dict[str, Any] = (
            {"initialize": {**about, "protocolVersion": "2025-06-18"}}
            if era == "legacy"
            else {"server/discover": {**about, "supportedVersions": ["2026-07-28"]}}
        )
        self.answers = {**({} if opening else opened), **(answers or {})}

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[Connection]:
        """Yield the gateway's side of a new connection, and serve the other."""
        self.starts += 1
        ours, theirs = connected()
        self.line = theirs
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._serve, theirs)
                yield ours.connection
                tasks.cancel_scope.cancel()
        finally:
            for side in (ours, theirs):
                await side.aclose()

    def got(self, method: str) -> list[Message]:
        """Return the messages of a method that it received."""
        return [message for message in self.received if message.get("method") == method]

    async def die(self) -> None:
        """End the connection, as a process does that ends."""
        assert self.line
        await self.line.aclose()

    async def _serve(self, line: Line) -> None:
        try:
            async for message in line.incoming:
                self.received.append(message)
                await self._respond(line, message)
        except (anyio.ClosedResourceError, anyio.BrokenResourceError, ConnectionEnded):
            return

    async def _respond(self, line: Line, message: Message) -> None:
        answer = self.answers.get(message.get("method", ""))
        if "method" not in message or "id" not in message:
            return
        if answer is not None:
            await line.send({"id": message["id"], "result": answer})
        elif script := self._opening if message["method"] in OPENING else self._script:
            await script(line, message)
        else:
            error = {"code": METHOD_NOT_FOUND, "message": "Method not found"}
            await line.send({"id": message["id"], "error": error})


@asynccontextmanager
async def gateway(
    *servers: Server, connects: str = "legacy", stash: Stash | None = None, lean: bool = False
) -> AsyncGenerator[Line]:
    """Yield a host that is connected to a gateway in front of ``servers``.

    Without a ``stash`` no long result may come. ``lean``: their tools are listed short.
    """

    async def keeper() -> Stash:
        assert stash
        return stash

    async def nothing() -> None:
        return

    @asynccontextmanager
    async def never() -> AsyncGenerator[Connection]:
        await anyio.sleep_forever()
        yield connected()[0].connection

    host, ours = connected()
    upstreams = [Upstream(server.settings, server.open) for server in servers]
    own = Upstream(WrappedServer("fetchstash"), never)
    own.known = {"tools/list": {"tools": [{"name": "artifact_grep"}, LISTED]}}
    own.about = {"capabilities": {"tools": {}}}
    served = Gateway(
        Peer("The host", ours.connection),
        stash.settings if stash else load({"store.url": "memory:", "wrap.lean": lean}),
        keeper,
        upstreams,
        own,
        with_fetch=False,
        on_listed=nothing,
    )
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(served.run)
        if connects == "legacy":
            await host.call("initialize", initialize())
            await host.send({"method": "notifications/initialized"})
        yield host
        tasks.cancel_scope.cancel()
    for side in (host, ours):
        await side.aclose()


def initialize() -> dict[str, Any]:
    """Return the parameters of a host of an earlier era."""
    info = {"name": "host", "version": "1"}
    return {
        "protocolVersion": "2025-06-18",
        "capabilities": {"elicitation": {}},
        "clientInfo": info,
    }


def names(answer: Message, field: str = "tools") -> list[str]:
    """Return the names in a list."""
    items: Sequence[Mapping[str, Any]] = answer["result"][field]
    return [str(item.get("name") or item.get("uri")) for item in items]
