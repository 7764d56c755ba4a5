"""What the local store adds to the contract: private files, bounded leftovers, clear errors."""

import contextlib
import os
import stat
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import anyio
import pytest
from anyio import to_thread

from fetchstash.errors import BadArgument, ExpiredRef, StoreError, TooLarge, UnknownRef
from fetchstash.store import ArtifactStore, Facts, StoreLimits, check_store, open_store
from fetchstash.store._catalog import connect
from fetchstash.store._threads import Threads
from fetchstash.text.ranges import Ranges
from tests.store.conftest import Put

pytestmark = pytest.mark.anyio
posix = pytest.mark.skipif(sys.platform == "win32", reason="POSIX permissions")


def files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if not path.is_dir()]


def size(path: Path) -> int:
    return path.stat().st_size


@posix
async def test_everything_is_for_this_user_alone_whatever_the_umask(
    limits: StoreLimits, put: Put
) -> None:
    before = os.umask(0)
    try:
        limits.folder.mkdir(mode=0o755)
        store = await open_store(limits)
        await put(store, b"text")
        modes = {
            path.name: stat.S_IMODE(path.stat().st_mode)
            for path in (limits.folder, *limits.folder.rglob("*"))
        }
        await store.aclose()
    finally:
        os.umask(before)
    assert {name: oct(mode) for name, mode in modes.items() if mode not in (0o700, 0o600)} == {}


