"""A fetcher that may go to loopback."""

from collections.abc import AsyncGenerator
from typing import Any

import pytest

from fetchstash.fetch import FetchLimits, HttpFetcher
from tests.fetch.sending import Make


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
