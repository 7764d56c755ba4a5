"""What only a store in a bucket does: weeks, rules, pins, ranges, the cache, replicas."""

import json
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from anyio import from_thread
from anyio.lowlevel import current_token

from fetchstash.errors import BadArgument, NoText, StoreError, UnknownRef
from fetchstash.store import ArtifactStore, Facts, GrepQuery, StoreLimits, _search, open_store
from fetchstash.text.ranges import Ranges
from tests.store.buckets import Recorded, new_objects
from tests.store.contents import raw_of, text_of

Put = Callable[..., Awaitable[Facts]]
Step = Callable[[], Awaitable[Any]]
Open = Callable[..., Awaitable[ArtifactStore]]

pytestmark = pytest.mark.anyio

DAY = 86_400
URL = "https://example.org/"
EXPIRING = ("blobs", "records", "urls")


@pytest.fixture
async def open_(objects: Recorded, tmp_path: Path) -> AsyncIterator[Open]:
    """Open a replica with a cache of its own, or with that of ``machine``."""
    opened: list[ArtifactStore] = []

    async def open_one(machine: str = "", tenant: str = "", **limits: Any) -> ArtifactStore:
        folder = tmp_path / (machine or f"machine-{len(opened)}")
        url = f"s3://bucket/prefix/{tenant}".rstrip("/")
        settings = StoreLimits(folder, url, run="default", **limits)
        opened.append(await open_store(settings))
        return opened[-1]

    yield open_one
    for store in opened:
        await store.aclose()


async def test_a_put_writes_its_record_last(open_: Open, put: Put, objects: Recorded) -> None:
    facts = await put(await open_(), b"text", url="https://example.org/")
    written = [path for name, path, _ in objects.requests if name == "put"]
    assert written[-1] == f"records/{facts.artifact_ref}.json"
    assert [path.partition("/")[0] for path in sorted(written)] == [
        "blobs", "blobs", "keys", "records", "urls",
    ]  # fmt: skip


async def test_another_replica_reads_what_was_put(open_: Open, put: Put) -> None:
    facts = await put(await open_(), "Ünïcode 😀\n".encode(), b"raw", url="https://example.org/")
    other = await open_()
    assert await other.get(facts.artifact_ref) == facts
    assert await other.get("https://example.org/") == facts
    assert await text_of(other, facts.artifact_ref) == "Ünïcode 😀\n"
    assert await raw_of(other, facts.artifact_ref) == b"raw"
    assert [listed.artifact_ref for listed in (await other.list()).facts] == [facts.artifact_ref]
    assert (await other.search("Ünïcode", (), 5)).passages


async def test_grep_reads_ahead_and_keeps_what_it_read(
    open_: Open, put: Put, objects: Recorded
) -> None:
    text = b"".join(b"line %07d\n" % n for n in range(400_000))
    facts = await put(await open_(), text)
    store = await open_(machine="other")
    objects.requests.clear()
    reader = await store.open_text(facts.artifact_ref)
    matches = await reader.grep(GrepQuery("line 039999[0-9]"))
    await reader.aclose()
    assert matches.total == 10
    ranges = [size for name, _, size in objects.requests if name == "get_range"]
    assert len(ranges) <= len(text) // 2**20 + 3
    assert max(ranges) == 2**20
    objects.requests.clear()
    reader = await store.open_text(facts.artifact_ref)
    assert (await reader.grep(GrepQuery("0399999"))).total == 1
    await reader.aclose()
    assert objects.names() == ["get"]


@pytest.mark.parametrize("cache_bytes", [0, 10_000, 2**30])
async def test_a_cache_of_any_size_changes_no_answer(
    open_: Open, put: Put, cache_bytes: int
) -> None:
    store = await open_(cache_bytes=cache_bytes)
    refs = [(await put(store, b"%d\n" % n * 1_500, b"raw %d" % n)).artifact_ref for n in range(9)]
    for _ in range(2):
        for n, ref in enumerate(refs):
            assert await text_of(store, ref) == f"{n}\n" * 1_500
            assert await raw_of(store, ref) == b"raw %d" % n
    cached = [path for path in store.spool.parent.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in cached) <= cache_bytes


