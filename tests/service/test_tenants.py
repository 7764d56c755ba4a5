"""Tenants: what is one's own is nobody else's, and one answer for all that is not."""

import json
import re
import sqlite3
from collections.abc import Generator
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path
from typing import Any, Self
from unittest import mock

import anyio
import pytest
from hypothesis import HealthCheck, given, settings as examples, strategies as st

from fetchstash.config import Settings, load
from fetchstash.errors import BadArgument, Busy, OverQuota, StoreError, UnknownRef
from fetchstash.handlers import WorkerPool
from fetchstash.service import Quotas, Tenants, TenantStore
from fetchstash.service.access._principal import is_tenant
from fetchstash.store import Facts, open_objects, open_store
from fetchstash.store._folder import LocalStore
from fetchstash.text.ranges import Ranges
from tests.service.asgi import mcp_client
from tests.service.team import Web, ask, call, copied, fetched, of, team, text_of, web_of

pytestmark = pytest.mark.anyio
GUESSED = "art_" + "a" * 26
_REF = re.compile(r"art_[a-z2-7]{26}")


@pytest.fixture(autouse=True)
def web() -> Generator[Web]:
    with web_of() as web:
        yield web


def configured(folder: Path, text: str = "", **values: Any) -> Settings:
    file = folder / "settings.toml"
    file.write_text(text)
    store = {"store.folder": str(folder / "store"), "extract.ocr": "off"}
    return load({**store, **{k.replace("__", "."): v for k, v in values.items()}}, file=file)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return configured(tmp_path)


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_clients_of_both_eras_reach_their_own_tenant(
    settings: Settings, web: Web, mode: str
) -> None:
    web.pages["https://a.example/"] = "A page.\n"
    async with team(settings) as (http, _):
        http.headers["authorization"] = "Bearer acme"
        async with mcp_client(http, mode) as client:
            await client.call_tool("fetch_content", {"url": "https://a.example/"})
            assert len((await client.list_resources()).resources) == 1
        http.headers["authorization"] = "Bearer globex"
        async with mcp_client(http, mode) as client:
            assert (await client.list_resources()).resources == []


async def test_no_header_argument_or_url_changes_the_tenant(settings: Settings, web: Web) -> None:
    web.pages["https://a.example/"] = "A page.\n"
    async with team(settings) as (http, _):
        ref = await fetched(http, "acme", "https://a.example/")
        message = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/call",
            "params": {"name": "artifact_info", "arguments": {}, "_meta": {"tenant": "acme"}},
        }
        sent = of("globex", **{"x-tenant": "acme", "x-forwarded-user": "acme", "tenant": "acme"})
        for query in ("", "?tenant=acme"):
            answer = await http.post(f"/mcp{query}", json=message, headers=sent)
            assert answer.status_code == 200
            assert ref not in answer.text
        named = await call(http, "globex", "artifact_info", tenant="acme")
        assert named["isError"]


# --- references that lead nowhere ----------------------------------------------------------------


