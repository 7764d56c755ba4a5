import re
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import httpx2
import pytest
from prometheus_client.parser import text_string_to_metric_families

from fetchstash import __version__
from fetchstash.config import HttpLimits, Settings
from fetchstash.errors import BadArgument
from fetchstash.service import exports
from fetchstash.service._exports import serving_metrics
from fetchstash.system import telemetry

pytestmark = pytest.mark.anyio

DOCS = Path(__file__).parents[2] / "docs" / "operations-reference.md"


@asynccontextmanager
async def measured(settings: Settings) -> AsyncGenerator[httpx2.AsyncClient]:
    """Measure, and yield a client of the address at which the metrics are."""
    http = replace(settings.http, metrics="127.0.0.1:0", hosts=("stash.example",))
    async with (
        exports(replace(settings, http=http)) as measure,
        serving_metrics(http, measure) as url,
        httpx2.AsyncClient(base_url=url.removesuffix("/metrics")) as client,
    ):
        yield client


async def emitted(settings: Settings) -> dict[str, str]:
    """Return the type of each metric of ours, by its name, once each was measured."""
    async with measured(settings) as http:
        for name, instrument in telemetry.INSTRUMENTS.items():
            if instrument.kind == "counter":
                telemetry.count(name)
            elif instrument.kind == "level":
                telemetry.adjust(name, 1)
            else:
                telemetry.duration(name, 1)
        families = text_string_to_metric_families((await http.get("/metrics")).text)
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


async def test_the_metrics_that_are_documented_are_those_that_are_emitted(
    settings: Settings,
) -> None:
    types = {name: kind.replace("info", "gauge") for name, kind in documented().items()}
    assert types == await emitted(settings)


def test_every_instrument_is_used() -> None:
    package = Path(telemetry.__file__).parents[1]
    code = "".join(
        path.read_text() for path in package.rglob("*.py") if path.name != "telemetry.py"
    )
    used = set(re.findall(r'telemetry\.(?:count|adjust|duration|timed|span)\(\s*"(\w+)"', code))
    assert used == set(telemetry.INSTRUMENTS)


async def test_metrics_are_prometheus_text_with_the_version_of_the_replica(
    settings: Settings,
) -> None:
    async with measured(settings) as http:
        telemetry.count("worker_kills", reason="time")
        with telemetry.span("extract", content_kind="pdf"):
            pass
        answer = await http.get("/metrics", headers={"host": "10.0.0.1:9464"})
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
    settings: Settings, method: str, path: str, host: str, status: int
) -> None:
    async with measured(settings) as http:
        answer = await http.request(method, path, headers={"host": host})
    assert answer.status_code == status


async def test_a_missing_exporter_is_one_line(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.prometheus", None)
    with pytest.raises(BadArgument, match=r'pip install "fetchstash\[team\]"'):
        async with measured(settings):
            pass


async def test_an_address_that_is_taken_is_one_line_and_it_is_given_back() -> None:
    async def measure() -> str:
        return ""

    async with serving_metrics(HttpLimits(metrics="127.0.0.1:0"), measure) as url:
        taken = url.removeprefix("http://").removesuffix("/metrics")
        with pytest.raises(BadArgument, match="cannot be used"):
            async with serving_metrics(HttpLimits(metrics=taken), measure):
                pass
    async with httpx2.AsyncClient() as http:
        with pytest.raises(httpx2.ConnectError):
            await http.get(url)
