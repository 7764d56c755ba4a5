"""The index finds what reading everything would find, and may be lost at any time."""

import random
import sqlite3
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from fetchstash.store import (
    ArtifactStore,
    Facts,
    SearchResult,
    StoreLimits,
    _disk,
    _passages,
    _rank,
    _search,
    open_store,
)
from fetchstash.store._search import RunTexts, SearchIndex
from fetchstash.store._text import text_in_memory
from tests.store.conftest import Put

pytestmark = pytest.mark.anyio


class NoThread(threading.Thread):
    """A thread that never gets a processor."""

    def run(self) -> None:
        """Do nothing."""


@pytest.fixture(autouse=True)
def _index_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_search, "LITTLE_BYTES", 0)


def document(needle: str, seed: int) -> bytes:
    chance = random.Random(seed)
    common = ["system", "time", "server", "value", "data", "user", "file", "request"]
    lines = [" ".join(chance.choices(common, k=12)) for _ in range(200)]
    lines.insert(chance.randrange(200), needle)
    return "\n\n".join(lines).encode()


async def search_when_indexed(store: ArtifactStore, query: str, limit: int) -> SearchResult:
    """Search until every text is indexed."""
    with anyio.fail_after(60):
        while (result := await store.search(query, (), limit)).pending:
            pass
    return result


async def fill(store: ArtifactStore, put: Put) -> list[Facts]:
    return [
        await put(store, document(f"needle number {n} about topic{n}, 再試行の上限", n))
        for n in range(6)
    ]


@pytest.mark.parametrize(
    "query",
    [
        "topic3",
        "Topic3 needles",
        "needle number topic3 absent",
        "再試行 topic3",
        '"topic3" OR AND (',
        "topic3*",
    ],
)
async def test_the_passage_is_found_where_it_stands(
    query: str, store: ArtifactStore, put: Put
) -> None:
    kept = await fill(store, put)
    best = (await store.search(query, (), 3)).passages[0]
    assert best.artifact_ref == kept[3].artifact_ref
    lines = Path(kept[3].path or "").read_text(encoding="utf-8").split("\n")
    assert best.text == "\n".join(lines[best.first_line - 1 : best.last_line]).rstrip("\n")
    assert "topic3" in best.text


def in_memory(kept: list[Facts], query: str) -> list[tuple[str, int, str]]:
    """What an index in memory finds in these artifacts."""
    files = {facts.artifact_ref: Path(facts.path or "").read_bytes() for facts in kept}
    texts = RunTexts({ref: ref for ref in reversed(files)})
    found = SearchIndex().search(
        query, texts, lambda ref: text_in_memory(files[ref]), 3, lambda: False, named=True
    )
    return places(found)


def places(result: SearchResult) -> list[tuple[str, int, str]]:
    return [(p.artifact_ref, p.first_line, p.text) for p in result.passages]