@pytest.mark.whole
@posix
@pytest.mark.parametrize("name", ["raw", "text", "spool", "catalog.db", "lock", "in-use"])
async def test_a_symbolic_link_in_the_folder_is_refused(
    name: str, limits: StoreLimits, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_bytes(b"") if "." in name or name in ("lock", "in-use") else elsewhere.mkdir()
    limits.folder.mkdir()
    (limits.folder / name).symlink_to(elsewhere)
    for _ in range(2):
        with pytest.raises(StoreError):
            await open_store(limits)
    (limits.folder / name).unlink()
    await (await open_store(limits)).aclose()


@pytest.mark.parametrize("name", ["catalog.db", "lock", "in-use", "url-key"])
async def test_a_folder_in_the_place_of_a_file_is_named_and_not_repaired(
    name: str, limits: StoreLimits
) -> None:
    await (await open_store(limits)).aclose()
    (limits.folder / name).unlink()
    (limits.folder / name).mkdir()
    with pytest.raises(StoreError, match=f"{name} is no file"):
        await open_store(limits)
    faults = [
        finding for finding in await check_store(limits, repair=True) if finding.level == "fault"
    ]
    assert [f"{name} is no file" in finding.what for finding in faults] == [True]


@posix
@pytest.mark.skipif(
    getattr(os, "geteuid", lambda: 1)() != 0, reason="only root can give a folder away"
)
async def test_a_folder_of_another_user_is_refused(limits: StoreLimits) -> None:
    limits.folder.mkdir()
    os.chown(limits.folder, 12345, 12345)
    with pytest.raises(StoreError, match="belongs to another user"):
        await open_store(limits)


async def test_a_file_in_the_way_of_the_folder_is_an_error(limits: StoreLimits) -> None:
    limits.folder.write_text("in the way")
    with pytest.raises(StoreError, match="is not a folder"):
        await open_store(limits)


@pytest.mark.parametrize("name", ["photo.jpg", "raw/photo.raw", "text/notes.txt"])
async def test_a_folder_that_holds_something_else_is_left_alone(
    name: str, limits: StoreLimits
) -> None:
    precious = limits.folder / name
    precious.parent.mkdir(parents=True)
    precious.write_bytes(b"precious")
    with pytest.raises(StoreError, match="is no store and not empty"):
        await open_store(limits)
    assert files(limits.folder) == [precious]


async def test_files_of_others_in_the_folder_outlive_an_ephemeral_store(
    limits: StoreLimits, put: Put
) -> None:
    store = await open_store(replace(limits, ephemeral=True))
    await put(store, b"brief")
    (limits.folder / "notes").write_bytes(b"precious")
    await store.aclose()
    assert files(limits.folder) == [limits.folder / "notes"]


async def test_the_order_of_use_survives_a_reopened_store(limits: StoreLimits, put: Put) -> None:
    store = await open_store(replace(limits, max_artifacts=2))
    read, other = await put(store, b"read"), await put(store, b"other")
    await store.get(read.artifact_ref)
    await store.aclose()
    again = await open_store(replace(limits, max_artifacts=2))
    await put(again, b"third")
    assert (await again.get(read.artifact_ref)).text_bytes == 4
    with pytest.raises(ExpiredRef):
        await again.get(other.artifact_ref)
    await again.aclose()


@pytest.mark.skipif(
    not hasattr(os, "RWF_NOWAIT"), reason="this system cannot say what it has in memory"
)
async def test_cached_pages_are_read_without_a_thread(
    store: ArtifactStore, put: Put, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = await put(store, b"line\n" * 50_000)
    with Path(facts.path or "").open("rb") as file:
        try:
            os.preadv(file.fileno(), [bytearray(1)], 0, os.RWF_NOWAIT)
        except OSError:
            pytest.skip(f"nor can the file system of {tmp_path}")
    reader = await store.open_text(facts.artifact_ref)
    with monkeypatch.context() as patched:  # undone before the store closes
        patched.setattr(to_thread, "run_sync", None)
        assert await reader.char_of_line(40_001) == 200_000
        assert await reader.read_chars(200_000, 200_250) == "line\n" * 50
        assert await reader.line_of_char(100_000) == 20_001
        await reader.aclose()


async def test_a_commit_waits_until_it_is_on_the_disk(store: ArtifactStore, put: Put) -> None:
    await put(store, b"words")
    with contextlib.closing(connect(store.spool.parent / "catalog.db")) as db:
        # 2 is FULL (https://sqlite.org/pragma.html): NORMAL loses commits of a machine that stops.
        assert db.execute("PRAGMA synchronous").fetchone() == (2,)


async def test_identical_bytes_are_stored_once(
    store: ArtifactStore, limits: StoreLimits, put: Put
) -> None:
    one, other = (
        await put(store, b"same text", b"same raw"),
        await put(store, b"same text", b"same raw"),
    )
    assert one.path == other.path
    assert [len(files(limits.folder / kind)) for kind in ("raw", "text")] == [1, 1]
    await store.delete(one.artifact_ref)
    await store.delete(other.artifact_ref)
    assert [len(files(limits.folder / kind)) for kind in ("raw", "text")] == [0, 0]


async def test_an_ephemeral_store_leaves_no_file(limits: StoreLimits, put: Put) -> None:
    store = await open_store(replace(limits, ephemeral=True))
    for n in range(3):
        await put(store, b"text %d" % n)
    (store.spool / "on its way").write_bytes(b"left behind")
    await store.aclose()
    await store.aclose()
    assert not limits.folder.exists()


async def test_two_ephemeral_stores_without_a_name_do_not_see_each_other(
    limits: StoreLimits, put: Put
) -> None:
    one, other = (
        await open_store(replace(limits, ephemeral=True)),
        await open_store(replace(limits, ephemeral=True)),
    )
    facts = await put(one, b"text")
    await other.aclose()
    assert (await one.list()).facts == (await one.get(facts.artifact_ref),)
    await one.aclose()
    assert not limits.folder.exists()


async def test_stores_come_and_go_while_ephemeral_ones_remove_the_folder(
    limits: StoreLimits, put: Put
) -> None:
    async def come_and_go(*, ephemeral: bool) -> None:
        for n in range(12):
            store = await open_store(replace(limits, ephemeral=ephemeral))
            facts = await put(store, b"%d" % n)
            assert (await store.get(facts.artifact_ref)).text_bytes
            await store.delete(facts.artifact_ref)
            await store.aclose()

    async with anyio.create_task_group() as tasks:
        for ephemeral in (True, False, True):
            tasks.start_soon(partial(come_and_go, ephemeral=ephemeral))


async def test_only_files_of_the_spool_are_taken(store: ArtifactStore, tmp_path: Path) -> None:
    foreign = tmp_path / "foreign"
    foreign.write_bytes(b"mine")
    with pytest.raises(BadArgument, match="not in the store's spool"):
        await store.put(foreign, None, Facts(), Ranges())
    with pytest.raises(BadArgument, match="not in the store's spool"):
        await store.put(store.spool / ".." / ".." / "foreign", None, Facts(), Ranges())
    assert foreign.read_bytes() == b"mine"


@pytest.mark.parametrize(
    "text",
    [b"\xff", b"ok\xc3", "\ud800".encode("utf-8", "surrogatepass")],
    ids=["byte", "cut off", "surrogate"],
)
async def test_a_text_that_is_no_utf8_is_refused_and_leaves_nothing(
    text: bytes, store: ArtifactStore, limits: StoreLimits, put: Put
) -> None:
    with pytest.raises(BadArgument, match="no UTF-8"):
        await put(store, text)
    assert not any(files(limits.folder / kind) for kind in ("raw", "text", "spool"))


async def test_an_artifact_larger_than_the_store_is_refused(limits: StoreLimits, put: Put) -> None:
    store = await open_store(replace(limits, max_total_bytes=100))
    kept = await put(store, b"small")
    with pytest.raises(TooLarge):
        await put(store, b"x" * 101)
    assert (await store.get(kept.artifact_ref)).text_bytes == 5
    await store.aclose()


async def test_old_files_in_the_spool_are_swept_and_new_ones_stay(
    store: ArtifactStore, limits: StoreLimits
) -> None:
    old, new, nested = store.spool / "old", store.spool / "new", store.spool / "folder" / "old"
    nested.parent.mkdir()
    for path in (old, new, nested):
        path.write_bytes(b"half a body")
    for path in (old, nested, nested.parent):
        os.utime(path, (time.time() - 2 * 86400, time.time() - 2 * 86400))
    await store.gc()
    assert not old.exists()
    assert not nested.exists()
    assert new.exists()
    await store.aclose()
    alone = await open_store(limits)
    assert not list(alone.spool.iterdir())
    await alone.aclose()


@pytest.mark.long
@pytest.mark.skipif(sys.platform == "win32", reason="descriptors of folders are POSIX's")
async def test_a_store_opens_whatever_a_worker_nested_in_its_spool(
    store: ArtifactStore, limits: StoreLimits
) -> None:
    here = os.open(store.spool, os.O_RDONLY)
    for _ in range(3_000):
        os.mkdir("d", dir_fd=here)
        outer, here = here, os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(outer)
    os.close(here)
    await store.aclose()
    again = await open_store(limits)
    assert not list(again.spool.iterdir())
    await again.aclose()


async def test_the_spool_of_others_is_not_swept(store: ArtifactStore, limits: StoreLimits) -> None:
    (store.spool / "on its way").write_bytes(b"half a body")
    other = await open_store(limits)
    assert (store.spool / "on its way").exists()
    await other.aclose()


async def test_orphans_are_listed_and_removed_by_gc(
    store: ArtifactStore, limits: StoreLimits, put: Put
) -> None:
    facts = await put(store, b"text")
    (limits.folder / "raw" / "stray").write_bytes(b"12345")
    planned = await store.gc(dry_run=True)
    assert [(removed.artifact_ref, removed.size_bytes, removed.reason) for removed in planned] == [
        ("raw/stray", 5, "orphan")
    ]
    assert await store.gc() == planned
    assert await store.gc() == ()
    async with store.open_raw(facts.artifact_ref) as path:
        assert path.read_bytes() == b"raw"


async def test_a_closed_store_says_so(limits: StoreLimits) -> None:
    store = await open_store(limits)
    await store.aclose()
    with pytest.raises(StoreError, match="closed"):
        await store.list()


@posix
async def test_a_store_from_before_a_fork_says_so(
    store: ArtifactStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "getpid", lambda: -1)
    with pytest.raises(StoreError, match="forked"):
        await store.list()


async def test_references_are_128_random_bits(store: ArtifactStore, put: Put) -> None:
    refs = {(await put(store, b"same")).artifact_ref for _ in range(20)}
    assert len(refs) == 20
    assert all(len(ref) == len("art_") + 26 and ref[4:].isalnum() and ref.islower() for ref in refs)


async def test_facts_with_every_kind_of_value_survive_as_json(store: ArtifactStore) -> None:
    facts = Facts(
        page_range=(2, 9), evidence=("a", "b"), incomplete="cut", http_status=200, mismatch=True
    )
    assert Facts.from_json(facts.to_json()) == facts
    assert Facts.from_json({**facts.to_json(), "of a later version": 1}) == facts


def runs_in_threads(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Return a list that gets what stores do in threads from now on."""
    runs: list[object] = []
    run = Threads.run

    def noted(self: Threads, work: Callable[[], object]) -> Awaitable[object]:
        runs.append(work)
        return run(self, work)

    monkeypatch.setattr(Threads, "run", noted)
    return runs


async def test_what_was_read_and_was_not_changed_needs_no_thread_and_a_change_is_seen_at_once(
    store: ArtifactStore, limits: StoreLimits, put: Put, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = await put(store, b"a text that is read often")
    await (await store.open_text(kept.artifact_ref)).aclose()
    await store.get(kept.artifact_ref)
    runs = runs_in_threads(monkeypatch)
    assert not (await store.get(kept.artifact_ref)).pinned
    await (await store.open_text(kept.artifact_ref)).aclose()
    assert not runs
    other = await open_store(limits)
    await other.pin(kept.artifact_ref)
    assert (await store.get(kept.artifact_ref)).pinned
    await other.delete(kept.artifact_ref)
    await other.aclose()
    for read in (store.get, store.open_text):
        with pytest.raises(UnknownRef):
            await read(kept.artifact_ref)


async def test_a_url_is_answered_without_a_thread_until_it_leads_elsewhere_or_a_file_is_altered(
    store: ArtifactStore, limits: StoreLimits, put: Put, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, kept = "https://example.org/page", await put(store, b"old", url="https://example.org/page")
    await store.get(url)
    await store.touch(kept.artifact_ref)  # a change, but one that leads the URL nowhere else
    runs = runs_in_threads(monkeypatch)
    assert (await store.get(url)).artifact_ref == kept.artifact_ref
    assert not runs
    other = await open_store(limits)
    new = await put(other, b"new", url=url)
    await store.get(kept.artifact_ref)  # what it led to is known anew, and where it leads is not
    await store.touch(kept.artifact_ref)
    await store.touch(new.artifact_ref)
    assert (await store.get(url)).artifact_ref == new.artifact_ref
    assert (await store.get(url)).artifact_ref == new.artifact_ref
    text = Path(new.path or "")
    text.write_bytes(text.read_bytes() + b"more")
    with pytest.raises(UnknownRef, match="is lost"):  # it is fetched anew then
        await store.get(url)
    await other.delete(new.artifact_ref)
    await store.get(url)
    await other.touch(kept.artifact_ref)
    await store.get(url)
    next(limits.folder.glob(f"raw/{kept.sha256}")).unlink()
    with pytest.raises(UnknownRef, match="is lost"):
        await store.get(url)
    await other.aclose()


@posix
async def test_a_store_of_a_killed_process_that_keeps_nothing_goes_with_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    limits = StoreLimits(tmp_path, "memory:", run="default")
    used = await open_store(limits)
    its = used.spool.parent
    left, new, link = (tmp_path / f"fetchstash-memory-{name}" for name in ("left", "new", "link"))
    elsewhere = tmp_path / "elsewhere"
    for folder in (left, new, elsewhere):
        folder.mkdir()
    link.symlink_to(elsewhere)
    for folder in (left, link, its):
        os.utime(folder, (0, 0), follow_symlinks=False)
    other = await open_store(limits)
    assert [path.exists() for path in (left, new, elsewhere, its)] == [False, *[True] * 3]
    for store in (used, other):
        await store.aclose()
    assert not its.exists()
