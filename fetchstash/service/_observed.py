"""The layers around each request: log lines, metrics, spans, and checks of Host and Origin.

URLs are masked. Of an exception its type and the places that it passed are logged, never its text,
which may quote a document or a token.
"""

import json
import logging
import re
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, TextIO, cast

import mcp_types as types
from mcp.server.context import CallNext, HandlerResult, ServerMiddleware, ServerRequestContext
from mcp.server.transport_security import TransportSecurityMiddleware, TransportSecuritySettings
from mcp.shared.exceptions import MCPError
from mcp_types import methods
from opentelemetry import trace
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fetchstash.errors import StoreError
from fetchstash.fetch import mask_url
from fetchstash.service import _request
from fetchstash.service._exports import fail, server_span, trace_names
from fetchstash.service._request import REFUSAL, AuditLog, tenant_label
from fetchstash.system import telemetry
from fetchstash.text.hygiene import clean_line

MAX_MESSAGE_CHARS = 1_000
_MAX_FRAMES = 20
_to_json = json.JSONEncoder(separators=(",", ":"), default=str).encode
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s\"'<>]+")


class JsonLines(logging.Formatter):
    """Formats a log record as one JSON object; ``extra={"facts": {…}}`` adds fields."""

    def format(self, record: logging.LogRecord) -> str:
        request = _request.current()
        line: dict[str, Any] = {
            "time": telemetry.now(),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": _message(record),
            **_worker,
            **(request.names if request else {}),
            **trace_names(),
            **getattr(record, "facts", {}),
        }
        if record.exc_info and record.exc_info[0]:
            line["error"] = record.exc_info[0].__name__
            line["frames"] = _frames(record.exc_info[2])
        return _to_json(line)


_worker: dict[str, int] = {}
"""The number of this process among the workers of a service, for each line of the log."""


def log_to(stream: TextIO | None = None, *, worker: int | None = None) -> None:
    """Send every log of this process to ``stream`` (stderr), one JSON object a line.

    ``worker`` is the number of this process among several.
    """
    _worker.update({} if worker is None else {"worker": worker})
    # No line has a place in the code, a thread or a process (Logging HOWTO, Optimization).
    logging._srcfile = None  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLines())
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
    logging.getLogger("fetchstash").setLevel(logging.INFO)
    # At INFO it quotes what a server answered to a request that it refused.
    logging.getLogger("fetchstash.fetch").setLevel(logging.WARNING)
    # It quotes Host and Origin, which anybody may send; the line of the request has the status.
    logging.getLogger("mcp.server.transport_security").setLevel(logging.ERROR)
    logging.captureWarnings(capture=True)


def _message(record: logging.LogRecord) -> str:
    try:
        text = record.getMessage()
    except (TypeError, ValueError):  # a library's arguments do not fit its own format
        text = str(record.msg)
    if not record.name.startswith("fetchstash"):
        # asyncio's second line shows a task with its exception, text and all.
        text = text.partition("\n")[0]
    if text.isascii() and text.isprintable() and "://" not in text:
        return text[:MAX_MESSAGE_CHARS]
    masked = _URL.sub(lambda match: mask_url(match[0]), text[: 10 * MAX_MESSAGE_CHARS])
    return clean_line(masked)[:MAX_MESSAGE_CHARS]


def _frames(traceback: TracebackType | None) -> list[str]:
    frames: list[str] = []
    while traceback is not None:
        code = traceback.tb_frame.f_code
        frames.append(f"{Path(code.co_filename).name}:{traceback.tb_lineno} {code.co_name}")
        traceback = traceback.tb_next
    return frames[-_MAX_FRAMES:]


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
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        record, status = _request.begin(scope), 0
        method = scope["method"] if scope["method"] in _METHODS else "_OTHER"
        path = scope["path"]
        route = path if path in _ROUTES else ""
        if path == _METADATA or path.startswith(f"{_METADATA}/"):
            route = _METADATA
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


