"""Serve the gateway on stdin and stdout."""

import logging
import os
import secrets
import signal
import sys
import tempfile
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread

from fetchstash.config import Settings, WrappedServer, resolved
from fetchstash.errors import FetchstashError, ServerFailed, TooLarge
from fetchstash.gateway import _process
from fetchstash.gateway._framing import UnreadableMessage, parsed
from fetchstash.gateway._gateway import Gateway
from fetchstash.gateway._protocol import INTERNAL_ERROR, INVALID_REQUEST, as_line
from fetchstash.gateway._rpc import (
    Connection,
    ConnectionEnded,
    Message,
    Params,
    Peer,
    RpcError,
    read_back,
)
from fetchstash.gateway._start import Process, start
from fetchstash.gateway._upstream import Open, Upstream
from fetchstash.server import (
    EXTENSION,
    LineWriter,
    claim_streams,
    hide_memory,
    listed_tools,
    read_lines,
)
from fetchstash.store import AUTO_RUN, StoreLimits, with_run
from fetchstash.text import clip

if TYPE_CHECKING:
    from fetchstash.stash import Stash

_log = logging.getLogger("fetchstash.gateway")


def host_connection() -> Connection:
    """Return the connection to the host, which takes stdin and stdout for itself."""
    sys.stdout.flush()
    stdin, stdout = claim_streams()
    writer = LineWriter(stdout)

    async def send(message: Message) -> None:
        line = _line(message)
        try:
            await writer.write(line)
        except OSError:
            raise ConnectionEnded from None

    return _messages(stdin), send


async def _messages(stdin: int) -> AsyncGenerator[Message]:
    """Yield what the host sends. What is no message is passed over."""
    async for line in read_lines(stdin):
        try:
            if line.strip():
                yield parsed(line)
        except UnreadableMessage as error:
            _log.warning("The host sent %s.", error)


def _line(message: Message) -> bytes:
    """Return a message for the host. Of a result that nobody made short only an error is left."""
    with suppress(TypeError):  # a value stands in a file
        return as_line(message)
    try:
        return as_line(read_back(message))
    except TooLarge:
        if "method" in message:
            raise RpcError(INVALID_REQUEST, "The request is too long.") from None
        error = RpcError(INTERNAL_ERROR, "The answer is too long. Ask for less.")
        return as_line({"jsonrpc": "2.0", "id": message["id"], "error": error.as_object})


OWN = WrappedServer("fetchstash")
OWN_ABOUT: dict[str, Any] = {
    "capabilities": {"tools": {}, "resources": {}, "completions": {}, "extensions": {EXTENSION: {}}}
}
"""What fetchstash offers behind the gateway, known before its server runs."""


class _Rooms:
    """What opens each server, and the Stash that keeps their long results.

    ``started`` has the processes that run already, by the names of their servers.
    """

    def __init__(self, settings: Settings, started: Mapping[str, Process]) -> None:
        self.settings = settings
        self._started = dict(started)
        self._own_is_needed = anyio.Event()
        self._stack = AsyncExitStack()
        self._lock = anyio.Lock()
        self._stash: Stash | None = None

    def open_own(self) -> Open:
        """Return what runs fetchstash itself in this process, once it is needed."""

        @asynccontextmanager
        async def opened() -> AsyncGenerator[Connection]:
            await self._own_is_needed.wait()
            own = await _imported("fetchstash.gateway._own")
            async with own.connected(self.settings) as connection:
                yield connection

        return opened

    def open(self, server: WrappedServer) -> Open:
        """Return what connects to a server, and starts it if it is a command."""

        @asynccontextmanager
        async def opened() -> AsyncGenerator[Connection]:
            limit = self.settings.store.max_total_bytes
            if server.url:
                http = await _imported("fetchstash.gateway._http")
                async with http.connected(server, self._spool, limit) as connection:
                    yield connection
                return
            process = self._started.pop(server.name, None) or _start(server)
            async with _process.connected(server, process, self._spool, limit) as connection:
                yield connection

        return opened

    def need_own(self) -> None:
        """Start fetchstash itself."""
        self._own_is_needed.set()

    async def open_store(self) -> None:
        """Open the store, which long values are written into as they arrive."""
        try:
            await self._opened()
        except FetchstashError as error:
            _log.warning("%s", error)  # what is short still passes

    async def stash(self) -> "Stash":
        """Return the Stash that keeps a long result. A model that sees its preview reads on."""
        self.need_own()
        return await self._opened()

    async def _opened(self) -> "Stash":
        async with self._lock:
            if self._stash is None:
                room = await _imported("fetchstash.stash")
                opened: AbstractAsyncContextManager[Stash] = room.open_stash(self.settings)
                self._stash = await self._stack.enter_async_context(opened)
                (await _imported("fetchstash.handlers")).warn_unconfined(self.settings.extract)
            return self._stash

    async def aclose(self) -> None:
        """Close the Stash, and end what was started and never connected to."""
        for process in self._started.values():
            await _process.end(process)
        await self._stack.aclose()

    def _spool(self) -> Path:
        """Return the folder for long values: the store's own, once it is open."""
        return Path(tempfile.gettempdir()) if self._stash is None else self._stash.store.spool


