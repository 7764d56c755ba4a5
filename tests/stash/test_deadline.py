"""One deadline covers a fetch and its extraction."""

from pathlib import Path
from typing import Any

import pytest

from fetchstash.handlers import Extraction, ExtractLimits, WorkerPool
from fetchstash.stash import open_stash
from tests.loopback import Site

pytestmark = [pytest.mark.anyio, pytest.mark.slow]


class Recorder(WorkerPool):
    """A pool that remembers how much time an extraction was given."""

    seconds: float | None = None

    async def extract(
        self, *arguments: Any, seconds: float | None = None, **more: Any
    ) -> Extraction:
        self.seconds = seconds
        return await super().extract(*arguments, seconds=seconds, **more)


async def test_an_extraction_has_what_the_fetch_left_of_the_deadline(
    site: Site, tmp_path: Path
) -> None:
    pool = Recorder(ExtractLimits())
    settings = {
        "fetch.allow_hosts": [f"127.0.0.1:{site.port}"],
        "fetch.respect_robots": False,
        "fetch.deadline_seconds": 30,
        "store.folder": str(tmp_path / "store"),
    }
    async with open_stash(settings, extractor=pool) as stash:
        await stash.fetch(site.put("/a.txt", "one", "text/plain"))
    await pool.aclose()
    assert pool.seconds is not None
    assert 1 <= pool.seconds <= 30
