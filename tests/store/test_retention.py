"""What retention removes, as a table: artifacts from the least to the most recently used."""

import time
from dataclasses import replace

import pytest

from fetchstash.store import StoreLimits, open_store
from fetchstash.system import telemetry
from tests.store.conftest import Put
from tests.store.postgres import server

NOW = 1000.0
HALF_A_DAY = 43_200


@pytest.mark.parametrize(
    ("sizes", "expiries", "count", "size", "expected"),
    [
        ([], [], 2, 10, []),
        ([5, 5], [2000, 2000], 2, 10, []),
        ([5, 5], [999, 1000], 2, 10, ["0 age", "1 age"]),  # to the second
        ([1, 1, 1], [2000] * 3, 2, 10, ["0 count"]),  # the least recently used
        ([5, 5, 5], [2000] * 3, 9, 10, ["0 bytes"]),
        ([5, 1, 9], [2000] * 3, 9, 10, ["0 bytes"]),  # no more than must go
        ([1, 9, 9], [2000] * 3, 9, 10, ["0 bytes", "1 bytes"]),  # small ones too, in order of use
        ([5] * 4, [2000, 999, 2000, 2000], 2, 7, ["1 age", "0 count", "2 bytes"]),
        ([50], [2000], 9, 10, ["0 bytes"]),  # one that is larger than all
    ],
)
@pytest.mark.anyio
async def test_gc_removes_the_old_and_then_the_least_used_until_limits_hold(
    limits: StoreLimits,
    put: Put,
    monkeypatch: pytest.MonkeyPatch,
    sizes: list[int],
    expiries: list[float],
    count: int,
    size: int,
    expected: list[str],
) -> None:
    refs: list[str] = []
    begun = 1_800_000_000.0
    monkeypatch.setattr(time, "time", lambda: begun)
    for n, (one, expiry) in enumerate(zip(sizes, expiries, strict=True)):
        days = (HALF_A_DAY + expiry - NOW) / (2 * HALF_A_DAY)
        store = await open_store(replace(limits, max_age_days=days))
        refs.append((await put(store, None, bytes([n]) * one)).artifact_ref)
        await store.aclose()
    monkeypatch.setattr(time, "time", lambda: begun + HALF_A_DAY)
    store = await open_store(replace(limits, max_artifacts=count, max_total_bytes=size))
    planned = await store.gc(dry_run=True)
    await store.aclose()
    assert [f"{refs.index(one.artifact_ref)} {one.reason}" for one in planned] == expected


@pytest.mark.anyio
@pytest.mark.parametrize("kind", ["folder", "team"])
async def test_an_eviction_before_its_date_is_a_line_in_the_log_and_counted(
    limits: StoreLimits,
    put: Put,
    kind: str,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counted: list[tuple[str, int, str]] = []

    def count(name: str, n: int, limit: str) -> None:
        counted.append((name, n, limit))

    monkeypatch.setattr(telemetry, "count", count)
    catalog = server().new_database() if kind == "team" else ""
    store = await open_store(replace(limits, max_artifacts=2, catalog=catalog))
    for n in range(4):
        await put(store, f"text {n}".encode())
    await store.gc()
    await store.aclose()
    assert counted == [("evictions", 1, "store.max_artifacts")] * 2
    assert (
        caplog.messages == ["Artifacts evicted before their dates: 1, for store.max_artifacts."] * 2
    )
