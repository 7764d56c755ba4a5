"""A fetcher that may go to loopback."""

from collections.abc import AsyncGenerator

import pytest

from fetchstash.fetch import FetchLimits, HttpFetcher
from tests.fetch.sending import Make


@pytest.fixture
async def fetcher() -> AsyncGenerator[Make]:
    """Make fetchers that may go to loopback, and close them in the end."""
    made: list[HttpFetcher] = []

    def make(**limits: object) -> HttpFetcher:
        made.append(
            HttpFetcher(
                FetchLimits(**({"allow_hosts": ("127.0.0.1",), "respect_robots": False} | limits))
            )
        )  # type: ignore[arg-type]
        return made[-1]

    yield make
    for one in made:
        await one.aclose()
