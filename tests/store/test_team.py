"""What only a store in PostgreSQL does: claims, tenants, migrations, and a database that fails."""

import threading
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from fetchstash.errors import BadArgument, StoreError, UnknownRef
from fetchstash.store import (
    Facts,
    StoreLimits,
    View,
    _disk,
    _pool,
    _postgres,
    _schema,
    _team,
    check_store,
    open_objects,
    open_store,
    store_of_tenant,
)
from fetchstash.store._postgres import connection_url, schema_of
from fetchstash.store._schema import STEPS
from fetchstash.store._team import TeamStore
from tests.store.buckets import Recorded
from tests.store.conftest import Open, Put
from tests.store.contents import raw_of, text_of
from tests.store.postgres import new_server

psycopg = pytest.importorskip("psycopg")
pytestmark = pytest.mark.anyio


@pytest.fixture(params=["folder", "bucket"])
def open_(request: pytest.FixtureRequest, open_team: Open) -> Open:
    """Open a replica over the same database and bytes."""
    url = "s3://bucket/team" if request.param == "bucket" else ""
    return partial(open_team, machine="shared", url=url)


def run(store: Any, statement: str) -> list[Any]:
    """Run a statement in the schema of a store."""
    with store._database.connection() as db:
        done = db.execute(statement)
        return done.fetchall() if statement.startswith("SELECT") else []


def let_time_pass(store: Any) -> None:
    """Let every claim be older than GRACE_SECONDS."""
    run(store, f"UPDATE unnamed SET since = since - {_team.GRACE_SECONDS + 1}")


def delete(store: Any, ref: str) -> None:
    """Delete an artifact in this thread."""
    TeamStore.delete.__wrapped__(store, ref)  # type: ignore[attr-defined]


@pytest.mark.long
@pytest.mark.parametrize("held_at", ["claimed", "written"])
@pytest.mark.parametrize("takes_long", [False, True])
async def test_a_put_keeps_bytes_that_are_deleted_and_swept_meanwhile(
    open_: Open, put: Put, monkeypatch: pytest.MonkeyPatch, held_at: str, takes_long: bool
) -> None:
    one, other = await open_(cache_bytes=0), await open_()
    earlier = await put(other, b"text", b"raw")
    seen: list[str] = []

    def reached(step: str) -> None:
        seen.append(step)
        if step == held_at and seen.count(step) == 1:
            delete(other, earlier.artifact_ref)
            if takes_long:
                let_time_pass(other)
            other._sweep_once()

    monkeypatch.setattr(_disk, "reached", reached)
    facts = await put(one, b"text", b"raw")
    assert seen.count("claimed") == 1 + takes_long  # begun once more
    assert seen.count("sweeping") == 2 * takes_long
    assert await text_of(one, facts.artifact_ref) == "text"
    assert await raw_of(one, facts.artifact_ref) == b"raw"


