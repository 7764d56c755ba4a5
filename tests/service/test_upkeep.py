"""Clean-up turns: one for each tenant and hour, after which nothing of what was deleted is left."""

import logging
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from fetchstash.config import Settings, load
from fetchstash.errors import StoreError
from fetchstash.service import Upkeep
from fetchstash.service._upkeep import TURN_SECONDS
from fetchstash.store import (
    CLEANED,
    ArtifactStore,
    Objects,
    View,
    _team,
    open_objects,
    open_store,
    person_run,
    remove_rest,
    tenants_of,
)
from fetchstash.store._catalog_store import CatalogStore
from fetchstash.store._team import TeamStore
from fetchstash.system import telemetry
from tests.store.buckets import every_bucket_is, new_objects
from tests.store.conftest import put_into
from tests.store.postgres import server

pytestmark = pytest.mark.anyio

ADA, BOB = person_run("ada"), person_run("bob")


class Rig:
    """A service's store with replicas, each on a machine of its own, and a clock for turns."""

    def __init__(self, folder: Path, *, is_team: bool) -> None:
        self.folder, self.is_team = folder, is_team
        self.catalog = server().new_database() if is_team else ""
        self.bucket = new_objects() if is_team else None

    def settings(self, machine: str = "one") -> Settings:
        """Return the settings of a replica."""
        if not self.is_team:
            return load({"store.folder": str(self.folder / "store")})
        place = {"store.url": "s3://bucket/team", "store.catalog": self.catalog}
        return load({**place, "store.folder": str(self.folder / machine)})

    async def store(self, tenant: str, machine: str = "one") -> ArtifactStore:
        """Open the store of a tenant on a machine."""
        return await open_store(self.settings(machine).for_tenant(tenant).store)

    async def let_an_hour_pass(self, objects: Objects, *tenants: str) -> None:
        """Let the next turn of these tenants be due, and their deletions be an hour old."""
        for tenant in tenants:
            await objects.counts.note("clean-up", tenant, ago=TURN_SECONDS + 1)
            if self.is_team:
                store = await self.store(tenant)
                assert isinstance(store, TeamStore)
                with store._database.connection() as db:  # pyright: ignore[reportPrivateUsage]
                    db.execute(f"UPDATE unnamed SET since = since - {_team.GRACE_SECONDS + 1}")
                await store.aclose()

    def left(self, store: ArtifactStore, word: bytes) -> list[str]:
        """Return where something of the tenant acme still has a word."""
        place = self.folder
        files = (path for path in place.rglob("*") if path.is_file())
        found = [str(path.relative_to(place)) for path in files if word in path.read_bytes()]
        if self.bucket:
            found += [p for p in self.bucket.paths() if word in self.bucket.store.get(p).bytes()]
        if isinstance(store, TeamStore):
            with store._database.connection() as db:  # pyright: ignore[reportPrivateUsage]
                terms = db.execute("SELECT terms::text FROM words").fetchall()
            found += ["words" for (text,) in terms if word.decode() in text]
        return found


@pytest.fixture(params=["folder", "team"])
async def rig(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Rig]:
    rig = Rig(tmp_path, is_team=request.param == "team")
    if not rig.bucket:
        yield rig
        return
    with every_bucket_is(rig.bucket):
        yield rig


@pytest.fixture
async def objects(rig: Rig) -> AsyncIterator[Objects]:
    opened = await open_objects(rig.settings().store)
    yield opened
    await opened.aclose()


async def fill(rig: Rig, *, days: float = 7) -> dict[str, str]:
    """Put a text of two persons of acme, and one of globex; return the references."""
    refs: dict[str, str] = {}
    for tenant, person in (("acme", ADA), ("acme", BOB), ("globex", ADA)):
        settings = rig.settings().for_tenant(tenant)
        whole = await open_store(replace(settings.store, max_age_days=days))
        store = whole.seen_from(View(person, person, person))
        name = f"{tenant}{'ada' if person == ADA else 'bob'}"
        text = f"osprey{name} keeps the harbour\n".encode()
        refs[name] = (await put_into(store, text, b"raw of " + text)).artifact_ref
        await store.search(f"osprey{name}", (), 3)  # its words are in the index of a folder
        await whole.aclose()
    return refs


