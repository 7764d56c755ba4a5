"""A bucket in memory, for tests: what lies over obstore is the same for every bucket."""

import pytest

from fetchstash.store._bucket import Bucket


def new_bucket() -> Bucket:
    """Return an empty bucket; the test is skipped where obstore is not installed."""
    stores = pytest.importorskip("obstore.store", reason="obstore is in the extra team")
    return Bucket(stores.MemoryStore())
