"""Serve the view on loopback, to one browser.

Cookies are shared by all ports of a host name. So the page lives beneath a path of random letters
that the cookie is bound to (RFC 6265 §5.1.4), and every request must come from our own origin.
"""

import base64
import contextlib
import hashlib
import hmac
import re
import secrets
import socket
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from http.cookies import SimpleCookie
from importlib.resources import files

import anyio
import uvicorn
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Mount, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fetchstash.config import Settings
from fetchstash.errors import BadArgument
from fetchstash.server.ui._api import Api
from fetchstash.server.ui._text import Person
from fetchstash.stash import open_stash
from fetchstash.store import ALL_RUNS, with_run

_COOKIE = "fetchstash"
_COOKIE_SECONDS = 12 * 3_600
_HEADERS = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
_CLOSED = "default-src 'none'; frame-ancestors 'none'; sandbox"
EXPIRED = (
    "This link was used already, or fetchstash ui was started again since. "
    "Start fetchstash ui again, and open the link that it prints."
)


def _secret() -> str:
    return secrets.token_urlsafe(24)


@dataclass(slots=True)
class Pass:
    """The secrets of one run of the server. ``token`` opens the page once, "" afterwards."""

    port: int
    base: str = field(default_factory=lambda: "/" + secrets.token_hex(8))
    token: str = field(default_factory=_secret)
    cookie: str = field(default_factory=_secret)

    @property
    def link(self) -> str:
        """The link that opens the page in one browser."""
        return f"http://127.0.0.1:{self.port}{self.base}/?token={self.token}"

    def admits(self, request: Request) -> bool:
        """Return whether a request has the cookie, or the token, which is spent by that."""
        token = request.query_params.get("token", "")
        if self.token and hmac.compare_digest(token.encode(), self.token.encode()):
            self.token = ""
            return True
        return self.knows(request.headers)

    def knows(self, headers: Headers) -> bool:
        """Return whether a request has the cookie."""
        cookies = SimpleCookie(headers.get("cookie", ""))
        sent = cookies[_COOKIE].value if _COOKIE in cookies else ""
        return hmac.compare_digest(sent.encode(), self.cookie.encode())

    def give_cookie(self, response: Response) -> None:
        """Set the cookie that lets the browser in without the token."""
        response.set_cookie(
            _COOKIE,
            self.cookie,
            max_age=_COOKIE_SECONDS,
            path=self.base + "/",
            httponly=True,
            samesite="strict",
        )


class Guard:
    """Refuses requests of other hosts, of other pages, and without the cookie."""

    def __init__(self, app: ASGIApp, entry: Pass) -> None:
        self._app = app
        self._entry = entry

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, with the headers that every answer has."""
        if scope["type"] != "http":
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                have = {name for name, _ in message["headers"]}
                headers = {**_HEADERS, "content-security-policy": _CLOSED}
                message["headers"] += [
                    (name.encode(), value.encode())
                    for name, value in headers.items()
                    if name.encode() not in have
                ]
            await send(message)

        refusal = self._refusal(scope)
        await (refusal or self._app)(scope, receive, send_with_headers)

    def _refusal(self, scope: Scope) -> Response | None:
        """Return the answer to a request that must not be answered, else None."""
        headers, base = Headers(scope=scope), self._entry.base
        host = headers.get("host", "")
        port = self._entry.port
        # A name that leads here is not ours: DNS rebinding.
        if host not in (f"127.0.0.1:{port}", f"localhost:{port}"):
            return PlainTextResponse("This is not the host of the view.", 421)
        if not scope["path"].startswith(base + "/"):
            return PlainTextResponse(EXPIRED, 404)  # most likely of an earlier run at this port
        origin, site = headers.get("origin"), headers.get("sec-fetch-site", "none")
        is_page = scope["path"] == base + "/" and scope["method"] == "GET"
        own = f"http://{host}"
        if origin not in (None, own) or (scope["method"] != "GET" and origin != own):
            return PlainTextResponse("Another page asks.", 403)
        if not is_page and site not in ("same-origin", "none"):
            return PlainTextResponse("Another page asks.", 403)
        # The page itself takes the token, too.
        if not is_page and not self._entry.knows(headers):
            return JSONResponse({"code": "expired", "line": EXPIRED}, 401)
        return None


_INLINE = re.compile(r"<(script|style)>(.*?)</\1>", re.DOTALL)


@cache
def view_html() -> str:
    """Return the page: one file, for a browser and for a host of MCP Apps."""
    return files("fetchstash.server.ui").joinpath("view.html").read_text(encoding="utf-8")


@cache
def page_policy() -> str:
    """Return the Content Security Policy of the page: its own blocks by their hash (CSP3 §2.3)."""
    digests = {
        kind: base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        for kind, text in _INLINE.findall(view_html())
    }
    return (
        f"default-src 'none'; script-src 'sha256-{digests['script']}'; "
        f"style-src 'sha256-{digests['style']}'; img-src 'self' data: blob:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
        "require-trusted-types-for 'script'; trusted-types 'none'"
    )


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
    # asyncio turns Nagle off for sockets of this protocol alone: an answer waited 40 ms for an ACK.
    listener = socket.socket(proto=socket.IPPROTO_TCP)
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
            view_html(), media_type="text/html", headers={"content-security-policy": page_policy()}
        )
        entry.give_cookie(response)
        return response

    mount = Mount(entry.base, routes=[Route("/", page), Mount("/api", routes=api.routes)])
    return Starlette(routes=[mount])
