"""A service in this process, on a real socket."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio

from fetchstash.config import Settings
from fetchstash.service import build_app
from fetchstash.service._doors import security_of
from fetchstash.service._listen import listener
from fetchstash.service._serve import OneStash, server_of
from fetchstash.service._source import TenantSource


@asynccontextmanager
async def listening(settings: Settings, **parts: Any) -> AsyncGenerator[int]:
    """Serve on loopback and yield the port."""
    opened = listener("127.0.0.1", 0)
    port: int = opened.getsockname()[1]
    security = security_of(settings.http, "127.0.0.1", port)
    service = build_app(TenantSource(settings, OneStash(settings)), security, **parts)
    server = server_of(service, settings.http)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(server.serve, [opened])
        while not server.started:  # noqa: ASYNC110 - it has no event
            await anyio.sleep(0.01)
        yield port
        server.should_exit = True
