"""store.url picks the store."""

import gc
from pathlib import Path

import pytest

from fetchstash.config import load
from fetchstash.errors import BadArgument
from fetchstash.store import StoreLimits, check_store, open_store, store_folder
from tests.store.conftest import put_into


@pytest.mark.parametrize(
    ("url", "folder"),
    [
        ("", "/default"),
        ("file:", "/default"),
        ("file:/a/b", "/a/b"),
        ("file:///a/b%20c", "/a/b c"),
        ("file://localhost/a", "/a"),
        ("file:relative", "relative"),
        ("memory:", None),
    ],
)
def test_a_url_names_a_folder_or_memory(url: str, folder: str | None) -> None:
    named = store_folder(StoreLimits(Path("/default"), url))
    assert named == (None if folder is None else Path(folder))


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("s3://key:secret@bucket/prefix", "more than a bucket and a prefix"),
        ("gs://bucket/../other", "store.url is"),
        ("az:container", "store.url is"),
        ("file://elsewhere/a", "another machine"),
        ("ftp://host/", "is no store"),
        ("/a/b", "is no store"),
    ],
)
def test_any_other_url_is_refused_in_one_line(url: str, message: str) -> None:
    with pytest.raises(BadArgument, match=message) as raised:
        load({"store.url": url})
    assert "\n" not in raised.value.line()


def test_the_folder_of_a_url_is_the_setting_store_folder() -> None:
    assert load({"store.url": "file:/a"}).store.folder == Path("/a")
    with pytest.raises(BadArgument, match="Both"):
        load({"store.url": "file:/a", "store.folder": "/b"})


@pytest.mark.anyio
async def test_a_store_in_memory_leaves_no_file(tmp_path: Path) -> None:
    limits = StoreLimits(tmp_path / "store", "memory:")
    store, forgotten = await open_store(limits), await open_store(limits)
    await put_into(store, b"text")
    spools = store.spool, forgotten.spool
    assert all(spool.is_dir() for spool in spools)
    await store.aclose()
    del forgotten  # nobody has to close one
    gc.collect()
    assert not any(spool.parent.exists() for spool in spools)
    assert list(tmp_path.iterdir()) == []
    assert await check_store(limits) == ()
