"""The export of metrics and traces.

A request continues the trace of its sender (W3C Trace Context): of the header ``traceparent``, or
of ``_meta`` in its message. Baggage is ignored.

The text names tools, error codes, kinds of documents and the tenants of the settings; no content,
no URL and no principal.
"""

import ipaddress
import logging
import os
import socket
import threading
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread
from opentelemetry import context, trace
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from fetchstash import __version__
from fetchstash.config import HttpLimits, Settings
from fetchstash.errors import BadArgument
from fetchstash.service._listen import bounded_server, host_and_port, listener
from fetchstash.system import telemetry
from fetchstash.text.urls import join_host_port

if TYPE_CHECKING:
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider


def resource() -> "Resource":
    """Return the resource; OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES are stronger."""
    from opentelemetry.sdk.resources import OTELResourceDetector, Resource  # noqa: PLC0415 - extra

    own = Resource(
        {
            "service.name": "fetchstash",
            "service.version": __version__,
            "service.instance.id": f"{socket.gethostname()}:{os.getpid()}",
        }
    )
    return own.merge(OTELResourceDetector().detect())


_ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
_PROPAGATOR = TraceContextTextMapPropagator()
MAX_ATTRIBUTES = 32


def tracer_provider(environment: Mapping[str, str]) -> "TracerProvider | None":
    """Return the OTLP tracer provider, None if the environment names no collector.

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
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415 - extra
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
    """Mark a span as failed, with a code and without a text."""
    span.set_attribute("error.type", code)
    span.set_status(trace.StatusCode.ERROR)


def trace_names() -> dict[str, str]:
    """Return the ids of the current span for a line of a log, {} where there is none."""
    here = trace.get_current_span().get_span_context()
    names = {"trace_id": f"{here.trace_id:032x}", "span_id": f"{here.span_id:016x}"}
    return names if here.is_valid else {}


def _watch_process(provider: "MeterProvider") -> None:
    """Measure this process. prometheus_client's collector needs more of /proc than a unit has."""
    from opentelemetry.metrics import CallbackOptions, Observation  # noqa: PLC0415 - with the SDK

    def memory(_: CallbackOptions) -> Iterable[Observation]:
        with suppress(OSError):  # other systems than Linux have no such file
            resident = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
            yield Observation(resident * os.sysconf("SC_PAGE_SIZE"))

    def cpu(_: CallbackOptions) -> Iterable[Observation]:
        yield Observation(time.process_time())

    def uptime(_: CallbackOptions) -> Iterable[Observation]:
        yield Observation(time.monotonic() - started)

    started, meter = time.monotonic(), provider.get_meter("fetchstash")
    meter.create_observable_up_down_counter("process.memory.usage", [memory], "By", "Resident")
    meter.create_observable_counter("process.cpu.time", [cpu], "s", "Processor time")
    meter.create_observable_gauge("process.uptime", [uptime], "s", "Time since the start")


Measure = Callable[[], Awaitable[str]]
"""Returns the measurements as Prometheus' text."""


def _metrics_app(measure: Measure, hosts: Sequence[str]) -> Starlette:
    """Return the app for ``GET /metrics``. It answers requests to an address or to ``hosts``."""
    known = {"localhost", *map(_name, hosts)}

    async def answer(request: Request) -> Response:
        host = _name(request.headers.get("host", ""))
        try:
            ipaddress.ip_address(host)
        except ValueError:
            if host not in known:
                # A page in a browser that rebinds its name to our address sends that name.
                return PlainTextResponse("Ask by an address, or a name of http.hosts.\n", 421)
        return Response(await measure(), media_type="text/plain; version=0.0.4; charset=utf-8")

    return Starlette(routes=[Route(_METRICS_PATH, answer, methods=["GET"])])


def _name(host: str) -> str:
    """Return a host without its port and brackets."""
    name, _, port = host.rpartition(":")
    return (name if port.isdecimal() else host).strip("[]").lower()


_METRICS_PATH = "/metrics"
_log = logging.getLogger("fetchstash.service")
_FLUSH_SECONDS = 5
"""For the last spans to reach a collector, which may be gone."""


@asynccontextmanager
async def exports(settings: Settings) -> AsyncGenerator[Measure | None]:
    """Export traces and metrics while the context is open; yield a reader of the metrics.

    Yields None where nobody asks for them. Raises BadArgument where a library is missing.
    """
    tracers = tracer_provider(os.environ)
    meters, measure = _metrics() if settings.http.metrics else (None, None)
    with telemetry.exporting(meters, tracers):
        try:
            yield measure
        finally:
            if tracers:
                # The end of the process waits for every thread that is no daemon.
                flush = threading.Thread(target=tracers.shutdown, daemon=True)
                flush.start()
                with anyio.CancelScope(shield=True):
                    await anyio.to_thread.run_sync(flush.join, _FLUSH_SECONDS)


def _metrics() -> tuple["MeterProvider", Measure]:
    """Return the meter and its reader. Raises BadArgument without the extra."""
    try:
        from opentelemetry.exporter.prometheus import PrometheusMetricReader  # noqa: PLC0415 - extra
        from opentelemetry.sdk.metrics import MeterProvider  # noqa: PLC0415 - extra
        from prometheus_client import CollectorRegistry, generate_latest  # noqa: PLC0415 - extra
    except ImportError:
        what = "http.metrics is set, and OpenTelemetry's exporter is not installed."
        raise BadArgument(what, 'Run: pip install "fetchstash[team]".') from None
    registry = CollectorRegistry()
    reader = PrometheusMetricReader(scope_info_enabled=False, registry=registry)
    provider = MeterProvider([reader], resource(), shutdown_on_exit=False)
    _watch_process(provider)

    async def measure() -> str:
        return (await anyio.to_thread.run_sync(generate_latest, registry)).decode()

    return provider, measure


@asynccontextmanager
async def serving_metrics(http: HttpLimits, measure: Measure | None) -> AsyncGenerator[str]:
    """Answer requests for metrics; yield their URL, or "" where the settings name no address.

    Whoever reaches it may read it: no token. Raises BadArgument for an address that cannot be had.
    """
    if not http.metrics or measure is None:
        yield ""
        return
    app = _metrics_app(measure, http.hosts)
    host, port = host_and_port(http.metrics, "http.metrics")
    opened = listener(host, port, "http.metrics")
    place = join_host_port(host, opened.getsockname()[1])
    server = bounded_server(app, lifespan="off")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(server.serve, [opened])
        url = f"http://{place}{_METRICS_PATH}"
        _log.info("The metrics are at %s.", url)
        try:
            yield url
        finally:
            server.should_exit = True
