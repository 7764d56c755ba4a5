"""By which names a service is reached: hosts, pages and proxies, and who reaches its address."""

import ipaddress
import re

from mcp.server.transport_security import TransportSecurityMiddleware, TransportSecuritySettings
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from fetchstash.config import HttpLimits
from fetchstash.errors import BadArgument
from fetchstash.fetch import join_host_port

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


class HostCheck:
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


_HOST = r"(?:[a-z0-9_][a-z0-9_.-]*|\[[0-9a-f:.]+\])(?::\d{1,5})?"
_ORIGIN = rf"[a-z][a-z0-9+.-]*://{_HOST}"


def check_names(http: HttpLimits) -> None:
    """Refuse hosts, origins and proxies that no request can have. Raises BadArgument."""
    for name in http.hosts:
        if not re.fullmatch(_HOST, name):
            what = f"http.hosts has {name[:200]!r}, which no request names as its host."
            raise BadArgument(what, "Give NAME, NAME:PORT or [ADDRESS]:PORT, in lower case.")
    for origin in http.origins:
        if not re.fullmatch(_ORIGIN, origin):
            what = f"http.origins has {origin[:200]!r}, which is no origin of a web page."
            raise BadArgument(what, "Give one such as https://app.example.org, without a path.")
    for entry in http.forwarded:
        try:
            ipaddress.ip_network(entry)
        except ValueError:
            what = f"http.forwarded has {entry[:200]!r}, which is no address and no network."
            raise BadArgument(what, "Give those of the proxies, such as 10.0.0.0/8.") from None


def check_exposure(http: HttpLimits, host: str, *, asks_for_tokens: bool) -> None:
    """Refuse to serve other machines without tokens, or under no name. Raises BadArgument."""
    if not asks_for_tokens:
        step = "Create a token with these settings (fetchstash token create), or set oauth.issuer."
        if not is_loopback(host):
            raise BadArgument(f"Other machines reach {host}, and nobody needs a token.", step)
        if http.hosts or http.forwarded:
            key = "http.hosts" if http.hosts else "http.forwarded"
            what = f"{key} is set, as for a proxy in front, and nobody needs a token."
            raise BadArgument(what, step)
    if host in ("0.0.0.0", "::") and not http.hosts:  # noqa: S104 - as above
        raise BadArgument(
            f"{host} is no name that a request can have, and http.hosts names none.",
            'Name the hosts of the service: http.hosts = ["stash.example.org"].',
        )


def sends_tokens_in_clear(http: HttpLimits, host: str) -> bool:
    """Return whether tokens reach ``host`` unencrypted, and no proxy in front is named."""
    return not (http.tls_cert or http.forwarded or is_loopback(host))
