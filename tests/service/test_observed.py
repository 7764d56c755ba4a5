import json
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import httpx2
import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import HistogramDataPoint, InMemoryMetricReader
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from fetchstash import telemetry
from fetchstash.service import _request
from fetchstash.service._observed import Observed

pytestmark = pytest.mark.anyio


async def answers(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer with the id of the request, and with the status that its query asks for."""
    record, request = _request.current(), Request(scope, receive)
    assert record
    status = int(request.query_params.get("status", "200"))
    if status == 0:
        raise RuntimeError("secret")
    response: Response = JSONResponse({"id": record.id}, status)
    await response(scope, receive, send)


@asynccontextmanager
async def client() -> AsyncGenerator[httpx2.AsyncClient]:
    transport = httpx2.ASGITransport(Observed(answers), raise_app_exceptions=False)
    async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as http:
        yield http


@pytest.mark.parametrize("sent", ["abc-1.X_2", "0" * 64])
async def test_a_plain_request_id_is_kept_and_returned(sent: str) -> None:
    async with client() as http:
        answer = await http.get("/mcp", headers={"x-request-id": sent})
    assert (answer.headers["x-request-id"], answer.json()["id"]) == (sent, sent)


@pytest.mark.parametrize("sent", ["", "a b", "0" * 65, "<script>", '{"a":1}', "ä"])
async def test_any_other_request_id_is_replaced(sent: str) -> None:
    async with client() as http:
        answer = await http.get("/mcp", headers={b"x-request-id": sent.encode()})
    assert answer.headers["x-request-id"] == answer.json()["id"]
    assert len(answer.json()["id"]) == 32


async def test_two_request_ids_are_replaced() -> None:
    async with client() as http:
        sent = [("x-request-id", "a"), ("x-request-id", "b")]
        answer = await http.get("/mcp", headers=sent)
    assert len(answer.json()["id"]) == 32


async def test_each_request_is_a_line_without_its_path_and_query(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG, "fetchstash.service.requests")
    async with client() as http:
        await http.post("/mcp?status=401&secret=1")
        await http.get("/secret/path")
        await http.request("SECRET", "/mcp")
        await http.get("/healthz")
        await http.get("/.well-known/oauth-protected-resource/mcp")
        await http.get("/.well-known/oauth-protected-resourceful")
    lines = [record.__dict__["facts"] for record in caplog.records if record.message == "request"]
    assert "secret" not in json.dumps(lines).lower()
    assert [(line["method"], line["route"], line["status"]) for line in lines] == [
        ("POST", "/mcp", 401),
        ("GET", "", 200),
        ("_OTHER", "/mcp", 200),
        ("GET", "/healthz", 200),
        ("GET", "/.well-known/oauth-protected-resource", 200),
        ("GET", "", 200),
    ]
    levels = [record.levelno for record in caplog.records if record.message == "request"]
    assert levels == [logging.INFO] * 3 + [logging.DEBUG] + [logging.INFO] * 2


async def test_requests_are_counted_by_route_and_status_and_those_in_flight() -> None:
    readings = InMemoryMetricReader()
    with telemetry.exporting(MeterProvider([readings], shutdown_on_exit=False)):
        async with client() as http:
            for path in ("/mcp", "/mcp", "/mcp?status=503", "/a/b", "/c", "/mcp?status=0"):
                await http.get(path)
    data = readings.get_metrics_data()
    assert data
    metrics = data.resource_metrics[0].scope_metrics[0].metrics
    points = {metric.name: metric.data.data_points for metric in metrics}
    [active] = points["http.server.active_requests"]
    assert getattr(active, "value", None) == 0
    counts: dict[tuple[object, object], int] = {}
    for point in points["http.server.request.duration"]:
        assert isinstance(point, HistogramDataPoint)
        attributes = point.attributes or {}
        key = (attributes["http.route"], attributes["http.response.status_code"])
        counts[key] = point.count
    assert counts == {("/mcp", 200): 2, ("/mcp", 503): 1, ("", 200): 2, ("/mcp", 0): 1}
