"""The outermost layer of the service: each request has an id, a span, a time and a line of log."""

import logging
import time

from opentelemetry import trace
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fetchstash.service import _request
from fetchstash.service._traces import fail, server_span
from fetchstash.system import telemetry

_ROUTES = ("/mcp", "/healthz", "/readyz")
_METADATA = "/.well-known/oauth-protected-resource"  # the resource's own path may follow
_METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"))
_QUIET = frozenset(("/healthz", "/readyz"))
_log = logging.getLogger("fetchstash.service.requests")


class Observed:
    """Answers each request with its X-Request-Id, and records how it went.

    Paths, queries and headers that a client chose are in no log, metric or span.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        record, status = _request.begin(scope), 0
        method = scope["method"] if scope["method"] in _METHODS else "_OTHER"
        route = _route(scope["path"])
        facts = {"http.request.method": method, "http.route": route, "url.scheme": scope["scheme"]}
        started = time.perf_counter()

        async def send_with_id(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                fields = [pair for pair in message["headers"] if pair[0] != b"x-request-id"]
                message["headers"] = [*fields, (b"x-request-id", record.id.encode())]
            await send(message)

        telemetry.adjust("http_active", 1, **{"http.request.method": method})
        with server_span(f"{method} {route}".strip(), Headers(scope=scope), facts) as span:
            try:
                await self._app(scope, receive, send_with_id)
            finally:
                seconds = time.perf_counter() - started
                telemetry.adjust("http_active", -1, **{"http.request.method": method})
                _end(record, span, facts | {"http.response.status_code": status}, seconds)


def _route(path: str) -> str:
    """Return the path of a request as one of the service's own, "" for any other."""
    if path in _ROUTES:
        return path
    return _METADATA if path == _METADATA or path.startswith(f"{_METADATA}/") else ""


def _end(
    record: _request.Record, span: trace.Span, facts: dict[str, str | int], seconds: float
) -> None:
    """Record the end of a request. A status of 0: the client left before the answer began."""
    status, route = facts["http.response.status_code"], facts["http.route"]
    telemetry.duration("http_request", seconds, **facts)
    span.set_attribute("http.response.status_code", status)
    if isinstance(status, int) and (status == 0 or status >= 500):
        fail(span, str(status) if status else "disconnected")
    line = {
        "method": facts["http.request.method"],
        "route": route,
        "status": status,
        "seconds": round(seconds, 6),
        "client": record.scope["client"][0] if record.scope.get("client") else "",
        **record.call,
    }
    level = logging.DEBUG if route in _QUIET and status == 200 else logging.INFO
    _log.log(level, "request", extra={"facts": line})
