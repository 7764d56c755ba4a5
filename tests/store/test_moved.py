"""Somebody moves or deletes the folder of an open store: nothing is acknowledged into nowhere."""

import shutil
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from fetchstash.errors import StoreError, UnknownRef
from fetchstash.store import ArtifactStore, StoreLimits, _disk, open_store
from fetchstash.store._place import Sidecars
from fetchstash.store._schema import Record
from tests.store.conftest import Put
from tests.store.contents import text_of

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["moved", "deleted"])
def lose(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[Path], object]:
    """Move or delete a folder."""
    if request.param == "moved":
        return lambda folder: folder.rename(tmp_path / "elsewhere")
    return shutil.rmtree


async def test_a_store_whose_folder_is_gone_makes_it_anew(
    store: ArtifactStore, limits: StoreLimits, put: Put, lose: Callable[[Path], object]
) -> None:
    before = await put(store, b"before")
    lose(limits.folder)
    after = await put(store, b"after")
    assert await text_of(store, after.artifact_ref) == "after"
    with pytest.raises(UnknownRef):
        await store.get(before.artifact_ref)
    assert await store.gc() == ()
    assert (await store.list()).facts == (after,)


async def test_two_stores_meet_in_the_folder_that_one_of_them_made_again(
    store: ArtifactStore, limits: StoreLimits, put: Put, lose: Callable[[Path], object]
) -> None:
    await put(store, b"before")
    lose(limits.folder)
    other = await open_store(limits)
    theirs = await put(other, b"theirs")
    ours = await put(store, b"ours")
    assert await other.gc() == ()
    assert await text_of(other, ours.artifact_ref) == "ours"
    assert await text_of(store, theirs.artifact_ref) == "theirs"
    await other.aclose()


@pytest.mark.parametrize("when", ["reached", "write"])
async def test_a_put_whose_folder_is_anothers_by_its_end_leaves_nothing_there(
    store: ArtifactStore,
    limits: StoreLimits,
    put: Put,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    when: str,
) -> None:
    async def other() -> None:
        await (await open_store(limits)).aclose()

    def make_another() -> None:  # in a thread of the store
        monkeypatch.undo()
        limits.folder.rename(tmp_path / "elsewhere")
        anyio.run(other)

    def reached(step: str) -> None:
        if step == "committed":
            make_another()

    def write(sidecars: Sidecars, record: Record) -> None:
        make_another()
        sidecars.write(record)

    if when == "reached":
        monkeypatch.setattr(_disk, "reached", reached)
    else:
        monkeypatch.setattr(Sidecars, "write", write)
    with pytest.raises(StoreError, match="moved or deleted"):
        await put(store, b"on its way")
    assert list((limits.folder / "facts").iterdir()) == []
    assert [path.name for path in (tmp_path / "elsewhere" / "raw").iterdir()] != []


async def test_a_catalogue_that_is_replaced_is_opened_anew(
    store: ArtifactStore, limits: StoreLimits, put: Put, tmp_path: Path
) -> None:
    other = await open_store(StoreLimits(tmp_path / "other"))
    await other.aclose()
    await put(store, b"before")
    for name in ("catalog.db-wal", "catalog.db-shm"):
        (limits.folder / name).unlink()
    (tmp_path / "other" / "catalog.db").replace(limits.folder / "catalog.db")
    ours = await put(store, b"ours")
    again = await open_store(limits)
    assert await text_of(again, ours.artifact_ref) == "ours"
    await again.aclose()


async def test_the_spool_is_there_again_after_somebody_removed_it(
    store: ArtifactStore, put: Put
) -> None:
    shutil.rmtree(store.spool)
    assert store.spool.is_dir()
    assert (await put(store, b"text")).text_bytes == 4


async def test_a_disk_without_locks_is_refused(
    limits: StoreLimits, monkeypatch: pytest.MonkeyPatch
) -> None:
    fcntl = pytest.importorskip("fcntl", reason="the locks of this test are POSIX's")

    def always(*_: object) -> None:
        pass

    monkeypatch.setattr(fcntl, "flock", always)
    with pytest.raises(StoreError, match="Locks do not work"):
        await open_store(limits)
