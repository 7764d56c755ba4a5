"""The ASGI application of the service: each request passes these, outermost first.

Host and Origin, draining, then by path: /healthz and /readyz without a token; /mcp with one.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

from mcp.server.transport_security import TransportSecuritySettings
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from fetchstash.access import Verifier
from fetchstash.server import StashSource, build_server
from fetchstash.service._audit import AuditLog
from fetchstash.service._auth import Authentication
from fetchstash.service._observed import Observed
from fetchstash.service._observed_calls import ObservedCalls
from fetchstash.tools import tool_specs

MCP_PATH = "/mcp"


def build_app(
    source: StashSource,
    security: TransportSecuritySettings,
    *,
    verifier: Verifier | None = None,
    ready: Callable[[], Awaitable[str]] | None = None,
    routes: Sequence[BaseRoute] = (),
    audit: AuditLog | None = None,
) -> Observed:
    """Return the application. Its lifespan closes ``source``.

    Without ``verifier`` everybody is the tenant "local". ``ready`` returns why the service cannot
    answer calls, "" if it can. ``routes`` are open to everybody: metadata, metrics.
    """
    server = build_server(source, announces=False)
    # In place of the SDK's own span, which quotes errors.
    tools = frozenset(spec.name for spec in tool_specs(source.settings))
    server.middleware[:] = [ObservedCalls(tools, audit)]
    server.streamable_http_app(
        streamable_http_path=MCP_PATH,
        stateless_http=True,
        transport_security=security,
        max_request_body_size=source.settings.http.max_body_bytes,
    )
    manager = server.session_manager

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncGenerator[None]:
        async with manager.run():
            yield

    async def alive(_: Request) -> Response:
        return PlainTextResponse("ok\n")

    async def readiness(_: Request) -> Response:
        reason = await ready() if ready else ""
        return PlainTextResponse(f"{reason or 'ok'}\n", 503 if reason else 200)

    app = Starlette(
        routes=[
            Route("/healthz", alive),
            Route("/readyz", readiness),
            *routes,
            Route(MCP_PATH, Authentication(manager.asgi_app, verifier)),
        ],
        lifespan=lifespan,
    )
    return Observed(app)
