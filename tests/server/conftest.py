"""A client of the server, in memory, in either protocol era."""

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest
from mcp import Client
from mcp_types import Implementation

from fetchstash.config import load
from fetchstash.server import LazyStash, build_server
from tests.loopback import Site

Connect = Callable[..., AbstractAsyncContextManager[Client]]


@pytest.fixture
def connect(site: Site, store_settings: dict[str, str]) -> Connect:
    """Return a function that opens a client of a server. Arguments are settings."""

    @asynccontextmanager
    async def open_client(
        *,
        mode: str = "auto",
        local: bool = True,
        client_info: Implementation | None = None,
        **settings: Any,
    ) -> AsyncGenerator[Client]:
        values = site.settings(**store_settings, **settings)
        server = build_server(LazyStash(load(values), local=local))
        async with Client(server, mode=mode, client_info=client_info) as client:
            yield client

    return open_client
