"""The server of the view, on loopback alone."""

import contextlib
import socket
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace

import anyio
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Mount, Route

from fetchstash.config import Settings
from fetchstash.errors import BadArgument
from fetchstash.server.ui._api import Api
from fetchstash.server.ui._faces import Person
from fetchstash.server.ui._guard import EXPIRED, Guard, Pass
from fetchstash.server.ui._page import page_policy, view_html
from fetchstash.stash import open_stash
from fetchstash.store import ALL_RUNS, with_run


class _Server(uvicorn.Server):
    """A server that leaves signals alone: Ctrl-C ends the command as any other."""

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        """Capture none."""
        yield


class ViewServer:
    """A server that runs while its context is open. ``link`` opens the page once."""

    def __init__(self, link: str, server: uvicorn.Server, ended: anyio.Event) -> None:
        self.link = link
        self._server = server
        self._ended = ended

    @classmethod
    @asynccontextmanager
    async def open(
        cls, settings: Settings, *, port: int = 0, person: Person | None = None
    ) -> AsyncGenerator["ViewServer"]:
        """Serve until the context ends. Raises BadArgument for a port that is taken."""
        run = with_run(settings.store).run
        # The view sees all runs, and deletes none when it closes.
        store = replace(settings.store, run=ALL_RUNS, ephemeral=False)
        async with open_stash(replace(settings, store=store)) as stash:
            listener = _listener(port)
            entry = Pass(listener.getsockname()[1])
            api = Api(stash, run, person or Person())
            config = uvicorn.Config(
                Guard(_app(entry, api), entry),
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                timeout_graceful_shutdown=1,
            )
            server, ended = _Server(config), anyio.Event()

            async def serve() -> None:
                await server.serve([listener])
                ended.set()

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(serve)
                try:
                    while not server.started and not ended.is_set():  # noqa: ASYNC110 - it has no event
                        await anyio.sleep(0.01)
                    yield cls(entry.link, server, ended)
                finally:
                    api.ended.set()
                    server.should_exit = True
                    with anyio.CancelScope(shield=True), contextlib.suppress(TimeoutError):
                        with anyio.fail_after(5):
                            await ended.wait()
                        await api.aclose()
                    tasks.cancel_scope.cancel()

    async def wait(self) -> None:
        """Wait until the server ends."""
        await self._ended.wait()


def _listener(port: int) -> socket.socket:
    listener = socket.socket()
    try:
        if port:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
    except OSError as error:
        listener.close()
        raise BadArgument(
            f"Port {port} cannot be used: {error.strerror or error}.", "Choose another --port."
        ) from error
    return listener


def _app(entry: Pass, api: Api) -> Starlette:
    async def page(request: Request) -> Response:
        if not entry.admits(request):
            return PlainTextResponse(EXPIRED, 401)
        response = Response(
            view_html(),
            media_type="text/html",
            headers={"content-security-policy": page_policy()},
        )
        entry.give_cookie(response)
        return response

    mount = Mount(entry.base, routes=[Route("/", page), Mount("/api", routes=api.routes)])
    return Starlette(routes=[mount])
