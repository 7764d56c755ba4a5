"""Start the servers, then serve the host over stdin and stdout."""

import logging
import os
import secrets
import signal
import sys
import tempfile
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path

import anyio
from anyio.abc import Process
from mcp.server.stdio import stdio_server
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp.shared.message import SessionMessage
from mcp.shared.transport_context import TransportContext

from fetchstash.config import Settings, WrappedServer
from fetchstash.errors import FetchstashError
from fetchstash.gateway import _http, _process
from fetchstash.gateway._gateway import Gateway
from fetchstash.gateway._process import Received, Streams
from fetchstash.gateway._start import start
from fetchstash.gateway._upstream import Open, Params, Upstream
from fetchstash.server import LazyStash, build_server, hide_memory, relayed
from fetchstash.stash import Stash, open_stash
from fetchstash.store import AUTO_RUN, StoreLimits, with_run

OWN = WrappedServer("fetchstash")

_log = logging.getLogger("fetchstash.gateway")


class _Servers:
    """The servers' processes, and what opens each of them."""

    def __init__(self, own: LazyStash, started: Mapping[str, Process]) -> None:
        self._own = own
        self._started = dict(started)
        self._running: list[Process] = list(started.values())
        self._stack = AsyncExitStack()
        self._lock = anyio.Lock()
        self._stash: Stash | None = None

    def open_own(self) -> Open:
        """Return what runs fetchstash itself in this process."""

        @asynccontextmanager
        async def opened() -> AsyncGenerator[Streams]:
            to_us, received = anyio.create_memory_object_stream[Received](0)
            to_send, from_us = anyio.create_memory_object_stream[SessionMessage](0)
            server = build_server(self._own)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(server.run, from_us, to_us, server.create_initialization_options())
                yield received, to_send
                tasks.cancel_scope.cancel()

        return opened

    def open(self, server: WrappedServer) -> Open:
        """Return what connects to a server, and starts it if it is a command."""

        @asynccontextmanager
        async def opened() -> AsyncGenerator[Streams]:
            limit = self._own.settings.store.max_total_bytes
            if server.url:
                async with _http.connected(server, self._spool, limit) as streams:
                    yield streams
                return
            process = self._started.pop(server.name, None) or await start(server)
            self._running.append(process)
            async with _process.connected(server, process, self._spool, limit) as streams:
                yield streams
            self._running.remove(process)

        return opened

    async def end(self) -> None:
        """End every process."""
        async with anyio.create_task_group() as tasks:
            for process in self._running:
                tasks.start_soon(_process.end, process)

    async def open_store(self) -> None:
        """Open the store, which long values are written into as they arrive."""
        try:
            await self.stash()
        except FetchstashError as error:
            _log.warning("%s", error)  # what is short still passes

    async def stash(self) -> Stash:
        """Return the Stash that keeps long results, opened if need be."""
        async with self._lock:
            if self._stash is None:
                opened = open_stash(self._own.settings)
                self._stash = await self._stack.enter_async_context(opened)
            return self._stash

    async def aclose(self) -> None:
        """Close the Stash."""
        await self._stack.aclose()

    def _spool(self) -> Path:
        """Return the folder for long values: the store's own, once it is open."""
        return Path(tempfile.gettempdir()) if self._stash is None else self._stash.store.spool


async def serve(
    settings: Settings,
    servers: Sequence[WrappedServer],
    started: Mapping[str, Process],
    *,
    with_fetch: bool,
) -> None:
    """Serve until the host closes our stdin or ends us; then end the servers.

    ``started`` has the processes that run already, by the names of their servers.
    """
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING)
    hide_memory()
    own = LazyStash(replace(settings, store=_one_run(settings.store)), owns_process=True)
    processes = _Servers(own, started)
    try:
        async with anyio.create_task_group() as tasks:
            if sys.platform != "win32":
                tasks.start_soon(_end_on_signal, processes, own)
            async with stdio_server() as transport, relayed(*transport) as (incoming, outgoing):
                host = JSONRPCDispatcher[TransportContext](
                    incoming, outgoing, inline_methods=frozenset({"initialize"})
                )
                await _gateway(host, own.settings, servers, processes, with_fetch=with_fetch).run()
            tasks.cancel_scope.cancel()
    except* BrokenPipeError:
        _log.info("The host has closed our stdout: nobody is left to answer.")
    finally:
        with anyio.CancelScope(shield=True):
            await own.aclose()
            await processes.aclose()


def _gateway(
    host: JSONRPCDispatcher[TransportContext],
    settings: Settings,
    servers: Sequence[WrappedServer],
    processes: _Servers,
    *,
    with_fetch: bool,
) -> Gateway:
    """Return the gateway and its servers, which answer to it."""

    async def on_request(
        upstream: Upstream, method: str, params: Params | None
    ) -> dict[str, object]:
        return await gateway.on_request(upstream, method, params)

    async def on_notify(upstream: Upstream, method: str, params: Params | None) -> None:
        await gateway.on_notify(upstream, method, params)

    upstreams = [
        Upstream(server, processes.open(server), on_request, on_notify) for server in servers
    ]
    own = Upstream(OWN, processes.open_own(), on_request, on_notify)
    gateway = Gateway(
        host,
        settings,
        processes.stash,
        upstreams,
        own,
        with_fetch=with_fetch,
        listed=processes.open_store,
    )
    return gateway


def _one_run(limits: StoreLimits) -> StoreLimits:
    """Return the limits with one named run: long results and the tools that read them share it."""
    if limits.ephemeral and limits.run == AUTO_RUN:
        return replace(limits, run=f"wrap-{secrets.token_hex(8)}")
    return with_run(limits)


async def _end_on_signal(processes: _Servers, own: LazyStash) -> None:
    """End the servers, close the stash, and exit at once.

    The thread that reads stdin blocks until the host writes, so no task could end it.
    """
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT, signal.SIGHUP) as signals:
        async for number in signals:
            with suppress(Exception):
                await processes.end()
            await own.aclose()
            await processes.aclose()
            os._exit(128 + number)
