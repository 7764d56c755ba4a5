"""Rooms of the caller's own: any store that keeps the Protocol runs every tool."""

import hashlib
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from fetchstash.cli.demo.site import make_pdf
from fetchstash.config import load
from fetchstash.fetch import Fetched
from fetchstash.server.tools import tool_functions
from fetchstash.stash import open_stash
from fetchstash.store import ArtifactStore, open_store
from tests.loopback import Site
from tests.stash.own_store import OwnStore

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
    settings = {
        "fetch.allow_hosts": [f"127.0.0.1:{site.port}"],
        "fetch.respect_robots": False,
        "ingest.read_roots": [str(tmp_path)],
        "store.folder": str(tmp_path / "calls"),  # of the log of calls; the store is its own
    }
    url = site.put("/report.pdf", make_pdf(PAGES, title="A report"), "application/pdf")
    (tmp_path / "data.json").write_text('{"depth": {"unit": "m", "value": 12}}')
    async with open_stash(settings, store=store) as stash:
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
        artifact = await stash.get(url)
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

    async def check(self, url: str, final_url: str = "") -> None:
        pass

    async def aclose(self) -> None:
        raise AssertionError("the caller closes what the caller opened")


async def test_a_fetcher_of_the_callers_own_takes_the_place_of_the_network() -> None:
    settings = {"store.url": "memory:"}
    async with open_stash(settings, fetcher=CannedFetcher()) as stash:
        assert (await stash.fetch("https://example.org/")).preview == "Some canned words.\n"
