"""One request: its id, session and caller, and the replies that the service gives itself.

It holds the client's name, because only the first request of that era says it and the limits of its
host depend on it, and a nonce, because the requests of a client are numbered from 1 again.
"""

import base64
import json
import random
import re
import secrets
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from mcp_types import INVALID_REQUEST, RequestId
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import Scope

from fetchstash.config import Settings
from fetchstash.errors import FetchstashError
from fetchstash.server import Context
from fetchstash.service.access import Principal
from fetchstash.text.hygiene import clean_line

SESSION_HEADER = "mcp-session-id"
_NAME_CHARS = 64
_MAX_CHARS = 1_024


def new_session(message: Mapping[str, Any]) -> str:
    """Return an id for the client of an ``initialize``; ``client_in`` reads its name out of it."""
    match message:
        case {"params": {"clientInfo": {"name": str(given)}}}:
            name = given[:_NAME_CHARS]
        case _:
            name = ""
    data = json.dumps([secrets.token_hex(12), name]).encode()
    return base64.urlsafe_b64encode(data).decode("ascii")


def client_in(headers: Headers) -> str:
    """Return the name of a client by its session id, "" if it is none of ours."""
    session = headers.get(SESSION_HEADER, "")
    if len(session) > _MAX_CHARS:
        return ""
    try:
        _, name = json.loads(base64.urlsafe_b64decode(session))
    except (ValueError, TypeError, RecursionError):
        return ""
    return name[:_NAME_CHARS] if isinstance(name, str) else ""


_REQUEST_NAME_CHARS = 200
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")


@dataclass(slots=True)
class Record:
    """One request. ``rpc_method``, ``tool`` and ``code`` are known once its message was read."""

    id: str
    scope: Scope
    rpc_method: str = ""
    tool: str = ""
    code: str = ""

    @property
    def principal(self) -> Principal | None:
        """Who sends the request, None until a token was verified."""
        return self.scope.get("fetchstash.principal")

    @property
    def names(self) -> dict[str, str]:
        """The fields by which each line of a log names the request."""
        who = self.principal
        if who is None:
            return {"request_id": self.id}
        name = who.name[:_REQUEST_NAME_CHARS]
        if not (name.isascii() and name.isprintable()):  # an identity provider may send any text
            name = clean_line(name)
        return {"request_id": self.id, "tenant": who.tenant, "principal": name}

    @property
    def call(self) -> dict[str, str]:
        """The fields of the message that it brought, without those that are empty."""
        fields = {"rpc_method": self.rpc_method, "tool": self.tool, "code": self.code}
        return {name: value for name, value in fields.items() if value}


_current: ContextVar[Record | None] = ContextVar("_current", default=None)


def current() -> Record | None:
    """Return the request that this task answers, None outside of any."""
    return _current.get()


def begin(scope: Scope) -> Record:
    """Make a request the one that this task, and those that it starts, answer.

    Its id is its X-Request-Id where that is a plain one.
    """
    sent = Headers(scope=scope).getlist("x-request-id")
    is_plain = len(sent) == 1 and _REQUEST_ID.fullmatch(sent[0])
    record = Record(sent[0] if is_plain else f"{random.getrandbits(128):032x}", scope)
    _current.set(record)
    return record


def reply(
    status: int,
    error: FetchstashError,
    *,
    request: RequestId | None = None,
    number: int = INVALID_REQUEST,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """Return a JSON-RPC error of one line, and log its code with the request that is answered.

    ``request`` is the id of its message.
    """
    if record := current():
        record.code = error.code
    problem = {"code": number, "message": error.line(), "data": {"code": error.code}}
    body = json.dumps({"jsonrpc": "2.0", "id": request, "error": problem})
    return Response(body, status, headers, "application/json")


PRINCIPAL = "fetchstash.principal"
"""The key of the ASGI scope under which a request's principal stands once it is verified."""

REFUSAL = "fetchstash.refusal"
"""The key under which stands why the request's tool must not run (Busy, OverQuota, Refused)."""


def principal_of(ctx: Context) -> Principal:
    """Return who sends a request, in either era of the protocol. Raises LookupError for nobody."""
    if ctx.request is None:
        raise LookupError("the message came by no HTTP request")
    principal: Principal = ctx.request.scope[PRINCIPAL]
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
