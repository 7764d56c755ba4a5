"""A disk, a clock or somebody else does harm: one clear error, and nothing else is lost."""

import errno
import json
import os
import shutil
import sqlite3
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest

from fetchstash.errors import Busy, StoreError, UnknownRef
from fetchstash.store import (
    ArtifactStore,
    Facts,
    StoreLimits,
    _blobs,
    _catalog,
    _disk,
    _retention,
    _schema,
    open_store,
)
from fetchstash.text.ranges import Preview, Ranges
from tests.store.conftest import Put
from tests.store.contents import text_of

pytestmark = pytest.mark.anyio


def strays(folder: Path) -> list[str]:
    return [path.name for kind in ("raw", "text", "spool") for path in (folder / kind).iterdir()]


@pytest.mark.whole
@pytest.mark.parametrize(
    "code",
    [errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EIO, errno.EDQUOT],
    ids=errno.errorcode.get,
)
@pytest.mark.parametrize("step", ["measured", "locked", "renamed", "folders_synced"])
async def test_a_disk_that_fails_at_any_step_of_put_leaves_all_as_it_was(
    code: int,
    step: str,
    store: ArtifactStore,
    limits: StoreLimits,
    put: Put,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kept = await put(store, b"kept", b"kept raw")

    def fail(reached: str) -> None:
        if reached == step:
            raise OSError(code, os.strerror(code))

    monkeypatch.setattr(_disk, "reached", fail)
    with pytest.raises(StoreError) as raised:
        await put(store, b"lost", b"lost raw")
    monkeypatch.undo()
    assert "Error" not in raised.value.line()
    assert len(strays(limits.folder)) == 2
    assert [path.name for path in (limits.folder / "facts").iterdir()] == [kept.artifact_ref]
    assert await text_of(store, kept.artifact_ref) == "kept"
    assert (await store.list()).total == 1
    assert await text_of(store, (await put(store, b"and on")).artifact_ref) == "and on"


async def test_both_files_and_then_both_folders_are_synced_side_by_side(
    store: ArtifactStore, put: Put, monkeypatch: pytest.MonkeyPatch
) -> None:
    both, fsync = Barrier(2, timeout=10), os.fsync

    def sync(fd: int) -> None:
        both.wait()
        fsync(fd)

    monkeypatch.setattr(os, "fsync", sync)
    facts = await put(store, b"short", b"short raw")
    assert await text_of(store, facts.artifact_ref) == "short"


async def test_a_raw_file_that_is_its_own_text_is_synced(
    store: ArtifactStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []

    def sync_file(fd: int) -> None:
        synced.append(os.fstat(fd).st_ino)

    monkeypatch.setattr(_blobs, "sync_file", sync_file)
    raw, text = store.spool / "raw", store.spool / "text"
    raw.write_bytes(b"words")
    text.hardlink_to(raw)
    inode = raw.stat().st_ino
    await store.put(raw, text, Facts(), Ranges())
    assert synced == [inode]


@pytest.mark.parametrize("call", ["sync_file", "sync_folder"])
async def test_a_put_that_does_not_reach_the_disk_is_refused(
    call: str, store: ArtifactStore, limits: StoreLimits, put: Put, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_synced: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(_blobs, call, fail)
    with pytest.raises(StoreError, match="disk of the store failed"):
        await put(store, b"text")
    assert strays(limits.folder) == []
    assert (await store.list()).total == 0


async def test_a_sidecar_that_cannot_be_replaced_leaves_no_facts_beside_it(
    store: ArtifactStore, limits: StoreLimits, put: Put
) -> None:
    ref = (await put(store, b"text")).artifact_ref
    in_the_way = limits.folder / "facts" / ref
    in_the_way.unlink()
    in_the_way.mkdir()
    await store.pin(ref)
    assert [path.name for path in (limits.folder / "facts").iterdir()] == [ref]
    assert list(store.spool.iterdir()) == []


async def test_a_catalogue_without_room_refuses_the_put_and_keeps_the_rest(
    limits: StoreLimits, put: Put, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await open_store(limits)
    kept = await put(store, b"kept")
    await store.aclose()
    connect = _catalog.connect

    def connect_small(path: Path) -> sqlite3.Connection:
        db = connect(path)
        db.execute(
            "PRAGMA max_page_count = 1"
        ).fetchone()  # cannot be less than there are: no room for one more
        return db

    monkeypatch.setattr(_catalog, "connect", connect_small)
    full = await open_store(limits)
    with pytest.raises(StoreError, match="disk of the store is full"):
        await put(full, b"lost", facts=Facts(structure_info="x" * 100_000))
    assert await text_of(full, kept.artifact_ref) == "kept"
    assert len(strays(limits.folder)) == 2
    await full.aclose()


async def test_a_store_without_rights_says_so(
    limits: StoreLimits, put: Put, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await open_store(limits)
    kept = await put(store, b"kept")
    if os.geteuid() == 0:  # nothing is forbidden to root: the refusal is made up
        monkeypatch.setattr(os, "open", forbidden)
    else:
        (limits.folder / "text").chmod(0)
    with pytest.raises(StoreError, match="may not be read or written"):
        await store.open_text(kept.artifact_ref)
    monkeypatch.undo()
    (limits.folder / "text").chmod(0o700)
    assert await text_of(store, kept.artifact_ref) == "kept"
    await store.aclose()


def forbidden(path: Any, *_: Any) -> int:
    raise PermissionError(errno.EACCES, "Permission denied", str(path))


@pytest.mark.parametrize("length", ["same", "shorter", "longer"])
async def test_an_altered_file_is_an_error_and_no_part_of_it_is_shown(
    length: str, store: ArtifactStore, put: Put
) -> None:
    altered, kept = await put(store, b"the true text\n"), await put(store, b"another text\n")
    text = {
        "same": b"the fake text\n",
        "shorter": b"fake\n",
        "longer": b"the true text\nand more\n",
    }[length]
    Path(altered.path or "").write_bytes(text)
    with pytest.raises(StoreError, match="was altered"):
        await store.open_text(altered.artifact_ref)
    assert await text_of(store, kept.artifact_ref) == "another text\n"


async def test_a_file_that_was_touched_is_hashed_once_and_again_when_it_is_written(
    store: ArtifactStore, put: Put, monkeypatch: pytest.MonkeyPatch
) -> None:
    hashed, digest = list[Path](), _blobs.Blobs.digest

    def counted(blobs: _blobs.Blobs, path: Path) -> str:
        hashed.append(path)
        return digest(blobs, path)

    monkeypatch.setattr(_blobs.Blobs, "digest", counted)
    facts = await put(store, b"text")
    path = Path(facts.path or "")
    os.utime(path, (1, 1))
    for _ in range(3):
        assert await text_of(store, facts.artifact_ref) == "text"
    assert hashed == [path]
    path.write_bytes(b"fake")
    with pytest.raises(StoreError, match="was altered"):
        await store.open_text(facts.artifact_ref)


async def test_a_file_that_shrinks_while_it_is_read_is_an_error(
    store: ArtifactStore, put: Put
) -> None:
    facts = await put(store, b"line\n" * 200_000)
    reader = await store.open_text(facts.artifact_ref)
    os.truncate(facts.path or "", 1000)
    with pytest.raises(StoreError, match="was altered"):
        await reader.char_of_line(150_000)
    await reader.aclose()


async def test_a_missing_file_is_an_error_until_the_same_bytes_are_put_again(
    store: ArtifactStore, put: Put
) -> None:
    facts = await put(store, b"text")
    Path(facts.path or "").unlink()
    with pytest.raises(StoreError, match="are lost"):
        await store.open_text(facts.artifact_ref)
    await put(store, b"text")
    assert await text_of(store, facts.artifact_ref) == "text"


@pytest.mark.parametrize("kind", ["raw", "text"])
@pytest.mark.parametrize("damage", ["gone", "altered"])
async def test_a_url_whose_bytes_are_lost_is_unknown_so_that_it_is_fetched_again(
    damage: str, kind: str, store: ArtifactStore, limits: StoreLimits, put: Put
) -> None:
    lost = await put(store, b"text", url="https://example.org/")
    (path,) = (limits.folder / kind).iterdir()
    path.unlink() if damage == "gone" else path.write_bytes(b"altered")
    with pytest.raises(UnknownRef, match="is lost"):
        await store.get("https://example.org/")
    again = await put(store, b"text", url="https://example.org/")
    assert await store.get("https://example.org/") == again
    assert await text_of(store, lost.artifact_ref) == "text"


async def test_a_lock_that_is_never_released_is_busy_and_reading_goes_on(
    store: ArtifactStore, limits: StoreLimits, put: Put, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = await put(store, b"text")
    monkeypatch.setattr(_disk, "LOCK_WAIT_SECONDS", 0.05)
    with _disk.locked(limits.folder / "lock"):
        with pytest.raises(Busy):
            await put(store, b"other")
        assert await text_of(store, facts.artifact_ref) == "text"
    await put(store, b"other")


async def test_a_store_of_a_newer_version_is_refused_and_left_as_it_is(
    limits: StoreLimits, put: Put
) -> None:
    store = await open_store(limits)
    facts = await put(store, b"text")
    await store.aclose()
    with sqlite3.connect(limits.folder / "catalog.db") as db:
        db.execute(f"PRAGMA user_version = {len(_schema.STEPS) + 1}")
    db.close()
    with pytest.raises(StoreError, match="written by a newer fetchstash"):
        await open_store(limits)
    assert Path(facts.path or "").read_bytes() == b"text"


async def test_a_store_of_an_older_version_is_migrated_with_all_it_holds(
    limits: StoreLimits, put: Put, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await open_store(limits)
    facts = await put(store, b"text")
    await store.aclose()

    def add_a_table(db: sqlite3.Connection) -> None:
        db.execute("CREATE TABLE later (value TEXT)")

    def fail(db: sqlite3.Connection) -> None:
        db.execute("CREATE TABLE half (value TEXT)")
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(_schema, "STEPS", (*_schema.STEPS, add_a_table, fail))
    with pytest.raises(StoreError):
        await open_store(limits)
    monkeypatch.setattr(_schema, "STEPS", _schema.STEPS[:-1])
    migrated = await open_store(limits)
    assert await text_of(migrated, facts.artifact_ref) == "text"
    await migrated.aclose()
    with sqlite3.connect(limits.folder / "catalog.db") as db:
        tables = {
            name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        }
        assert db.execute("PRAGMA user_version").fetchone() == (len(_schema.STEPS),)
    db.close()
    assert "later" in tables
    assert "half" not in tables


def nothing(*_: object) -> tuple[()]:
    """Return nothing: what is due is read in a table of a later version."""
    return ()


async def test_a_preview_of_the_first_version_is_read(
    limits: StoreLimits, put: Put, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as first_version:
        first_version.setattr(_schema, "STEPS", _schema.STEPS[:1])
        first_version.setattr(_retention, "due", nothing)
        store = await open_store(limits)
        facts = await put(store, b"text")
        await store.aclose()
    with sqlite3.connect(limits.folder / "catalog.db") as db:
        db.execute(
            "UPDATE artifact SET ranges = ?",
            (json.dumps({"pages": [0, 2], "tables": [], "preview": "a glimpse"}),),
        )
    db.close()
    migrated = await open_store(limits)
    reader = await migrated.open_text(facts.artifact_ref)
    assert reader.ranges == Ranges(pages=(0, 2), preview=Preview("a glimpse"))
    await reader.aclose()
    await migrated.aclose()


@pytest.mark.whole
@pytest.mark.parametrize("how", ["moved", "deleted"])
@pytest.mark.parametrize("step", ["measured", "locked", "renamed", "folders_synced", "committed"])
async def test_a_put_that_loses_its_folder_on_the_way_is_not_acknowledged(
    step: str,
    store: ArtifactStore,
    limits: StoreLimits,
    put: Put,
    tmp_path: Path,
    how: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def lose_it() -> None:
        def reached(name: str) -> None:
            if name == step:
                monkeypatch.undo()
                if how == "moved":
                    limits.folder.rename(tmp_path / "elsewhere")
                else:
                    shutil.rmtree(limits.folder)

        monkeypatch.setattr(_disk, "reached", reached)
        await put(store, b"lost")

    with pytest.raises(StoreError):
        await lose_it()
    facts = await put(store, b"and on")
    assert await text_of(store, facts.artifact_ref) == "and on"


async def test_a_lock_on_a_file_that_was_replaced_excludes_the_others(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    lock.write_bytes(b"")
    with _disk.locked(lock):
        lock.rename(tmp_path / "moved")
        with _disk.locked(lock):
            assert lock.exists()


async def test_who_waited_for_a_lock_whose_file_is_moved_takes_the_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock, moved, wait = tmp_path / "lock", tmp_path / "moved", _disk.wait_for_lock

    def wait_while_it_is_moved(fd: int) -> None:
        wait(fd)
        if not moved.exists():
            lock.rename(moved)

    monkeypatch.setattr(_disk, "wait_for_lock", wait_while_it_is_moved)
    with _disk.locked(lock):
        assert lock.exists()


def test_a_link_in_the_place_of_a_file_is_not_followed(tmp_path: Path) -> None:
    other, link = tmp_path / "other", tmp_path / "link"
    other.write_bytes(b"another's")
    link.symlink_to(other)
    with pytest.raises(OSError, match="symbolic links"):
        _disk.open_file(link)
