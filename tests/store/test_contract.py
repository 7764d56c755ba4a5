"""What any store must do: the one in a folder, and that of a team, over a folder and a bucket."""

import hashlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from fetchstash.errors import Busy, ExpiredRef, NoText, UnknownRef
from fetchstash.store import (
    ArtifactStore,
    Facts,
    GrepQuery,
    Listing,
    SearchResult,
    StoreLimits,
    open_store,
)
from fetchstash.text.ranges import Heading, Preview, Ranges, Table
from tests.store.buckets import empty_place
from tests.store.conftest import Put
from tests.store.contents import raw_of, text_of

Open = Callable[..., Awaitable[ArtifactStore]]

pytestmark = pytest.mark.anyio

FACTS = Facts(
    content_kind="pdf",
    media_type="application/pdf",
    source_url="https://example.org/r.pdf?key=***",
    http_status=200,
    title="A report, Ünïcode 中 😀",
    page_range=(1, 3),
    pages=3,
    outline=(Heading("One", 1, "pages", 1), Heading("Two", 2, "lines", 9)),
    decided_by="magic",
    evidence=("magic: %PDF-", "label: text/html"),
    mismatch=True,
    incomplete="the connection broke",
    text_tokens=12,
)
RANGES = Ranges(
    pages=(0, 10, 20), tables=(Table("Sheet", 2, 5, 3),), preview=Preview("a glimpse", rows_shown=3)
)


@pytest.fixture(params=["local", "team", "bucket"])
async def open_(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Open]:
    """Open a store over what earlier ones of the same test kept."""
    opened: list[ArtifactStore] = []
    with empty_place(request.param) as place:

        async def open_one(**limits: Any) -> ArtifactStore:
            settings = StoreLimits(tmp_path / "store", **place, **limits)
            opened.append(await open_store(settings))
            return opened[-1]

        yield open_one
        for store in opened:
            await store.aclose()


async def test_an_artifact_comes_back_whole_by_reference_and_by_url(open_: Open, put: Put) -> None:
    store = await open_()
    text = "first line\nÜnïcode 😀\n"
    facts = await put(
        store,
        text.encode(),
        b"%PDF-1.7",
        facts=FACTS,
        ranges=RANGES,
        url="https://example.org/r.pdf?key=secret",
    )
    assert await store.get(facts.artifact_ref) == facts
    assert await store.get("https://example.org/r.pdf?key=secret") == facts
    assert await text_of(store, facts.artifact_ref) == text
    assert await raw_of(store, facts.artifact_ref) == b"%PDF-1.7"
    reader = await store.open_text(facts.artifact_ref)
    assert reader.ranges == RANGES
    await reader.aclose()


async def test_the_store_fills_in_its_own_facts_and_leaves_the_others(
    open_: Open, put: Put
) -> None:
    store = await open_(max_age_days=2)
    facts = await put(store, "ä\nb".encode(), b"\x00raw", facts=FACTS)
    assert facts.artifact_ref.startswith("art_")
    assert (facts.size_bytes, facts.sha256) == (4, hashlib.sha256(b"\x00raw").hexdigest())
    assert (facts.extracted_chars, facts.text_bytes, facts.text_lines) == (3, 4, 2)
    assert facts.created_at is not None
    assert facts.expires_at == facts.created_at + timedelta(days=2)
    assert (facts.title, facts.outline, facts.page_range, facts.incomplete) == (
        FACTS.title,
        FACTS.outline,
        (1, 3),
        FACTS.incomplete,
    )


@pytest.mark.parametrize("named", ["", "0" * 64, "../../catalog.db"])
async def test_a_text_may_be_the_raw_file_itself(open_: Open, named: str) -> None:
    store = await open_()
    for text in (b"one\n", b"two \xc3\xa9\n"):
        files = store.spool / "a", store.spool / "b"
        files[0].write_bytes(text)
        files[1].hardlink_to(files[0])
        # A hash of another size is of other bytes.
        facts = await store.put(*files, Facts(sha256=named, size_bytes=3), Ranges())
        assert facts.sha256 == hashlib.sha256(text).hexdigest()
        assert await text_of(store, facts.artifact_ref) == text.decode()
        assert await raw_of(store, facts.artifact_ref) == text
        assert not list(store.spool.iterdir())
    await store.delete(facts.artifact_ref)
    with pytest.raises(UnknownRef):
        await store.open_text(facts.artifact_ref)
    assert [finding for finding in await store.check() if finding.level == "fault"] == []


