"""Fetchers that may go to loopback."""

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from fetchstash.fetch import Cached, Fetched, FetchLimits, HttpFetcher, Progress
from tests.fetch.sending import Fetch, Make


@pytest.fixture
async def fetcher() -> AsyncGenerator[Make]:
    """Make fetchers that may go to loopback, one for each limits, and close them at the end."""
    fetchers: dict[str, HttpFetcher] = {}

    def make(**limits: Any) -> HttpFetcher:
        defaults: dict[str, Any] = {"allow_hosts": ("127.0.0.1",), "respect_robots": False}
        limits = defaults | limits
        return fetchers.setdefault(repr(limits), HttpFetcher(FetchLimits(**limits)))

    yield make
    for fetcher in fetchers.values():
        await fetcher.aclose()


@pytest.fixture
def fetch(fetcher: Make, tmp_path: Path) -> Fetch:
    """Fetch a URL into ``tmp_path``, under these limits."""

    async def fetch(
        url: str,
        *,
        cached: Cached | None = None,
        progress: Progress | None = None,
        after: Fetched | None = None,
        seconds: float | None = None,
        within: str = "",
        **limits: Any,
    ) -> Fetched:
        return await fetcher(**limits).fetch(
            url,
            tmp_path,
            cached=cached,
            progress=progress,
            after=after,
            seconds=seconds,
            within=within,
        )

    return fetch