@pytest.mark.parametrize("few", [0, 10**6], ids=["all at once", "one by one"])
async def test_every_index_finds_the_same_in_the_same_order(
    few: int, store: ArtifactStore, put: Put, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = await fill(store, put)
    monkeypatch.setattr(_passages, "FEW_TEXTS", few)
    for n in range(6):
        query = f"topic{n} needle"
        assert places(await search_when_indexed(store, query, 3)) == in_memory(kept, query)


async def test_a_text_that_is_indexed_in_many_steps_is_found_as_in_one(
    store: ArtifactStore, put: Put, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = await fill(store, put)
    expected = in_memory(kept, "topic3 needle")
    monkeypatch.setattr(_search, "STEP_SECONDS", 0)
    monkeypatch.setattr(_passages, "STEP_PASSAGES", 1)
    assert places(await search_when_indexed(store, "topic3 needle", 3)) == expected


async def test_a_search_answers_from_indexed_texts_and_counts_the_others(
    store: ArtifactStore, put: Put, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = await fill(store, put)
    monkeypatch.setattr(_search, "BUILD_SECONDS", -1)
    assert await store.search("topic3", (), 1) == SearchResult((), pending=5)
    result = await search_when_indexed(store, "topic3", 1)  # a thread went on
    assert [passage.artifact_ref for passage in result.passages] == [kept[3].artifact_ref]


async def test_a_run_of_many_small_texts_is_indexed_too(
    store: ArtifactStore, put: Put, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = await fill(store, put)
    monkeypatch.setattr(_search, "LITTLE_BYTES", 10**12)
    monkeypatch.setattr(_search, "LITTLE_TEXTS", 5)
    monkeypatch.setattr(_search, "BUILD_SECONDS", -1)
    assert (await store.search("topic3", (), 1)).pending == 5
    result = await search_when_indexed(store, "topic3", 1)
    assert [passage.artifact_ref for passage in result.passages] == [kept[3].artifact_ref]


async def test_each_search_indexes_a_text_though_no_time_is_left_so_that_the_last_finds_all(
    store: ArtifactStore, put: Put, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_search, "BUILD_SECONDS", -1)
    monkeypatch.setattr(_search, "Thread", NoThread)
    monkeypatch.setattr(_rank, "MAX_SECONDS", -1)
    kept = await fill(store, put)
    results = [await store.search("topic0", (), 1) for _ in kept]
    assert [result.pending for result in results] == [5, 4, 3, 2, 1, 0]
    assert [passage.artifact_ref for passage in results[-1].passages] == [kept[0].artifact_ref]


async def test_few_texts_are_read_to_their_end_though_no_time_is_left(
    store: ArtifactStore, put: Put, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_search, "LITTLE_BYTES", 10**12)
    monkeypatch.setattr(_rank, "MAX_SECONDS", -1)
    kept = await fill(store, put)
    result = await store.search("topic0", (), 1)
    assert [passage.artifact_ref for passage in result.passages] == [kept[0].artifact_ref]
    assert result.pending == 0


async def test_a_search_sees_what_came_and_went_since_the_last(
    store: ArtifactStore, put: Put
) -> None:
    kept = await fill(store, put)
    await search_when_indexed(store, "topic3", 1)
    await store.delete(kept[-1].artifact_ref)
    again = await put(store, document("needle number 7 about topic7", 7))
    result = await search_when_indexed(store, "topic7", 1)
    assert [passage.artifact_ref for passage in result.passages] == [again.artifact_ref]
    assert not (await search_when_indexed(store, "topic5", 1)).passages


async def test_a_search_does_not_wait_for_another_that_builds_the_index(
    store: ArtifactStore, limits: StoreLimits, put: Put
) -> None:
    await fill(store, put)
    with _disk.locked(limits.folder / "search-lock"):
        assert (await store.search("topic3", (), 1)).pending == 6
    assert (await search_when_indexed(store, "topic3", 1)).passages


async def test_common_words_are_left_out_where_too_many_passages_would_be_ranked(
    store: ArtifactStore, put: Put, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = await fill(store, put)
    monkeypatch.setattr(_passages, "MAX_RANKED", 3)
    passages = (await search_when_indexed(store, "system absent topic3 value", 20)).passages
    assert [passage.artifact_ref for passage in passages] == [kept[3].artifact_ref]


async def test_a_search_is_no_use_of_the_artifacts_it_reads(limits: StoreLimits, put: Put) -> None:
    store = await open_store(replace(limits, max_artifacts=6))
    kept = await fill(store, put)
    await store.get(kept[0].artifact_ref)
    await search_when_indexed(store, "needle", 6)
    await put(store, b"one more")
    listed = {facts.artifact_ref for facts in (await store.list()).facts}
    assert {facts.artifact_ref for facts in kept} - listed == {kept[1].artifact_ref}
    await store.aclose()


@pytest.mark.parametrize("query", ["", "?!", "absent"])
async def test_words_that_do_not_occur_give_no_passage(
    query: str, store: ArtifactStore, put: Put
) -> None:
    await fill(store, put)
    assert (await store.search(query, (), 3)).passages == ()


async def test_no_word_of_a_deleted_text_outlives_the_next_gc(
    store: ArtifactStore, limits: StoreLimits, put: Put
) -> None:
    facts = await put(store, b"the word xylophone")
    await store.search("xylophone", (), 1)
    assert b"xylophon" in (limits.folder / "search.db").read_bytes()
    await store.delete(facts.artifact_ref)
    await store.gc()
    assert not (limits.folder / "search.db").exists()


async def test_the_index_is_private_and_holds_no_text(
    store: ArtifactStore, limits: StoreLimits, put: Put
) -> None:
    await put(store, b"the words of a sentence")
    await store.search("sentence", (), 1)
    assert (limits.folder / "search.db").stat().st_mode & 0o077 == 0
    assert b"words of a sentence" not in (limits.folder / "search.db").read_bytes()


@pytest.mark.parametrize("damage", ["gone", "no database", "another database"])
async def test_an_index_that_is_lost_or_damaged_is_built_again(
    damage: str, store: ArtifactStore, limits: StoreLimits, put: Put
) -> None:
    kept = await fill(store, put)
    index = limits.folder / "search.db"
    await store.search("topic1", (), 1)
    index.unlink()
    if damage == "no database":
        index.write_bytes(b"no database" * 1000)
    elif damage == "another database":
        with sqlite3.connect(index) as db:
            db.execute("CREATE TABLE other (value)")
        db.close()
    for _ in range(2):
        assert (await store.search("topic1", (), 1)).passages[0].artifact_ref == kept[
            1
        ].artifact_ref


async def test_an_index_that_has_all_texts_is_not_listed_by_each_search(
    store: ArtifactStore, limits: StoreLimits, put: Put, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect, statements = sqlite3.connect, list[str]()

    def traced(*arguments: Any, **options: Any) -> sqlite3.Connection:
        db: sqlite3.Connection = connect(*arguments, **options)
        db.set_trace_callback(statements.append)
        return db

    kept = await fill(store, put)
    await search_when_indexed(store, "topic1", 1)
    await store.search("topic1", (), 1)
    monkeypatch.setattr(sqlite3, "connect", traced)
    await store.search("topic1", (), 1)
    assert any("words_of" in statement for statement in statements)
    assert not any("SELECT sha256 FROM text" in statement for statement in statements)
    other = await open_store(replace(limits, run="other"))  # makes the index anew
    (limits.folder / "search.db").unlink()
    await put(other, document("needle about topic9", 9))
    await search_when_indexed(other, "topic9", 1)
    await other.aclose()
    (passage,) = (await search_when_indexed(store, "topic1", 1)).passages
    assert passage.artifact_ref == kept[1].artifact_ref


async def test_texts_of_another_run_are_not_found(
    store: ArtifactStore, limits: StoreLimits, put: Put
) -> None:
    other = await open_store(StoreLimits(limits.folder, run="other"))
    await put(other, b"a secret topic")
    own = await put(store, b"an open topic")
    await other.search("topic", (), 5)
    assert [passage.artifact_ref for passage in (await store.search("topic", (), 5)).passages] == [
        own.artifact_ref
    ]
    await other.aclose()


@pytest.mark.parametrize("index_bytes", [0, 10**12], ids=["index", "reading"])
async def test_one_altered_text_does_not_spoil_the_search(
    index_bytes: int, store: ArtifactStore, put: Put, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_search, "LITTLE_BYTES", index_bytes)
    kept = await fill(store, put)
    Path(kept[0].path or "").write_bytes(b"altered")
    assert (await store.search("topic4", (), 1)).passages[0].artifact_ref == kept[4].artifact_ref


def test_a_search_that_was_cancelled_leaves_an_index_in_memory_as_it_was() -> None:
    first, second = (
        b"\n\n".join(document(f"needle{n}", seed) for seed in range(40)) for n in (1, 2)
    )
    index, texts = SearchIndex(), {"1": first, "2": second}

    def search(sha256: str, query: str, *, is_cancelled: bool) -> SearchResult:
        wanted = RunTexts({sha256: sha256}, len(texts[sha256]))
        return index.search(
            query,
            wanted,
            lambda ref: text_in_memory(texts[ref]),
            3,
            lambda: is_cancelled,
            named=True,
        )

    search("1", "needle1 system", is_cancelled=False)
    assert search("1", "needle1 system", is_cancelled=True).pending  # it was interrupted
    assert "needle2" in search("2", "needle2 system", is_cancelled=False).passages[0].text