class Counting:
    """Counts what a store is asked, down to the statements of its catalogue."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __enter__(self) -> Self:
        self._stack = ExitStack()
        for name in ("get", "open_artifact", "open_raw", "search", "touch", "list"):
            self._count(name)
        connect = sqlite3.connect

        def traced(*args: Any, **kwargs: Any) -> sqlite3.Connection:
            db: sqlite3.Connection = connect(*args, **kwargs)
            db.set_trace_callback(lambda statement: self.asked.append(_shape(statement)))
            return db

        self._stack.enter_context(mock.patch("sqlite3.connect", traced))
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _count(self, name: str) -> None:
        original = getattr(LocalStore, name)

        def counted(*args: Any, **kwargs: Any) -> Any:
            self.asked.append(name)
            return original(*args, **kwargs)

        self._stack.enter_context(mock.patch.object(LocalStore, name, counted))


def _shape(statement: str) -> str:
    """Return a statement without its values."""
    return _REF.sub("REF", statement)


def completing(typed: str) -> tuple[str, dict[str, Any]]:
    ref = {"type": "ref/resource", "uri": "fetchstash://artifact/{artifact_ref}"}
    return "completion/complete", {"ref": ref, "argument": {"name": "artifact_ref", "value": typed}}


READS: dict[str, tuple[str, dict[str, Any]]] = {
    "get_search_content": ("tools/call", {"artifact_ref": "REF"}),
    "artifact_grep": ("tools/call", {"artifact_ref": "REF", "pattern": "x"}),
    "artifact_grep of several": ("tools/call", {"artifact_refs": ["REF", "REF"], "pattern": "x"}),
    "artifact_slice": ("tools/call", {"artifact_ref": "REF", "start": 1, "end": 2}),
    "artifact_slice by path": ("tools/call", {"artifact_ref": "REF", "path": "page"}),
    "artifact_slice of bytes": ("tools/call", {"artifact_ref": "REF", "unit": "bytes"}),
    "artifact_slice as image": ("tools/call", {"artifact_ref": "REF", "render": "image"}),
    "artifact_search": ("tools/call", {"artifact_refs": ["REF"], "query": "secret"}),
    "artifact_info": ("tools/call", {"artifact_ref": "REF"}),
    "resource": ("resources/read", {"uri": "fetchstash://artifact/REF"}),
    "completion": completing("REF"),
}


@pytest.mark.whole
@pytest.mark.parametrize("read", READS)
async def test_foreign_expired_and_guessed_references_are_answered_alike_by_the_same_work(
    tmp_path: Path, web: Web, read: str
) -> None:
    settings = configured(tmp_path, "[tenants.acme.store]\nmax_artifacts = 1\n")
    web.pages |= {f"https://a.example/{n}": f"Secret {n}.\n" for n in range(3)}
    method, params = READS[read]
    answers: dict[str, Any] = {}
    work: dict[str, list[str]] = {}
    with Counting() as counting:
        async with team(settings) as (http, _):
            foreign = await fetched(http, "globex", "https://a.example/0")
            expired = await fetched(http, "acme", "https://a.example/1")
            await fetched(http, "acme", "https://a.example/2")
            for name, ref in (
                ("warm", GUESSED),
                ("foreign", foreign),
                ("expired", expired),
                ("guessed", GUESSED),
            ):
                sent = json.loads(json.dumps(params).replace("REF", ref))
                if method == "tools/call":
                    sent = {"name": read.split(maxsplit=1)[0], "arguments": sent}
                counting.asked.clear()
                answer = await ask(http, "acme", method, sent)
                answers[name] = json.loads(json.dumps(answer).replace(ref, "REF"))
                # By when artifacts must not have expired is another moment each time.
                work[name] = [re.sub(r"\d{9,}\.\d+", "now", each) for each in counting.asked]
    assert answers["foreign"] == answers["expired"] == answers["guessed"]
    assert work["foreign"] == work["expired"] == work["guessed"]
    if read != "completion":
        assert "unknown_ref" in json.dumps(answers["guessed"])
        assert work["guessed"]


def forms_of(ref: str, url: str) -> list[str]:
    """Return names near a reference: changed, cut, in other forms, with paths and queries."""
    half = len(ref) // 2
    changed = [ref[:half] + char + ref[half + 1 :] for char in "b%*?_[\u0430"]
    longer = [f"{ref}a", f" {ref}", f"{ref}\n", f"{ref}\0", f"{ref}' OR '1'='1"]
    places = [f"art_globex/{ref}", f"art_../globex/{ref[4:]}", url, f"{url}?1"]
    return [ref, ref.upper(), ref[:half], *changed, *longer, *places]


@pytest.mark.whole
@pytest.mark.parametrize("read", [name for name in READS if name != "completion"])
async def test_no_form_of_a_reference_leads_to_what_another_tenant_keeps(
    settings: Settings, web: Web, read: str
) -> None:
    web.pages |= {f"https://a.example/{n}": f"Secret {n}.\n" for n in range(2)}
    method, params = READS[read]
    async with team(settings) as (http, _):
        foreign = await fetched(http, "globex", "https://a.example/0")
        own = await fetched(http, "acme", "https://a.example/1")
        asked = json.dumps(params)
        if "several" in read:
            asked = asked.replace("REF", own, 1)
        for form in forms_of(foreign, "https://a.example/0"):
            sent = json.loads(asked.replace("REF", json.dumps(form)[1:-1]))
            if method == "tools/call":
                sent = {"name": read.split(maxsplit=1)[0], "arguments": sent}
            answer = json.dumps(await ask(http, "acme", method, sent))
            assert "unknown_ref" in answer or "bad_argument" in answer, form
            assert "Secret" not in answer, form


async def test_a_store_that_says_more_of_a_reference_is_answered_for_alike() -> None:
    settings = load({"store.url": "memory:"})
    store: Any = await open_store(settings.for_tenant("acme").store)
    of_tenant = TenantStore(store, settings)
    with store._reads.connection() as db:
        db.execute("INSERT INTO expired (ref) VALUES (?)", ("art_" + "b" * 26,))
    lines = set[str]()
    for ref in ("art_" + "b" * 26, GUESSED):
        with pytest.raises(UnknownRef) as error:
            await of_tenant.get(ref)
        lines.add(error.value.line().replace(ref, "REF"))
    assert len(lines) == 1
    await store.aclose()


async def test_a_put_over_the_quota_leaves_no_file() -> None:
    settings = load({"store.url": "memory:", "quota.stored_bytes": 8})
    store = await open_store(settings.store)
    raw, text = store.spool / "raw", store.spool / "text"
    for path in (raw, text):
        path.write_bytes(b"words")
    with pytest.raises(OverQuota):
        await TenantStore(store, settings).put(raw, text, Facts(), Ranges())
    assert not raw.exists()
    assert not text.exists()
    await store.aclose()


# --- what a tenant has of its own ----------------------------------------------------------------


async def test_each_tenant_has_its_own_folder_logs_and_key(tmp_path: Path, web: Web) -> None:
    settings = configured(tmp_path, telemetry__event_log=str(tmp_path / "logs" / "events.jsonl"))
    web.pages["https://a.example/"] = "A page.\n"
    async with team(settings) as (http, _):
        refs = {
            name: await fetched(http, name, "https://a.example/") for name in ("acme", "globex")
        }
    keys = set[bytes]()
    for name, other in (("acme", "globex"), ("globex", "acme")):
        folder = tmp_path / "store" / "tenants" / name
        log = (tmp_path / "logs" / "tenants" / name / "events.jsonl").read_text()
        calls = (folder / "calls.jsonl").read_text()
        for text in (log, calls):
            assert refs[name] in text
            assert refs[other] not in text
        with sqlite3.connect(next(folder.glob("*.db"))) as db:
            (key,) = db.execute("SELECT value FROM setting WHERE name = 'url_key'").fetchone()
        db.close()
        keys.add(bytes(key))
    assert len(keys) == 2
    assert (tmp_path / "store" / "tenants").stat().st_mode & 0o077 == 0, "others see the names"
    assert not (tmp_path / "logs" / "events.jsonl").exists()
    assert len(web.asked) == 2, "a copy of one tenant answered another"


@pytest.mark.parametrize(("own", "workers"), [(0, 7), (3, 3), (99, 7)])
async def test_a_tenant_has_as_many_workers_as_it_may_convert_documents(
    tmp_path: Path, own: int, workers: int
) -> None:
    settings = configured(tmp_path, quota__concurrent_conversions=own)
    begin = WorkerPool.__init__
    with mock.patch.object(WorkerPool, "__init__", autospec=True, side_effect=begin) as opened:
        tenants = Tenants(settings, slots=8)
        for name in ("acme", "globex", "acme"):
            await tenants.stash(name)
        await tenants.aclose()
    pools = [call.kwargs for call in opened.call_args_list]
    assert [pool["workers"] for pool in pools] == [workers] * 2
    assert [pool["folder"].parts[-2] for pool in pools] == ["acme", "globex"], "each its own"


def test_the_names_of_tenants_are_those_that_tokens_may_carry(tmp_path: Path) -> None:
    good = ("acme", "a", "0-b", "a" * 63)
    for name in (*good, "", "A", "-a", "a" * 64, "a_b", "a.b", "ä", "a b", "a/b", "..", "a\n"):
        try:
            configured(tmp_path, f"[tenants.{json.dumps(name)}.quota]\n")
        except BadArgument:
            is_name = False
        else:
            is_name = True
        assert is_name == is_tenant(name) == (name in good), name


# --- open and closed -----------------------------------------------------------------------------


async def test_a_tenant_that_is_idle_is_closed_and_opened_again(
    settings: Settings, web: Web
) -> None:
    web.pages["https://a.example/"] = "A page.\n"
    async with team(settings) as (http, tenants):
        ref = await fetched(http, "acme", "https://a.example/")
        first = await tenants.stash("acme")
        with tenants.entered("acme"):
            await tenants.close_idle(-1)
            assert await tenants.stash("acme") is first, "it was in use"
        await tenants.close_idle(-1)
        assert await tenants.stash("acme") is not first
        assert ref in text_of(await call(http, "acme", "artifact_info"))


async def test_the_tenant_used_least_recently_makes_room_for_one_more(settings: Settings) -> None:
    tenants = Tenants(settings, max_open=2)
    stashes = {name: await tenants.stash(name) for name in ("a", "b")}
    await tenants.stash("a")
    await tenants.stash("c")
    assert await tenants.stash("a") is stashes["a"]
    assert await tenants.stash("b") is not stashes["b"]
    with tenants.entered("a"), tenants.entered("b"), pytest.raises(Busy):
        await tenants.stash("d")
    await tenants.aclose()


async def test_a_store_in_memory_is_never_closed_while_the_service_runs(web: Web) -> None:
    web.pages["https://a.example/"] = "A page.\n"
    settings = load({"store.url": "memory:", "extract.ocr": "off"})
    async with team(settings, max_open=1) as (http, tenants):
        ref = await fetched(http, "acme", "https://a.example/")
        await tenants.close_idle(-1)
        other = await call(http, "globex", "artifact_info")
        assert text_of(other).startswith("[busy]")
        assert ref in text_of(await call(http, "acme", "artifact_info"))


async def test_a_store_that_fails_to_close_keeps_no_other_open(
    settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    closed: list[str] = []

    async def fail(pool: WorkerPool) -> None:
        closed.append(str(pool))
        raise StoreError("The disk is full.", "Make room.")

    tenants = Tenants(settings)
    with mock.patch.object(WorkerPool, "aclose", fail):
        for name in ("a", "b"):
            await tenants.stash(name)
        await tenants.close_idle(-1)
    assert len(closed) == 2
    assert len(caplog.records) == 2
    await tenants.aclose()


async def test_a_store_that_cannot_be_opened_is_tried_again(settings: Settings) -> None:
    tenants = Tenants(settings)
    settings.store.folder.mkdir()
    in_the_way = settings.store.folder / "tenants"
    in_the_way.write_text("no folder")
    with pytest.raises(StoreError):
        await tenants.stash("acme")
    in_the_way.unlink()
    assert await tenants.stash("acme")
    await tenants.aclose()


# --- quotas --------------------------------------------------------------------------------------


async def test_over_its_requests_a_tenant_is_told_when_to_try_again_and_others_are_not(
    tmp_path: Path,
) -> None:
    settings = configured(tmp_path, "[tenants.acme.quota]\nrequests_per_minute = 2\n")
    async with team(settings) as (http, _):
        for _ in range(2):
            assert not (await call(http, "acme", "artifact_info")).get("isError")
        refused = await call(http, "acme", "artifact_info")
        assert refused["isError"]
        assert text_of(refused).startswith("[quota] You may send 2 requests a minute, and have.")
        error = refused["_meta"]["fetchstash/error"]
        assert error["code"] == "quota"
        assert 1 <= error["retry_after_seconds"] <= 70
        # The next ones in the same second are refused before the protocol.
        answer = await http.post("/mcp", json={}, headers=of("acme"))
        assert answer.status_code == 429
        assert 1 <= int(answer.headers["retry-after"]) <= 70
        assert answer.json()["error"]["message"].startswith("[quota]")
        assert not (await call(http, "globex", "artifact_info")).get("isError")


async def test_a_resource_is_refused_over_the_quota_too(tmp_path: Path) -> None:
    settings = configured(tmp_path, "[tenants.acme.quota]\nrequests_per_minute = 1\n")
    async with team(settings) as (http, _):
        await call(http, "acme", "artifact_info")
        refused = await ask(http, "acme", "resources/list", {})
    assert refused["error"]["message"].startswith("[quota]")


async def test_what_was_fetched_counts_and_over_it_what_is_kept_can_be_read(
    tmp_path: Path, web: Web
) -> None:
    settings = configured(tmp_path, quota__fetched_bytes_per_day=1_000)
    web.pages |= {f"https://a.example/{n}": f"{n}" * 600 for n in range(3)}
    async with team(settings) as (http, _):
        refs = [await fetched(http, "acme", f"https://a.example/{n}") for n in range(2)]
        refused = await call(http, "acme", "fetch_content", url="https://a.example/2")
        assert text_of(refused).startswith("[quota] You may fetch 1,000 bytes a day")
        read = await call(http, "acme", "get_search_content", artifact_ref=refs[0])
        assert not read.get("isError")
        await fetched(http, "globex", "https://a.example/2")


@pytest.mark.parametrize(
    ("quota", "words"),
    [("stored_bytes = 2_500", "[quota] You keep 2,400 bytes"), ("artifacts = 2", "2 artifacts")],
)
async def test_over_what_it_may_keep_a_tenants_fetch_is_refused_and_nothing_is_left(
    tmp_path: Path, web: Web, quota: str, words: str
) -> None:
    settings = configured(tmp_path, f"[tenants.acme.quota]\n{quota}\n")
    web.pages |= {f"https://a.example/{n}": f"{n}" * 600 for n in range(3)}
    async with team(settings) as (http, tenants):
        for n in range(2):
            await fetched(http, "acme", f"https://a.example/{n}")
        refused = await call(http, "acme", "fetch_content", url="https://a.example/2")
        assert words in text_of(refused)
        assert "The first of it expires in 168 h" in text_of(refused)
        stash = await tenants.stash("acme")
        assert list(stash.store.spool.iterdir()) == []
        kept = await stash.list()
        await stash.delete(kept.facts[0].artifact_ref)
        now = anyio.current_time

        def later() -> float:  # when it is counted again
            return now() + 2

        with mock.patch("anyio.current_time", later):
            await fetched(http, "acme", "https://a.example/2")
        await fetched(http, "globex", "https://a.example/2")


async def test_fetches_at_once_do_not_keep_more_than_a_tenant_may(tmp_path: Path, web: Web) -> None:
    settings = configured(tmp_path, quota__artifacts=3)
    urls = [f"https://a.example/{n}" for n in range(9)]
    web.pages |= {url: f"Page {url}.\n" for url in urls}
    async with team(settings) as (http, tenants):
        await call(http, "acme", "fetch_content", urls=urls)
        assert (await (await tenants.stash("acme")).list()).total == 3


async def test_replicas_count_together_what_a_tenant_keeps(tmp_path: Path, web: Web) -> None:
    settings = configured(tmp_path, quota__artifacts=3)
    web.pages |= {f"https://a.example/{n}": f"{n}" * 6 for n in range(9)}
    objects = await open_objects(settings.store)
    quotas = [Quotas(objects.counts) for _ in range(3)]
    kept = 0
    async with AsyncExitStack() as stack:
        services = [
            (await stack.enter_async_context(team(settings, quotas=counts)))[0] for counts in quotas
        ]
        for n in range(9):
            url = f"https://a.example/{n}"
            result = await call(services[n % 3], "acme", "fetch_content", url=url)
            kept += not result.get("isError")
            for counts in quotas * 2:
                await counts.exchange()
    assert kept == 3
    assert len(web.asked) < 9, "a tenant with no room left was fetched for"


async def test_conversions_of_one_tenant_leave_a_processor_to_the_others(
    settings: Settings, web: Web
) -> None:
    running: list[str] = []
    most: dict[str, int] = {}
    full, gate = anyio.Event(), anyio.Event()

    async def extract(pool: WorkerPool, source: Path, *args: Any, **kwargs: Any) -> Any:
        tenant = source.parts[-3]
        running.append(tenant)
        most[tenant] = max(most.get(tenant, 0), running.count(tenant))
        if tenant == "flood":
            if running.count("flood") == 2:
                full.set()
            await gate.wait()
        running.remove(tenant)
        return await copied(pool, source, *args, **kwargs)

    web.pages |= {f"https://a.example/{n}": f"Page {n}.\n" for n in range(6)}
    with mock.patch.object(WorkerPool, "extract", extract):
        async with team(settings, slots=3) as (http, _), anyio.create_task_group() as tasks:
            for n in range(6):
                tasks.start_soon(fetched, http, "flood", f"https://a.example/{n}")
            await full.wait()
            await fetched(http, "acme", "https://a.example/0")
            assert running == ["flood", "flood"]
            gate.set()
    assert most == {"flood": 2, "acme": 1}


# --- any interleaving ----------------------------------------------------------------------------


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["acme", "globex"]),
        st.sampled_from(
            ["fetch", "list", "search", "grep", "read", "url", "resources", "complete", "close"]
        ),
        st.integers(0, 3),
    ),
    min_size=4,
    max_size=14,
)


@pytest.mark.slow
@examples(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(rounds=st.lists(STEPS, min_size=1, max_size=2))
async def test_in_any_interleaving_a_tenant_sees_only_its_own(
    tmp_path_factory: pytest.TempPathFactory, web: Web, rounds: list[list[tuple[str, str, int]]]
) -> None:
    web.pages.clear()
    for tenant in ("acme", "globex"):
        for n in range(4):
            web.pages[f"https://{tenant}.example/{n}"] = f"Word of {tenant}-{n}, secret-{tenant}.\n"
    refs: dict[str, list[str]] = {"acme": [], "globex": []}
    other = {"acme": "globex", "globex": "acme"}
    settings = configured(tmp_path_factory.mktemp("team"))

    async with team(settings) as (http, tenants):

        async def step(tenant: str, action: str, n: int) -> None:
            any_ref = [*refs["acme"], *refs["globex"], GUESSED]
            ref = any_ref[n % len(any_ref)]
            match action:
                case "fetch":
                    mine = await fetched(http, tenant, f"https://{tenant}.example/{n}")
                    refs[tenant].append(mine)
                    return
                case "list":
                    seen: Any = await call(http, tenant, "artifact_info")
                case "search":
                    seen = await call(http, tenant, "artifact_search", query="secret word")
                case "grep":
                    seen = await call(
                        http, tenant, "artifact_grep", artifact_ref=ref, pattern="secret"
                    )
                case "read":
                    seen = await call(http, tenant, "get_search_content", artifact_ref=ref)
                case "url":
                    url = f"https://{other[tenant]}.example/{n}"
                    seen = await call(http, tenant, "get_search_content", artifact_ref=url)
                    assert seen["isError"]
                    return
                case "resources":
                    seen = await ask(http, tenant, "resources/list", {})
                    assert len(seen["result"]["resources"]) <= len(set(refs[tenant])) + 4
                case "complete":
                    seen = await ask(http, tenant, *completing(""))
                case _:
                    await tenants.close_idle(-1)
                    return
            text = json.dumps(seen)
            assert f"secret-{other[tenant]}" not in text
            assert f"{other[tenant]}.example" not in text
            theirs = set(refs[other[tenant]]) - {ref}
            assert not theirs & set(_REF.findall(text))

        for steps in rounds:
            async with anyio.create_task_group() as tasks:
                for tenant, action, n in steps:
                    tasks.start_soon(step, tenant, action, n)
