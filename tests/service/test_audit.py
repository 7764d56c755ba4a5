import json
import os
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import MCPError

from fetchstash.config import load
from fetchstash.errors import BadArgument, FetchstashError, HttpError, Refused, StoreError
from fetchstash.fetch import Fetched, Fetcher, FetchLimits, HttpFetcher, Renderer
from fetchstash.handlers import ExtractLimits
from fetchstash.service import Quotas, TenantStore, _request
from fetchstash.service._request import AuditLog
from fetchstash.service._serve import Readiness
from fetchstash.service._work import SharedLimits, TenantWork
from fetchstash.service.access import Principal
from fetchstash.store import MemoryObjects
from tests.loopback import Site
from tests.service.asgi import Service, mcp_client

pytestmark = pytest.mark.anyio

ALICE = Principal("acme", "alice", frozenset({"fetch"}), "tok_1")
SCOPE: dict[str, Any] = {"type": "http", "headers": [(b"x-request-id", b"r-1")]}


@pytest.fixture(autouse=True)
async def request_of_alice() -> _request.Record:
    record = _request.begin(SCOPE | {"fetchstash.principal": ALICE})
    record.rpc_method, record.tool = "tools/call", "fetch_content"
    return record


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "audit.jsonl"


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


class Canned:
    """A fetcher that answers as a test says."""

    def __init__(self, answer: Callable[[str, Path], Fetched]) -> None:
        self._answer = answer
        self.fetched: list[str] = []

    async def fetch(self, url: str, folder: Path, **_: Any) -> Fetched:
        self.fetched.append(url)
        return self._answer(url, folder)

    async def site_rules(self, url: str) -> tuple[float, Sequence[str]]:  # noqa: ARG002
        return 0.0, ()

    async def check(self, *_: str, **__: str) -> None:
        raise Refused("a.example is denied.", "Ask.", rule="domain_denied")

    async def aclose(self) -> None:
        pass


def page(url: str, folder: Path) -> Fetched:
    path = folder / "body"
    path.write_bytes(b"abc")
    now = datetime.now(UTC)
    return Fetched(path, url, url, url, url, 200, {}, 3, "", now, "", address="192.0.2.1")


def recorded(fetcher: Fetcher, path: Path, renderer: Renderer | None = None) -> TenantWork:
    """Return what records in a log what a fetcher and a renderer do."""
    settings = load({"quota.hosts_per_minute": 0})
    shared = SharedLimits.of(2, 1, Quotas(), FetchLimits())
    none: Any = None  # the store is not asked where nothing limits what is kept
    store, parts = TenantStore(none, settings), (fetcher, none, none, renderer)
    return TenantWork("acme", settings, shared, AuditLog(path), store, *parts)


async def test_a_fetch_is_a_line_with_who_what_when_and_the_decision(
    site: Site, path: Path, tmp_path: Path
) -> None:
    url = site.put("/a.txt?token=abc&q=1", b"secret words", "text/plain")
    hosts = (f"127.0.0.1:{site.port}",)
    fetcher = HttpFetcher(FetchLimits(allow_hosts=hosts, respect_robots=False))
    audited = recorded(fetcher, path)
    await audited.fetch(url, tmp_path)
    await audited.check(url)
    await fetcher.aclose()
    fetched, stored = lines(path)
    assert datetime.fromisoformat(fetched.pop("time")).tzinfo == UTC
    assert fetched.pop("seconds") > 0
    assert fetched == {
        "request_id": "r-1",
        "tenant": "acme",
        "principal": "alice",
        "token": "tok_1",
        "event": "fetch",
        "tool": "fetch_content",
        "url": f"http://127.0.0.1:{site.port}/a.txt?token=***&q=1",
        "decision": "allowed",
        "final_host": f"127.0.0.1:{site.port}",
        "address": "127.0.0.1",
        "status": 200,
        "bytes": 12,
        "redirects": 0,
    }
    assert (stored["decision"], stored["stored"]) == ("allowed", True)
    assert "secret" not in path.read_text()
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("url", "rule"),
    [
        ("http://127.0.0.1:80/", "address"),
        ("http://[::ffff:10.0.0.1]/", "address"),
        ("http://printer/", "name"),
        ("http://db.internal/", "name"),
        ("http://example.org:22/", "port"),
        ("ftp://example.org/", "scheme"),
        ("http://a:b@example.org/", "user_name"),
        ("http://denied.example/", "domain_denied"),
    ],
)
async def test_a_refusal_names_the_rule(path: Path, tmp_path: Path, url: str, rule: str) -> None:
    fetcher = HttpFetcher(FetchLimits(deny_domains=("denied.example",)))
    audited = recorded(fetcher, path)
    with pytest.raises(Refused):
        await audited.fetch(url, tmp_path)
    await fetcher.aclose()
    [line] = lines(path)
    assert (line["decision"], line["rule"], line["code"]) == ("refused", rule, "refused")
    assert "a:b@" not in line["url"]


