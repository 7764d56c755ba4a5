"""What only a store in a bucket does: the cache, ranges, replicas, and what was lost there."""

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from fetchstash.errors import StoreError, UnknownRef
from fetchstash.store import ArtifactStore, GrepQuery, StoreLimits, _bytes, open_store
from tests.store.buckets import Recorded, new_objects
from tests.store.conftest import Open, Put
from tests.store.contents import raw_of, text_of

pytestmark = pytest.mark.anyio


TEXT = b"".join(b"line %07d\n" % n for n in range(400_000))


async def test_a_text_that_is_opened_is_fetched_once_and_kept(
    open_team: Open, put: Put, objects: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_bytes, "PIECE", 500_000)
    facts = await put(await open_team(), TEXT)
    store = await open_team(machine="other")
    objects.requests.clear()
    for _ in range(2):
        reader = await store.open_text(facts.artifact_ref)
        assert (await reader.grep(GrepQuery("line 039999[0-9]"))).total == 10
        assert await reader.read_chars(13 * 200_000, 13 * 200_000 + 12) == "line 0200000"
        await reader.aclose()
    ranges = [size for _, _, size in objects.requests]
    assert (sum(ranges), len(ranges)) == (len(TEXT), 11)


async def test_a_text_that_the_cache_does_not_take_is_read_by_ranges(
    open_team: Open, put: Put, objects: Recorded
) -> None:
    store = await open_team(cache_bytes=0)
    facts = await put(store, TEXT)
    objects.requests.clear()
    reader = await store.open_text(facts.artifact_ref)
    assert objects.requests == []
    assert await reader.read_chars(13 * 200_000, 13 * 200_000 + 12) == "line 0200000"
    ((name, _, size),) = objects.requests
    assert (name, size <= 128 * 2**10) == ("get_range", True)
    assert (await reader.grep(GrepQuery("line 039999[0-9]"))).total == 10
    await reader.aclose()


