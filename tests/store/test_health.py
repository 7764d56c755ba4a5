"""A check finds what is wrong with a store and changes nothing; repair mends it."""

import contextlib
import os
import random
import shutil
import sqlite3
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from anyio import from_thread

from fetchstash.errors import ExpiredRef, StoreError, UnknownRef
from fetchstash.store import ArtifactStore, Facts, Finding, StoreLimits, check_store, open_store
from fetchstash.store._place import Sidecars
from tests.store.conftest import Put
from tests.store.contents import text_of

pytestmark = pytest.mark.anyio


def wrong(findings: tuple[Finding, ...]) -> list[Finding]:
    return [finding for finding in findings if finding.level != "note"]


async def test_a_sound_store_has_no_finding_and_looking_changes_nothing(
    store: ArtifactStore, limits: StoreLimits, put: Put
) -> None:
    facts = await put(store, b"text")
    assert wrong(await check_store(limits)) == []
    assert wrong(await check_store(limits, repair=True)) == []
    assert await text_of(store, facts.artifact_ref) == "text"


async def test_a_missing_store_is_not_made(limits: StoreLimits) -> None:
    assert wrong(await check_store(limits)) == []
    assert not limits.folder.exists()


@pytest.mark.parametrize("damage", ["altered", "missing", "no text any more"])
async def test_an_artifact_whose_bytes_are_lost_is_a_fault_and_removed_by_repair(
    damage: str, store: ArtifactStore, limits: StoreLimits, put: Put
) -> None:
    lost, kept = await put(store, b"the text", b"the raw"), await put(store, b"kept", b"kept raw")
    path = Path(lost.path or "")
    if damage == "missing":
        path.unlink()
    else:
        path.write_bytes(b"\xff" if damage == "no text any more" else b"the fake")
    (finding,) = wrong(await check_store(limits))
    assert (finding.level, finding.artifact_ref, finding.mendable, finding.mended) == (
        "fault",
        lost.artifact_ref,
        True,
        False,
    )
    assert path.name in finding.what
    (mended,) = wrong(await check_store(limits, repair=True))
    assert mended.mended
    assert wrong(await check_store(limits)) == []
    with pytest.raises(ExpiredRef):
        await store.get(lost.artifact_ref)
    assert await text_of(store, kept.artifact_ref) == "kept"
    assert not path.exists()


