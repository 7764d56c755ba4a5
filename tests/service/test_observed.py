import json
import logging
from pathlib import Path

import anyio
import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import HistogramDataPoint, InMemoryMetricReader

from fetchstash.service import AuditLog
from fetchstash.system import telemetry
from tests.service.asgi import Service, Tokens
from tests.test_telemetry import points_of

pytestmark = pytest.mark.anyio

CALL = json.dumps(
    {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "artifact_info"}}
).encode()
HEADERS = [
    (b"content-type", b"application/json"),
    (b"accept", b"application/json, text/event-stream"),
    (b"mcp-protocol-version", b"2025-11-25"),
]


async def ids_of(service: Service, folder: Path, *sent: tuple[bytes, bytes]) -> tuple[str, str]:
    """Return the id that a request with these headers is answered under, and logged under."""
    log = folder / "audit.jsonl"
    async with service(audit=AuditLog(log)) as http:
        answer = await http.post("/mcp", content=CALL, headers=[*HEADERS, *sent])
    assert answer.status_code == 200
    [line] = log.read_text().splitlines()
    return answer.headers["x-request-id"], json.loads(line)["request_id"]


@pytest.mark.parametrize("sent", ["abc-1.X_2", "0" * 64])
async def test_a_plain_request_id_is_kept_and_returned(
    service: Service, tmp_path: Path, sent: str
) -> None:
    ids = await ids_of(service, tmp_path, (b"x-request-id", sent.encode()))
    assert ids == (sent, sent)


@pytest.mark.parametrize("sent", ["", "a b", "0" * 65, "<script>", '{"a":1}', "ä"])
async def test_any_other_request_id_is_replaced(
    service: Service, tmp_path: Path, sent: str
) -> None:
    returned, logged = await ids_of(service, tmp_path, (b"x-request-id", sent.encode()))
    assert returned == logged
    assert len(returned) == 32


async def test_two_request_ids_are_replaced(service: Service, tmp_path: Path) -> None:
    sent = [(b"x-request-id", b"a"), (b"x-request-id", b"b")]
    assert len((await ids_of(service, tmp_path, *sent))[0]) == 32


async def test_each_request_is_a_line_without_its_path_and_query(
    service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "fetchstash.service.requests")
    async with service(verifier=Tokens()) as http:
        await http.post("/mcp?secret=1", json={})
        await http.get("/secret/path")
        await http.request("SECRET", "/mcp")
        await http.get("/healthz")
        await http.get("/.well-known/oauth-protected-resource/mcp")
        await http.get("/.well-known/oauth-protected-resourceful")
    lines = [record.__dict__["facts"] for record in caplog.records if record.message == "request"]
    assert "secret" not in json.dumps(lines).lower()
    assert [(line["method"], line["route"], line["status"]) for line in lines] == [
        ("POST", "/mcp", 401),
        ("GET", "", 404),
        ("_OTHER", "/mcp", 401),
        ("GET", "/healthz", 200),
        ("GET", "/.well-known/oauth-protected-resource", 404),
        ("GET", "", 404),
    ]
    levels = [record.levelno for record in caplog.records if record.message == "request"]
    assert levels == [logging.INFO] * 3 + [logging.DEBUG] + [logging.INFO] * 2


async def test_a_request_that_is_refused_before_its_call_is_a_line_with_the_code(
    service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "fetchstash.service.requests")
    async with service() as http:
        for body in (b"[]", b" " * 2**21, CALL):
            await http.post("/mcp", content=body, headers=HEADERS)
    lines = [record.__dict__["facts"] for record in caplog.records if record.message == "request"]
    assert [(line["status"], line.get("code")) for line in lines] == [
        (400, "bad_argument"),
        (413, "too_large"),
        (200, None),
    ]


async def test_requests_are_counted_by_route_and_status_and_those_in_flight(
    service: Service,
) -> None:
    readings, asked = InMemoryMetricReader(), anyio.Event()

    async def hang() -> str:
        asked.set()
        await anyio.sleep_forever()
        return ""

    with telemetry.exporting(MeterProvider([readings], shutdown_on_exit=False)):
        async with service(ready=hang) as http, anyio.create_task_group() as tasks:
            for path in ("/healthz", "/healthz", "/mcp", "/a/b", "/c"):
                await http.get(path)
            tasks.start_soon(http.get, "/readyz")  # its client leaves before the answer
            await asked.wait()
            tasks.cancel_scope.cancel()
    points = points_of(readings)
    [active] = points["http.server.active_requests"]
    assert active.value == 0
    counts: dict[tuple[object, object], int] = {}
    for point in points["http.server.request.duration"]:
        assert isinstance(point, HistogramDataPoint)
        attributes = point.attributes or {}
        key = (attributes["http.route"], attributes["http.response.status_code"])
        counts[key] = point.count
    assert counts == {("/healthz", 200): 2, ("/mcp", 405): 1, ("", 404): 2, ("/readyz", 0): 1}
