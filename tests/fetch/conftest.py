"""A fetcher that may go to loopback."""

from collections.abc import AsyncGenerator
from typing import Any

import pytest

from fetchstash.fetch import FetchLimits, HttpFetcher
from tests.fetch.sending import Make


@pytest.fixture
async def fetcher() -> AsyncGenerator[Make]:
    """Make fetchers that may go to loopback, and close them in the end."""
    made: list[HttpFetcher] = []

    def make(**limits: Any) -> HttpFetcher:
        defaults: dict[str, Any] = {"allow_hosts": ("127.0.0.1",), "respect_robots": False}
        made.append(HttpFetcher(FetchLimits(**(defaults | limits))))
        return made[-1]

    yield make
    for one in made:
        await one.aclose()