async def _imported(module: str) -> ModuleType:
    """Import a module that takes longer than a quick server to start; the loop goes on."""
    return await anyio.to_thread.run_sync(import_module, module)


def _start(server: WrappedServer) -> Process:
    """Start a server's process. Raises ServerFailed."""
    try:
        variables = resolved(server.name, server.env)
        process = start([server.command, *server.args], variables)
    except OSError as error:
        what = f"{server.name} cannot be started: {error.strerror}."
        raise ServerFailed(what, "Correct its command.") from None
    if process is None:
        what = f"{server.name}: there is no command {clip(server.command, 120)!r}."
        raise ServerFailed(what, "Correct it, or install the server.")
    return process


async def serve(
    settings: Settings,
    servers: Sequence[WrappedServer],
    started: Mapping[str, Process],
    *,
    with_fetch: bool,
) -> None:
    """Serve until the host closes our stdin or stdout, or ends us; then end the servers."""
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING)
    hide_memory()
    rooms = _Rooms(replace(settings, store=_one_run(settings.store)), started)
    ended_by: list[int] = []
    host = Peer("The host", host_connection())
    try:
        async with anyio.create_task_group() as tasks:
            if sys.platform != "win32":
                tasks.start_soon(_end_on_signal, tasks.cancel_scope, ended_by)
            await _gateway(rooms, host, servers, with_fetch=with_fetch).run()
            tasks.cancel_scope.cancel()
    finally:
        with anyio.CancelScope(shield=True):
            await rooms.aclose()
        # The thread that reads stdin blocks until the host writes, so no task could end it.
        if ended_by:
            os._exit(128 + ended_by[0])
        if host.takes_nothing:
            os._exit(0)


def _gateway(
    rooms: _Rooms, host: Peer, servers: Sequence[WrappedServer], *, with_fetch: bool
) -> Gateway:
    """Return the gateway and its servers, which answer to it."""

    async def on_request(
        upstream: Upstream, method: str, params: Params | None
    ) -> dict[str, object]:
        return await gateway.on_request(upstream, method, params)

    async def on_notify(upstream: Upstream, method: str, params: Params | None) -> None:
        await gateway.on_notify(upstream, method, params)

    upstreams = [Upstream(server, rooms.open(server), on_request, on_notify) for server in servers]
    known = {"tools/list": {"tools": listed_tools(rooms.settings)}}
    own = Upstream(OWN, rooms.open_own(), on_request, on_notify, about=dict(OWN_ABOUT), known=known)
    own.on_wait = rooms.need_own
    gateway = Gateway(
        host,
        rooms.settings,
        rooms.stash,
        upstreams,
        own,
        with_fetch=with_fetch,
        listed=rooms.open_store,
    )
    return gateway


def _one_run(limits: StoreLimits) -> StoreLimits:
    """Return the limits with one named run: long results and the tools that read them share it."""
    if limits.ephemeral and limits.run == AUTO_RUN:
        return replace(limits, run=f"wrap-{secrets.token_hex(8)}")
    return with_run(limits)


async def _end_on_signal(serving: anyio.CancelScope, ended_by: list[int]) -> None:
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT, signal.SIGHUP) as signals:
        async for number in signals:
            ended_by.append(number)
            serving.cancel()
            return
