"""Small values beside the artifacts: what holds in a folder, in memory and in a bucket alike."""

import os
import stat
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import anyio
import pytest

from fetchstash.errors import BadArgument, StoreError
from fetchstash.store import (
    MemoryObjects,
    Objects,
    StoreLimits,
    _disk,
    _postgres,
    _schema,
    open_objects,
    open_store,
)
from fetchstash.store._objects import FolderObjects
from tests.store.buckets import empty_place

if TYPE_CHECKING:
    from fetchstash.store._counts import Transactions

pytestmark = [pytest.mark.anyio, pytest.mark.whole]

T = TypeVar("T")


@pytest.fixture(params=["folder", "memory", "team", "bucket"])
async def objects(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Objects]:
    with empty_place(request.param) as place:
        opened = await open_objects(StoreLimits(tmp_path / "store", **place))
        yield opened
        await opened.aclose()


async def test_a_value_is_read_as_it_was_written_last(objects: Objects) -> None:
    assert await objects.read("tokens/a") is None
    await objects.write("tokens/a", b"first")
    await objects.write("tokens/a", b"\x00second")
    assert await objects.read("tokens/a") == b"\x00second"
    await objects.delete("tokens/a")
    await objects.delete("tokens/a")
    assert await objects.read("tokens/a") is None


async def test_values_are_listed_below_a_folder(objects: Objects) -> None:
    for key in ("tokens/b", "tokens/a", "tokens-other/c", "tokens/deep/d.json", "e"):
        await objects.write(key, b"")
    assert set(await objects.items("tokens")) == {"tokens/a", "tokens/b", "tokens/deep/d.json"}
    assert await objects.items("tokens/") == await objects.items("tokens")
    assert await objects.items("none") == {}
    assert set((await objects.items()).values()) == {b""}
    assert len(await objects.items()) == 5


async def test_moments_reserved_at_once_under_one_key_lie_apart(objects: Objects) -> None:
    waits: list[float] = []

    async def reserve() -> None:
        waits.append(await objects.counts.reserve("a site", 60))

    async with anyio.create_task_group() as tasks:
        for _ in range(3):
            tasks.start_soon(reserve)
    first, second, third = sorted(waits)
    assert first == 0
    assert 0 < second <= 60 < third <= 120
    assert await objects.counts.reserve("another", 60) == 0
    assert await objects.items() == {}


async def test_what_thousands_used_is_added_by_one_statement(objects: Objects) -> None:
    statements: list[str] = []
    counts: Any = objects.counts
    run: Transactions = counts._run

    class Counting:
        def __init__(self, db: _schema.Db) -> None:
            self.db, self.dialect = db, db.dialect

        def execute(self, sql: str, parameters: Sequence[Any] = (), /) -> _schema.Cursor:
            statements.append(sql)
            return self.db.execute(sql, parameters)

    async def counting(work: Callable[[_schema.Db], T]) -> T:
        return await run(lambda db: work(Counting(db)))

    counts._run = counting
    used = {(f"acme/{n}", n % 2): n for n in range(1, 5_001)}
    assert await counts.add("requests", used, 0, 0) == used
    assert len(statements) == 3  # what is added, what is dropped, what is read
    assert await counts.add("requests", used | {("one more", 0): 1}, 0, 0) == {
        **{key: 2 * n for key, n in used.items()},
        ("one more", 0): 1,
    }
    assert len(statements) == 7
    assert await counts.add("fetched", {}, 0, 0) == {}


@pytest.mark.parametrize("key", ["", "/a", "a/", "a//b", "../a", "a/../b", ".a", "A", "a b", "é"])
async def test_what_is_no_key_is_refused(objects: Objects, key: str) -> None:
    with pytest.raises(BadArgument):
        await objects.read(key)
    with pytest.raises(BadArgument):
        await objects.write(key, b"")
    with pytest.raises(BadArgument):
        await objects.delete(key)


async def test_many_writers_of_one_key_leave_one_whole_value(objects: Objects) -> None:
    values = [bytes([n]) * 100_000 for n in range(8)]
    async with anyio.create_task_group() as group:
        for value in values:
            group.start_soon(objects.write, "counter", value)
    assert await objects.read("counter") in values
    assert list(await objects.items()) == ["counter"]


