"""Fetching a URL again: a fresh copy is used, a stale one revalidated (RFC 9111)."""

import json
import random
from collections.abc import Sequence
from dataclasses import replace
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from fetchstash.errors import NoText, Refused, StoreError, UnknownRef
from fetchstash.render import as_shown
from fetchstash.stash import Artifact, CacheUse, Stash
from fetchstash.stash._changes import MOST_LINES, changes, printed
from tests.loopback import Site
from tests.stash.conftest import OpenStash, Put

pytestmark = [pytest.mark.anyio, pytest.mark.in_process]


async def test_a_fresh_copy_is_used_without_a_request_and_with_a_notice(
    site: Site, stash: Stash
) -> None:
    url = site.put("/a.txt", "one", "text/plain", headers={"Cache-Control": "max-age=600"})
    first = await stash.fetch(url)
    again = await stash.fetch(url)
    assert site.asked == ["/a.txt"]
    assert again.ref == first.ref
    assert again.cache
    assert again.cache.age_seconds is not None
    assert first.cache is None
    assert again == replace(first, facts=again.facts, cache=again.cache)
    line, again_line = (as_shown(value).split("\n")[0] for value in (first, again))
    assert again_line == line.replace(", 3 bytes.", ", 3 bytes, from the cache.")
    assert again_line != line
    await stash.fetch(url, refresh=True)
    assert site.asked == ["/a.txt"] * 2


async def test_a_stale_copy_is_asked_after_and_kept_where_the_server_says_304(
    site: Site, open_stash: OpenStash, tmp_path: Path
) -> None:
    url = site.put(
        "/a.txt", "one", "text/plain", headers={"ETag": '"v1"', "Cache-Control": "no-cache"}
    )
    log = tmp_path / "events.jsonl"
    async with open_stash(telemetry__event_log=str(log)) as stash:
        first = await stash.fetch(url)
        site.put("/a.txt", b"", None, status=304, headers={"ETag": '"v1"'})
        again = await stash.fetch(url)
    events = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    outcomes = [event["attributes"]["outcome"] for event in events if event["name"] == "cache"]
    assert outcomes == ["miss", "not_modified"]
    assert again.preview == "one"
    assert again.cache == CacheUse(age_seconds=None)
    assert again.ref == first.ref


@pytest.mark.parametrize("damage", ["gone", "altered"])
async def test_a_fresh_copy_whose_file_is_lost_is_fetched_again(
    damage: str, site: Site, stash: Stash
) -> None:
    url = site.put("/a.txt", "one", "text/plain", headers={"Cache-Control": "max-age=600"})
    first = (await stash.fetch(url)).facts
    path = Path(str(first.path))
    path.unlink() if damage == "gone" else path.write_text("altered", encoding="utf-8")
    with pytest.raises(StoreError, match="Fetch"):
        await stash.read(first.artifact_ref)
    assert (await stash.fetch(url)).preview == "one"
    assert (await stash.read(first.artifact_ref)).text == "one"
    assert site.asked == ["/a.txt"] * 2


async def test_a_preview_says_what_it_owes_to_the_cache(site: Site, stash: Stash) -> None:
    url = site.put("/a.txt", "words " * 100, "text/plain", headers={"Cache-Control": "max-age=600"})
    await stash.fetch(url, max_chars=300)
    assert "[From the cache: kept copy, " in as_shown(await stash.fetch(url, max_chars=300), 300)


async def test_one_url_in_many_calls_at_once_is_one_artifact(site: Site, stash: Stash) -> None:
    url = site.put("/a.txt", "one", "text/plain")
    results = await stash.fetch_many([url] * 5)
    assert len({result.ref for result in results if isinstance(result, Artifact)}) == 1
    assert (await stash.list()).total == 1


