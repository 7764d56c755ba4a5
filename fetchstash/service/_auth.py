"""Who may come in: host names, bearer tokens, quotas of requests."""

import ipaddress
import logging
from collections.abc import Sequence

from mcp.server.transport_security import TransportSecurityMiddleware, TransportSecuritySettings
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from fetchstash.config import HttpLimits, OAuthLimits, Settings
from fetchstash.errors import Busy, FetchstashError, OverQuota
from fetchstash.fetch import join_host_port
from fetchstash.service import _request
from fetchstash.service._request import PRINCIPAL, REFUSAL, principal_in, reply
from fetchstash.service._tenants import Tenants
from fetchstash.service.access import (
    LOCAL,
    OwnTokens,
    Rejected,
    Verifier,
    challenge,
    metadata_paths,
    resource_metadata,
    verifier,
)
from fetchstash.store import Objects
from fetchstash.system import telemetry

_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
_MAX_HEAD = 16_384
"""Bytes of the target, the names and the values of a request."""
_LINES = {
    400: "Send JSON-RPC as application/json.",
    403: "This web page may not call. The operator allows pages by http.origins.",
    421: "This service has another name. The operator names its hosts by http.hosts.",
}


def security_of(http: HttpLimits, host: str, port: int) -> TransportSecuritySettings:
    """Return the hosts and origins that are let in by a service that listens at an address."""
    own = _own_hosts(host, port)
    hosts = [*own]
    for name in http.hosts:
        hosts += [name] if _has_port(name) else [name, f"{name}:*"]
    scheme = "https" if http.tls_cert else "http"
    origins = [f"{scheme}://{name}" for name in own]
    return TransportSecuritySettings(allowed_hosts=hosts, allowed_origins=[*origins, *http.origins])


def _own_hosts(host: str, port: int) -> list[str]:
    """Return the names of an address, none for the address of all interfaces."""
    if is_loopback(host):
        return [f"{name}:{port}" for name in _LOOPBACK]
    if host in ("0.0.0.0", "::"):  # noqa: S104 - nothing is bound here
        return []
    return [join_host_port(host, port)]


def is_loopback(host: str) -> bool:
    """Return whether only this machine reaches an address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _has_port(name: str) -> bool:
    return ":" in name.rpartition("]")[2]


class Doors:
    """Refuses requests of foreign hosts and origins. ``open_paths`` answer everybody."""

    def __init__(
        self, app: ASGIApp, security: TransportSecuritySettings, open_paths: frozenset[str]
    ) -> None:
        self._app = app
        self._check = TransportSecurityMiddleware(security)
        self._open_paths = open_paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        refused = await self._refusal(scope) if scope["type"] == "http" else None
        await (refused or self._app)(scope, receive, send)

    async def _refusal(self, scope: Scope) -> Response | None:
        """Return the answer with which a request is refused, None for one that is let in."""
        head = len(scope["raw_path"]) + len(scope["query_string"])
        head += sum(len(name) + len(value) for name, value in scope["headers"])
        if head > _MAX_HEAD:  # uvicorn bounds only one that comes in pieces
            return PlainTextResponse("The head of a request has at most 16 KiB.\n", 431)
        if {b"content-length", b"transfer-encoding"} <= {name for name, _ in scope["headers"]}:
            # A proxy may see another end of it than we do (RFC 9112, section 6.1).
            line, close = "A request has one length.\n", {"connection": "close"}
            return PlainTextResponse(line, 400, close)
        if scope["path"] in self._open_paths:
            return None
        is_post = scope["method"] == "POST"
        refused = await self._check.validate_request(Request(scope), is_post=is_post)
        if refused is not None and refused.status_code == 421:
            # Some clients send the name as a person wrote it (RFC 9110, section 4.2.3).
            lower = [(name, v.lower() if name == b"host" else v) for name, v in scope["headers"]]
            request = Request({**scope, "headers": lower})
            refused = await self._check.validate_request(request, is_post=is_post)
        if refused is None:
            return None
        return PlainTextResponse(_LINES[refused.status_code] + "\n", refused.status_code)


_log = logging.getLogger("fetchstash.service")


async def verifier_of(settings: Settings, objects: Objects) -> Verifier | None:
    """Return what verifies tokens, None where none ever was and no provider is configured."""
    known = verifier(settings, objects)
    return known if settings.oauth.issuer or await OwnTokens(objects).were_made() else None


def metadata_routes(oauth: OAuthLimits) -> Sequence[Route]:
    """Return what tells clients where to get a token (RFC 9728, section 3)."""

    async def metadata(_: Request) -> Response:
        return JSONResponse(resource_metadata(oauth))

    return [Route(path, metadata) for path in metadata_paths(oauth)]


class Authentication:
    """Puts the principal of each request into its scope, or answers 401.

    Without a verifier everybody is the one user of this machine.
    """

    def __init__(self, app: ASGIApp, verifier: Verifier | None, oauth: OAuthLimits) -> None:
        self._app = app
        self._verifier = verifier
        self._oauth = oauth

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Verify a request's token and pass it on."""
        try:
            scope[PRINCIPAL] = (
                await self._verifier.verify(_token(scope)) if self._verifier else LOCAL
            )
        except Rejected as rejected:
            await refusal(rejected, self._oauth)(scope, receive, send)
            return
        except FetchstashError as error:
            # Nobody knows yet who asks, so the answer names neither the store nor the provider.
            _log.warning("Tokens cannot be verified: %s", error.line())
            busy = Busy("Tokens cannot be verified now.", "Try again in a few seconds.")
            await reply(503, busy, headers={"retry-after": "1"})(scope, receive, send)
            return
        await self._app(scope, receive, send)


