"""A clock that is wrong expires nothing; time that really passed does."""

import json
import time
from dataclasses import replace
from pathlib import Path

import pytest

from fetchstash.store import ArtifactStore, StoreLimits, open_store
from fetchstash.store._team import TeamStore
from tests.store.conftest import Put

HOUR, DAY = 3600.0, 86400.0
START = 1_800_000_000.0


@pytest.mark.long
@pytest.mark.parametrize(
    ("looks", "believed"),
    [
        pytest.param([0, HOUR, DAY], DAY, id="time passes"),
        pytest.param([0, -30 * DAY], 0, id="a clock that is behind"),
        pytest.param([0, 30 * DAY], 0, id="one look at a jump"),
        pytest.param([0, 30 * DAY, 30 * DAY + 60], 0, id="a second look too soon"),
        pytest.param([0, 30 * DAY, 30 * DAY + HOUR], 30 * DAY + HOUR, id="a second look later"),
        pytest.param([0, 30 * DAY, 60, 30 * DAY + HOUR], 60, id="a right clock in between"),
        pytest.param([0, 30 * DAY, 9 * DAY, 9 * DAY + HOUR], 9 * DAY + HOUR, id="two wrong ones"),
    ],
)
@pytest.mark.anyio
async def test_a_jump_is_believed_at_a_second_look(
    limits: StoreLimits,
    put: Put,
    monkeypatch: pytest.MonkeyPatch,
    looks: list[float],
    believed: float,
) -> None:
    kept: dict[float, str] = {}
    monkeypatch.setattr(time, "time", lambda: START)
    for seconds in (believed, believed + 60):
        store = await open_store(replace(limits, max_age_days=max(seconds, 1) / DAY))
        kept[seconds] = (await put(store, b"text")).artifact_ref
        await store.aclose()
    store = await open_store(limits)
    for look in looks:
        monkeypatch.setattr(time, "time", lambda now=START + look: now)
        await store.gc()
    left = {facts.artifact_ref for facts in (await store.list()).facts}
    assert left == {ref for seconds, ref in kept.items() if not believed or seconds > believed}
    await store.aclose()


@pytest.mark.anyio
@pytest.mark.parametrize("days", [30, 400, -400])
async def test_a_process_whose_clock_is_wrong_expires_nothing(
    days: int, limits: StoreLimits, put: Put, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = await open_store(limits)
    kept = await put(first, b"kept")
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + days * DAY)
    wrong = await open_store(limits)
    put_by_wrong = await put(wrong, b"put by a wrong clock")
    (first.spool / "on its way").write_bytes(b"half a body")
    assert await wrong.gc() == ()
    assert (first.spool / "on its way").exists()
    monkeypatch.setattr(time, "time", lambda: now + 60)
    assert await first.gc() == ()
    listed = {facts.artifact_ref for facts in (await first.list()).facts}
    assert listed == {kept.artifact_ref, put_by_wrong.artifact_ref}
    for store in (first, wrong):
        await store.aclose()


@pytest.mark.anyio
async def test_old_artifacts_expire_at_the_second_check_after_a_long_pause(
    store: ArtifactStore, put: Put, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = await put(store, b"old")
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 30 * DAY)
    new = await put(store, b"new")
    assert await store.gc() == ()
    monkeypatch.setattr(time, "time", lambda: now + 30 * DAY + HOUR)
    assert [removed.artifact_ref for removed in await store.gc()] == [old.artifact_ref]
    assert [facts.artifact_ref for facts in (await store.list()).facts] == [new.artifact_ref]


@pytest.mark.anyio
async def test_the_clock_of_a_teams_database_confirms_that_days_have_passed(
    catalog: str, limits: StoreLimits, put: Put
) -> None:
    store = await open_store(replace(limits, catalog=catalog, max_age_days=0.00001))
    over = await put(store, b"over")
    await store.aclose()
    store = await open_store(replace(limits, catalog=catalog))
    assert isinstance(store, TeamStore)
    with store._database.connection() as db:  # pyright: ignore[reportPrivateUsage]
        days_ago = json.dumps([time.time() - 3 * DAY, None]).encode()
        db.execute("UPDATE setting SET value = ? WHERE name = 'clock'", (days_ago,))
        db.execute("UPDATE artifact SET expires_at = ?", (time.time() - DAY,))
    assert (await store.list()).total == 0
    assert [item.artifact_ref for item in await store.gc()] == [over.artifact_ref]
    await store.aclose()
