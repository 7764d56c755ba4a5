"""One deadline covers a fetch and its extraction."""

from typing import Any

import pytest

from fetchstash.handlers import Extraction, ExtractLimits, WorkerPool
from tests.loopback import Site
from tests.stash.conftest import OpenStash

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
    site: Site, open_stash: OpenStash
) -> None:
    pool = Recorder(ExtractLimits())
    async with open_stash(fetch__deadline_seconds=30, extractor=pool) as stash:
        await stash.fetch(site.put("/a.txt", "one", "text/plain"))
    await pool.aclose()
    assert pool.seconds is not None
    assert 1 <= pool.seconds <= 30