async def test_a_text_is_read_where_the_disk_takes_no_copy_of_it(
    open_team: Open, put: Put, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = await put(await open_team(), TEXT)

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    store = await open_team(machine="other")
    monkeypatch.setattr(_bytes, "copied", full)
    assert await text_of(store, facts.artifact_ref) == TEXT.decode()
    assert list(store.spool.iterdir()) == []


@pytest.mark.parametrize("cache_bytes", [0, 10_000, 2**30])
async def test_a_cache_of_any_size_changes_no_answer(
    open_team: Open, put: Put, cache_bytes: int
) -> None:
    store = await open_team(cache_bytes=cache_bytes)
    refs = [(await put(store, b"%d\n" % n * 1_500, b"raw %d" % n)).artifact_ref for n in range(9)]
    for _ in range(2):
        for n, ref in enumerate(refs):
            assert await text_of(store, ref) == f"{n}\n" * 1_500
            assert await raw_of(store, ref) == b"raw %d" % n
    cached = [path for path in store.spool.parent.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in cached) <= cache_bytes


async def test_the_caches_of_one_folder_hold_their_bound_together(
    open_team: Open, put: Put, tmp_path: Path
) -> None:
    stores = [await open_team(machine="shared", cache_bytes=100_000) for _ in range(4)]
    for number in range(40):
        await put(stores[number % 4], None, bytes([number]) * 5_000)
        files = (tmp_path / "shared").rglob("raw/*")
        assert sum(path.stat().st_size for path in files) <= 100_000 * 1.4


@pytest.mark.parametrize("same_process", [True, False])
async def test_a_cached_file_that_was_altered_is_not_used(
    open_team: Open, put: Put, same_process: bool
) -> None:
    store = await open_team(machine="one")
    facts = await put(store, b"true words\n", b"true bytes")
    for path in store.spool.parent.glob("*/*"):
        if path.is_file():
            status = path.stat()
            path.write_bytes(b"X" * status.st_size)
            if not same_process:  # which has not hashed it yet
                os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    if not same_process:
        store = await open_team(machine="one")
    assert await text_of(store, facts.artifact_ref) == "true words\n"
    assert await raw_of(store, facts.artifact_ref) == b"true bytes"


async def test_bytes_that_were_altered_in_the_bucket_are_not_lent(
    open_team: Open, put: Put, objects: Recorded
) -> None:
    facts = await put(await open_team(), None, b"true bytes")
    (path,) = objects.paths("raw")
    objects.store.put(path, b"other byte")
    with pytest.raises(StoreError, match="altered"):
        await raw_of(await open_team(), facts.artifact_ref)


async def test_a_url_whose_bytes_are_lost_is_unknown(
    open_team: Open, put: Put, objects: Recorded
) -> None:
    facts = await put(await open_team(), b"text", url="https://example.org/")
    objects.remove("raw", "text")
    store = await open_team()
    with pytest.raises(UnknownRef):
        await store.get("https://example.org/")
    with pytest.raises(StoreError, match="are lost"):
        await store.open_text(facts.artifact_ref)


@pytest.mark.parametrize("cache_bytes", [0, 2**30])
@pytest.mark.parametrize("left", [b"", b"a" * 100_000])
async def test_a_text_that_was_cut_short_in_the_bucket_says_so(
    left: bytes, cache_bytes: int, open_team: Open, put: Put, objects: Recorded
) -> None:
    from obstore.exceptions import GenericError

    facts = await put(await open_team(), b"a line of text\n" * 20_000)
    for path in objects.paths("text"):
        objects.store.put(path, left)

    def refuse(name: str, _: str) -> None:
        if name == "get_range" and not left:
            raise GenericError("status code: 416 Requested Range Not Satisfiable")

    objects.before = refuse
    store: ArtifactStore = await open_team(cache_bytes=cache_bytes)

    async def matches_in_it() -> None:
        reader = await store.open_text(facts.artifact_ref)
        await reader.grep(GrepQuery("line"))

    for read in (
        lambda: text_of(store, facts.artifact_ref),
        matches_in_it,
        lambda: store.search("line", [facts.artifact_ref], 1),
    ):
        with pytest.raises(StoreError, match="were altered"):
            await read()


async def test_bytes_that_were_lost_are_back_with_the_next_put(
    open_team: Open, put: Put, objects: Recorded
) -> None:
    store = await open_team(cache_bytes=0)
    lost = await put(store, None, b"bytes" * 20_000, url="https://example.org/")
    objects.remove("raw", "text")
    with pytest.raises(StoreError, match="are lost"):
        await raw_of(store, lost.artifact_ref)
    await put(store, None, b"bytes" * 20_000, url="https://example.org/")
    for facts in (lost, await store.get("https://example.org/")):
        assert await raw_of(store, facts.artifact_ref) == b"bytes" * 20_000


async def test_limits_hold_over_replicas(open_team: Open, put: Put) -> None:
    one = await open_team(max_artifacts=3)
    for n in range(3):
        await put(one, b"one %d" % n)
    await put(await open_team(max_artifacts=3), b"other")
    assert (await one.list()).total == 3


async def test_without_obstore_one_line_says_what_to_install(
    catalog: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "obstore", None)
    with pytest.raises(StoreError, match=r'pip install "fetchstash\[team\]"'):
        await open_store(StoreLimits(tmp_path, "s3://bucket", run="default", catalog=catalog))


async def test_a_url_and_settings_pick_bucket_prefix_and_encryption(
    catalog: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stores = pytest.importorskip("obstore.store", reason="obstore is in the extra team")
    opened: list[dict[str, Any]] = []

    def s3(bucket: str, **options: Any) -> object:
        opened.append({"bucket": bucket, **options})
        return new_objects()

    monkeypatch.setattr(stores, "S3Store", s3)
    settings: Any = {"region": "eu-central-1", "endpoint": "http://rgw", "catalog": catalog}
    limits = StoreLimits(tmp_path, "s3://bucket/a/b", encryption="aws:kms:KEY", **settings)
    await (await open_store(limits)).aclose()
    (options,) = opened
    assert (options["bucket"], options["prefix"]) == ("bucket", "a/b")
    assert options["config"] == {
        "endpoint": "http://rgw",
        "aws_endpoint_url_s3": "http://rgw",
        "disable_bulk_delete": True,
        "region": "eu-central-1",
        "server_side_encryption": "aws:kms",
        "sse_kms_key_id": "KEY",
    }
    assert options["client_options"]["allow_http"]
