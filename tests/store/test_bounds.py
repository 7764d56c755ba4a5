"""What a store keeps in bounds. The bounds are set low here, so that little reaches them."""

import random
from dataclasses import replace

import pytest

from fetchstash.errors import ExpiredRef, UnknownRef
from fetchstash.store import (
    Facts,
    GrepQuery,
    StoreLimits,
    _catalog,
    _passages,
    _reader,
    _rows,
    open_store,
)
from tests.store.conftest import OpenText, Put
from tests.store.test_grep import lines, matching
from tests.store.test_rank import haystack, rank

pytestmark = [pytest.mark.anyio, pytest.mark.whole]


async def test_the_store_remembers_a_bounded_number_of_expired_references(
    limits: StoreLimits, put: Put, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_rows, "MAX_EXPIRED", 3)
    store = await open_store(replace(limits, max_artifacts=1))
    refs = [(await put(store, b"%d" % n)).artifact_ref for n in range(7)]
    for ref in refs[:3]:
        with pytest.raises(UnknownRef):
            await store.get(ref)
    for ref in refs[3:6]:
        with pytest.raises(ExpiredRef):
            await store.get(ref)
    await store.aclose()


async def test_the_write_ahead_log_stays_small(
    limits: StoreLimits, put: Put, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_catalog, "CHECKPOINT_PAGES", 30)
    store = await open_store(limits)
    for n in range(40):
        await put(store, b"%d" % n, facts=Facts(structure_info="x" * 5000))
    assert (limits.folder / "catalog.db-wal").stat().st_size < 300_000
    await store.aclose()


def test_a_search_reads_a_bounded_number_of_passages_and_still_finds_the_best(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = haystack("a server with a needle", paragraphs=2000) + "the needle of a server\n"
    whole = rank(text, "needle server", 5)
    monkeypatch.setattr(_passages, "CANDIDATES", 3)
    ranked = rank(text, "needle server", 5)
    assert 1 < len(ranked) <= 3  # all others hold "server" alone, which says nothing here
    assert [p.first_line for p in ranked] == [p.first_line for p in whole[: len(ranked)]]


@pytest.mark.parametrize(
    "pattern",
    [
        "a",
        "a+b",
        "^b",
        "a$",
        "^$",
        "x*",
        "[^a]b",
        r"\ba",
        "c.*c",
        r"\Aab",
        r"b\z",
        "€",
        "^.{9,12}$",
    ],
)
async def test_pieces_and_cut_lines_make_no_difference(
    pattern: str, open_text: OpenText, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_reader, "WINDOW", 7)
    monkeypatch.setattr(_reader, "PIECE", 64)
    chance = random.Random(3)
    pieces = chance.choices(["a", "b", "c ", "€", "\n", "\n", "ab", "c" * 30], k=400)
    text = f"{''.join(pieces)}{'c' * 300}ab{'c' * 200}\nb"
    reader = await open_text(text.encode())
    matches = await reader.grep(GrepQuery(pattern, max_matches=10_000, context=0))
    # \A and \z are the text's own beginning and end, as RE2 has it, not the line's
    at_the_ends = {
        r"\Aab": [1] if text.startswith("ab") else [],
        r"b\z": [reader.lines] if text.endswith("b") else [],
    }
    expected = at_the_ends[pattern] if pattern in at_the_ends else matching(pattern, text)
    # A line that is longer than a window has one for each place.
    assert list(dict.fromkeys(line.number for line in lines(matches))) == expected