async def test_a_put_waits_for_the_sweep_of_its_bytes_and_writes_them_anew(
    open_: Open, put: Put, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = await open_(cache_bytes=0), await open_()
    earlier = await put(other, None, b"raw")
    await other.delete(earlier.artifact_ref)
    let_time_pass(other)
    sweeping, go_on = threading.Event(), threading.Event()

    def reached(step: str) -> None:
        if step == "sweeping":
            sweeping.set()
            assert go_on.wait(30)

    monkeypatch.setattr(_disk, "reached", reached)
    kept: list[Facts] = []

    async def put_the_same() -> None:
        kept.append(await put(one, None, b"raw"))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(other.gc)
        await anyio.to_thread.run_sync(sweeping.wait, 30)
        tasks.start_soon(put_the_same)
        await anyio.sleep(0.3)
        assert not kept
        go_on.set()
    assert await raw_of(one, kept[0].artifact_ref) == b"raw"


def end_at(last: str, ending: pytest.MonkeyPatch) -> None:
    """Let every put end early, at this step."""

    def reached(step: str) -> None:
        if step == last:
            raise OSError

    ending.setattr(_disk, "reached", reached)


@pytest.mark.long
@pytest.mark.parametrize("last", ["claimed", "written"])
async def test_a_put_that_ends_early_shows_nothing_and_its_bytes_go(
    open_: Open, put: Put, monkeypatch: pytest.MonkeyPatch, last: str
) -> None:
    store = await open_()
    with monkeypatch.context() as ending:
        end_at(last, ending)
        with pytest.raises(StoreError):
            await put(store, b"text", b"raw", url="https://example.org/")
    assert (await store.list()).total == 0
    assert not list(store.spool.iterdir())
    await store.gc()
    assert bool(store._bytes.stored()) == (last == "written"), "too early for another's put"
    let_time_pass(store)
    await store.gc()
    assert store._bytes.stored() == {}
    assert run(store, "SELECT * FROM unnamed") == []


async def test_a_claim_that_was_left_behind_takes_no_bytes_that_an_artifact_names(
    open_: Open, put: Put, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await open_(cache_bytes=0)
    facts = await put(store, b"text", b"raw")
    with monkeypatch.context() as ending:
        end_at("claimed", ending)
        with pytest.raises(StoreError):
            await put(store, b"text", b"raw")
    let_time_pass(store)
    await store.gc()
    assert await raw_of(store, facts.artifact_ref) == b"raw"
    assert await text_of(store, facts.artifact_ref) == "text"


async def test_what_is_deleted_leaves_no_bytes_and_no_words(open_: Open, put: Put) -> None:
    store = await open_()
    facts = await put(store, b"some words", b"raw")
    shared = await put(store, b"other words", b"raw")
    await store.delete(facts.artifact_ref)
    let_time_pass(store)
    await store.gc()
    assert sorted(kind for kind, _ in store._bytes.stored()) == ["raw", "text"]
    assert len(run(store, "SELECT * FROM words")) == 1
    assert await raw_of(store, shared.artifact_ref) == b"raw"


async def test_usage_counts_all_that_is_kept(open_: Open, put: Put) -> None:
    store = await open_()
    facts = [await put(store, b"text", b"raw %d" % n) for n in range(3)]
    await store.pin(facts[0].artifact_ref)
    await store.delete(facts[2].artifact_ref)
    usage = await store.usage()
    assert (usage.artifacts, usage.bytes) == (2, 2 * (4 + 5))
    assert facts[1].expires_at
    assert usage.first_expiry == pytest.approx(facts[1].expires_at.timestamp())


async def test_tenants_see_nothing_of_each_other(open_: Open, put: Put) -> None:
    acme, globex, everybody = (
        await open_(tenant="acme"),
        await open_(tenant="globex"),
        await open_(),
    )
    facts = await put(acme, b"a secret of acme", b"raw", url="https://example.org/")
    for other in (globex, everybody):
        assert (await other.list()).total == 0
        assert not (await other.search("secret", (), 5)).passages
        for name in (facts.artifact_ref, "https://example.org/"):
            with pytest.raises(UnknownRef):
                await other.get(name)
    same = await put(globex, b"a secret of acme", b"raw")
    await acme.delete(facts.artifact_ref)
    let_time_pass(acme)
    await acme.gc()
    assert await text_of(globex, same.artifact_ref) == "a secret of acme"


async def test_whoever_has_a_deleted_tenant_open_is_told_that_its_store_is_gone(
    open_: Open, put: Put
) -> None:
    here, elsewhere = await open_(tenant="acme"), await open_(tenant="acme")
    facts = await put(elsewhere, b"text", b"raw")
    await here.remove()
    for work in (elsewhere.list, partial(elsewhere.get, facts.artifact_ref)):
        with pytest.raises(StoreError, match="the tenant was deleted") as error:
            await work()
        assert "Try again" not in error.value.next_step


def test_long_names_of_tenants_have_schemas_of_their_own() -> None:
    names = {schema_of(name) for name in ("", "a" * 62 + "b", "a" * 62 + "c", "b")}
    assert len(names) == 4
    assert all(len(name) <= 63 for name in names)


async def test_replicas_that_start_at_once_make_one_schema(open_: Open, put: Put) -> None:
    stores: list[Any] = []

    async def start() -> None:
        stores.append(await open_(tenant="acme"))

    async with anyio.create_task_group() as tasks:
        for _ in range(6):
            tasks.start_soon(start)
    facts = await put(stores[0], b"text")
    for store in stores:
        assert await text_of(store, facts.artifact_ref) == "text"


async def test_an_older_replica_refuses_a_newer_schema_also_when_it_is_open(
    open_: Open, put: Put
) -> None:
    store = await open_()
    newer = len(STEPS) + 1
    run(store, f"UPDATE setting SET value = '{newer}' WHERE name = 'schema'")
    with pytest.raises(StoreError, match="newer fetchstash"):
        await open_()
    with pytest.raises(StoreError, match="newer fetchstash"):
        await put(store, b"of an older replica")


async def test_a_word_after_the_part_that_is_indexed_is_found(
    open_: Open, put: Put, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_team, "_INDEXED_BYTES", 100)
    store = await open_()
    facts = await put(store, b"common words\n" * 50 + b"the needle\n")
    for n in range(3):
        await put(store, b"%d common\n" % n)
    (passage,) = (await store.search("needle", (), 5)).passages
    assert passage.artifact_ref == facts.artifact_ref


async def test_a_search_ranks_texts_with_all_words_before_newer_ones_with_one(
    open_: Open, put: Put, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_team, "CANDIDATES", 3)
    store = await open_()
    best = await put(store, b"Gr\xc3\xb6\xc3\x9fe 'and' needle \\ \xe6\x95\xb0\xe6\x8d\xae")
    for n in range(5):
        await put(store, b"needle %d" % n)
    result = await store.search("Größe needle 数据", (), 1)
    assert [passage.artifact_ref for passage in result.passages] == [best.artifact_ref]


async def test_the_newest_of_many_matches_are_ranked_and_an_old_match_is_found(
    open_: Open, put: Put, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_team, "CANDIDATES", 3)
    monkeypatch.setattr(_team, "BLOCK_ARTIFACTS", 2)
    monkeypatch.setattr(_team, "WHERE_TERMS", _schema.WHERE_TERMS.replace("4096", "2"))
    store = await open_()
    kept = [await put(store, b"common word\n%d rare%d" % (n, n)) for n in range(9)]
    other = store.seen_from(View("other", "other"))
    for n in range(3):
        await put(other, b"common word of another %d" % n)
    ranked = await store.search("common", (), 9)
    assert {p.artifact_ref for p in ranked.passages} == {f.artifact_ref for f in kept[-3:]}
    (old,) = (await store.search("rare0", (), 9)).passages
    assert old.artifact_ref == kept[0].artifact_ref


async def test_a_search_asks_for_no_more_texts_than_its_bound(
    open_: Open, put: Put, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_team, "CANDIDATES", 3)
    monkeypatch.setattr(_team, "PARTIAL", 2)
    monkeypatch.setattr(_team, "_INDEXED_BYTES", 64)
    store = await open_()
    for n in range(2):
        await put(store, b"red and blue %d" % n)
        await put(store, b"red alone %d" % n)
        await put(store, b"blue alone %d" % n)
    for n in range(3):
        await put(store, b"long" + b" word" * 64 + b" %d" % n)
    job, _, _ = store._search_job("red blue", (), 9)
    texts = [ref for ref in job.texts if await text_of(store, ref)]
    assert len(texts) == 3 + 2
    result = await store.search("red blue", (), 9)
    both = [p for p in result.passages if "red and blue" in p.text]
    assert len(both) == 2


async def test_repair_removes_the_artifacts_whose_bytes_are_lost_and_no_other(
    open_: Open, put: Put
) -> None:
    store = await open_()
    lost, kept = await put(store, None, b"lost"), await put(store, b"kept", b"kept")
    assert await store.check() == ()
    store._bytes.remove("raw", lost.sha256)
    (finding,) = await check_store(store._limits)
    assert (finding.level, finding.artifact_ref) == ("fault", lost.artifact_ref)
    assert [finding.mended for finding in await check_store(store._limits, repair=True)] == [True]
    assert [facts.artifact_ref for facts in (await store.list()).facts] == [kept.artifact_ref]


# --- a database that fails -----------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("how", ["stopped", "frozen"])
async def test_a_database_that_is_gone_costs_a_bounded_time_and_one_line_and_is_used_again(
    how: str, tmp_path: Path, put: Put, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_pool, "WAIT_SECONDS", 1)
    monkeypatch.setattr(_pool, "ASK_SECONDS", 2)  # libpq's least
    monkeypatch.setattr(_pool, "SILENT_SECONDS", 0)
    own = new_server()
    limits = StoreLimits(tmp_path, run="default", catalog=own.new_database())
    store, objects = await open_store(limits), await open_objects(limits)
    known = await put(store, b"known\n", url="https://example.org/")
    assert await text_of(store, known.artifact_ref) == "known\n"
    assert await objects.failing() == ""
    own.stop() if how == "stopped" else own.freeze()
    try:
        with anyio.fail_after(60):  # and not for ever
            for ask in (
                store.list,
                lambda: store.get("https://example.org/"),
                lambda: put(store, b"new\n"),
                lambda: store.search("known", [], 3),
                lambda: store.get("art_" + "a" * 26),
                lambda: store.delete(known.artifact_ref),
                lambda: open_store(store_of_tenant(limits, "another")),
            ):
                with pytest.raises(StoreError, match="database does not answer") as error:
                    await ask()
                assert len(error.value.line().splitlines()) == 1
            assert await objects.failing() == "database"
            # What was read last can be read on.
            assert await text_of(store, known.artifact_ref) == "known\n"
    finally:
        own.start() if how == "stopped" else own.thaw()
    with anyio.fail_after(60):
        while await objects.failing():  # noqa: ASYNC110 - until the pool has tried again
            await anyio.sleep(0.05)
    assert [facts.artifact_ref for facts in (await store.list()).facts] == [known.artifact_ref]
    assert (await put(store, b"new\n")).artifact_ref
    own.stop()
    own.start()
    assert (await store.list()).total == 2, "the idle connections are broken by now"
    await store.aclose()
    await objects.aclose()
    own.stop()


async def test_a_bucket_that_fails_is_named(
    catalog: str, objects: Recorded, tmp_path: Path
) -> None:
    opened = await open_objects(StoreLimits(tmp_path, "s3://bucket", catalog=catalog))

    def refuse(_name: str, _path: str) -> None:
        raise OSError("status code: 500")

    assert await opened.failing() == ""
    objects.before = refuse
    assert await opened.failing() == "bucket"
    await opened.aclose()


# --- settings ------------------------------------------------------------------------------------


async def test_a_bucket_of_an_earlier_version_is_refused_in_one_line(
    catalog: str, objects: Recorded, tmp_path: Path
) -> None:
    with pytest.raises(BadArgument, match=r"Set store\.catalog"):
        await open_store(StoreLimits(tmp_path, "s3://bucket"))
    objects.store.put("records/art_old.json", b"{}")
    for _ in range(2):
        with pytest.raises(StoreError, match="earlier version"):
            await open_store(StoreLimits(tmp_path, "s3://bucket", catalog=catalog))


@pytest.mark.parametrize(
    ("catalog", "url"),
    [
        ("postgresql://me@db/stash", "postgresql://me@db/stash"),
        ("postgresql://me:env:PASSWORD@db/stash", "postgresql://me:p%40%2F@db/stash"),
        ("postgresql:///stash?host=/run", "postgresql:///stash?host=/run"),
        ("postgresql://me@db/s?passfile=/p", "postgresql://me@db/s?passfile=/p"),
        ("postgresql://me:secret@db/stash", "holds a password"),
        ("postgresql://me:env:OTHER@db/stash", "OTHER, which is not set"),
        ("postgresql://db", "no address of a database"),
        ("mysql://db/stash", "no address of a database"),
    ],
)
def test_a_password_comes_from_the_environment(
    catalog: str, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PASSWORD", "p@/")
    if url.startswith("postgresql"):
        assert connection_url(catalog) == url
        return
    with pytest.raises(BadArgument, match=url) as error:
        connection_url(catalog)
    assert "secret" not in error.value.line()


@pytest.mark.parametrize("wrong", ["&foo=bar", "&sslmode=bogus", "&port=nine"])
async def test_an_address_that_libpq_cannot_read_is_no_failure_of_the_database(
    wrong: str, tmp_path: Path
) -> None:
    catalog = f"postgresql:///stash?host={tmp_path}{wrong}"
    with pytest.raises(StoreError, match="no address of a database"):
        await open_store(StoreLimits(tmp_path, catalog=catalog))


async def test_without_psycopg_one_line_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "psycopg", None)
    with pytest.raises(StoreError, match=r'pip install "fetchstash\[team\]"'):
        await open_store(StoreLimits(tmp_path, catalog="postgresql:///x"))


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ('FATAL:  role "bob" does not exist', "let this user in"),
        ('FATAL:  no pg_hba.conf entry for host "10.0.0.1", no encryption', "let this user in"),
        ('FATAL:  database "stahs" does not exist', "no such database"),
        ("SSL error: certificate verify failed", "over TLS"),
        ("server does not support SSL, but SSL was required", "over TLS"),
        ("FATAL:  sorry, too many clients already", "has no connection left"),
    ],
)
def test_what_waiting_cannot_mend_says_what_to_do_instead(said: str, shown: str) -> None:
    error = psycopg.OperationalError(f'connection to server at "10.0.0.9" failed: {said}')
    line = _postgres.failure(error).line()
    assert shown in line
    assert "Try again" not in line


