import re
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest
from prometheus_client.parser import text_string_to_metric_families

from fetchstash import __version__, telemetry
from fetchstash.errors import BadArgument
from fetchstash.service._metrics import Metrics

pytestmark = pytest.mark.anyio

DOCS = Path(__file__).parents[2] / "docs" / "operations.md"


@contextmanager
def measured() -> Generator[Metrics]:
    metrics = Metrics.open(["stash.example"])
    with telemetry.exporting(metrics.provider):
        yield metrics
    metrics.provider.shutdown()


def emitted() -> dict[str, str]:
    """Return the type of each metric of ours, by its name, once each was measured."""
    with measured() as metrics:
        for name, instrument in telemetry.INSTRUMENTS.items():
            if instrument.kind == "counter":
                telemetry.count(name)
            elif instrument.kind == "level":
                telemetry.adjust(name, 1)
            else:
                telemetry.duration(name, 1)
        families = text_string_to_metric_families(metrics.text().decode())
        return {
            family.name + ("_total" if family.type == "counter" else ""): family.type
            for family in families
        }


def documented() -> dict[str, str]:
    """Return the type of each metric of the table in the documentation, by its name."""
    rows = re.findall(
        r"^\| `(\w+)` \| (counter|gauge|histogram|info) \|", DOCS.read_text(), re.MULTILINE
    )
    return dict(rows)


def test_the_metrics_that_are_documented_are_those_that_are_emitted() -> None:
    types = {name: kind.replace("info", "gauge") for name, kind in documented().items()}
    assert types == emitted()


def test_every_instrument_is_used() -> None:
    package = Path(telemetry.__file__).parent
    code = "".join(
        path.read_text() for path in package.rglob("*.py") if path.name != "telemetry.py"
    )
    used = set(re.findall(r'telemetry\.(?:count|adjust|duration|timed|span)\(\s*"(\w+)"', code))
    assert used == set(telemetry.INSTRUMENTS)


async def test_metrics_are_prometheus_text_with_the_version_of_the_replica() -> None:
    with measured() as metrics:
        telemetry.count("worker_kills", reason="time")
        with telemetry.span("extract", content_kind="pdf"):
            pass
        transport = httpx2.ASGITransport(metrics)
        async with httpx2.AsyncClient(transport=transport, base_url="http://10.0.0.1:9464") as http:
            answer = await http.get("/metrics")
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    families = {family.name: family for family in text_string_to_metric_families(answer.text)}
    [kills] = families["fetchstash_worker_kills"].samples
    assert (kills.labels, kills.value) == ({"reason": "time"}, 1)
    [info] = families["target_info"].samples
    assert (
        info.labels.items()
        >= {"service_name": "fetchstash", "service_version": __version__}.items()
    )
    buckets = [
        s.labels["le"]
        for s in families["fetchstash_extract_duration_seconds"].samples
        if "le" in s.labels
    ]
    assert buckets == [str(bound) for bound in telemetry.SECONDS] + ["+Inf"]


@pytest.mark.parametrize(
    ("method", "path", "host", "status"),
    [
        ("GET", "/metrics", "127.0.0.1:9464", 200),
        ("HEAD", "/metrics", "[::1]:9464", 200),
        ("GET", "/metrics", "localhost", 200),
        ("GET", "/metrics", "stash.example:9464", 200),
        ("GET", "/metrics", "attacker.example", 421),
        ("GET", "/metrics", "127.0.0.1.attacker.example:9464", 421),
        ("POST", "/metrics", "127.0.0.1:9464", 405),
        ("GET", "/mcp", "127.0.0.1:9464", 404),
    ],
)
async def test_metrics_answer_requests_that_name_an_address_or_a_known_host(
    method: str, path: str, host: str, status: int
) -> None:
    with measured() as metrics:
        transport = httpx2.ASGITransport(metrics)
        async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as http:
            answer = await http.request(method, path, headers={"host": host})
    assert answer.status_code == status


def test_a_missing_exporter_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.prometheus", None)
    with pytest.raises(BadArgument, match=r'pip install "fetchstash\[team\]"'):
        Metrics.open([])