async def test_a_refused_redirect_names_its_host_here_and_nowhere_else(
    site: Site, path: Path, tmp_path: Path
) -> None:
    to = {"location": "http://10.0.0.7:80/admin"}
    url = site.put("/r", b"", "text/plain", status=302, headers=to)
    hosts = (f"127.0.0.1:{site.port}",)
    fetcher = HttpFetcher(FetchLimits(allow_hosts=hosts, respect_robots=False))
    with pytest.raises(Refused) as refused:
        await recorded(fetcher, path).fetch(url, tmp_path)
    await fetcher.aclose()
    [line] = lines(path)
    assert (line["rule"], line["final_host"], line["port"]) == ("address", "10.0.0.7", 80)
    assert "10.0.0.7" not in refused.value.line()


@pytest.mark.parametrize(
    ("error", "facts"),
    [
        (HttpError("It answered 404.", "", status=404), {"code": "http_error", "status": 404}),
        (RuntimeError("secret"), {"code": "RuntimeError"}),
    ],
)
async def test_a_fetch_that_fails_is_a_line_too(
    path: Path, tmp_path: Path, error: Exception, facts: dict[str, Any]
) -> None:
    def fail(_: str, __: Path) -> Fetched:
        raise error

    with pytest.raises(type(error)):
        await recorded(Canned(fail), path).fetch("http://a.example/", tmp_path)
    [line] = lines(path)
    assert line.items() >= ({"decision": "failed"} | facts).items()
    assert "secret" not in path.read_text()


async def test_a_cancelled_fetch_is_a_line_and_stays_cancelled(path: Path, tmp_path: Path) -> None:
    class Slow(Canned):
        async def fetch(self, *_: Any, **__: Any) -> Fetched:
            await anyio.sleep_forever()
            raise AssertionError

    with anyio.move_on_after(0.01) as scope:
        await recorded(Slow(page), path).fetch("http://a.example/", tmp_path)
    assert scope.cancelled_caught
    assert [line["decision"] for line in lines(path)] == ["failed"]


async def test_a_stored_copy_that_is_refused_is_a_line(path: Path) -> None:
    with pytest.raises(Refused):
        await recorded(Canned(page), path).check("http://a.example/")
    [line] = lines(path)
    assert (line["rule"], line["stored"]) == ("domain_denied", True)


async def test_a_rendered_page_is_a_line(path: Path, tmp_path: Path) -> None:
    class Broken:
        async def render(self, *_: Any, **__: Any) -> Any:
            raise Refused("", "", rule="address")

    with pytest.raises(Refused):
        await recorded(Canned(page), path, Broken()).render("http://h/", tmp_path, seconds=1)
    assert lines(path)[0].items() >= {"rendered": True, "rule": "address"}.items()