async def test_a_folder_keeps_values_private_and_for_later(tmp_path: Path) -> None:
    limits = StoreLimits(tmp_path / "store")
    first = await open_objects(limits)
    await first.write("tokens/a", b"value")
    assert isinstance(first, FolderObjects)
    later = await open_objects(limits)
    assert await later.read("tokens/a") == b"value"
    if sys.platform != "win32":
        path = tmp_path / "store/service/tokens/a"
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


async def test_values_and_artifacts_live_in_one_folder(tmp_path: Path) -> None:
    limits = StoreLimits(tmp_path / "store", ephemeral=True)
    objects = await open_objects(limits)
    await objects.write("tokens/a", b"value")
    await (await open_store(limits)).aclose()
    assert await objects.read("tokens/a") == b"value"


async def test_memory_is_shared_with_nobody() -> None:
    await (first := MemoryObjects()).write("a", b"value")
    assert await MemoryObjects().read("a") is None
    assert await first.read("a") == b"value"


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write all")
async def test_a_folder_that_may_not_be_written_is_a_store_error(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir(mode=0o500)
    objects = await open_objects(StoreLimits(tmp_path / "store"))
    with pytest.raises(StoreError):
        await objects.write("a", b"")


async def test_a_folder_that_cannot_be_listed_is_an_error_and_not_empty(tmp_path: Path) -> None:
    objects = FolderObjects(tmp_path / "service")
    assert await objects.items("tokens") == {}
    (tmp_path / "service").write_text("no folder")
    with pytest.raises(StoreError):
        await objects.items("tokens")


async def test_a_team_store_of_an_earlier_version_gets_counts_and_keeps_its_tokens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with empty_place("team") as place:
        limits = StoreLimits(tmp_path / "store", **place)
        with monkeypatch.context() as earlier:
            for module in (_schema, _postgres):
                earlier.setattr(module, "STEPS", _schema.STEPS[:7])
            before = await open_objects(limits)
            for key in ("tokens/a", "quota/0123", "pace/1"):
                await before.write(key, b"value")
            await before.aclose()
        now = await open_objects(limits)
        assert await now.items() == {"tokens/a": b"value"}
        assert await now.counts.add("requests", {("acme", 1): 2}, 0, 0) == {("acme", 1): 2}
        await now.aclose()


def _set_schema(catalog: str, version: int) -> None:
    database = _postgres.Database(catalog, "")
    with database.connection() as db:
        db.execute("UPDATE setting SET value = ? WHERE name = 'schema'", (str(version).encode(),))
    database.close()


@pytest.mark.parametrize("kind", ["team", "bucket"])
async def test_a_store_that_another_version_migrated_says_so(kind: str, tmp_path: Path) -> None:
    known = len(_schema.STEPS)
    with empty_place(kind) as place:
        objects = await open_objects(StoreLimits(tmp_path / "store", **place))
        assert await objects.failing() == ""
        for version, word in ((known + 1, "schema_newer"), (known - 1, "schema_older")):
            _set_schema(place["catalog"], version)
            assert await objects.failing() == word
        _set_schema(place["catalog"], known)
        assert await objects.failing() == ""
        await objects.aclose()


async def test_a_cache_that_cannot_be_written_is_named_until_it_can(tmp_path: Path) -> None:
    with empty_place("bucket") as place:
        objects = await open_objects(StoreLimits(tmp_path / "store", **place))
        [spool] = tmp_path.rglob("spool")
        spool.rmdir()
        spool.touch()  # as root, rights alone keep nobody from writing
        assert await objects.failing() == "cache"
        spool.unlink()
        assert await objects.failing() == ""
        await objects.aclose()


@pytest.mark.skipif(sys.platform == "win32", reason="a put does not ask there either")
@pytest.mark.parametrize("kind", ["folder", "team", "bucket"])
async def test_a_disk_that_takes_no_put_is_named(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with empty_place(kind) as place:
        objects = await open_objects(StoreLimits(tmp_path / "store", **place))
        assert await objects.failing() == ""
        with monkeypatch.context() as patch:
            patch.setattr(_disk, "MIN_FREE_BYTES", 2**62)
            assert await objects.failing() == "disk_full"
        assert await objects.failing() == ""
        await objects.aclose()
