"""Fetching a URL again: a fresh copy is used, a stale one revalidated (RFC 9111)."""

import json
from dataclasses import replace
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from fetchstash.errors import Refused, StoreError, UnknownRef
from fetchstash.render import as_shown
from fetchstash.stash import Artifact, CacheUse, Stash
from tests.loopback import Site
from tests.stash.conftest import OpenStash

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


async def test_a_preview_says_where_a_focus_was_looked_for_in_the_beginning_alone(
    site: Site, stash: Stash
) -> None:
    long = await stash.fetch(site.put("/long.txt", "a line\n" * 20_000, "text/plain"))
    partly = replace(long, excerpt=replace(long.excerpt, partly=True))
    notice = "[Only the beginning of the text could be searched for the focus in time.]"
    assert [notice in as_shown(artifact) for artifact in (long, partly)] == [False, True]


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


async def test_a_copy_that_varies_by_everything_is_never_reused(site: Site, stash: Stash) -> None:
    headers = {"Cache-Control": "max-age=600", "Vary": "*"}
    url = site.put("/a.txt", "one", "text/plain", headers=headers)
    await stash.fetch(url)
    await stash.fetch(url)
    assert site.asked == ["/a.txt"] * 2


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
