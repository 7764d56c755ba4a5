"""Around each message of MCP: a span, a time by method, tool and code, and a line of audit."""

import re
import time
from collections.abc import Mapping
from typing import Any, cast

import mcp_types as types
from mcp.server.context import CallNext, HandlerResult, ServerMiddleware, ServerRequestContext
from mcp.shared.exceptions import MCPError

from fetchstash.errors import StoreError
from fetchstash.service import _request
from fetchstash.service._audit import AuditLog
from fetchstash.service._context import REFUSAL, tenant_label
from fetchstash.service._traces import fail, server_span
from fetchstash.system import telemetry

_METHODS = frozenset(
    """
    completion/complete initialize logging/setLevel notifications/cancelled
    notifications/initialized notifications/progress ping prompts/get prompts/list
    resources/list resources/read resources/templates/list server/discover tools/call tools/list
    """.split()  # noqa: SIM905 - fifteen quoted words are no easier to read
)
_REF = re.compile(r"art_[a-z2-7]{1,40}")


class ObservedCalls(ServerMiddleware[Any]):
    """Takes the place of the SDK's own span, which quotes errors."""

    def __init__(self, tools: frozenset[str], audit: AuditLog | None = None) -> None:
        self._tools = tools
        self._audit = audit

    async def __call__(
        self, ctx: ServerRequestContext[Any, Any], call_next: CallNext
    ) -> HandlerResult:
        """Pass a message on."""
        record = _request.current() or _request.Record("", {})
        record.rpc_method = ctx.method if ctx.method in _METHODS else "other"
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
            except MCPError as error:
                record.code = str(error.code)
                raise
            except BaseException as error:
                record.code = type(error).__name__
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
        record.code = _code(result)
        if record.code == "quota" and record.principal and REFUSAL not in record.scope:
            # Reached by a fetch or a put; Admission counts those of requests.
            label = tenant_label(ctx.lifespan_context.settings, record.principal.tenant)
            telemetry.count("quota_refusals", tenant=label)
        if self._audit and ctx.method in ("tools/call", "resources/read"):
            try:
                self._audit.call(record, _refs(ctx, result))
            except StoreError as error:
                raise MCPError(types.INTERNAL_ERROR, error.line()) from None
        return result


def _meta(result: HandlerResult) -> Mapping[str, Any]:
    if isinstance(result, types.CallToolResult):
        return result.meta or {}
    return result.get("_meta", {}) if isinstance(result, dict) else {}


def _code(result: HandlerResult) -> str:
    """Return the code of the error that a tool answered with, "" for an answer."""
    error = _meta(result).get("fetchstash/error")
    return error["code"] if error else ""


def _refs(ctx: ServerRequestContext[Any, Any], result: HandlerResult) -> list[str]:
    """Return the references of the artifacts that a result speaks of."""
    listed = [facts["artifact_ref"] for facts in _meta(result).get("fetchstash/artifact", ())]
    return listed or _REF.findall(str((ctx.params or {}).get("uri", "")))
