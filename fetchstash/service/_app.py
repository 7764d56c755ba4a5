"""The application: its layers, outermost first, and whether it is ready.

The store takes and gives a value, the audit log takes lines, a worker starts.

An id, a span and a line of log (``Observed``), Host and Origin (``Doors``), then by path. /healthz
and /readyz are open to everybody, and so is the metadata of OAuth. /mcp: a place among the requests
in flight (``Calls``), the token (``Authentication``), the quota and turn of its tenant
(``Admission``), the message (``Messages``), and the SDK's own transport, without sessions.
"""

import logging
import secrets
import tempfile
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
from mcp.server.transport_security import TransportSecuritySettings
from starlette.applications import Starlette
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from fetchstash.errors import FetchstashError
from fetchstash.handlers import ExtractLimits, Hints, WorkerPool, route_file
from fetchstash.server import StashSource, build_server
from fetchstash.server.tools import tool_specs
from fetchstash.service._audit import AuditLog
from fetchstash.service._auth import Admission, Authentication, Doors, metadata_routes
from fetchstash.service._messages import Calls, Messages
from fetchstash.service._observed import Observed, ObservedCalls
from fetchstash.service._tenants import Tenants
from fetchstash.service.access import Verifier
from fetchstash.store import Objects

_log = logging.getLogger("fetchstash.service")

_STORE_SECONDS, _WORKER_SECONDS = 5.0, 60.0
"""An answer holds so long: whoever asks /readyz needs no token, and every check costs."""


class _Check:
    """A check that is made anew when its last answer is old."""

    def __init__(self, seconds: float, check: Callable[[], Awaitable[str]]) -> None:
        self._seconds = seconds
        self._check = check
        self._lock = anyio.Lock()
        self._reason = ""
        self._made_at: float | None = None

    async def reason(self) -> str:
        async with self._lock:
            if self._made_at is None or time.monotonic() - self._made_at >= self._seconds:
                try:
                    self._reason = await self._check()
                except (FetchstashError, OSError) as error:
                    _log.warning("Not ready: %s", error)
                    self._reason = getattr(error, "code", "store_error")
                self._made_at = time.monotonic()
            return self._reason


class Readiness:
    """Checks what calls need."""

    def __init__(self, objects: Objects, limits: ExtractLimits, audit: AuditLog) -> None:
        self._objects = objects
        self._audit = audit
        self._limits = limits
        self._key = f"ready/{secrets.token_hex(8)}"
        self._store = _Check(_STORE_SECONDS, self._use_store)
        self._worker = _Check(_WORKER_SECONDS, self._start_worker)

    async def reason(self) -> str:
        """Return a code for what fails, "" if nothing does. The log has the details."""
        return await self._store.reason() or await self._worker.reason()

    async def _use_store(self) -> str:
        if not self._audit.takes_lines():
            return "audit_log"
        await self._objects.write(self._key, b"ready")
        value = await self._objects.read(self._key)
        await self._objects.delete(self._key)
        return "" if value == b"ready" else "store_error"

    async def _start_worker(self) -> str:
        pool = WorkerPool(self._limits)
        try:
            with tempfile.TemporaryDirectory() as name:
                folder = Path(name)
                text = folder / "text"
                text.write_text("a line\n", encoding="utf-8")
                decision = route_file(text, {}, "a.txt")
                read = await pool.extract(text, decision, Hints(), folder)
        finally:
            await pool.aclose()
        return "worker_failed" if read.extraction_error or read.chars == 0 else ""


MCP_PATH = "/mcp"
_PROBES = frozenset({"/healthz", "/readyz"})

Reason = Callable[[], Awaitable[str]]
"""Returns why the service cannot answer calls, "" if it can."""


class Service:
    """The application, and the requests that it handles. Its lifespan closes the stashes."""

    def __init__(self, app: ASGIApp, calls: Calls) -> None:
        self._app = app
        self._calls = calls

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or run the lifespan."""
        await self._app(scope, receive, send)

    @property
    def is_draining(self) -> bool:
        """Whether no more calls are taken."""
        return self._calls.is_draining

    async def drain(self) -> None:
        """Take no more calls, and wait for those in flight, ``http.grace_seconds`` at the most."""
        await self._calls.drain()


def build_app(
    source: StashSource,
    security: TransportSecuritySettings,
    *,
    verifier: Verifier | None = None,
    ready: Reason | None = None,
    audit: AuditLog | None = None,
    tenants: Tenants | None = None,
) -> Service:
    """Return the application. Its lifespan closes ``source``.

    Without ``verifier`` everybody is the tenant "local". ``tenants`` bounds the requests of each
    tenant, and lets them in fairly.
    """
    http, oauth = source.settings.http, source.settings.oauth
    server = build_server(source, announces=False)
    # In place of the SDK's own span, which quotes errors.
    tools = frozenset(spec.name for spec in tool_specs(source.settings))
    server.middleware[:] = [ObservedCalls(tools, audit)]
    server.streamable_http_app(
        streamable_http_path=MCP_PATH,
        stateless_http=True,
        # Doors has looked at Host and Origin.
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
        max_request_body_size=http.max_body_bytes,
    )
    manager = server.session_manager
    admitted: ASGIApp = Messages(manager.asgi_app, http.max_body_bytes, oauth)
    if tenants:
        admitted = Admission(admitted, tenants)
    calls = Calls(Authentication(admitted, verifier, oauth), http.grace_seconds)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncGenerator[None]:
        async with manager.run():
            yield

    async def alive(_: Request) -> Response:
        return PlainTextResponse("ok\n")

    async def readiness(_: Request) -> Response:
        reason = "shutting down" if calls.is_draining else ""
        if ready and not reason:
            reason = await ready()
        return PlainTextResponse(f"{reason or 'ok'}\n", 503 if reason else 200)

    others = Starlette(
        routes=[
            Route("/healthz", alive),
            Route("/readyz", readiness),
            *metadata_routes(oauth),
            Route(MCP_PATH, calls),  # for those who add a slash
        ],
        lifespan=lifespan,
    )

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        # Starlette's layers for errors and routes would take as long as ours together.
        is_mcp = scope["type"] == "http" and scope["path"] == MCP_PATH
        await (calls if is_mcp else others)(scope, receive, send)

    shared: ASGIApp = app
    if http.origins:
        shared = CORSMiddleware(
            app,
            allow_origins=http.origins,
            allow_methods=["POST"],
            allow_headers=["*"],
            expose_headers=["mcp-session-id", "www-authenticate"],
        )
    return Service(Observed(Doors(shared, security, _PROBES)), calls)
