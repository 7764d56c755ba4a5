"""A client of the server, in memory, in either protocol era."""

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from fetchstash.config import load
from fetchstash.server import LazyStash, build_server
from tests.loopback import Site

Connect = Callable[..., AbstractAsyncContextManager[Client]]


@pytest.fixture
def connect(site: Site, tmp_path: Path) -> Connect:
    """Return a function that opens a client of a server which may fetch from the test's site. Arguments are settings."""

    @asynccontextmanager
    async def open_client(
        *, mode: str = "auto", local: bool = True, **settings: Any
    ) -> AsyncGenerator[Client]:
        given = {
            "fetch.allow_hosts": [f"127.0.0.1:{site.port}"],
            "fetch.respect_robots": False,
            "store.folder": str(tmp_path / "store"),
            **{name.replace("__", "."): value for name, value in settings.items()},
        }
        async with Client(build_server(LazyStash(load(given), local=local)), mode=mode) as client:
            yield client

    return open_client
