"""Fetchers that may go to loopback."""

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from fetchstash.fetch import Cached, Fetched, FetchLimits, HttpFetcher, Progress
from tests.fetch.sending import Fetch, Make


@pytest.fixture
async def fetcher() -> AsyncGenerator[Make]:
    """Make fetchers that may go to loopback, and close them at the end."""
    fetchers: list[HttpFetcher] = []

    def make(**limits: Any) -> HttpFetcher:
        defaults: dict[str, Any] = {"allow_hosts": ("127.0.0.1",), "respect_robots": False}
        fetchers.append(HttpFetcher(FetchLimits(**(defaults | limits))))
        return fetchers[-1]

    yield make
    for fetcher in fetchers:
        await fetcher.aclose()


@pytest.fixture
def fetch(fetcher: Make, tmp_path: Path) -> Fetch:
    """Fetch a URL into ``tmp_path``, by a fetcher of its own with these limits."""

    async def fetch(
        url: str,
        *,
        cached: Cached | None = None,
        progress: Progress | None = None,
        seconds: float | None = None,
        **limits: Any,
    ) -> Fetched:
        http = fetcher(**limits)
        return await http.fetch(url, tmp_path, cached=cached, progress=progress, seconds=seconds)

    return fetch