async def test_an_artifact_that_goes_during_a_check_is_no_fault(
    limits: StoreLimits, store: ArtifactStore, put: Put, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = await put(store, b"text")
    (store.spool / "on its way").write_bytes(b"")
    open_file = os.open

    def open_too_late(path: Any, *options: Any, **named: Any) -> int:
        if str(path).endswith(taken.sha256):
            with contextlib.suppress(UnknownRef):
                from_thread.run(store.delete, taken.artifact_ref)
        return open_file(path, *options, **named)

    monkeypatch.setattr(os, "open", open_too_late)
    assert wrong(await check_store(limits)) == []
    monkeypatch.undo()
    with pytest.raises(UnknownRef):
        await store.get(taken.artifact_ref)


async def test_orphans_are_a_warning_and_moved_to_the_quarantine(
    store: ArtifactStore, limits: StoreLimits, put: Put
) -> None:
    await put(store, b"text")
    stray = limits.folder / "text" / "stray"
    stray.write_bytes(b"123")
    stray.chmod(0o600)
    (finding,) = wrong(await check_store(limits))
    assert (finding.level, "text/stray (3 bytes)" in finding.what) == ("warning", True)
    assert stray.exists()
    await check_store(limits, repair=True)
    assert not stray.exists()
    assert [path.read_bytes() for path in quarantined(limits)] == [b"123"]


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX permissions")
async def test_files_that_others_may_read_are_a_warning_and_made_private(
    store: ArtifactStore, limits: StoreLimits, put: Put
) -> None:
    facts = await put(store, b"text")
    Path(facts.path or "").chmod(0o644)
    (finding,) = wrong(await check_store(limits))
    assert (finding.level, finding.next_step) == ("warning", "chmod 600 it.")
    await check_store(limits, repair=True)
    assert Path(facts.path or "").stat().st_mode & 0o777 == 0o600


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX permissions")
@pytest.mark.parametrize(
    ("name", "mode"), [("text", 0o500), ("raw", 0), ("catalog.db", 0o400), ("lock", 0)]
)
async def test_files_that_their_user_may_not_write_are_a_fault_and_mended(
    name: str, mode: int, store: ArtifactStore, limits: StoreLimits, put: Put
) -> None:
    facts = await put(store, b"text")
    (limits.folder / name).chmod(mode)
    finding = wrong(await check_store(limits))[0]
    assert (finding.level, finding.what) == (
        "fault",
        f"Its own user may not read and write {limits.folder / name}.",
    )
    assert all(finding.mended for finding in wrong(await check_store(limits, repair=True)))
    assert wrong(await check_store(limits)) == []
    assert await text_of(store, facts.artifact_ref) == "text"


@pytest.mark.parametrize(
    "change", ["DELETE FROM blob", "UPDATE blob SET strides = x'00' WHERE kind = 'text'"]
)
async def test_a_lost_or_wrong_record_of_a_file_is_measured_anew(
    change: str, store: ArtifactStore, limits: StoreLimits, put: Put
) -> None:
    facts = await put(store, "ä\n".encode() * 50_000)
    with sqlite3.connect(limits.folder / "catalog.db") as db:
        db.execute(change)
    db.close()
    if change.startswith("UPDATE"):
        with pytest.raises(StoreError, match="record of a text is damaged"):
            await store.open_text(facts.artifact_ref)
    assert {finding.artifact_ref for finding in wrong(await check_store(limits))} == {
        facts.artifact_ref
    }
    await check_store(limits, repair=True)
    assert await text_of(store, facts.artifact_ref) == "ä\n" * 50_000


@pytest.mark.parametrize(
    ("column", "value"),
    [
        pytest.param("facts", "", id="no JSON"),
        pytest.param("facts", "[]", id="no object"),
        pytest.param("facts", '{"created_at": "yesterday"}', id="no time"),
        pytest.param("facts", '{"outline": [1]}', id="no heading"),
        pytest.param("ranges", "{}", id="no ranges"),
        pytest.param("ranges", '{"pages": [], "tables": [[1]], "preview": {}}', id="no table"),
        pytest.param(
            "ranges", '{"pages": [], "tables": [], "preview": {"unknown": 1}}', id="no glimpse"
        ),
    ],
)
@pytest.mark.parametrize("sidecar", ["sound", "missing", "damaged"])
async def test_an_artifact_whose_record_is_damaged_is_restored_or_else_removed(
    sidecar: str, column: str, value: str, store: ArtifactStore, limits: StoreLimits, put: Put
) -> None:
    lost, kept = await put(store, b"the text", b"the raw"), await put(store, b"kept", b"kept raw")
    with sqlite3.connect(limits.folder / "catalog.db") as db:
        db.execute(f"UPDATE artifact SET {column} = ? WHERE ref = ?", (value, lost.artifact_ref))
    db.close()
    if sidecar == "missing":
        (limits.folder / "facts" / lost.artifact_ref).unlink()
    elif sidecar == "damaged":
        (limits.folder / "facts" / lost.artifact_ref).write_bytes(b'{"ref": ')
    with pytest.raises(StoreError, match="is damaged"):
        await (store.get if column == "facts" else store.open_text)(lost.artifact_ref)
    assert [finding.artifact_ref for finding in wrong(await check_store(limits))] == [
        lost.artifact_ref
    ]
    assert [finding.mended for finding in wrong(await check_store(limits, repair=True))] == [True]
    assert wrong(await check_store(limits)) == []
    if sidecar == "sound":
        assert await store.get(lost.artifact_ref) == lost
        assert await text_of(store, lost.artifact_ref) == "the text"
    else:
        with pytest.raises(ExpiredRef):
            await store.get(lost.artifact_ref)
        assert len(quarantined(limits)) == 2
    assert await text_of(store, kept.artifact_ref) == "kept"


def quarantined(limits: StoreLimits) -> list[Path]:
    """Return the files in quarantine, all of which the list names."""
    files = [path for path in (limits.folder / "quarantine").glob("*") if path.name != "list.txt"]
    if files:
        listed = (limits.folder / "quarantine" / "list.txt").read_text()
        assert all(path.name in listed for path in files)
    return files


def damage(catalogue: Path) -> None:
    """Overwrite a page in the middle of the catalogue."""
    with catalogue.open("r+b") as file:
        file.seek(catalogue.stat().st_size // 2 // 4096 * 4096)
        file.write(b"\xa5" * 4096)


async def fill(limits: StoreLimits, put: Put, count: int) -> list[Facts]:
    """Put artifacts of every kind, and close the store."""
    store = await open_store(limits)
    kept = [
        await put(
            store,
            b"text %d" % n if n % 3 else None,
            b"raw %d" % n,
            facts=Facts(title="x" * (n * 37 % 6000), source_url=f"https://example.org/{n}"),
            url=f"https://example.org/{n}",
        )
        for n in range(count)
    ]
    kept[1] = await store.pin(kept[1].artifact_ref)
    kept[2] = await store.touch(kept[2].artifact_ref, Facts(etag="2"))
    await store.aclose()
    return kept


async def assert_all_kept(limits: StoreLimits, kept: list[Facts]) -> None:
    """Check that references, URLs, facts and bytes are those that were put, in the same order.

    That is by the last fetch: the third was asked for again.
    """
    store = await open_store(limits)
    assert await store.gc() == ()
    listed = (await store.list(limit=10_000)).facts
    order = [kept[2], *reversed(kept[:2] + kept[3:])]
    assert [facts.artifact_ref for facts in listed] == [facts.artifact_ref for facts in order]
    for n, facts in enumerate(kept):
        assert await store.get(facts.artifact_ref) == facts
        assert (await store.get(f"https://example.org/{n}")).artifact_ref == facts.artifact_ref
        async with store.open_raw(facts.artifact_ref) as path:
            assert path.read_bytes() == b"raw %d" % n
        if facts.text_bytes is not None:
            assert await text_of(store, facts.artifact_ref) == f"text {n}"
    await store.aclose()


@pytest.mark.long
async def test_every_page_of_the_catalogue_may_be_damaged_and_no_artifact_is_lost(
    limits: StoreLimits, put: Put
) -> None:
    kept = await fill(limits, put, 16)
    catalogue = limits.folder / "catalog.db"
    whole = catalogue.read_bytes()
    pages = range(0, len(whole), 4096)
    assert len(pages) > 12
    for number, page in enumerate(pages):
        garbage = random.Random(number).randbytes(4096)
        catalogue.write_bytes(whole[:page] + garbage + whole[page + 4096 :])
        await check_store(limits, repair=True)
        assert wrong(await check_store(limits)) == []
        await assert_all_kept(limits, kept)


@pytest.mark.long
@pytest.mark.parametrize("offset", [0, 16, 20, 28, 32, 40, 44, 56, 60, 92])
async def test_every_field_of_the_header_may_be_damaged_and_no_artifact_is_lost(
    offset: int, limits: StoreLimits, put: Put
) -> None:
    kept = await fill(limits, put, 12)
    catalogue = limits.folder / "catalog.db"
    whole = catalogue.read_bytes()
    catalogue.write_bytes(whole[:offset] + b"\xa5\x5a\xff\x7f" + whole[offset + 4 :])
    findings = wrong(await check_store(limits, repair=True))
    if any("newer fetchstash" in finding.what for finding in findings):  # it says so, and waits
        catalogue.write_bytes(whole)
    await assert_all_kept(limits, kept)


@pytest.mark.long
@pytest.mark.parametrize("damage", ["missing", "empty", "no database", "cut"])
async def test_a_catalogue_that_is_lost_is_made_anew_out_of_files_and_sidecars(
    damage: str, limits: StoreLimits, put: Put
) -> None:
    kept = await fill(limits, put, 30)
    catalogue = limits.folder / "catalog.db"
    if damage == "missing":
        catalogue.unlink()
    else:
        damaged = {"empty": b"", "no database": b"no database" * 1000}
        catalogue.write_bytes(damaged.get(damage, catalogue.read_bytes()[:10_000]))
    if damage in ("missing", "empty"):
        with pytest.raises(StoreError, match="repair"):
            await open_store(limits)
    before = sorted(path for path in limits.folder.rglob("*") if path.name != "in-use")
    await check_store(limits)
    assert sorted(path for path in limits.folder.rglob("*") if path.name != "in-use") == before
    assert any(finding.mended for finding in wrong(await check_store(limits, repair=True)))
    assert wrong(await check_store(limits)) == []
    await assert_all_kept(limits, kept)


async def test_a_log_that_is_damaged_loses_no_artifact(
    store: ArtifactStore, limits: StoreLimits, put: Put, tmp_path: Path
) -> None:
    kept = [await put(store, b"text %d" % n) for n in range(20)]
    killed = tmp_path / "killed"  # what a killed process leaves: rows that are in the log alone
    shutil.copytree(limits.folder, killed)
    (killed / "catalog.db-wal").write_bytes(random.Random(1).randbytes(100_000))
    (killed / "catalog.db-shm").unlink()
    damaged = replace(limits, folder=killed)
    unaware = await open_store(damaged)
    assert await unaware.gc() == ()
    await unaware.aclose()
    await check_store(damaged, repair=True)
    again = await open_store(damaged)
    for n, facts in enumerate(kept):
        assert await text_of(again, facts.artifact_ref) == f"text {n}"
    await again.aclose()


@pytest.mark.parametrize("left", ["of a version without them", "by a crash", "by a kill"])
async def test_a_store_without_whole_sidecars_gets_them(
    left: str, store: ArtifactStore, limits: StoreLimits, put: Put, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = await put(store, b"text", b"raw 0", url="https://example.org/0")
    if left == "by a crash":
        (limits.folder / "facts" / facts.artifact_ref).write_bytes(b"")
    elif left == "by a kill":  # before a changed one was written
        with monkeypatch.context() as killed:
            killed.setattr(Sidecars, "write", Mock())
            facts = await store.pin(facts.artifact_ref)
    else:
        shutil.rmtree(limits.folder / "facts")
        (limits.folder / "url-key").unlink()
    await store.aclose()
    (finding,) = [f for f in await check_store(limits) if "the store loses" in f.what]
    assert (finding.level, finding.mendable) == ("note", True)
    await check_store(limits, repair=True)
    (limits.folder / "catalog.db").unlink()
    await check_store(limits, repair=True)
    again = await open_store(limits)
    assert await again.get("https://example.org/0") == facts
    await again.aclose()


async def test_a_catalogue_in_use_is_not_rebuilt(
    store: ArtifactStore, limits: StoreLimits, put: Put
) -> None:
    for n in range(60):
        await put(store, b"text %d" % n, facts=Facts(title="x" * 1000))
    other = await open_store(limits)
    damaged = limits.folder / "catalog.db"
    with sqlite3.connect(damaged) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.close()
    damage(damaged)
    findings = [
        finding
        for finding in await check_store(limits, repair=True)
        if "catalogue is damaged" in finding.what
    ]
    assert [finding.mended for finding in findings] == [False]
    assert "Another process has the store open" in findings[0].next_step
    await other.aclose()


async def test_a_newer_store_is_a_finding(limits: StoreLimits) -> None:
    await (await open_store(limits)).aclose()
    with sqlite3.connect(limits.folder / "catalog.db") as db:
        db.execute("PRAGMA user_version = 99")
    db.close()
    (finding,) = wrong(await check_store(limits, repair=True))
    assert "written by a newer fetchstash" in finding.what
    assert not finding.mended


def mount(monkeypatch: pytest.MonkeyPatch, folder: Path, kind: str) -> None:
    """Let the kernel say (proc(5), mountinfo) that a file system is mounted at ``folder``."""
    read, place = Path.read_text, str(folder.resolve()).replace(" ", "\\040")

    def read_text(path: Path, *options: Any, **named: Any) -> str:
        text = read(path, *options, **named)
        if str(path) == "/proc/self/mountinfo":
            text += f"36 35 98:0 / {place} rw,noatime master:1 - {kind} host:/x rw,errors=y\n"
        return text

    monkeypatch.setattr(Path, "read_text", read_text)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
async def test_a_network_file_system_is_refused_at_open_and_a_fault_for_doctor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = StoreLimits(tmp_path / "a share" / "store")
    await (await open_store(limits)).aclose()
    mount(monkeypatch, tmp_path, "nfs4")
    mount(monkeypatch, limits.folder, "nfs4")
    mount(monkeypatch, limits.folder, "ext4")  # the innermost counts, and of two at once the later
    await (await open_store(limits)).aclose()
    monkeypatch.undo()
    mount(monkeypatch, limits.folder.parent, "nfs4")
    with pytest.raises(StoreError, match="network file system"):
        await open_store(limits)
    (finding,) = wrong(await check_store(limits))
    assert (finding.level, "network file system" in finding.what) == ("fault", True)


@pytest.mark.skipif(
    getattr(os, "geteuid", lambda: 1)() != 0, reason="only root can give a file away"
)
async def test_a_file_of_another_user_is_a_fault(
    store: ArtifactStore, limits: StoreLimits, put: Put
) -> None:
    facts = await put(store, b"text")
    os.chown(facts.path or "", 12345, 12345)
    assert any(
        "belongs to another user" in finding.what for finding in wrong(await check_store(limits))
    )


async def test_a_folder_that_never_was_a_store_is_left_alone(limits: StoreLimits) -> None:
    precious = limits.folder / "raw" / "photo.raw"
    precious.parent.mkdir(parents=True)
    precious.write_bytes(b"precious")
    (finding,) = wrong(await check_store(limits, repair=True))
    assert "is no store" in finding.what
    assert list(limits.folder.rglob("*")) == [precious.parent, precious]