async def test_files_leave_the_spool(open_: Open, put: Put) -> None:
    store = await open_()
    await put(store, b"text")
    await put(store, None)
    assert not list(store.spool.iterdir())


async def test_a_later_store_finds_what_an_earlier_one_kept(open_: Open, put: Put) -> None:
    first = await open_()
    facts = await put(first, b"text", facts=FACTS)
    await first.aclose()
    second = await open_()
    assert await second.get(facts.artifact_ref) == facts


async def test_the_newest_of_a_url_is_found_and_a_url_that_differs_is_not(
    open_: Open, put: Put
) -> None:
    store = await open_()
    await put(store, b"old", url="https://example.org/?key=1")
    new = await put(store, b"new", url="https://example.org/?key=1")
    await put(store, b"other", url="https://example.org/?key=2")
    assert (await store.get("https://example.org/?key=1")).artifact_ref == new.artifact_ref
    with pytest.raises(UnknownRef):
        await store.get("https://example.org/?key=3")


@pytest.mark.parametrize(
    "spelled", ["HTTPS://Example.org:443/./a%7eb#x", " https://example.org/a~b "]
)
async def test_all_spellings_of_a_url_are_one(open_: Open, put: Put, spelled: str) -> None:
    store = await open_()
    kept = await put(store, b"text", url="https://example.org/a%7Eb")
    other = await put(store, b"other", url="https://example.org/a%2Fb")
    assert (await store.get(spelled)).artifact_ref == kept.artifact_ref
    async with store.open_raw(spelled) as raw:
        assert raw.read_bytes() == b"raw"
    assert (await store.get("https://example.org/a%2fb")).artifact_ref == other.artifact_ref
    assert (await store.get(f" {kept.artifact_ref}")).artifact_ref == kept.artifact_ref


async def test_runs_are_apart_but_a_reference_is_valid_in_each(open_: Open, put: Put) -> None:
    one, other = await open_(run="one"), await open_(run="other")
    facts = await put(one, b"text", url="https://example.org/")
    assert (await other.get(facts.artifact_ref)).artifact_ref == facts.artifact_ref
    assert await other.list() == Listing((), 0)
    assert await other.search("text", (), 5) == SearchResult(())
    with pytest.raises(UnknownRef):
        await other.get("https://example.org/")


async def test_lists_are_pages_newest_first_with_the_count_of_all(open_: Open, put: Put) -> None:
    store = await open_()
    refs = [(await put(store, b"%d" % n)).artifact_ref for n in range(5)]
    page = await store.list(limit=2, offset=1)
    assert ([facts.artifact_ref for facts in page.facts], page.total) == ([refs[3], refs[2]], 5)


async def test_what_was_fetched_again_is_listed_first_and_a_read_moves_nothing(
    open_: Open, put: Put
) -> None:
    store = await open_()
    refs = [(await put(store, b"%d" % n)).artifact_ref for n in range(3)]
    await store.touch(refs[0])
    await store.open_artifact(refs[1])
    added = (await put(store, b"new")).artifact_ref  # records the read, too
    listed = [facts.artifact_ref for facts in (await store.list()).facts]
    assert listed == [added, refs[0], refs[2], refs[1]]


async def test_an_artifact_without_text_has_facts_and_bytes_only(open_: Open, put: Put) -> None:
    store = await open_()
    facts = await put(store, None, b"\x00\x01")
    with pytest.raises(NoText):
        await store.open_text(facts.artifact_ref)
    with pytest.raises(NoText):
        await store.search("word", [facts.artifact_ref], 1)
    assert await store.open_artifact(facts.artifact_ref) == (facts, None)
    assert await raw_of(store, facts.artifact_ref) == b"\x00\x01"


@pytest.mark.parametrize(
    "ref",
    [
        "art_aaaaaaaaaaaaaaaaaaaaaaaaaa",
        "art_",
        "https://example.org/never",
        "",
        "art_\ud800\n'; DROP TABLE artifact",
    ],
)
async def test_a_reference_that_never_existed_is_unknown(ref: str, open_: Open) -> None:
    store = await open_()
    for call in (store.get, store.open_text, store.touch, store.pin, store.delete):
        with pytest.raises(UnknownRef):
            await call(ref)
    with pytest.raises(UnknownRef):
        await raw_of(store, ref)


