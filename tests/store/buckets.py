"""A bucket for tests: in memory, or the real one that scripts/ci replicas names."""

import os
import secrets
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import pytest

from tests.store.postgres import server


@dataclass
class Recorded:
    """An object store of obstore's, and the requests that it gets.

    ``before`` and ``after`` are called with each request's name and path, and may raise what
    obstore raises: the request is then lost, or only its answer.
    """

    store: Any
    requests: list[tuple[str, str, int]] = field(default_factory=list[tuple[str, str, int]])
    before: Callable[[str, str], None] = lambda _name, _path: None
    after: Callable[[str, str], None] = lambda _name, _path: None

    def __getattr__(self, name: str) -> Any:
        work = getattr(self.store, name)

        def request(path: str, *arguments: Any, **options: Any) -> Any:
            size = options["end"] - options["start"] if name == "get_range" else 0
            self.requests.append((name, path, size))
            self.before(name, path)
            answer = work(path, *arguments, **options)
            self.after(name, path)
            return answer

        return request

    def names(self) -> list[str]:
        """Return the names of the requests so far, and forget them."""
        names = [name for name, _, _ in self.requests]
        self.requests.clear()
        return names

    def paths(self, folder: str = "") -> list[str]:
        """Return what lies below a folder."""
        pages = self.store.list(folder or None)
        return sorted(meta["path"] for page in pages for meta in page)

    def remove(self, *folders: str) -> None:
        """Remove all below these folders, as a lifecycle rule does."""
        for folder in folders:
            for path in self.paths(folder):
                self.store.delete(path)


def new_objects() -> Recorded:
    """Return an empty store; the test is skipped where obstore is not installed."""
    stores = pytest.importorskip("obstore.store", reason="obstore is in the extra team")
    return Recorded(stores.MemoryStore())


@contextmanager
def every_bucket_is(objects: Recorded) -> Generator[None]:
    """Keep these objects in whatever bucket is opened meanwhile."""
    stores = pytest.importorskip("obstore.store", reason="obstore is in the extra team")

    def opened(*_: object, **__: object) -> Recorded:
        return objects

    with mock.patch.multiple(stores, S3Store=opened, GCSStore=opened, AzureStore=opened):
        yield


@contextmanager
def empty_place(kind: str) -> Generator[dict[str, Any]]:
    """Give the settings of an empty store in "memory", in its folder, or of a team.

    The bytes of a "team" are in its folder, those of a "bucket" in a bucket.
    """
    if kind not in ("team", "bucket"):
        yield {"url": "memory:"} if kind == "memory" else {}
        return
    catalog = server().new_database()
    if kind == "team":
        yield {"catalog": catalog}
        return
    if url := os.environ.get("FETCHSTASH_TEST_BUCKET"):
        endpoint = os.environ.get("FETCHSTASH_TEST_ENDPOINT", "")
        place = f"{url}/{secrets.token_hex(8)}"
        yield {"url": place, "endpoint": endpoint, "catalog": catalog}
        return
    with every_bucket_is(new_objects()):
        yield {"url": "s3://bucket", "catalog": catalog}
