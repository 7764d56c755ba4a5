"""A store in a folder of its own, and ways to put text into it."""

import secrets
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fetchstash.store import (
    ArtifactStore,
    Facts,
    StoreLimits,
    TextReader,
    View,
    open_store,
    person_run,
    store_of_tenant,
)
from fetchstash.text.ranges import Ranges

# What tests share stands in modules beside them. At the end of the path: an installed fetchstash
# goes before the checkout's.
sys.path.append(str(Path(__file__).parents[2]))

from tests.store.buckets import Recorded, every_bucket_is, new_objects
from tests.store.postgres import server

Put = Callable[..., Awaitable[Facts]]
OpenText = Callable[[bytes], Awaitable[TextReader]]


async def put_into(
    store: ArtifactStore,
    text: bytes | None,
    raw: bytes = b"raw",
    facts: Facts | None = None,
    ranges: Ranges | None = None,
    url: str = "",
) -> Facts:
    """Put bytes by way of files in the spool, as Stash does."""
    number = secrets.token_hex(8)
    raw_path = store.spool / f"raw-{number}"
    raw_path.write_bytes(raw)
    text_path = None
    if text is not None:
        text_path = store.spool / f"text-{number}"
        text_path.write_bytes(text)
    return await store.put(raw_path, text_path, facts or Facts(), ranges or Ranges(), url=url)


async def keep_as(
    limits: StoreLimits, tenant: str, person: str, title: str, *, pinned: bool = False, **more: Any
) -> None:
    """Keep a text as a person of a tenant of a service, its title where none is given."""
    own = person_run(person)
    whole = await open_store(store_of_tenant(limits, tenant))
    store = whole.seen_from(View(own, own, own))
    text = more.pop("text", f"{title}\n".encode())
    kept = await put_into(store, text, facts=Facts(title=title), **more)
    if pinned:
        await store.pin(kept.artifact_ref)
    await whole.aclose()


@pytest.fixture
def limits(tmp_path: Path) -> StoreLimits:
    return StoreLimits(tmp_path / "store")


@pytest.fixture
async def store(limits: StoreLimits) -> AsyncIterator[ArtifactStore]:
    opened = await open_store(limits)
    yield opened
    await opened.aclose()


@pytest.fixture
def put() -> Put:
    return put_into


@pytest.fixture
async def open_text(store: ArtifactStore) -> AsyncIterator[OpenText]:
    readers: list[TextReader] = []

    async def put_and_open(text: bytes) -> TextReader:
        facts = await put_into(store, text)
        readers.append(await store.open_text(facts.artifact_ref))
        return readers[-1]

    yield put_and_open
    for reader in readers:
        await reader.aclose()


@pytest.fixture
def catalog() -> str:
    """Return the address of an empty database."""
    return server().new_database()


@pytest.fixture
def objects() -> Iterator[Recorded]:
    """Return what lies in the bucket of the test, whatever its URL."""
    objects = new_objects()
    with every_bucket_is(objects):
        yield objects


Open = Callable[..., Awaitable[Any]]


@pytest.fixture
async def open_team(catalog: str, objects: Recorded, tmp_path: Path) -> AsyncIterator[Open]:
    """Return a function that opens a replica with a cache of its own, or that of ``machine``."""
    assert objects is not None  # every bucket is this one
    opened: list[ArtifactStore] = []

    async def open_one(
        machine: str = "", tenant: str = "", url: str = "s3://bucket/prefix", **limits: Any
    ) -> ArtifactStore:
        folder = tmp_path / (machine or f"machine-{len(opened)}")
        settings = StoreLimits(folder, url, run="default", catalog=catalog, **limits)
        opened.append(await open_store(store_of_tenant(settings, tenant) if tenant else settings))
        return opened[-1]

    yield open_one
    for store in opened:
        await store.aclose()