async def test_the_caches_of_one_folder_hold_their_bound_together(
    open_: Open, put: Put, tmp_path: Path
) -> None:
    stores = [await open_(machine="shared", cache_bytes=100_000) for _ in range(4)]
    for number in range(40):
        await put(stores[number % 4], None, bytes([number]) * 5_000)
        files = (tmp_path / "shared").rglob("raw/*")
        assert sum(path.stat().st_size for path in files) <= 100_000 * 1.4


@pytest.mark.parametrize("same_process", [True, False])
async def test_a_cached_file_that_was_altered_is_not_used(
    open_: Open, put: Put, same_process: bool
) -> None:
    store = await open_(machine="one")
    facts = await put(store, b"true words\n", b"true bytes")
    for path in store.spool.parent.glob("*/*"):
        if path.is_file():
            path.write_bytes(b"X" * path.stat().st_size)
    if not same_process:
        store = await open_(machine="one")
    assert await text_of(store, facts.artifact_ref) == "true words\n"
    assert await raw_of(store, facts.artifact_ref) == b"true bytes"


async def test_bytes_that_were_altered_in_the_bucket_are_not_lent(
    open_: Open, put: Put, objects: Recorded
) -> None:
    facts = await put(await open_(), None, b"true bytes")
    (path,) = objects.paths("blobs")
    objects.store.put(path, b"other byte")
    with pytest.raises(StoreError, match="altered"):
        await raw_of(await open_(), facts.artifact_ref)