@pytest.mark.parametrize(
    "said", ["FATAL:  the database system is starting up", "SSL SYSCALL error: EOF detected"]
)
def test_what_waiting_mends_says_so(said: str) -> None:
    assert "Try again" in _postgres.failure(psycopg.OperationalError(said)).line()


async def test_a_statement_ends_when_the_server_is_silent_to_another_connection(
    tmp_path: Path, catalog: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_pool, "WAIT_SECONDS", 0.3)
    asked = list[str]()

    def ask(_: _pool.Pool) -> None:
        asked.append("")
        if len(asked) > 1:  # it lived when it was asked first
            raise psycopg.errors.ConnectionTimeout

    store = await open_store(StoreLimits(tmp_path, catalog=catalog))
    monkeypatch.setattr(_pool.Pool, "_ask", ask)
    with pytest.raises(StoreError, match="does not answer"):
        await anyio.to_thread.run_sync(run, store, "SELECT pg_sleep(20)")
    assert len(asked) == 2
    await store.aclose()


async def test_a_database_that_freezes_within_a_statement_is_given_up(
    tmp_path: Path, catalog: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_pool, "_ANSWER_SECONDS", 0.5)
    store = await open_store(StoreLimits(tmp_path, catalog=catalog))
    with pytest.raises(StoreError, match="does not answer"):
        await anyio.to_thread.run_sync(run, store, "SELECT pg_sleep(20)")
    assert (await store.list()).total == 0
    await store.aclose()
