"""Traces: spans of requests and calls, sent by OTLP where OpenTelemetry's own variables say so.

A request continues the trace of its sender (W3C Trace Context): of the header ``traceparent``, or
of ``_meta`` in its message. Baggage is ignored.
"""

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from opentelemetry import context, trace
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from fetchstash.errors import BadArgument
from fetchstash.service._resource import resource
from fetchstash.system import telemetry

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

_ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
_PROPAGATOR = TraceContextTextMapPropagator()
MAX_ATTRIBUTES = 32


def tracer_provider(environment: Mapping[str, str]) -> "TracerProvider | None":
    """Return what sends spans by OTLP over HTTP, None where the environment names no collector.

    The SDK reads the rest of its variables itself. Raises BadArgument where it is missing, and for
    a protocol that is not ours.
    """
    endpoint = next((name for name in _ENDPOINTS if environment.get(name)), "")
    is_off = environment.get("OTEL_SDK_DISABLED", "").lower() == "true"
    if not endpoint or is_off or environment.get("OTEL_TRACES_EXPORTER") == "none":
        return None
    protocol = next((environment[name] for name in _PROTOCOLS if environment.get(name)), "")
    if protocol not in ("", "http/protobuf"):
        what = f"Traces are sent by http/protobuf, not by {protocol}."
        raise BadArgument(what, "Set OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf.")
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import (  # noqa: PLC0415 - extra
            OTLPSpanExporter,
        )
        from opentelemetry.sdk.trace import SpanLimits, TracerProvider  # noqa: PLC0415 - extra
        from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415 - extra
    except ImportError:
        what = f"{endpoint} is set, and OpenTelemetry's exporter is not installed."
        raise BadArgument(what, 'Run: pip install "fetchstash[team]".') from None
    limits = SpanLimits(
        max_attributes=MAX_ATTRIBUTES, max_attribute_length=telemetry.MAX_ATTRIBUTE_CHARS
    )
    provider = TracerProvider(resource=resource(), span_limits=limits, shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return provider


def server_span(
    name: str, carrier: Mapping[str, str], attributes: Mapping[str, Any]
) -> AbstractContextManager[trace.Span]:
    """Record the body as a span that continues the trace of ``carrier``, if that names one.

    A span that is open already is linked. Exceptions are not recorded: they may quote content.
    """
    tracer = telemetry.current_tracer()
    if tracer is None:
        return nullcontext(trace.INVALID_SPAN)
    here = trace.get_current_span().get_span_context()
    parent = _PROPAGATOR.extract(carrier, context.get_current())
    sender = trace.get_current_span(parent).get_span_context()
    links = [trace.Link(here)] if here.is_valid and here.span_id != sender.span_id else []
    return tracer.start_as_current_span(
        name,
        context=parent,
        kind=trace.SpanKind.SERVER,
        attributes=dict(attributes),
        links=links,
        record_exception=False,
        set_status_on_exception=False,
    )


def fail(span: trace.Span, code: str) -> None:
    """Mark a span as failed, with a code and no text."""
    span.set_attribute("error.type", code)
    span.set_status(trace.StatusCode.ERROR)


def trace_names() -> dict[str, str]:
    """Return the ids of the current span for a line of a log, {} where there is none."""
    here = trace.get_current_span().get_span_context()
    if not here.is_valid:
        return {}
    return {"trace_id": f"{here.trace_id:032x}", "span_id": f"{here.span_id:016x}"}
