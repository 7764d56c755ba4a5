"""A fetch is reported to OpenTelemetry and to the event log, without any content."""

import json
from pathlib import Path

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from fetchstash.system import telemetry
from tests.loopback import Site
from tests.stash.conftest import OpenStash

pytestmark = [pytest.mark.anyio, pytest.mark.in_process]

PDF_LIKE = b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1 0 obj\n<< >>\nendobj\n"


async def test_the_decision_is_an_event_of_the_span_that_is_open(
    site: Site, open_stash: OpenStash, monkeypatch: pytest.MonkeyPatch
) -> None:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracer = provider.get_tracer("test")
    monkeypatch.setattr(telemetry, "current_tracer", lambda: tracer)
    async with open_stash() as stash:
        with trace.use_span(tracer.start_span("agent.step"), end_on_exit=True):
            await stash.fetch(
                site.put("/secret-words.html", "<p>the secret words</p>", "text/plain")
            )
    assert {span.name for span in exporter.get_finished_spans()} >= {"fetch", "extract"}
    (span,) = (span for span in exporter.get_finished_spans() if span.name == "agent.step")
    (event,) = (event for event in span.events if event.name == "ingest.decision")
    attributes = dict(event.attributes or {})
    assert set(attributes) == {
        "artifact_ref",
        "content_kind",
        "media_type",
        "declared_type",
        "decided_by",
        "evidence",
        "handler",
        "shadow",
    }
    assert attributes["declared_type"] == "text/plain"
    assert attributes["shadow"] == ""
    assert "secret words" not in str(attributes)


async def test_the_label_decides_in_shadow_mode_and_both_kinds_are_recorded(
    site: Site, open_stash: OpenStash, tmp_path: Path
) -> None:
    log = tmp_path / "events.jsonl"
    async with open_stash(ingest__router="shadow", telemetry__event_log=str(log)) as stash:
        facts = (await stash.fetch(site.put("/data", '{"a": 1}', "text/plain"))).facts
        assert facts.content_kind == "text"
        assert facts.evidence == ("declared type", "router: json (application/json, structure)")
        binary = await stash.fetch(site.put("/report", PDF_LIKE, "text/html"))
        assert binary.preview == ""
    events = [json.loads(line) for line in log.read_text().splitlines()]
    decisions = [event["attributes"] for event in events if event["name"] == "ingest.decision"]
    assert [decision["shadow"] for decision in decisions] == [
        "json (application/json, structure)",
        "pdf (application/pdf, magic)",
    ]
    telemetry.configure(None, 0)