async def test_a_deleted_artifact_is_unknown_and_an_evicted_one_expired(
    open_: Open, put: Put
) -> None:
    store = await open_(max_artifacts=1)
    deleted = await put(store, b"one")
    await store.delete(deleted.artifact_ref)
    with pytest.raises(UnknownRef):
        await store.get(deleted.artifact_ref)
    pushed_out = await put(store, b"two")
    await put(store, b"three")
    with pytest.raises(ExpiredRef):
        await store.get(pushed_out.artifact_ref)


async def test_the_least_recently_used_goes_first_when_there_are_too_many(
    open_: Open, put: Put
) -> None:
    store = await open_(max_artifacts=3)
    refs = [(await put(store, b"%d" % n)).artifact_ref for n in range(3)]
    await store.touch(refs[0])
    await store.get(refs[1])
    await put(store, b"fourth")
    await put(store, b"fifth")
    kept = {facts.artifact_ref for facts in (await store.list()).facts}
    assert refs[2] not in kept
    assert refs[1] in kept


async def test_bytes_are_bounded_and_the_newest_stays(open_: Open, put: Put) -> None:
    store = await open_(max_total_bytes=2500)
    refs = [(await put(store, None, bytes([n]) * 1000)).artifact_ref for n in range(4)]
    assert [facts.artifact_ref for facts in (await store.list()).facts] == [refs[3], refs[2]]


async def test_limits_hold_for_all_runs_together(open_: Open, put: Put) -> None:
    for n in range(8):
        store = await open_(run=f"run {n}", max_total_bytes=2500, max_artifacts=100)
        await put(store, None, bytes([n]) * 1000)
    kept = [(await (await open_(run=f"run {n}")).list()).total for n in range(8)]
    assert kept == [0, 0, 0, 0, 0, 0, 1, 1]


async def test_a_pin_keeps_it_outside_of_every_limit(open_: Open, put: Put) -> None:
    store = await open_(max_artifacts=2)
    pinned = await put(store, b"pinned")
    assert (await store.pin(pinned.artifact_ref)).pinned
    for n in range(4):
        await put(store, b"%d" % n)
    assert (await store.get(pinned.artifact_ref)).pinned
    assert (await store.list()).total == 3
    await store.pin(pinned.artifact_ref, pinned=False)
    await put(store, b"one more")
    assert (await store.list()).total == 2