def _token(scope: Scope) -> str:
    """Return the token of a request. Raises Rejected if it has none, or several."""
    sent = Headers(scope=scope).getlist("authorization")
    scheme, _, token = sent[0].partition(" ") if len(sent) == 1 else ("", "", "")
    if scheme.lower() != "bearer" or not token.strip():
        raise Rejected("no_token")
    return token.strip()


def refusal(rejected: Rejected, oauth: OAuthLimits) -> Response:
    """Return the answer to a request whose token is missing, wrong, or of too small a scope."""
    telemetry.count("token_rejections", reason=rejected.reason)
    if record := _request.current():
        record.code = rejected.reason
    if rejected.reason == "no_token":
        line, header = "This service needs a token: Authorization: Bearer TOKEN.", challenge(oauth)
    else:
        line, header = rejected.description, challenge(oauth, rejected)
    problem = {"error": rejected.error, "error_description": line}
    return JSONResponse(problem, rejected.status, {"www-authenticate": header})


class Admission:
    """Counts and orders the requests that have a principal.

    One that is over a quota goes on with its refusal, which the tool answers as ``[quota]`` or
    ``[busy]``, so that a model reads it; of many in a second most get HTTP's 429 (RFC 6585, section
    4) with ``Retry-After``.
    """

    def __init__(self, app: ASGIApp, tenants: Tenants) -> None:
        self._app = app
        self._tenants = tenants

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, now or in its turn, or refuse it."""
        tenant = principal_in(scope).tenant
        if scope["method"] != "POST":  # a stream of the client's, which may last
            async with self._tenants.entered(tenant):
                await self._app(scope, receive, send)
            return
        try:
            self._tenants.admit(tenant)
        except (OverQuota, Busy) as error:
            telemetry.count("quota_refusals", tenant=self._tenants.label(tenant))
            if not await self._tenants.queue.refused(tenant):
                seconds = str(error.details["retry_after_seconds"])
                answer = reply(429, error, headers={"retry-after": seconds})
                await answer(scope, receive, send)
                return
            scope[REFUSAL] = error
        async with self._tenants.queue.request(tenant), self._tenants.entered(tenant):
            await self._app(scope, receive, send)
