"""Spans over the real wire: a collector on loopback decodes what the real exporter sends."""

import gzip
import logging
import os
import sys
from collections.abc import Iterator
from http.server import ThreadingHTTPServer
from threading import Event, Thread, current_thread
from typing import Any

import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from opentelemetry.sdk.trace import TracerProvider

from fetchstash import __version__
from fetchstash.config import Settings
from fetchstash.errors import BadArgument
from fetchstash.service import exports
from tests.loopback import Quiet, serving
from tests.service.asgi import URL, Service, mcp_client

pytestmark = pytest.mark.anyio

EXPORTER = "opentelemetry.exporter.otlp.proto.http.trace_exporter"
TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = f"00-{TRACE}-b7ad6b7169203331-01"


class Collector(ThreadingHTTPServer):
    """Takes spans as an OpenTelemetry collector does, over HTTP in protobuf."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.bodies: list[bytes] = []

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    @property
    def requests(self) -> list[ExportTraceServiceRequest]:
        return [ExportTraceServiceRequest.FromString(body) for body in self.bodies]

    @property
    def spans(self) -> dict[str, Span]:
        scopes = [scope for r in self.requests for s in r.resource_spans for scope in s.scope_spans]
        return {span.name: span for scope in scopes for span in scope.spans}


class _Handler(Quiet):
    def do_POST(self) -> None:
        assert isinstance(self.server, Collector)
        assert self.path == "/v1/traces"
        assert self.headers["content-type"] == "application/x-protobuf"
        body = self.rfile.read(int(self.headers["content-length"]))
        is_gzip = self.headers.get("content-encoding") == "gzip"
        self.server.bodies.append(gzip.decompress(body) if is_gzip else body)
        self.send_response(200)
        self.end_headers()


@pytest.fixture(autouse=True)
def client_without_spans(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the client, which runs in this process, from sending a trace of its own."""

    def leave_alone(_: object) -> None:
        pass

    monkeypatch.setattr("mcp.shared.jsonrpc_dispatcher.inject_trace_context", leave_alone)


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    for name in ("OTEL_SERVICE_NAME", "OTEL_SDK_DISABLED", "OTEL_TRACES_EXPORTER"):
        monkeypatch.delenv(name, raising=False)
    server = Collector()
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.endpoint)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with serving(server):
        yield server


def attributes(span: Span) -> dict[str, Any]:
    values = {pair.key: pair.value for pair in span.attributes}
    return {key: v.int_value or v.string_value for key, v in values.items()}


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_a_call_continues_the_trace_of_its_request(
    service: Service, settings: Settings, collector: Collector, mode: str
) -> None:
    async with exports(settings), service() as http:
        http.headers["traceparent"] = PARENT
        async with mcp_client(http, mode) as client:
            await client.call_tool("artifact_info", {"artifact_ref": "art_secret"})
    request, call = collector.spans["POST /mcp"], collector.spans["tools/call artifact_info"]
    assert request.trace_id.hex() == call.trace_id.hex() == TRACE
    assert request.kind == call.kind == Span.SPAN_KIND_SERVER
    assert attributes(request)["http.response.status_code"] == 200
    expected = {"mcp.method.name": "tools/call", "gen_ai.tool.name": "artifact_info"}
    assert attributes(call).items() >= (expected | {"error.type": "unknown_ref"}).items()
    assert b"secret" not in b"".join(collector.bodies)
    [resource] = {str(r.resource_spans[0].resource) for r in collector.requests}
    assert "fetchstash" in resource
    assert __version__ in resource


async def test_the_trace_that_a_message_names_is_continued_before_that_of_its_request(
    service: Service, settings: Settings, collector: Collector
) -> None:
    async with exports(settings), service() as http:
        transport = streamable_http_client(f"{URL}/mcp", http_client=http)
        async with Client(transport) as client:
            meta: Any = {"traceparent": PARENT}
            await client.call_tool("artifact_info", {}, meta=meta)
    call = collector.spans["tools/call artifact_info"]
    assert call.trace_id.hex() == TRACE
    assert call.parent_span_id.hex() == "b7ad6b7169203331"
    assert len(call.links) == 1
    assert collector.spans["POST /mcp"].trace_id != call.trace_id


@pytest.mark.parametrize("sent", ["", "00-0-0-00", "x" * 8_000, f"00-{'0' * 32}-{'0' * 16}-01"])
async def test_a_traceparent_that_is_none_begins_a_new_trace(
    service: Service, settings: Settings, collector: Collector, sent: str
) -> None:
    async with exports(settings), service() as http:
        await http.get("/healthz", headers={"traceparent": sent})
    span = collector.spans["GET /healthz"]
    assert not span.parent_span_id


async def test_a_collector_that_is_gone_fails_no_call(
    service: Service,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.CRITICAL, "opentelemetry")
    environment = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1",
        "OTEL_EXPORTER_OTLP_TIMEOUT": "1",
    }
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    async with exports(settings), service() as http:
        assert (await http.get("/healthz")).status_code == 200


async def test_a_collector_that_hangs_does_not_hold_the_end_of_the_process(
    collector: Collector, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended, threads = Event(), list[Thread]()

    def hang(_: TracerProvider) -> None:
        threads.append(current_thread())
        ended.wait(20)

    monkeypatch.setattr("fetchstash.service._exports._FLUSH_SECONDS", 0.01)
    monkeypatch.setattr(TracerProvider, "shutdown", hang)
    async with exports(settings):
        assert collector.endpoint
    [thread] = threads
    ended.set()
    assert thread.daemon  # Python waits for every other one


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": ""},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://h", "OTEL_SDK_DISABLED": "true"},
        {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://h", "OTEL_TRACES_EXPORTER": "none"},
    ],
)
async def test_without_a_collector_no_exporter_is_needed(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, environment: dict[str, str]
) -> None:
    monkeypatch.setitem(sys.modules, EXPORTER, None)
    for name in [name for name in os.environ if name.startswith("OTEL_")]:
        monkeypatch.delenv(name)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    async with exports(settings) as measure:
        assert measure is None


@pytest.mark.parametrize(
    ("protocol", "exporter", "message"),
    [("grpc", sys, "http/protobuf"), ("", None, r'pip install "fetchstash\[team\]"')],
    ids=["another protocol", "no exporter"],
)
async def test_what_sends_no_traces_is_one_line(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, protocol: str, exporter: Any, message: str
) -> None:
    monkeypatch.setitem(sys.modules, EXPORTER, exporter)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://h")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", protocol)
    with pytest.raises(BadArgument, match=message):
        async with exports(settings):
            pass
