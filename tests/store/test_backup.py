"""Backups by the engines' own tools while puts go on, and stores that an earlier version made."""

import contextlib
import shutil
import sqlite3
from collections.abc import AsyncGenerator
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from fetchstash.store import ArtifactStore, StoreLimits, _schema, check_store, open_store
from tests.store.conftest import put_into
from tests.store.contents import raw_of
from tests.store.postgres import server

pytestmark = pytest.mark.anyio


@contextlib.asynccontextmanager
async def putting(store: ArtifactStore) -> AsyncGenerator[list[str]]:
    """Put artifacts until the end; some were acknowledged when this begins."""
    kept: list[str] = []
    begun = anyio.Event()

    async def work() -> None:
        while True:
            text = f"text {len(kept)}\n".encode()
            kept.append(
                (await put_into(store, text, text, url=f"https://e.org/{len(kept)}")).artifact_ref
            )
            if len(kept) == 5:
                begun.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(work)
        await begun.wait()
        yield kept
        tasks.cancel_scope.cancel()


async def copied(one: Path, other: Path) -> None:
    await anyio.to_thread.run_sync(lambda: shutil.copytree(one, other, dirs_exist_ok=True))


async def whole(limits: StoreLimits, refs: list[str]) -> None:
    """Raise AssertionError unless these are there whole, and nothing is broken."""
    store = await open_store(limits)
    listed = {facts.artifact_ref for facts in (await store.list(limit=10_000)).facts}
    assert set(refs) <= listed
    for n, ref in enumerate(refs):
        assert await raw_of(store, ref) == f"text {n}\n".encode()
        assert (await store.get(f"https://e.org/{n}")).artifact_ref == ref
    await store.aclose()
    # What was put between the dump and the copy has bytes and no row: said, and nothing is broken.
    found = [f for f in await check_store(limits) if f.level != "note"]
    assert [f for f in found if "have no row: newer than the backup" not in f.what] == []


async def test_a_dump_and_then_a_copy_of_the_bytes_restore_a_teams_store(tmp_path: Path) -> None:
    limits = StoreLimits(tmp_path / "store", catalog=server().new_database(), run="default")
    store = await open_store(limits)
    dump = tmp_path / "dump.sql"
    async with putting(store) as kept:
        before = list(kept)
        await anyio.to_thread.run_sync(server().dump, limits.catalog, dump)
        for name in ("raw", "text"):
            await copied(limits.folder / name, tmp_path / "restored" / name)
    await store.aclose()
    restored = StoreLimits(tmp_path / "restored", catalog=server().new_database(), run="default")
    server().restore(restored.catalog, dump)
    await whole(restored, before)


async def test_sqlites_backup_and_then_a_copy_of_the_files_restore_a_folder(tmp_path: Path) -> None:
    limits, other = StoreLimits(tmp_path / "store", run="default"), tmp_path / "restored"
    store = await open_store(limits)
    async with putting(store) as kept:
        before = list(kept)
        other.mkdir(mode=0o700)

        def backup() -> None:  # what `sqlite3 catalog.db ".backup COPY"` does
            with (
                contextlib.closing(sqlite3.connect(limits.folder / "catalog.db")) as source,
                contextlib.closing(sqlite3.connect(other / "catalog.db")) as target,
            ):
                source.backup(target)

        await anyio.to_thread.run_sync(backup)
        for name in ("raw", "text", "facts"):
            await copied(limits.folder / name, other / name)
        shutil.copy(limits.folder / "url-key", other)
    await store.aclose()
    restored = StoreLimits(other, run="default")
    await check_store(
        restored, repair=True
    )  # which adds what was put after the catalogue was copied
    await whole(restored, before)


async def test_a_store_of_the_schema_before_persons_opens_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = StoreLimits(tmp_path / "store", run="default")
    with monkeypatch.context() as before:
        before.setattr(_schema, "STEPS", _schema.STEPS[:4])
        store = await open_store(limits)
        refs = [
            (await put_into(store, text, text, url=f"https://e.org/{n}")).artifact_ref
            for n in range(3)
            for text in [f"text {n}\n".encode()]
        ]
        await store.pin(refs[0])
        await store.aclose()
    await whole(limits, refs)
    store = await open_store(limits)
    assert (await store.get(refs[0])).pinned
    usage = await store.usage(own=True)
    assert (usage.artifacts, usage.bytes) == (3, 2 * 3 * len("text 0\n"))
    assert [passage.artifact_ref for passage in (await store.search("text 2", [], 1)).passages] == [
        refs[2]
    ]
    await store.aclose()
