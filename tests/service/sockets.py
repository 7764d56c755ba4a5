"""A service in this process, on a real socket."""

import socket
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import anyio
import pytest
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from fetchstash.config import HttpLimits, Settings
from fetchstash.service import Tenants, _endpoint, _listen, build_app, security_of, server_of


@dataclass
class Tls:
    """A certificate for localhost, and what a client needs that trusts it."""

    limits: HttpLimits
    trusting: ssl.SSLContext


def set_bound(monkeypatch: pytest.MonkeyPatch, name: str, value: float) -> None:
    """Let a bound of connections and requests be reached soon."""
    module = _endpoint if hasattr(_endpoint, name) else _listen
    monkeypatch.setattr(module, name, value)


@asynccontextmanager
async def listening(settings: Settings, **parts: Any) -> AsyncGenerator[int]:
    """Serve on loopback and yield the port."""
    opened = socket.create_server(("127.0.0.1", 0))
    security = security_of(settings.http, "127.0.0.1", opened.getsockname()[1])
    service = build_app(Tenants(settings, apart=False), security, **parts)
    async with serving(service, settings.http, opened) as port:
        yield port


@asynccontextmanager
async def serving(
    app: Any, http: HttpLimits | None = None, opened: socket.socket | None = None
) -> AsyncGenerator[int]:
    """Serve an application on loopback and yield the port."""
    opened = opened or socket.create_server(("127.0.0.1", 0))
    server = server_of(app, http or HttpLimits())
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(server.serve, [opened])
        while not server.started:  # noqa: ASYNC110 - it has no event
            await anyio.sleep(0.01)
        yield opened.getsockname()[1]
        server.should_exit = True


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer with who asks, and by which scheme."""
    if scope["type"] == "http":
        who = f"{scope['scheme']} {scope['client'][0]}"
        await PlainTextResponse(who)(scope, receive, send)
        return
    await receive()
    await send({"type": "lifespan.startup.complete"})
    await receive()
    await send({"type": "lifespan.shutdown.complete"})
