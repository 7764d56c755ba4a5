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
from functools import partial
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
from fetchstash.gateway._lean import LISTED
from fetchstash.gateway._protocol import INTERNAL_ERROR, INVALID_REQUEST, as_line
from fetchstash.gateway._rpc import (
    Connection,
    ConnectionEnded,
    Message,
    Peer,
    RpcError,
    read_back,
    walked,
)
from fetchstash.gateway._start import Process, start
from fetchstash.gateway._upstream import Upstream
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
        line = await walked(_line, message)
        try:
            await writer.write(line)
        except OSError:
            raise ConnectionEnded from None

    async def messages() -> AsyncGenerator[Message]:
        async for line in read_lines(stdin):
            try:
                if line.strip():
                    yield parsed(line)
            except UnreadableMessage as error:
                _log.warning("The host sent %s.", error)

    return messages(), send


def _line(message: Message) -> bytes:
    """Return a message for the host. A result that was never shortened becomes an error."""
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


class _Connections:
    """Opens each server, and the Stash that keeps their long results.

    ``started`` has the processes that run already, by the names of their servers.
    """

    def __init__(self, settings: Settings, started: Mapping[str, Process]) -> None:
        self.settings = settings
        self._started = dict(started)
        self.own_is_needed = anyio.Event()
        self._stack = AsyncExitStack()
        self._lock = anyio.Lock()
        self._stash: Stash | None = None

    @asynccontextmanager
    async def own(self) -> AsyncGenerator[Connection]:
        """Run fetchstash itself in this process, once it is needed."""
        await self.own_is_needed.wait()
        sdk = await _imported("fetchstash.gateway._sdk")
        async with sdk.connected_to_own(self.settings) as connection:
            yield connection

    @asynccontextmanager
    async def of(self, server: WrappedServer) -> AsyncGenerator[Connection]:
        """Connect to a server, and start it if it is a command."""
        limit = self.settings.store.max_total_bytes
        if server.url:
            sdk = await _imported("fetchstash.gateway._sdk")
            opened = sdk.connected_over_http(server, self._spool, limit)
        else:
            process = self._started.pop(server.name, None) or _start(server)
            opened = _process.connected(server, process, self._spool, limit)
        async with opened as connection:
            yield connection

    async def open_store(self) -> None:
        """Open the store, which long values are written into as they arrive."""
        try:
            await self._opened()
        except FetchstashError as error:
            _log.warning("%s", error)  # what is short still passes

    async def stash(self) -> "Stash":
        """Return the Stash that keeps a long result. A model that sees its preview reads on."""
        self.own_is_needed.set()
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
        """Close the Stash, and end processes that were started and never connected to."""
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
        process = start([server.command, *server.args], variables, server.cwd)
    except OSError as error:
        what = f"{server.name} cannot be started: {error.strerror}."
        raise ServerFailed(what, "Correct its command.") from None
    if process is None:
        what = f"{server.name}: there is no command {clip(server.command, 120)!r}."
        raise ServerFailed(what, "Correct it, or install the server.")
    return process


async def serve_gateway(
    settings: Settings,
    servers: Sequence[WrappedServer],
    started: Mapping[str, Process],
    *,
    with_fetch: bool,
) -> None:
    """Serve the tools of ``servers`` over stdin and stdout, until the host closes them or ends us.

    ``started`` has the processes that run already, by the names of their servers. ``with_fetch``
    adds fetch_content. A server that cannot be started is told of on stderr, and tried again.
    """
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING)
    hide_memory()
    connections = _Connections(replace(settings, store=_one_run(settings.store)), started)
    upstreams = [Upstream(server, partial(connections.of, server)) for server in servers]
    own = Upstream(
        OWN,
        connections.own,
        is_own=True,
        about=dict(OWN_ABOUT),
        known={"tools/list": {"tools": [*listed_tools(connections.settings), LISTED]}},
        on_wait=connections.own_is_needed.set,
    )
    ended_by: list[int] = []
    host = Peer("The host", host_connection())
    gateway = Gateway(
        host,
        connections.settings,
        connections.stash,
        upstreams,
        own,
        with_fetch=with_fetch,
        on_listed=connections.open_store,
    )
    try:
        async with anyio.create_task_group() as tasks:
            if sys.platform != "win32":
                tasks.start_soon(_end_on_signal, tasks.cancel_scope, ended_by)
            await gateway.run()
            tasks.cancel_scope.cancel()
    finally:
        with anyio.CancelScope(shield=True):
            await connections.aclose()
        # The thread that reads stdin blocks until the host writes, so no task could end it.
        if ended_by:
            os._exit(128 + ended_by[0])
        if host.takes_nothing:
            os._exit(0)


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