async def test_bytes_are_shared_within_a_week_and_never_across(
    open_: Open, put: Put, objects: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    monday = 1_795_392_000.0  # 2026-11-23, the first day of week 48
    monkeypatch.setattr(time, "time", lambda: monday)
    for store in (await open_(), await open_()):
        await put(store, None, b"same" * 30_000)
    assert len(objects.paths("blobs")) == 1
    assert sum(name == "put" and "blobs" in path for name, path, _ in objects.requests) == 1
    monkeypatch.setattr(time, "time", lambda: monday - 1)
    await put(await open_(), None, b"same" * 30_000)
    assert [path.split("/")[1] for path in objects.paths("blobs")] == ["2026-W47", "2026-W48"]


async def test_touch_brings_bytes_record_and_url_to_this_week(
    open_: Open, put: Put, objects: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await open_(machine="one", max_age_days=10)
    facts = await put(store, b"text", b"raw", url="https://example.org/")
    old = objects.paths("blobs")
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 8 * DAY)
    objects.requests.clear()
    await store.touch(facts.artifact_ref)
    for path in old:
        objects.store.delete(path)
    rewritten = {path.partition("/")[0] for name, path, _ in objects.requests if name == "put"}
    assert rewritten == {"records", "urls"}
    monkeypatch.setattr(time, "time", lambda: now + 17 * DAY)
    other = await open_()
    assert await text_of(other, facts.artifact_ref) == "text"
    assert await raw_of(other, facts.artifact_ref) == b"raw"
    assert (await other.get("https://example.org/")).artifact_ref == facts.artifact_ref


async def test_a_pinned_artifact_outlives_the_lifecycle_rules(
    open_: Open, put: Put, objects: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await open_()
    pinned = await put(store, b"pinned", b"bytes")
    other = await put(store, b"not pinned")
    await store.pin(pinned.artifact_ref)
    objects.remove(*EXPIRING)
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 100 * DAY)
    later = await open_()
    assert (await later.get(pinned.artifact_ref)).pinned
    assert [facts.artifact_ref for facts in (await later.list()).facts] == [pinned.artifact_ref]
    assert await text_of(later, pinned.artifact_ref) == "pinned"
    assert await raw_of(later, pinned.artifact_ref) == b"bytes"
    assert (await later.search("pinned", (), 1)).passages
    with pytest.raises(UnknownRef):
        await later.get(other.artifact_ref)
    await later.touch(pinned.artifact_ref)
    assert not (await later.pin(pinned.artifact_ref, pinned=False)).pinned
    assert objects.paths("pinned") == []
    assert await text_of(await open_(), pinned.artifact_ref) == "pinned"


async def test_where_a_bucket_cannot_copy_the_bytes_are_written_again(
    open_: Open, put: Put, objects: Recorded
) -> None:
    from obstore.exceptions import GenericError

    def refuse(name: str, _path: str) -> None:
        if name == "copy":
            raise GenericError("Server returned non-2xx status code: 501 Not Implemented")

    facts = await put(await open_(), b"text", b"raw")
    objects.before = refuse
    store = await open_()
    assert (await store.pin(facts.artifact_ref)).pinned
    assert list(store.spool.iterdir()) == []
    objects.remove(*EXPIRING)
    assert await text_of(await open_(), facts.artifact_ref) == "text"
    assert await raw_of(await open_(), facts.artifact_ref) == b"raw"


async def touched(store: ArtifactStore, facts: Facts) -> None:
    await store.touch(facts.artifact_ref)


async def pinned(store: ArtifactStore, facts: Facts) -> None:
    await store.pin(facts.artifact_ref)


async def unpinned(store: ArtifactStore, facts: Facts) -> None:
    await store.pin(facts.artifact_ref, pinned=False)


async def replaced(store: ArtifactStore, facts: Facts) -> None:
    path = store.spool / secrets.token_hex(8)
    path.write_bytes(b"new")
    await store.replace_text(facts.artifact_ref, path, facts, Ranges(), known=facts)


@pytest.mark.parametrize("change", ["touch", "new text"])
async def test_a_pin_is_not_lost_to_a_change_at_the_same_moment(
    change: str, open_: Open, put: Put, objects: Recorded
) -> None:
    one, other = await open_(), await open_()
    facts = await put(one, b"text")

    def pin_meanwhile(name: str, path: str) -> None:
        if (name, path) == ("put", f"records/{facts.artifact_ref}.json"):
            objects.before = lambda _name, _path: None
            from_thread.run(other.pin, facts.artifact_ref)

    objects.before = pin_meanwhile  # the change has read the record, and not written it yet
    await (touched if change == "touch" else replaced)(one, facts)
    for store in (one, other, await open_()):
        assert (await store.get(facts.artifact_ref)).pinned
    kept = await text_of(one, facts.artifact_ref)
    objects.remove(*EXPIRING)
    assert await text_of(await open_(), facts.artifact_ref) == kept


@pytest.mark.parametrize("end", ["unpinned", "deleted"])
async def test_a_pinned_artifact_that_ends_leaves_none_of_its_texts(
    end: str, open_: Open, put: Put, objects: Recorded
) -> None:
    store = await open_()
    facts = await store.pin((await put(store, b"text")).artifact_ref)
    await replaced(store, facts)
    assert objects.paths("pinned")
    await (unpinned if end == "unpinned" else touched)(store, facts)
    if end == "deleted":
        await store.delete(facts.artifact_ref)
    assert objects.paths("pinned") == []


@pytest.mark.parametrize("is_pinned", [False, True])
@pytest.mark.parametrize("change", [touched, pinned, unpinned, replaced])
async def test_what_one_replica_deletes_another_that_changes_it_does_not_bring_back(
    change: Callable[[ArtifactStore, Facts], Awaitable[None]],
    is_pinned: bool,
    open_: Open,
    put: Put,
    objects: Recorded,
) -> None:
    one, other = await open_(), await open_()

    async def both(at: int, *, changes_first: bool) -> bool:
        """Run one before the request ``at`` of the other; return whether there is such a one."""
        facts = await put(one, b"text", b"text")
        if is_pinned:
            facts = await one.pin(facts.artifact_ref)
        changing: Step = partial(change, one, facts)
        deleting: Step = partial(other.delete, facts.artifact_ref)
        first, second = (changing, deleting) if changes_first else (deleting, changing)
        left, token = at, current_token()

        def meanwhile(_name: str, _path: str) -> None:
            nonlocal left
            left -= 1
            if left == -1:
                from_thread.run(quietly, second, token=token)

        objects.before = meanwhile
        await quietly(first)
        objects.before = lambda _name, _path: None
        if left >= 0:
            return False
        for store in (one, other, await open_()):
            with pytest.raises(UnknownRef):
                await store.get(facts.artifact_ref)
            listed = (await store.list()).facts
            assert facts.artifact_ref not in [kept.artifact_ref for kept in listed]
        paths = [path for path in objects.paths() if facts.artifact_ref in path]
        assert paths == [f"records/{facts.artifact_ref}.deleted"]
        return True

    for changes_first in (True, False):
        at = 0
        while await both(at, changes_first=changes_first):
            at += 1
        assert at > 2


async def quietly(step: Step) -> None:
    """Do a step; the artifact may be gone, or its bytes while they are copied."""
    with suppress(UnknownRef, StoreError):
        await step()


async def test_a_new_text_of_a_pinned_artifact_is_kept_too(
    open_: Open, put: Put, objects: Recorded
) -> None:
    store = await open_()
    known = await put(store, None, b"scan")
    known = await store.pin(known.artifact_ref)
    path = store.spool / "new"
    path.write_bytes(b"what was read")
    changed = replace(known, ocr_pages=1)
    await store.replace_text(known.artifact_ref, path, changed, Ranges(), known=known)
    objects.remove(*EXPIRING)
    assert await text_of(await open_(), known.artifact_ref) == "what was read"


async def test_an_artifact_past_its_date_is_unknown_before_the_rules_remove_it(
    open_: Open, put: Put, objects: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await open_(max_age_days=1)
    facts = await put(store, b"text", url="https://example.org/")
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + DAY + 1)
    never = "art_" + "a" * 26
    objects.requests.clear()
    lines: list[str] = []
    for ref in (facts.artifact_ref, never):
        with pytest.raises(UnknownRef) as error:
            await store.get(ref)
        lines.append(str(error.value).replace(ref, "REF"))
    assert lines[0] == lines[1]
    assert objects.names() == ["get", "get"] * 2
    with pytest.raises(UnknownRef):
        await store.get("https://example.org/")
    with pytest.raises(UnknownRef):
        await store.touch(facts.artifact_ref)
    assert await store.gc() == ()
    assert objects.paths("records")


async def test_a_url_whose_bytes_are_lost_is_unknown(
    open_: Open, put: Put, objects: Recorded
) -> None:
    facts = await put(await open_(), b"text", url="https://example.org/")
    objects.remove("blobs")
    store = await open_()
    with pytest.raises(UnknownRef):
        await store.get("https://example.org/")
    reader = await store.open_text(facts.artifact_ref)
    with pytest.raises(StoreError, match="are lost"):
        await reader.read_chars(0, 4)


async def test_a_text_is_opened_once_to_be_indexed_in_many_steps(
    open_: Open, put: Put, objects: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module, name, value in (
        (_search, "INDEX_BYTES", 0),
        (_search, "STEP_SECONDS", 0),  # each step indexes one passage
        (_search, "STEP_PASSAGES", 1),
        (_search, "OPEN_SECONDS", 1e9),
    ):
        monkeypatch.setattr(module, name, value)
    await put(await open_(), b"some words in a line of a paragraph\n\n" * 3_000)
    store = await open_()
    objects.requests.clear()
    while (await store.search("absent", [], 1)).pending:
        pass
    names = objects.names()
    assert names.count("get") < 20
    assert names.count("get_range") < 20


@pytest.mark.parametrize("left", [b"", b"a" * 100_000])
async def test_a_text_that_was_cut_short_in_the_bucket_says_so(
    left: bytes, open_: Open, put: Put, objects: Recorded
) -> None:
    from obstore.exceptions import GenericError

    facts = await put(await open_(), b"a line of text\n" * 20_000)
    for path in objects.paths("blobs"):
        objects.store.put(path, left)

    def refuse(name: str, _: str) -> None:
        if name == "get_range" and not left:
            raise GenericError("status code: 416 Requested Range Not Satisfiable")

    objects.before = refuse
    store = await open_()
    reader = await store.open_text(facts.artifact_ref)
    for read in (
        lambda: reader.read_chars(90_000, 190_000),
        lambda: reader.grep(GrepQuery("line")),
        lambda: store.search("line", [facts.artifact_ref], 1),
    ):
        with pytest.raises(StoreError, match="were altered"):
            await read()


async def test_a_url_whose_record_is_damaged_can_be_fetched_again(
    open_: Open, put: Put, objects: Recorded
) -> None:
    store = await open_()
    earlier, damaged = [await put(store, text, url=URL) for text in (b"earlier", b"damaged")]
    objects.store.put(f"records/{damaged.artifact_ref}.json", b'{"version": 1')
    assert (await store.get(URL)).artifact_ref == earlier.artifact_ref
    objects.store.put(f"records/{earlier.artifact_ref}.json", b'{"version": 2}')
    with pytest.raises(UnknownRef):
        await store.get(URL)
    assert (await put(store, b"anew", url=URL)) == await store.get(URL)


DAMAGE: dict[str, Any] = {
    "a year that is none": {"expires_at": 1e12},
    "no number": {"created_at": float("nan")},
    "no text": {"run": [1]},
    "no key": {"url_entry": 7},
    "no hash": {"raw": {"sha256": "../../etc", "size": 1, "week": "2026-W47"}},
    "no size": {"raw": {"sha256": "a" * 64, "size": "1", "week": "2026-W47"}},
    "no week": {"raw": {"sha256": "a" * 64, "size": 1, "week": ".."}},
}


@pytest.mark.parametrize("case", DAMAGE)
async def test_a_damaged_record_fails_alone(
    case: str, open_: Open, put: Put, objects: Recorded
) -> None:
    kept, damaged = [await put(await open_(), text) for text in (b"a text", b"b text")]
    path = f"records/{damaged.artifact_ref}.json"
    record = json.loads(objects.store.get(path).bytes().to_bytes())
    objects.store.put(path, json.dumps(record | DAMAGE[case]).encode())
    store = await open_()
    assert [facts.artifact_ref for facts in (await store.list()).facts] == [kept.artifact_ref]
    assert [run.artifacts for run in await store.runs()] == [1]
    assert len((await store.search("text", [], 9)).passages) == 1
    assert await store.gc() == ()
    for call in (store.get, store.touch, store.open_text):
        with pytest.raises(StoreError, match="is damaged"):
            await call(damaged.artifact_ref)


async def test_bytes_that_were_lost_are_back_with_the_next_put(
    open_: Open, put: Put, objects: Recorded
) -> None:
    store = await open_(cache_bytes=0)
    lost = await put(store, None, b"bytes" * 20_000, url="https://example.org/")
    objects.remove("blobs")
    with pytest.raises(StoreError, match="are lost"):
        await raw_of(store, lost.artifact_ref)
    await put(store, None, b"bytes" * 20_000, url="https://example.org/")
    for facts in (lost, await store.get("https://example.org/")):
        assert await raw_of(store, facts.artifact_ref) == b"bytes" * 20_000


async def test_replicas_that_make_the_url_key_at_once_find_each_others_artifacts(
    open_: Open, put: Put, objects: Recorded
) -> None:
    one, other = await open_(), await open_()
    late: list[Facts] = []

    async def put_other() -> Facts:
        return await put(other, None, url="https://example.org/other")

    def put_meanwhile(name: str, path: str) -> None:
        if name == "put" and path.startswith("keys/"):
            objects.before = lambda _name, _path: None
            late.append(from_thread.run(put_other))

    objects.before = put_meanwhile  # neither has seen the other's key when it makes its own
    first = await put(one, b"one", url="https://example.org/one")
    assert len(objects.paths("keys")) == 2
    third = await open_()
    for url, facts in (("one", first), ("other", late[0])):
        found = await third.get(f"https://example.org/{url}")
        assert found.artifact_ref == facts.artifact_ref


async def test_tenants_share_the_folders_of_the_rules_and_nothing_else(
    open_: Open, put: Put, objects: Recorded
) -> None:
    acme, other = await open_(tenant="tenants/acme"), await open_(tenant="tenants/other")
    facts = await put(acme, b"text", url="https://example.org/")
    await acme.pin(facts.artifact_ref)
    assert all("tenants/acme/" in path for path in objects.paths())
    assert {"/".join(path.split("/")[:2]) for path in objects.paths()} == {
        "blobs/tenants", "records/tenants", "urls/tenants", "tenants/acme",
    }  # fmt: skip
    for store in (other, await open_()):
        assert (await store.list()).total == 0
        for name in (facts.artifact_ref, "https://example.org/"):
            with pytest.raises(UnknownRef):
                await store.get(name)
    assert (await (await open_(tenant="tenants/acme")).list()).total == 1


async def test_limits_hold_over_replicas(open_: Open, put: Put) -> None:
    one = await open_(max_artifacts=3)
    for n in range(3):
        await put(one, b"one %d" % n)
    other = await open_(max_artifacts=3)
    await put(other, b"other")
    assert (await one.list()).total == 3


async def test_an_artifact_without_text_says_so_in_a_search(open_: Open, put: Put) -> None:
    store = await open_()
    facts = await put(store, None)
    with pytest.raises(NoText):
        await store.search("word", [facts.artifact_ref], 1)


async def test_without_obstore_one_line_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "obstore", None)
    with pytest.raises(StoreError, match=r'pip install "fetchstash\[team\]"'):
        await open_store(StoreLimits(tmp_path, "s3://bucket", run="default"))


async def test_a_url_and_settings_pick_bucket_prefix_and_encryption(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stores = pytest.importorskip("obstore.store", reason="obstore is in the extra team")
    opened: list[dict[str, Any]] = []

    def s3(bucket: str, **options: Any) -> object:
        opened.append({"bucket": bucket, **options})
        return new_objects()

    monkeypatch.setattr(stores, "S3Store", s3)
    settings: Any = {
        "region": "eu-central-1",
        "encryption": "aws:kms:KEY",
        "endpoint": "http://rgw",
    }
    store = await open_store(StoreLimits(tmp_path, "s3://bucket/a/b/tenants/acme", **settings))
    await store.aclose()
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


async def test_a_setting_that_a_bucket_does_not_have_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("obstore.store", reason="obstore is in the extra team")
    with pytest.raises(BadArgument, match=r"store\.encryption is for s3"):
        await open_store(StoreLimits(tmp_path, "gs://bucket", encryption="AES256"))


async def test_two_versions_serve_one_bucket(open_: Open, put: Put, objects: Recorded) -> None:
    newer = await open_()
    refs = [(await put(newer, text)).artifact_ref for text in (b"same format\n", b"next format\n")]
    for ref, version in zip(refs, (1, 2), strict=True):
        path = f"records/{ref}.json"
        record = json.loads(objects.store.get(path).bytes().to_bytes())
        record |= {"version": version, "of_the_next_version": [1]}
        record["facts"]["fact_of_the_next_version"] = "x"
        objects.store.put(path, json.dumps(record).encode())
    older = await open_()
    assert (await older.get(refs[0])).artifact_ref == refs[0]
    with pytest.raises(StoreError, match=r"newer version.*Upgrade this one"):
        await older.get(refs[1])
    await older.touch(refs[0])
    assert len(objects.paths("records")) == 2
