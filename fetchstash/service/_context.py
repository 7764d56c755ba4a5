"""What a request of the service says of itself, for those who handle it."""

from starlette.datastructures import Headers
from starlette.types import Scope

from fetchstash.config import Settings
from fetchstash.errors import FetchstashError
from fetchstash.server import Context
from fetchstash.service._session import client_in
from fetchstash.service.access import Principal

PRINCIPAL = "fetchstash.principal"
"""The key of the ASGI scope under which a request's principal stands once it is verified."""

REFUSAL = "fetchstash.refusal"
"""The key under which stands why the request's tool must not run (Busy, OverQuota, Refused)."""


def principal_of(ctx: Context) -> Principal:
    """Return who sends a request, in either era of the protocol."""
    if ctx.request is None:
        raise LookupError("the message came by no HTTP request")
    return principal_in(ctx.request.scope)


def refusal_of(ctx: Context) -> FetchstashError | None:
    """Return why a request must not be served, None if it may."""
    refusal: FetchstashError | None = ctx.request.scope.get(REFUSAL) if ctx.request else None
    return refusal


def principal_in(scope: Scope) -> Principal:
    """Return who sends a request. Raises KeyError for one that nobody verified."""
    principal: Principal = scope[PRINCIPAL]
    return principal


def tenant_label(settings: Settings, tenant: str) -> str:
    """Return a tenant's name for metrics: one that the settings name, or "other".

    A provider may make tenants without end, and each would be a series.
    """
    return tenant if tenant in settings.tenants else "other"


def client_of(ctx: Context) -> str:
    """Return the name of the client that sends a request, "" if it gives none.

    In the 2026 era each request says it; in the handshake era the session's id does.
    """
    client = ctx.session.client_params
    if client is not None:
        return client.client_info.name
    return client_in(Headers(scope=ctx.request.scope)) if ctx.request is not None else ""
