"""What changed: the earlier text stays, and a diff by passage names the lines of both."""

import random
from collections.abc import Sequence

import pytest

from fetchstash.errors import NoText
from fetchstash.render import as_shown
from fetchstash.stash import Stash
from fetchstash.stash._changes import MOST_LINES, changes, printed
from tests.loopback import Site
from tests.stash.conftest import Put

NUMBERS = [str(n) for n in range(1, 9)]


def told(old: Sequence[str], new: Sequence[str]) -> list[str]:
    return "".join(map(str, changes("\n".join(old), "\n".join(new)))).splitlines()


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("abc", "abc", []),
        ("abc", "aXc", ["-- line 2 changed", "-2:b", "+2:X"]),
        ("abc", "ac", ["-- line 2 gone", "-2:b"]),
        ("ac", "abc", ["-- line 2 new", "+2:b"]),
        ("", "ab", ["-- lines 1 to 2 new", "+1:a", "+2:b"]),
        ("abcdef", "defabc", ["-- lines 1 to 3 moved to lines 4 to 6: a"]),
        ("xaxbx", "xaxcx", ["-- line 4 changed", "-4:b", "+4:c"]),
        (["a", "", "b"], ["a", "b", "", ""], []),
        (
            [*NUMBERS, "moved"],
            ["moved", *NUMBERS[:4], "new", *NUMBERS[5:]],
            ["-- line 9 moved to line 1: moved", "-- line 5 became line 6", "-5:5", "+6:new"],
        ),
    ],
    ids=["none", "one", "gone", "new", "from nothing", "moved", "repeated", "blank", "several"],
)
def test_passages_are_paired_and_numbered(
    old: Sequence[str], new: Sequence[str], expected: list[str]
) -> None:
    assert told(old, new) == expected


def test_of_a_long_passage_the_part_that_differs_is_shown() -> None:
    words = [f"word{n}" for n in range(2_000)]
    old, new = " ".join(words), " ".join([*words[:1_000], "other", *words[1_001:]])
    title, gone, come = told([old], [new])
    assert title == "-- line 1 changed"
    assert "word1000" in gone
    assert "other" in come
    assert max(len(gone), len(come)) < 520


@pytest.mark.long
@pytest.mark.parametrize("kind", ["unique", "shuffled", "repeated", "one line"])
def test_hostile_texts_are_compared_by_their_beginnings_and_always_alike(kind: str) -> None:
    lines = [f"{n:x} some words to make it longer" for n in range(600_000)]  # 20 MB
    mixed = lines[:MOST_LINES]
    random.Random(1).shuffle(mixed)
    old, new = {
        "unique": ("\n".join(lines), "\n".join(f"{line}!" for line in lines)),
        "shuffled": ("\n".join(lines), "\n".join(mixed)),
        "repeated": ("a\nb\n" * 5_000_000, "b\nb\na\n" * 3_000_000),
        "one line": ("x" * 20_000_000, "x" * 19_999_999),
    }[kind]
    old, new = old[:4_000_000], new[:4_000_000]
    text = printed("art_old", old, new)
    assert "first 4,000,000 characters and 50,000 lines." in text.split("\n")[0]
    assert text == printed("art_old", old, new)


@pytest.mark.anyio
@pytest.mark.in_process
async def test_a_url_fetched_again_names_the_earlier_text_and_shows_what_changed(
    site: Site, stash: Stash
) -> None:
    def put(*paragraphs: str, nonce: int = 0) -> str:
        text = "".join(f"<p>{p}, and some words more to be a paragraph.</p>" for p in paragraphs)
        return site.put("/a.html", f"<meta name=n content={nonce}><main><h1>T</h1>{text}</main>")

    url = put("one", "two", "three")
    first = await stash.fetch(url)
    assert not first.facts.earlier_ref
    put("one", "TWO", "three")
    second = await stash.fetch(url)
    assert second.facts.earlier_ref == first.ref
    assert second.facts.earlier_at
    assert first.facts.validated_at
    assert second.facts.earlier_at.replace(microsecond=0) == first.facts.validated_at.replace(
        microsecond=0
    )
    assert second.facts.changed_passages == 1
    assert f'artifact_slice(artifact_ref="{second.ref}", path="changes")]' in as_shown(second)
    text = (await second.slice(path="changes")).text
    assert text.split("\n", 1)[1] == (
        "-- line 5 changed\n"
        "-5:two, and some words more to be a paragraph.\n"
        "+5:TWO, and some words more to be a paragraph.\n"
    )
    part = await second.slice(path="changes", start=2, end=2)
    assert part.text == "-- line 5 changed\n"
    put("one", "TWO", "three", nonce=1)
    third = await stash.fetch(url)
    assert third.ref != second.ref
    assert third.facts.changed_passages == 0
    assert "[Its text is still that of " in as_shown(third)
    assert 'path="changes")' not in as_shown(third)
    same = (await third.slice(path="changes")).text
    assert same.startswith(f"Nothing changed since {second.ref}, kept ")
    assert same.count("\n") == 1
    other = (await third.slice(path=f"changes/{first.ref}")).text
    assert "+5:TWO" in other


@pytest.mark.anyio
@pytest.mark.in_process
async def test_a_text_is_compared_with_any_other_and_bytes_with_none(
    put: Put, stash: Stash
) -> None:
    one, two, none = await put("a\nb\n"), await put("a\nc\n"), await put(None)
    assert "-2:b\n+2:c\n" in (await stash.slice(two, path=f"changes/{one}")).text
    with pytest.raises(NoText):
        await stash.slice(two, path=f"changes/{none}")