_KNOWN = methods.SPEC_CLIENT_METHODS | methods.SPEC_CLIENT_NOTIFICATION_METHODS
_REF = re.compile(r"art_[a-z2-7]{1,40}")


class ObservedCalls(ServerMiddleware[Any]):
    """Records each call, in place of the SDK's own span, which quotes errors."""

    def __init__(self, tools: frozenset[str], audit: AuditLog | None = None) -> None:
        self._tools = tools
        self._audit = audit

    async def __call__(
        self, ctx: ServerRequestContext[Any, Any], call_next: CallNext
    ) -> HandlerResult:
        record = _request.current() or _request.Record("", {})
        record.rpc_method = ctx.method if ctx.method in _KNOWN else "other"
        name = (ctx.params or {}).get("name")
        if ctx.method == "tools/call":
            record.tool = name if name in self._tools else "other"
        meta = cast("Mapping[str, Any]", ctx.meta or {})
        sent = {key: str(meta[key]) for key in ("traceparent", "tracestate") if key in meta}
        facts = {"mcp.method.name": record.rpc_method}
        facts |= {"gen_ai.tool.name": record.tool} if record.tool else {}
        started = time.perf_counter()
        with server_span(f"{record.rpc_method} {record.tool}".strip(), sent, facts) as span:
            span.set_attribute("mcp.protocol.version", ctx.protocol_version)
            try:
                result = await self._audited(ctx, call_next, record)
            except BaseException as error:
                code = error.code if isinstance(error, MCPError) else type(error).__name__
                record.code = str(code)
                raise
            finally:
                facts |= {"error.type": record.code} if record.code else {}
                telemetry.duration("call", time.perf_counter() - started, **facts)
                if record.code:
                    fail(span, record.code)
            return result

    async def _audited(
        self, ctx: ServerRequestContext[Any, Any], call_next: CallNext, record: _request.Record
    ) -> HandlerResult:
        """Answer a message; one whose line the audit log does not take gets an error instead."""
        result = await call_next(ctx)
        meta: Mapping[str, Any] = result.get("_meta", {}) if isinstance(result, dict) else {}
        if error := meta.get("fetchstash/error"):
            record.code = error["code"]
        if record.code == "quota" and record.principal and REFUSAL not in record.scope:
            # Reached by a fetch or a put; Admission counts those of requests.
            label = tenant_label(ctx.lifespan_context.settings, record.principal.tenant)
            telemetry.count("quota_refusals", tenant=label)
        if self._audit and ctx.method in ("tools/call", "resources/read"):
            try:
                self._audit.call(record, _refs(ctx, meta))
            except StoreError as error:
                raise MCPError(types.INTERNAL_ERROR, error.line()) from None
        return result


def _refs(ctx: ServerRequestContext[Any, Any], meta: Mapping[str, Any]) -> list[str]:
    """Return the references of the artifacts that a result speaks of."""
    listed = [facts["artifact_ref"] for facts in meta.get("fetchstash/artifact", ())]
    return listed or _REF.findall(str((ctx.params or {}).get("uri", "")))


_MAX_HEAD = 16_384
"""Bytes of the target, the names and the values of a request."""
_LINES = {
    400: "Send JSON-RPC as application/json.",
    403: "This web page may not call. The operator allows pages by http.origins.",
    421: "This service has another name. The operator names its hosts by http.hosts.",
}


class HostCheck:
    """Refuses requests of foreign hosts and origins. ``open_paths`` answer everybody."""

    def __init__(
        self, app: ASGIApp, security: TransportSecuritySettings, open_paths: frozenset[str]
    ) -> None:
        self._app = app
        self._check = TransportSecurityMiddleware(security)
        self._open_paths = open_paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
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
        # Some clients send the name as a person wrote it (RFC 9110, section 4.2.3).
        lower = [(name, v.lower() if name == b"host" else v) for name, v in scope["headers"]]
        request = Request({**scope, "headers": lower})
        refused = await self._check.validate_request(request, is_post=scope["method"] == "POST")
        status = refused.status_code if refused else 0
        return PlainTextResponse(f"{_LINES[status]}\n", status) if status else None
