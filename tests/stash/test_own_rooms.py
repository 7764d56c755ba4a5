"""Rooms of the caller's own: any store that keeps the Protocol runs every tool."""

import hashlib
import re
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from fetchstash.cli.demo.site import make_pdf
from fetchstash.config import load
from fetchstash.fetch import Fetched
from fetchstash.handlers import Extraction, ExtractLimits
from fetchstash.render import Host
from fetchstash.server.tools import answer, tool_functions, tool_specs
from fetchstash.stash import Stash, open_stash
from fetchstash.store import ArtifactStore, Facts, StoreLimits, open_store
from tests.in_process import InProcess
from tests.loopback import Site
from tests.stash.conftest import OpenStash
from tests.stash.own_store import OwnStore
from tests.store.buckets import Recorded, every_bucket_is, new_objects
from tests.store.conftest import put_into
from tests.store.postgres import server

pytestmark = [pytest.mark.anyio, pytest.mark.in_process]

PAGES = [f"Chapter {n}. The number of this page is {n * 7}." for n in range(1, 41)]


@pytest.fixture(params=["folder", "memory", "own"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> ArtifactStore:
    """Open each of the stores."""
    if request.param == "own":
        return OwnStore(tmp_path)
    settings: dict[str, Any] = {"store.folder": str(tmp_path / "store")}
    if request.param == "memory":
        settings = {"store.url": "memory:"}
    return await open_store(load(settings).store)


async def test_every_tool_runs_on_any_store(
    store: ArtifactStore, site: Site, tmp_path: Path
) -> None:
    # The folder is that of the log of calls; the store is its own.
    places = {"ingest.read_roots": [str(tmp_path)], "store.folder": str(tmp_path / "calls")}
    url = site.put("/report.pdf", make_pdf(PAGES, title="A report"), "application/pdf")
    (tmp_path / "data.json").write_text('{"depth": {"unit": "m", "value": 12}}')
    async with open_stash(site.settings(**places), store=store) as stash:
        tools: dict[str, Any] = {tool.__name__: tool for tool in tool_functions(stash)}
        fetched = await tools.pop("fetch_content")(url=url, maxChars=500)
        match = re.search(r"art_[a-z2-7]{26}", fetched)
        assert match
        ref = match[0]
        assert "[Preview: 500 of" in fetched
        assert "page is 77." in await tools["artifact_grep"](artifact_ref=ref, pattern=r"\b77\b")
        pages = {"artifact_ref": ref, "unit": "pages", "start": 11, "end": 11}
        assert "page is 77." in await tools.pop("artifact_slice")(**pages)
        assert "page is 77." in await tools.pop("artifact_search")(query="chapter 77")
        assert "page is 7." in await tools.pop("get_search_content")(artifact_ref=ref)
        assert "pages: 40" in await tools.pop("artifact_info")(artifact_ref=ref)
        added = await tools.pop("stash_file")(path=str(tmp_path / "data.json"))
        assert '"value": 12' in added
        matches = await tools.pop("artifact_grep")(artifact_ref=ref, pattern="(")
        assert matches.startswith("[bad_pattern] ")
        assert tools == {}
        artifact = await stash.get(f" {url.replace('http', 'HTTP')}#page")
        assert artifact.ref == ref
        assert (await artifact.picture(page=2)).media_type.startswith("image/")
        async with artifact.raw() as file:
            assert file.read_bytes() == site.pages["/report.pdf"].body
        await stash.export(ref, tmp_path / "copy.txt")
        assert (tmp_path / "copy.txt").read_text() == await artifact.text()
        await stash.delete(ref)
        assert (await stash.list()).total == 1
        assert all(finding.level == "note" for finding in await stash.check())
    await store.aclose()


class CannedFetcher:
    """A Fetcher that knows one page."""

    async def fetch(self, url: str, folder: Path, **_: Any) -> Fetched:
        body = b"<title>Canned</title><p>Some canned words.</p>"
        path = folder / "canned"
        path.write_bytes(body)
        sha256 = hashlib.sha256(body).hexdigest()
        now, headers = datetime.now(UTC), {"content-type": "text/html"}
        return Fetched(path, url, url, url, url, 200, headers, len(body), sha256, now, "canned")

    async def site_rules(self, url: str) -> tuple[float, Sequence[str]]:  # noqa: ARG002
        return 0.0, ()

    async def check(self, url: str, final_url: str = "") -> None:
        pass

    async def aclose(self) -> None:
        raise AssertionError("the caller closes what the caller opened")


async def test_a_fetcher_of_the_callers_own_takes_the_place_of_the_network() -> None:
    settings = {"store.url": "memory:"}
    async with open_stash(settings, fetcher=CannedFetcher()) as stash:
        assert (await stash.fetch("https://example.org/")).preview == "Some canned words.\n"


# --- What a Stash over a bucket asks of it.

LINES = 300_000


@pytest.fixture
def objects() -> Iterator[Recorded]:
    objects = new_objects()
    with every_bucket_is(objects):
        yield objects


@asynccontextmanager
async def elsewhere(folder: Path, text: bytes) -> AsyncGenerator[tuple[Stash, str]]:
    """Put a text into a bucket; open a Stash of another machine on it, and yield its reference."""
    catalog = server().new_database()
    one, other = (
        StoreLimits(folder / name, "s3://bucket", run="default", catalog=catalog) for name in "12"
    )
    store = await open_store(one)
    facts = await put_into(store, text, facts=Facts(content_kind="text"))
    await store.aclose()
    store = await open_store(other)
    async with open_stash({"store.folder": str(folder)}, store=store) as stash:
        yield stash, facts.artifact_ref
    await store.aclose()


@pytest.mark.long
@pytest.mark.parametrize("first", [1, 150_000, LINES - 50])
async def test_the_first_slice_fetches_a_text_and_the_next_asks_for_nothing(
    tmp_path: Path, objects: Recorded, first: int
) -> None:
    text = b"".join(b"line %d\n" % (n + 1) for n in range(LINES))
    async with elsewhere(tmp_path, text) as (stash, ref):
        for end, requests in ((first + 49, ["get_range"]), (None, [])):
            objects.requests.clear()
            part = await stash.slice(ref, start=first, end=end, max_chars=5_000)
            assert part.text.startswith(f"line {first}\n")
            assert objects.names() == requests


async def test_artifact_info_asks_the_bucket_for_nothing(tmp_path: Path, objects: Recorded) -> None:
    async with elsewhere(tmp_path, b"text") as (stash, ref):
        specs = {spec.name: spec for spec in tool_specs(stash.settings)}
        objects.requests.clear()
        view = await answer(stash, Host(), specs["artifact_info"], {"artifact_ref": ref})
    assert ref in view.text
    assert objects.names() == []


# --- One deadline covers a fetch and its extraction.


class Recorder(InProcess):
    """Remembers how much time an extraction was given, and how often it was to prepare for one."""

    seconds: float | None = None
    prepared = 0

    def prepare(self) -> None:
        self.prepared += 1

    async def extract(
        self, *arguments: Any, seconds: float | None = None, **more: Any
    ) -> Extraction:
        self.seconds = seconds
        return await super().extract(*arguments, seconds=seconds, **more)


async def test_an_extraction_has_what_the_fetch_left_of_the_deadline(
    site: Site, open_stash: OpenStash
) -> None:
    pool = Recorder(ExtractLimits())
    async with open_stash(fetch__deadline_seconds=30, extractor=pool) as stash:
        await stash.fetch(site.put("/a.txt", "one", "text/plain"))
    assert pool.seconds is not None
    assert 1 <= pool.seconds <= 30


async def test_a_worker_is_started_while_a_new_page_comes_and_not_for_one_that_may_be_unchanged(
    site: Site, open_stash: OpenStash
) -> None:
    pool = Recorder(ExtractLimits())
    url = site.put("/a.txt", "one", "text/plain", headers={"ETag": '"1"'})
    async with open_stash(extractor=pool) as stash:
        for _ in range(2):
            await stash.fetch(url, refresh=True)
    assert pool.prepared == 1
