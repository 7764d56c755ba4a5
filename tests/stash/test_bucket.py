"""What a Stash over a bucket asks of it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from fetchstash.render import Host
from fetchstash.server.tools import answer, tool_specs
from fetchstash.stash import open_stash
from fetchstash.store import Facts, StoreLimits, open_store
from fetchstash.text.ranges import Ranges
from tests.store.buckets import Recorded, every_bucket_is, new_objects
from tests.store.postgres import server

pytestmark = [pytest.mark.anyio, pytest.mark.in_process]

LINES = 300_000


@pytest.fixture
def objects() -> Iterator[Recorded]:
    objects = new_objects()
    with every_bucket_is(objects):
        yield objects


@pytest.mark.long
@pytest.mark.parametrize("first", [1, 150_000, LINES - 50])
async def test_the_first_slice_fetches_a_text_and_the_next_asks_for_nothing(
    tmp_path: Path, objects: Recorded, first: int
) -> None:
    catalog = server().new_database()
    limits = StoreLimits(tmp_path / "one", "s3://bucket", run="default", catalog=catalog)
    store = await open_store(limits)
    raw, text = store.spool / "raw", store.spool / "text"
    raw.write_bytes(b"raw")
    text.write_bytes(b"".join(b"line %d\n" % (n + 1) for n in range(LINES)))
    facts = await store.put(raw, text, Facts(content_kind="text"), Ranges())
    await store.aclose()
    other = StoreLimits(tmp_path / "other", "s3://bucket", run="default", catalog=catalog)
    store = await open_store(other)
    async with open_stash({"store.folder": str(tmp_path)}, store=store) as stash:
        for end, requests in ((first + 49, ["get_range"]), (None, [])):
            objects.requests.clear()
            part = await stash.slice(facts.artifact_ref, start=first, end=end, max_chars=5_000)
            assert part.text.startswith(f"line {first}\n")
            assert objects.names() == requests
    await store.aclose()


async def test_artifact_info_asks_the_bucket_for_nothing(tmp_path: Path, objects: Recorded) -> None:
    catalog = server().new_database()
    one, other = (
        StoreLimits(tmp_path / n, "s3://bucket", run="default", catalog=catalog) for n in "12"
    )
    store = await open_store(one)
    raw, text = store.spool / "raw", store.spool / "text"
    raw.write_bytes(b"raw")
    text.write_bytes(b"text")
    ref = (await store.put(raw, text, Facts(content_kind="text"), Ranges())).artifact_ref
    await store.aclose()
    store = await open_store(other)
    async with open_stash({"store.folder": str(tmp_path)}, store=store) as stash:
        specs = {spec.name: spec for spec in tool_specs(stash.settings)}
        objects.requests.clear()
        view = await answer(stash, Host(), specs["artifact_info"], {"artifact_ref": ref})
    assert ref in view.text
    assert objects.names() == []
    await store.aclose()
