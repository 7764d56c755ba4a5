"""What a team's calls leave in metrics and in the audit log."""

import hashlib
import json
from collections.abc import Generator
from pathlib import Path

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import HistogramDataPoint, InMemoryMetricReader

from fetchstash.config import Settings, load
from fetchstash.service import AuditLog
from fetchstash.system import telemetry
from tests.service.team import Web, ask, call, of, team, web_of
from tests.test_telemetry import points_of

pytestmark = pytest.mark.anyio
PAGE = "https://a.example/plan?token=abc"


@pytest.fixture(autouse=True)
def web() -> Generator[Web]:
    with web_of({PAGE: "The secret plan.\n"}) as web:
        yield web


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    file = tmp_path / "settings.toml"
    file.write_text("[quota]\nrequests_per_minute = 6\n[tenants.acme.fetch]\n")
    return load({"store.folder": str(tmp_path / "store"), "extract.ocr": "off"}, file=file)


async def test_the_audit_log_says_which_tenant_fetched_what_and_was_shown_it(
    settings: Settings, tmp_path: Path
) -> None:
    path = tmp_path / "audit.jsonl"
    async with team(settings, audit=AuditLog(path)) as (http, _):
        result = await call(http, "acme", "fetch_content", url=PAGE)
        [facts] = result["_meta"]["fetchstash/artifact"]
        await call(http, "globex", "artifact_info", artifact_ref=facts["artifact_ref"])
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [(line["event"], line["tenant"]) for line in lines] == [
        ("fetch", "acme"),
        ("call", "acme"),
        ("call", "globex"),
    ]
    fetch, shown, refused = lines
    assert fetch["request_id"] == shown["request_id"] != refused["request_id"]
    assert (fetch["decision"], fetch["url"]) == ("allowed", "https://a.example/plan?token=***")
    ref_hash = hashlib.sha256(facts["artifact_ref"].encode()).hexdigest()
    assert shown["artifacts"] == [ref_hash[:32]]
    assert (refused["code"], refused["artifacts"]) == ("unknown_ref", [])
    assert "secret" not in path.read_text()


async def test_calls_are_measured_by_tool_and_code_and_quotas_by_tenants_of_the_settings(
    settings: Settings,
) -> None:
    readings = InMemoryMetricReader()
    with telemetry.exporting(MeterProvider([readings], shutdown_on_exit=False)):
        async with team(settings) as (http, _):
            await call(http, "globex", "fetch_content", url=PAGE)
            await call(http, "globex", "artifact_grep", artifact_ref="art_none", pattern="x")
            await call(http, "globex", "no such tool")
            await ask(http, "globex", "no/such/method", {})
            for who in ["acme", "flood"] * 8:
                message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
                await http.post("/mcp", json=message, headers=of(who))
    points = points_of(readings)
    calls: dict[tuple[object, ...], int] = {}
    for point in points["mcp.server.operation.duration"]:
        assert isinstance(point, HistogramDataPoint)
        labels = point.attributes or {}
        names = ("mcp.method.name", "gen_ai.tool.name", "error.type")
        calls[tuple(labels.get(name, "") for name in names)] = point.count
    assert (
        calls.items()
        >= {
            ("tools/call", "fetch_content", ""): 1,
            ("tools/call", "artifact_grep", "unknown_ref"): 1,
            ("tools/call", "other", "bad_argument"): 1,
            ("other", "", "-32601"): 1,
        }.items()
    )
    refused = [point.attributes for point in points["fetchstash.quota.refusals"]]
    assert refused == [{"tenant": "acme"}, {"tenant": "other"}]
    stored = {point.attributes["operation"] for point in points["fetchstash.store.duration"]}
    assert stored >= {"get", "put"}
    queues = {point.attributes["queue"] for point in points["fetchstash.queue.wait.duration"]}
    assert queues >= {"fetches", "conversions"}
