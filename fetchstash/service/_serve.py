"""Serve MCP over HTTP until SIGTERM, for one machine or for a team."""

import contextlib
import ipaddress
import logging
import signal
import socket
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace

import anyio
import uvicorn
from mcp.server.transport_security import TransportSecuritySettings

from fetchstash.config import Settings
from fetchstash.errors import BadArgument
from fetchstash.server import hide_memory
from fetchstash.service._app import MCP_PATH, build_app
from fetchstash.service._auth import verifier_of
from fetchstash.service._source import Stashes, TenantSource
from fetchstash.stash import Stash, open_stash
from fetchstash.store import ALL_RUNS


class _Server(uvicorn.Server):
    """A server that leaves signals to us."""

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        """Capture none."""
        yield


class OneStash:
    """The Stash of a service without tenants."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._stack = contextlib.AsyncExitStack()
        self._lock = anyio.Lock()
        self._stash: Stash | None = None

    async def stash(self, _: str) -> Stash:
        """Return it, opened if need be."""
        async with self._lock:
            if self._stash is None:
                self._stash = await self._stack.enter_async_context(open_stash(self._settings))
            return self._stash

    def settings_of(self, _: str) -> Settings:
        """Return the settings."""
        return self._settings

    async def aclose(self) -> None:
        """Close it."""
        await self._stack.aclose()


async def serve_http(settings: Settings, address: str) -> None:
    """Serve until SIGTERM or SIGINT. Raises BadArgument for what cannot be served."""
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING)
    hide_memory()
    host, port = _split(address)
    verifier = await verifier_of(settings)
    if not _is_loopback(host) and verifier is None:
        what = f"{host} can be reached by other machines, and no token would be asked for."
        raise BadArgument(what, "Serve on 127.0.0.1, or create a token first.")
    settings = for_clients_elsewhere(settings)
    stashes: Stashes = OneStash(settings)
    listener = _listener(host, port)
    port = listener.getsockname()[1]
    security = TransportSecuritySettings(
        allowed_hosts=[f"{name}:{port}" for name in ("127.0.0.1", "localhost", "[::1]")]
    )
    app = build_app(TenantSource(settings, stashes), security, verifier=verifier)
    config = uvicorn.Config(
        app, log_config=None, access_log=False, server_header=False, proxy_headers=False
    )
    server = _Server(config)
    print(f"fetchstash serves MCP at http://{address}{MCP_PATH}", file=sys.stderr)  # noqa: T201
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_end_on_signal, server)
        await server.serve([listener])
        tasks.cancel_scope.cancel()


def for_clients_elsewhere(settings: Settings) -> Settings:
    """Return the settings without what needs a person or files at the server."""
    return replace(
        settings,
        fetch=replace(settings.fetch, ask=False),
        ingest=replace(settings.ingest, read_roots=()),
        store=replace(settings.store, run=ALL_RUNS),
    )


async def _end_on_signal(server: uvicorn.Server) -> None:
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async for _ in signals:
            server.should_exit = True


def _split(address: str) -> tuple[str, int]:
    """Return host and port of HOST:PORT or [ADDRESS]:PORT. Raises BadArgument."""
    host, _, port = address.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not host or not port.isdecimal() or int(port) > 65_535:
        raise BadArgument(f"{address!r} is no HOST:PORT.", "Write --http 127.0.0.1:8080.")
    return host, int(port)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _listener(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        what = f"{host}:{port} cannot be used: {error.strerror or error}."
        raise BadArgument(what, "Choose another --http.") from error
    return listener