async def test_age_is_counted_from_the_last_touch(
    open_: Open, put: Put, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.time()
    store = await open_(max_age_days=7)
    old, touched = await put(store, b"old"), await put(store, b"touched")
    await store.pin((await put(store, b"pinned")).artifact_ref)
    monkeypatch.setattr(time, "time", lambda: now + 5 * 86400)
    assert await (await open_()).gc() == ()
    await (await open_()).touch(touched.artifact_ref)
    monkeypatch.setattr(time, "time", lambda: now + 8 * 86400)
    later = await open_()
    planned = await later.gc(dry_run=True)
    by_age = [(old.artifact_ref, "age")]
    assert [(removed.artifact_ref, removed.reason) for removed in planned] == by_age
    assert (await later.list()).total == 2
    assert await later.gc() == planned
    with pytest.raises(ExpiredRef):
        await later.get(old.artifact_ref)
    assert await text_of(later, touched.artifact_ref) == "touched"


async def test_an_artifact_past_its_date_is_gone_for_readers_before_clean_up_removes_it(
    open_: Open, put: Put, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, url = time.time(), "https://example.org/harbour"
    store = await open_(max_age_days=0.5)
    pinned = await put(store, b"harbour, pinned\n", b"pinned", url=url)
    await store.pin(pinned.artifact_ref)
    over = await put(store, b"harbour, over\n", b"over", url=url)
    kept = await put(await open_(max_age_days=7), b"harbour, kept\n", b"kept")
    assert (await store.get(url)).artifact_ref == over.artifact_ref
    assert (await store.get(over.artifact_ref)).artifact_ref == over.artifact_ref
    monkeypatch.setattr(time, "time", lambda: now + 43_260)
    left = [kept.artifact_ref, pinned.artifact_ref]
    for reader in (store, await open_()):  # one has read it before
        assert [facts.artifact_ref for facts in (await reader.list()).facts] == left
        usage = await reader.usage()
        assert (await reader.list()).total == usage.artifacts == len(left)
        assert usage.bytes == len(b"harbour, pinned\npinned" + b"harbour, kept\nkept")
        assert [run.artifacts for run in await reader.runs()] == [len(left)]
        found = (await reader.search("harbour", (), 9)).passages
        assert {passage.artifact_ref for passage in found} == set(left)
        assert (await reader.get(url)).artifact_ref == pinned.artifact_ref
        for use in (reader.get, reader.open_text, reader.open_artifact, reader.pin):
            with pytest.raises(ExpiredRef):
                await use(over.artifact_ref)
        with pytest.raises(ExpiredRef):
            async with reader.open_raw(over.artifact_ref):
                pass
    assert [item.artifact_ref for item in await store.gc()] == [over.artifact_ref]


async def test_touch_replaces_the_callers_facts_and_keeps_the_stores_own(
    open_: Open, put: Put
) -> None:
    store = await open_()
    facts = await put(store, b"text", facts=FACTS)
    touched = await store.touch(facts.artifact_ref, Facts(etag='"2"', title="Changed"))
    assert touched == await store.get(facts.artifact_ref)
    assert (touched.etag, touched.title) == ('"2"', "Changed")
    assert replace(touched, etag="", title="", expires_at=None) == replace(
        Facts(),
        artifact_ref=facts.artifact_ref,
        path=facts.path,
        size_bytes=3,
        sha256=facts.sha256,
        created_at=facts.created_at,
        extracted_chars=4,
        text_bytes=4,
        text_lines=1,
    )


async def test_artifacts_that_share_bytes_do_not_share_their_fate(open_: Open, put: Put) -> None:
    store = await open_()
    one, other = await put(store, b"same"), await put(store, b"same")
    assert one.artifact_ref != other.artifact_ref
    await store.delete(one.artifact_ref)
    assert await text_of(store, other.artifact_ref) == "same"
    assert await raw_of(store, other.artifact_ref) == b"raw"


async def test_an_open_text_stays_readable_when_its_artifact_goes(open_: Open, put: Put) -> None:
    store = await open_()
    facts = await put(store, b"still here\n" * 20_000)
    reader = await store.open_text(facts.artifact_ref)
    await store.delete(facts.artifact_ref)
    start = await reader.char_of_line(15_000)
    assert await reader.read_chars(start, start + 11) == "still here\n"
    assert (await reader.grep(GrepQuery("still"))).total == 20_000
    await reader.aclose()


async def test_search_ranks_passages_over_the_run_or_over_some(open_: Open, put: Put) -> None:
    store = await open_()
    cats = await put(store, b"cats and dogs\n\nnothing here\n")
    both = await put(store, b"cats, cats and more cats\n")
    await put(store, None)
    best = (await store.search("cats", (), 5)).passages
    assert [passage.artifact_ref for passage in best] == [both.artifact_ref, cats.artifact_ref]
    only = (await store.search("cats", [cats.artifact_ref], 5)).passages
    assert [(passage.artifact_ref, passage.first_line) for passage in only] == [
        (cats.artifact_ref, 1)
    ]
    assert await store.search("giraffe", (), 5) == SearchResult(())


async def test_an_ephemeral_store_takes_its_run_along_and_no_other(open_: Open, put: Put) -> None:
    kept = await put(await open_(), b"kept")
    brief = await open_(run="brief", ephemeral=True)
    gone = await put(brief, b"gone")
    await brief.aclose()
    store = await open_()
    assert (await store.get(kept.artifact_ref)).artifact_ref == kept.artifact_ref
    with pytest.raises((UnknownRef, ExpiredRef)):
        await store.get(gone.artifact_ref)


def spooled(store: ArtifactStore, text: str) -> Path:
    path = store.spool / "new-text"
    path.write_bytes(text.encode())
    return path


async def test_an_artifact_is_opened_with_its_facts_and_its_text_as_they_are_now(
    open_: Open, put: Put
) -> None:
    store = await open_()
    known = await put(store, b"old\n", facts=FACTS, ranges=RANGES, url="https://example.org/")
    ref, seen = known.artifact_ref, [known]
    text, ranges = "old\n", RANGES
    for change in ("nothing", "pin", "touch", "text"):
        if change == "pin":
            await store.pin(ref)
        elif change == "touch":
            await store.touch(ref, replace(seen[-1], etag='"2"'))
        elif change == "text":
            text, ranges = "new\n", Ranges((0,))
            path = spooled(store, text)
            await store.replace_text(ref, path, seen[-1], ranges, known=seen[-1])
        for name in (ref, "https://example.org/"):
            facts, reader = await store.open_artifact(name)
            assert reader
            assert await reader.read_chars(0, 99) == text
            assert reader.ranges == ranges
            assert facts == await store.get(ref)
            await reader.aclose()
        seen.append(facts)
    assert (seen[2].pinned, seen[3].etag, seen[3].pinned) == (True, '"2"', True)
    await store.delete(ref)
    with pytest.raises((UnknownRef, ExpiredRef)):
        await store.open_artifact(ref)


async def test_a_text_that_is_replaced_is_read_from_then_on(open_: Open, put: Put) -> None:
    store = await open_()
    known = await put(store, b"old words\n", facts=FACTS, ranges=RANGES)
    other = await put(store, b"old words\n", facts=FACTS)
    ref = known.artifact_ref
    await store.open_text(ref)
    facts = await store.replace_text(
        ref,
        spooled(store, "new\nwords é\n"),
        replace(known, ocr_pages=1),
        Ranges((0, 4)),
        known=known,
    )
    assert (facts.extracted_chars, facts.text_lines, facts.text_bytes) == (12, 2, 13)
    assert facts.ocr_pages == 1
    assert facts.sha256 == known.sha256
    assert facts == await store.get(ref)
    reader = await store.open_text(ref)
    assert await reader.read_chars(0, 99) == "new\nwords é\n"
    assert reader.ranges.pages == (0, 4)
    await reader.aclose()
    assert await text_of(store, other.artifact_ref) == "old words\n"
    assert [found for found in await store.check() if found.level == "fault"] == []
    assert list(store.spool.glob("new-text")) == []
    assert (await store.search("new", [ref], 1)).passages[0].text.startswith("new")


async def test_an_artifact_without_text_is_given_one(open_: Open, put: Put) -> None:
    store = await open_()
    known = await put(store, None, facts=replace(FACTS, extraction_error="no text layer"))
    facts = replace(known, extraction_error="", ocr_pages=1)
    await store.replace_text(
        known.artifact_ref, spooled(store, "read"), facts, Ranges(), known=known
    )
    assert await text_of(store, known.artifact_ref) == "read"
    assert (await store.get(known.artifact_ref)).extraction_error == ""


async def test_a_text_is_not_replaced_by_one_that_was_made_from_an_earlier_one(
    open_: Open, put: Put
) -> None:
    store = await open_()
    known = await put(store, b"old", facts=FACTS)
    ref, facts = known.artifact_ref, replace(known, ocr_pages=1)
    await store.replace_text(ref, spooled(store, "first"), facts, Ranges(), known=known)
    with pytest.raises(Busy):
        await store.replace_text(ref, spooled(store, "second"), facts, Ranges(), known=known)
    assert await text_of(store, ref) == "first"
    assert list(store.spool.glob("new-text")) == []
    assert await store.gc(dry_run=True) == ()


async def test_the_size_of_a_replaced_text_counts_towards_the_limit(open_: Open, put: Put) -> None:
    store = await open_(max_total_bytes=2_000)
    known = await put(store, b"small", facts=FACTS)
    ref = known.artifact_ref
    facts = replace(known, ocr_pages=1)
    await store.replace_text(ref, spooled(store, "x" * 1_500), facts, Ranges(), known=known)
    await put(store, b"y" * 700, b"z", facts=FACTS)
    with pytest.raises(ExpiredRef):
        await store.get(ref)


async def test_usage_and_runs_follow_every_change(open_: Open, put: Put) -> None:
    """The catalogue's counts are kept by triggers, and agree with the rows."""
    store, other = await open_(run="one"), await open_(run="two")

    async def counted() -> list[int]:
        own, both = await store.usage(own=True), await other.usage()
        return [own.artifacts, own.bytes, both.artifacts, (await store.list()).total]

    known = await put(store, b"text", b"raw", facts=FACTS)
    await put(store, b"more", b"ra")
    await put(other, b"third", b"r")
    assert await counted() == [2, 13, 3, 2]
    changed = replace(known, ocr_pages=1)
    ref = known.artifact_ref
    await store.replace_text(ref, spooled(store, "longer"), changed, Ranges(), known=known)
    await store.pin(ref)
    assert await counted() == [2, 15, 3, 2]
    await store.delete(ref)
    assert await counted() == [1, 6, 2, 1]
    runs = await (await open_(run="*")).runs()
    assert [(run.name, run.artifacts) for run in runs] == [("two", 1), ("one", 1)]
