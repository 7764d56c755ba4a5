"""A service in this process, without sockets, and clients of it."""

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass

import anyio
import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from starlette.types import ASGIApp, Message

from fetchstash.service.access import Principal, Rejected

HOST = "127.0.0.1:8080"
URL = f"http://{HOST}"


@dataclass
class Clock:
    """A clock that a test sets; it starts at no special time."""

    seconds: float = 1_000.0

    def __call__(self) -> float:
        return self.seconds


class Tokens:
    """A verifier of the tokens of a test."""

    def __init__(self, **principals: Principal) -> None:
        self._principals = principals

    async def verify(self, token: str) -> Principal:
        if token not in self._principals:
            raise Rejected("unknown")
        return self._principals[token]


@asynccontextmanager
async def running(app: ASGIApp) -> AsyncGenerator[httpx2.AsyncClient]:
    """Run an application's lifespan (ASGI, Lifespan Protocol), and yield a client of it."""
    started, ending, ended = anyio.Event(), anyio.Event(), anyio.Event()

    async def receive() -> Message:
        if not started.is_set():
            return {"type": "lifespan.startup"}
        await ending.wait()
        return {"type": "lifespan.shutdown"}

    async def send(message: Message) -> None:
        assert message["type"].endswith(".complete"), message
        (ended if started.is_set() else started).set()

    async def live() -> None:
        await app({"type": "lifespan", "state": {}}, receive, send)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(live)
        await started.wait()
        transport = httpx2.ASGITransport(app)
        try:
            async with httpx2.AsyncClient(transport=transport, base_url=URL, timeout=30) as http:
                yield http
        finally:
            with anyio.CancelScope(shield=True):
                ending.set()
                await ended.wait()


@asynccontextmanager
async def mcp_client(http: httpx2.AsyncClient, mode: str = "auto") -> AsyncGenerator[Client]:
    """Yield an MCP client that sends through ``http``."""
    transport = streamable_http_client(f"{URL}/mcp", http_client=http)
    async with Client(transport, mode=mode) as client:
        yield client


Service = Callable[..., AbstractAsyncContextManager[httpx2.AsyncClient]]