async def test_after_one_turn_nothing_of_a_deleted_person_is_left_on_any_replica(
    rig: Rig, objects: Objects
) -> None:
    refs = await fill(rig)
    replicas = [Upkeep(rig.settings(name), objects) for name in ("one", "two")]
    stores = [await rig.store("acme", name) for name in ("one", "two")]
    for store in stores:  # each machine has a copy
        for ref in (refs["acmeada"], refs["acmebob"]):
            await store.open_text(ref)
            async with store.open_raw(ref):
                pass
    for replica in replicas:
        await replica.look()
    await stores[0].delete(refs["acmeada"])
    await rig.let_an_hour_pass(objects, "acme", "globex")
    for replica in replicas:
        await replica.look()
    assert rig.left(stores[0], b"ospreyacmeada") == []
    assert len(rig.left(stores[0], b"ospreyacmebob")) >= 2
    assert (await stores[1].list()).total == 1
    for store in stores:
        await store.aclose()


async def test_a_turn_expires_what_nobody_asks_for_and_is_a_line_and_a_metric(
    rig: Rig,
    objects: Objects,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "fetchstash.service")
    counted: list[tuple[str, int, Any]] = []

    def count(name: str, n: int = 1, **attributes: Any) -> None:
        counted.append((name, n, attributes))

    monkeypatch.setattr(telemetry, "count", count)
    await fill(rig, days=0.5)
    now = time.time()
    replica = Upkeep(rig.settings(), objects)
    await replica.look()
    monkeypatch.setattr(time, "time", lambda: now + 43_300)
    await replica.look()
    assert [record.message for record in caplog.records] == ["clean-up"] * len(caplog.records)
    caplog.clear()
    await rig.let_an_hour_pass(objects, "acme", "globex")
    await replica.look()
    lines = {line.__dict__["facts"]["tenant"]: line.__dict__["facts"] for line in caplog.records}
    assert {name: line["expired"] for name, line in lines.items()} == {"acme": 2, "globex": 1}
    assert ("cleaned", 2, {"reason": "age"}) in counted
    store = await rig.store("acme")
    if isinstance(store, TeamStore):
        with store._database.connection() as db:  # pyright: ignore[reportPrivateUsage]
            assert db.execute("SELECT count(*) FROM artifact").fetchone() == (0,)
    await store.aclose()


async def test_a_service_that_keeps_nothing_yet_logs_no_fault(
    rig: Rig, objects: Objects, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "fetchstash.service")
    await Upkeep(rig.settings(), objects).look()
    assert [line.message for line in caplog.records if line.levelno > logging.INFO] == []


async def test_two_replicas_share_the_turns_and_one_that_failed_comes_again(
    rig: Rig,
    objects: Objects,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "fetchstash.service")
    await fill(rig)

    async def fails(_: object) -> None:
        raise StoreError("The disk broke.", "Mend it.")

    with monkeypatch.context() as broken:
        broken.setattr(CatalogStore, "clean_up", fails)
        await Upkeep(rig.settings(), objects).look()
    failed = [line for line in caplog.records if line.message == "clean-up failed"]
    assert {line.__dict__["facts"]["reason"] for line in failed} == {"The disk broke."}
    caplog.clear()
    await Upkeep(rig.settings(), objects).look()
    assert caplog.records == [], "not before some minutes have passed"
    await rig.let_an_hour_pass(objects, "acme", "globex")
    async with anyio.create_task_group() as tasks:
        for machine in ("one", "two"):
            tasks.start_soon(Upkeep(rig.settings(machine), objects).look)
    done: list[str] = [line.__dict__["facts"]["tenant"] for line in caplog.records]
    assert sorted(filter(None, done)) == ["acme", "globex"]


async def test_a_deleted_tenant_leaves_no_copy_on_a_replica_and_is_not_made_anew(
    rig: Rig, objects: Objects
) -> None:
    refs = await fill(rig)
    other = await rig.store("acme", "two")
    await other.open_text(refs["acmeada"])
    replica = Upkeep(rig.settings("two"), objects)
    await replica.look()
    whole = await rig.store("acme")
    assert isinstance(whole, TeamStore) or not rig.is_team
    await whole.remove()  # type: ignore[attr-defined]
    for store in (whole, other):
        await store.aclose()
    await objects.counts.note(CLEANED, "acme")
    if rig.bucket:  # a put that was under way
        rig.bucket.store.put("raw/" + "0" * 64, b"ospreyacmeada, late")
    await replica.look()
    files = [path for path in rig.folder.rglob("*") if path.is_file()]
    assert not [path for path in files if b"ospreyacme" in path.read_bytes()]
    await rig.let_an_hour_pass(objects, "globex")
    await objects.counts.note("clean-up", "acme", ago=TURN_SECONDS + 1)
    await replica.look()
    assert await tenants_of(rig.settings().store) == ["globex"]
    # An hour after it was written, which the bucket says, the late object goes, too.
    left = await remove_rest(rig.settings().for_tenant("acme").store, -1)
    assert left == (1 if rig.bucket else 0)