@pytest.mark.skipif(os.name == "nt", reason="no pipes in the file system")
@pytest.mark.parametrize("kind", ["folder", "link", "pipe", "missing folder"])
async def test_what_cannot_be_recorded_is_refused_and_nothing_more_leaves(
    tmp_path: Path, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "audit"
    make: dict[str, Callable[[], object]] = {
        "folder": path.mkdir,
        "link": lambda: path.symlink_to(tmp_path / "other"),
        "pipe": lambda: os.mkfifo(path),
        "missing folder": lambda: None,
    }
    make[kind]()
    path = path / "below" if kind == "missing folder" else path
    with pytest.raises(BadArgument, match=r"http\.audit_log .* be written: "):
        AuditLog.of(str(path))
    assert not caplog.records, "it is said once, at the start"
    fetcher = Canned(page)
    audited = recorded(fetcher, path)
    for _ in range(2):
        with pytest.raises(StoreError, match="audit log"):
            await audited.fetch("http://a.example/", tmp_path)
    assert len(fetcher.fetched) == 1
    assert not (tmp_path / "body").exists()
    assert [r.levelname for r in caplog.records if r.name == "fetchstash.audit"] == ["CRITICAL"] * 2


async def test_a_log_that_can_be_written_again_says_how_much_it_lost(
    path: Path, tmp_path: Path
) -> None:
    path.mkdir()
    audited = recorded(Canned(page), path)
    for _ in range(3):
        with pytest.raises(FetchstashError):
            await audited.fetch("http://a.example/", tmp_path)
    path.rmdir()
    await audited.fetch("http://a.example/", tmp_path)
    resumed, fetched = lines(path)
    assert (resumed["event"], fetched["event"]) == ("resumed", "fetch")
    assert resumed["lost"] == 3


async def test_half_a_line_of_a_full_disk_spoils_no_other_line(
    path: Path, request_of_alice: _request.Record, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, write = AuditLog(path), os.write

    def write_half(file: int, data: bytes) -> int:
        return write(file, data[:9])

    with monkeypatch.context() as full:
        full.setattr(os, "write", write_half)
        with pytest.raises(StoreError):
            log.call(request_of_alice, [])
    log.check()
    log.call(request_of_alice, [])
    assert [line["event"] for line in map(json.loads, path.read_text().splitlines()[1:])] == [
        "resumed",
        "call",
    ]


async def test_a_log_may_be_moved_away_at_any_time(path: Path, tmp_path: Path) -> None:
    audited = recorded(Canned(page), path)
    await audited.fetch("http://a.example/1", tmp_path)
    path.rename(path.with_suffix(".1"))
    await audited.fetch("http://a.example/2", tmp_path)
    assert [line["url"][-1] for line in lines(path.with_suffix(".1"))] == ["1"]
    assert [line["url"][-1] for line in lines(path)] == ["2"]


async def test_without_a_file_the_lines_go_to_a_logger(
    caplog: pytest.LogCaptureFixture, request_of_alice: _request.Record
) -> None:
    caplog.set_level("INFO", "fetchstash.audit")
    AuditLog(None).call(request_of_alice, [])
    [record] = caplog.records
    assert record.__dict__["facts"]["event"] == "call"


async def test_a_call_whose_line_is_lost_gets_an_error_in_place_of_its_result(
    service: Service, path: Path
) -> None:
    async with service(audit=AuditLog(path)) as http, mcp_client(http) as client:
        await client.call_tool("artifact_info", {})
        await client.list_tools()
        path.unlink()
        path.mkdir()
        with pytest.raises(MCPError, match=r"\[store_error\] The audit log"):
            await client.call_tool("artifact_info", {})
    assert path.is_dir()


async def test_each_call_is_a_line_and_lists_are_none(service: Service, path: Path) -> None:
    async with service(audit=AuditLog(path)) as http, mcp_client(http) as client:
        await client.list_tools()
        await client.call_tool("artifact_info", {"artifact_ref": "art_abc"})
    [line] = lines(path)
    assert (line["event"], line["tool"], line["code"]) == ("call", "artifact_info", "unknown_ref")
    assert (line["tenant"], line["principal"]) == ("local", "local")


@pytest.mark.long
async def test_a_service_whose_audit_log_is_lost_is_not_ready_until_it_takes_lines(
    tmp_path: Path,
) -> None:
    path = tmp_path / "audit.jsonl"
    audit = AuditLog(path)

    async def reason() -> str:
        return await Readiness(MemoryObjects(), ExtractLimits(), audit).reason()

    assert await reason() == ""
    path.mkdir()
    assert await reason() == ""  # no line was lost yet
    with pytest.raises(StoreError):
        audit.call(_request.Record("", {}), [])
    assert await reason() == "audit_log"
    assert await reason() == "audit_log"
    path.rmdir()
    assert await reason() == ""
    [line] = map(json.loads, path.read_text().splitlines())
    assert (line["event"], line["lost"]) == ("resumed", 1)
