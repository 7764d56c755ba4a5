"""Searches in processes: what they find, and what is left when one is cancelled or killed."""

import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from fetchstash.errors import StoreError
from fetchstash.store import ArtifactStore, SearchResult, StoreLimits, _threads as pool, open_store
from fetchstash.store._blobs import Blob
from fetchstash.store._bytes import BytesSearch
from fetchstash.system import telemetry
from tests.loopback import Site
from tests.store.buckets import empty_place
from tests.store.conftest import put_into

pytestmark = [pytest.mark.anyio, pytest.mark.long]
LINES = 12_000
INSIDE: Any = pool


@pytest.fixture(params=["folder", "team"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[ArtifactStore]:
    with empty_place(request.param) as place:
        opened = await open_store(StoreLimits(tmp_path / "store", run="default", **place))
        yield opened
        await opened.aclose()
    assert not INSIDE._idle


async def put(store: ArtifactStore, lines: int = LINES) -> str:
    numbered = (f"line {n} of things about topic{n * 7919 % lines}\n" for n in range(lines))
    return (await put_into(store, "".join(numbered).encode(), os.urandom(8))).artifact_ref


def found(result: SearchResult) -> list[tuple[int, int, str]]:
    return [(p.first_line, p.last_line, p.text) for p in result.passages]


async def test_a_process_finds_what_a_thread_finds(
    store: ArtifactStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    ref = await put(store)
    by_process = [
        await store.search("topic4711 things", (ref,), 5),
        await store.search("topic4711 things", (), 5),
    ]
    assert INSIDE._idle
    monkeypatch.setattr(pool, "LITTLE", 2**40)
    in_thread = found(await store.search("topic4711 things", (ref,), 5))
    assert "topic4711" in in_thread[0][2]
    assert [found(result) for result in by_process] == [in_thread] * 2


async def test_the_requests_of_a_search_in_a_process_are_counted_here(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("obstore", reason="obstore is in the extra team")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION"):
        monkeypatch.setenv(name, "of-the-test")
    times: list[tuple[str, str]] = []

    def duration(name: str, _: float, **attributes: str) -> None:
        times.append((name, attributes["operation"]))

    monkeypatch.setattr(telemetry, "duration", duration)
    endpoint = f"http://127.0.0.1:{site.port}"
    limits = StoreLimits(tmp_path, "s3://bucket", endpoint=endpoint, catalog="postgresql://x/y")
    texts = {f"art_{n}": Blob("text", f"{n:064x}", 10, -1) for n in range(3)}
    child = pool.Child()
    try:
        job = BytesSearch(limits, texts, "harbour", 5, are_named=False)
        assert not (await anyio.to_thread.run_sync(child.ask, job)).passages
    finally:
        child.close()
    assert len(site.asked) == 3
    assert times == [("bucket", "read_range")] * 3


async def test_a_cancelled_search_kills_its_process_and_the_next_has_another(
    store: ArtifactStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    ref = await put(store)
    begun: list[Any] = []
    take = pool.take

    def taken(key: Any) -> Any:
        begun.append(take(key))
        return begun[-1]

    monkeypatch.setattr(pool, "take", taken)
    process: Any = None
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(store.search, "topic1 things", (ref,), 5)
        while not (begun and begun[0]._process):  # noqa: ASYNC110 - a thread starts it
            await anyio.sleep(0.001)
        process = begun[0]._process
        tasks.cancel_scope.cancel()
    assert await anyio.to_thread.run_sync(process.wait, 30) != 0
    assert (await store.search("topic1 things", (ref,), 5)).passages
    assert len(begun) == 2


async def test_a_process_that_died_while_it_was_idle_is_replaced_and_one_at_work_is_one_error(
    store: ArtifactStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    ref = await put(store)
    await store.search("topic1", (ref,), 1)
    [child] = INSIDE._idle
    ref = await put(store, LINES + 1)  # what is indexed needs no process
    os.kill(child._process.pid, signal.SIGKILL)
    assert (await store.search("topic1", (ref,), 1)).passages
    await pool_closed()
    monkeypatch.setattr(pool, "_COMMAND", "raise SystemExit(1)")
    ref = await put(store, LINES + 2)
    with pytest.raises(StoreError, match=r"ended before its result\. Try again"):
        await store.search("topic1", (ref,), 1)


async def pool_closed() -> None:
    """End the idle processes."""
    while INSIDE._idle:
        await anyio.to_thread.run_sync(INSIDE._idle.pop().close)


async def test_an_index_whose_builder_is_killed_at_any_step_finds_all_in_the_end(
    tmp_path: Path,
) -> None:
    limits = StoreLimits(tmp_path / "store", run="default")
    store = await open_store(limits)
    await put(store, 260_000)  # 10 MB: more than is ranked without an index
    result = await store.search("topic259999", (), 1)
    assert result.pending
    with anyio.fail_after(300):
        while result.pending:
            await pool_closed()  # kills the one that indexes, in the middle of a step or not
            result = await store.search("topic259999", (), 1)
    assert "topic259999" in result.passages[0].text
    await store.aclose()
