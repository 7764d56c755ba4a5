"""What a Stash over a bucket asks of it."""

from pathlib import Path

import pytest

from fetchstash.ranges import Ranges
from fetchstash.stash import open_stash
from fetchstash.store import Facts, StoreLimits
from fetchstash.store._bucket_store import BucketStore
from tests.store.buckets import bucket_of, new_objects

pytestmark = pytest.mark.anyio

LINES = 300_000


@pytest.mark.parametrize("first", [1, 150_000, LINES - 50])
async def test_a_slice_asks_for_the_record_and_one_range(tmp_path: Path, first: int) -> None:
    objects = new_objects()
    limits = StoreLimits(tmp_path / "one", "s3://bucket", run="default")
    store = await BucketStore.open(limits, bucket_of(objects))
    raw, text = store.spool / "raw", store.spool / "text"
    raw.write_bytes(b"raw")
    text.write_bytes(b"".join(b"line %d\n" % (n + 1) for n in range(LINES)))
    facts = await store.put(raw, text, Facts(content_kind="text"), Ranges())
    await store.aclose()
    other = StoreLimits(tmp_path / "other", "s3://bucket", run="default")
    store = await BucketStore.open(other, bucket_of(objects))
    async with open_stash({}, store=store) as stash:
        for end in (first + 49, None):
            objects.requests.clear()
            part = await stash.slice(facts.artifact_ref, start=first, end=end, max_chars=5_000)
            assert part.text.startswith(f"line {first}\n")
            (_, _, _), (name, _, size) = objects.requests
            assert (name, size <= 128 * 2**10) == ("get_range", True)
    await store.aclose()