async def test_the_same_bytes_stay_one_artifact_and_others_become_a_new_one(
    site: Site, stash: Stash
) -> None:
    url = site.put("/a.txt", "one", "text/plain")
    first = (await stash.fetch(url)).ref
    assert (await stash.fetch(url)).ref == first
    site.put("/a.txt", "two", "text/plain")
    second = await stash.fetch(url)
    assert second.preview == "two"
    assert second.ref != first
    assert (await stash.read(first)).text == "one"
    assert (await stash.read(url)).text == "two"


async def test_no_store_goes_when_the_run_ends(site: Site, open_stash: OpenStash) -> None:
    url = site.put("/a.txt", "secret", "text/plain", headers={"Cache-Control": "no-store"})
    async with open_stash() as stash:
        ref = (await stash.fetch(url)).ref
        assert (await stash.read(ref)).text == "secret"
    async with open_stash() as stash:
        with pytest.raises(UnknownRef):
            await stash.read(ref)


async def test_a_secret_in_a_url_is_not_shown_and_two_secrets_share_nothing(
    site: Site, stash: Stash, tmp_path: Path
) -> None:
    urls = [site.put(f"/a.txt?token=s3cr3t-{n}", f"of {n}", "text/plain") for n in (1, 2)]
    artifacts = [await stash.fetch(url) for url in urls]
    for n, (url, artifact) in enumerate(zip(urls, artifacts, strict=True), start=1):
        assert "s3cr3t" not in as_shown(artifact)
        assert "s3cr3t" not in str(artifact.facts)
        assert (await stash.read(url)).text == f"of {n}"
    assert not any(
        b"s3cr3t" in file.read_bytes() for file in (tmp_path / "store").rglob("*") if file.is_file()
    )


@pytest.mark.parametrize(
    "settings",
    [
        {"fetch__deny_domains": ["127.0.0.1"]},
        {"fetch__deny_domains": ["localhost"]},
        {"fetch__allow_hosts": []},
    ],
    ids=["denied", "denied where it leads", "no longer allowed"],
)
async def test_a_fresh_copy_of_a_url_that_may_not_be_fetched_now_is_refused(
    settings: dict[str, object], site: Site, open_stash: OpenStash
) -> None:
    site.put("/b.txt", "one", "text/plain", headers={"Cache-Control": "max-age=600"})
    there = {"Location": f"http://localhost:{site.port}/b.txt"}
    url = site.put("/a.txt", status=302, headers=there)
    hosts = [f"127.0.0.1:{site.port}", f"localhost:{site.port}"]
    async with open_stash(fetch__allow_hosts=hosts) as stash:
        await stash.fetch(url)
    async with open_stash(**{"fetch__allow_hosts": hosts, **settings}) as stash:
        with pytest.raises(Refused):
            await stash.fetch(url)
    assert site.asked.count("/b.txt") == 1


async def test_a_validator_is_not_sent_to_the_server_that_a_url_redirects_to_now(
    site: Site, stash: Stash
) -> None:
    seen: dict[str, str | None] = {}

    def script(handler: BaseHTTPRequestHandler) -> None:
        seen[handler.path] = handler.headers["If-None-Match"]
        handler.connection.sendall(
            b'HTTP/1.1 200 OK\r\nETag: "v1"\r\nContent-Length: 3\r\nConnection: close\r\n\r\none'
        )
        handler.close_connection = True

    first, second = (site.put(path, script=script) for path in ("/first", "/second"))
    url = site.put("/a", status=302, headers={"Location": first})
    await stash.fetch(url)
    await stash.fetch(url)
    assert seen == {"/first": '"v1"'}
    site.put("/a", status=302, headers={"Location": second})
    await stash.fetch(url)
    assert seen == {"/first": '"v1"', "/second": None}


# --- What changed: the earlier text stays, and a diff by passage names the lines of both.

NUMBERS = [str(n) for n in range(1, 9)]


def told(old: Sequence[str], new: Sequence[str]) -> list[str]:
    return "".join(map(str, changes("\n".join(old), "\n".join(new)))).splitlines()


@pytest.mark.whole
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
