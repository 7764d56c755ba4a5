"""A Stash in a folder of its own, and a way to put a text with known parts into it."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from fetchstash.config import load
from fetchstash.stash import Stash, open_stash as open_with
from fetchstash.store import Facts
from fetchstash.text.ranges import Ranges
from tests.loopback import Site
from tests.public import fetcher_of, proxy_to
from tests.store.conftest import put_into

Put = Callable[..., Awaitable[str]]
OpenStash = Callable[..., Any]
ROOMS = {"extractor", "page_reader", "renderer"}


@pytest.fixture
def open_stash(site: Site, store_settings: dict[str, str]) -> OpenStash:
    """Return a function that opens a Stash on the test's site.

    Arguments are settings, or rooms of the caller's own.
    """

    @asynccontextmanager
    async def opened(**settings: Any) -> AsyncGenerator[Stash]:
        own = {name: settings.pop(name) for name in ROOMS & settings.keys()}
        values = site.settings(**store_settings, **settings)
        async with open_with(values, **own) as stash:
            yield stash

    return opened


@pytest.fixture
def open_public(site: Site, store_settings: dict[str, str]) -> Generator[OpenStash]:
    """Return a function that opens a Stash for which the test's site is a public one."""
    with proxy_to(site) as proxy:

        @asynccontextmanager
        async def opened(**settings: Any) -> AsyncGenerator[Stash]:
            values = {
                "fetch.proxy": proxy,
                "fetch.respect_robots": False,
                **store_settings,
                **{name.replace("__", "."): value for name, value in settings.items()},
            }
            fetcher = fetcher_of(load(values).fetch)
            async with open_with(values, fetcher=fetcher) as stash:
                yield stash
            await fetcher.aclose()

        yield opened


@pytest.fixture
async def stash(open_stash: OpenStash) -> AsyncGenerator[Stash]:
    """Open a Stash for one test."""
    async with open_stash() as it:
        yield it


@pytest.fixture
async def public(open_public: OpenStash) -> AsyncGenerator[Stash]:
    """Open a Stash for one test, for which the test's site is a public one."""
    async with open_public() as it:
        yield it


@pytest.fixture
def put(stash: Stash) -> Put:
    """Return a function that keeps a text with ranges of its own and returns its reference."""

    async def keep(
        text: str | None, ranges: Ranges | None = None, *, raw: bytes = b"raw", **facts: Any
    ) -> str:
        words = None if text is None else text.encode()
        return (await put_into(stash.store, words, raw, Facts(**facts), ranges)).artifact_ref

    return keep
