"""Tenants of a team's store: a reference of another costs what a guessed one does."""

from pathlib import Path
from typing import Any

import anyio
import pytest

from fetchstash.config import load
from fetchstash.errors import OverQuota, UnknownRef
from fetchstash.service import TenantStore
from fetchstash.store import Facts, StoreLimits, open_store, store_of_tenant
from fetchstash.store._postgres import Connection
from fetchstash.text.ranges import Ranges
from tests.store.buckets import every_bucket_is, new_objects
from tests.store.postgres import server

pytestmark = pytest.mark.anyio


async def kept(store: TenantStore, text: str) -> str:
    path = store.spool / "text"
    path.write_text(text)
    path.chmod(0o600)
    facts = await store.put(path, None, Facts(), Ranges())
    return facts.artifact_ref


async def test_foreign_deleted_and_guessed_references_cost_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    objects = new_objects()
    catalog = server().new_database()
    limits = StoreLimits(tmp_path, "s3://bucket/prefix", catalog=catalog)
    names = ("acme", "globex")
    with every_bucket_is(objects):
        own = [await open_store(store_of_tenant(limits, name)) for name in names]
    stores = {name: TenantStore(store, load()) for name, store in zip(names, own, strict=True)}
    removed = await kept(stores["acme"], "removed")
    await stores["acme"].delete(removed)
    foreign = await kept(stores["globex"], "of another")
    assert await stores["globex"].get(foreign)
    statements: list[str] = []
    execute = Connection.execute

    def noted(self: Connection, sql: str, parameters: tuple[object, ...] = ()) -> object:
        statements.append(sql)
        return execute(self, sql, parameters)

    monkeypatch.setattr(Connection, "execute", noted)
    objects.requests.clear()
    answers: dict[str, str] = {}
    work: dict[str, list[str]] = {}
    for name, ref in (("foreign", foreign), ("removed", removed), ("guessed", "art_" + "a" * 26)):
        statements.clear()
        with pytest.raises(UnknownRef) as error:
            await stores["acme"].get(ref)
        answers[name] = error.value.line().replace(ref, "REF")
        work[name] = list(statements)
    assert len(set(answers.values())) == 1
    assert work["guessed"]
    assert work["foreign"] == work["removed"] == work["guessed"]
    assert objects.requests == []
    for opened in own:
        await opened.aclose()


async def test_a_replica_counts_what_another_has_stored(tmp_path: Path) -> None:
    limits = StoreLimits(tmp_path, catalog=server().new_database())
    settings = load({"quota.artifacts": 2})
    own = [await open_store(store_of_tenant(limits, "acme")) for _ in range(2)]
    replicas = [TenantStore(store, settings) for store in own]
    first = await kept(replicas[0], "one")
    await kept(replicas[1], "two")
    for replica in replicas:
        with pytest.raises(OverQuota):
            await kept(replica, "three")
    await replicas[0].delete(first)
    await kept(replicas[1], "three")
    for opened in own:
        await opened.aclose()


async def test_of_two_puts_at_once_one_fits_a_quota_of_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await open_store(StoreLimits(tmp_path / "store"))
    tenant = TenantStore(store, load({"quota.stored_bytes": 100}))
    began, may_end, put = anyio.Event(), anyio.Event(), store.put

    async def slow(*arguments: Any, **options: Any) -> Facts:
        began.set()
        await may_end.wait()
        return await put(*arguments, **options)

    async def keep(name: str) -> None:
        path = store.spool / name
        path.write_bytes(name.encode() * 60)
        await tenant.put(path, None, Facts(), Ranges())

    monkeypatch.setattr(store, "put", slow)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(keep, "a")
        await began.wait()
        with anyio.fail_after(30), pytest.raises(OverQuota):  # else it waits as the first does
            await keep("b")
        may_end.set()
    assert (await store.list()).total == 1
    await store.aclose()
