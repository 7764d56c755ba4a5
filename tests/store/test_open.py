"""store.url picks the store."""

import errno
import gc
import os
import sqlite3
from pathlib import Path

import pytest

from fetchstash.config import load
from fetchstash.errors import BadArgument, StoreError
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


@pytest.mark.anyio
@pytest.mark.parametrize("why", ["under a file", "read-only"])
async def test_an_ephemeral_run_has_a_temporary_folder_where_it_may_not_write_and_the_log_says_so(
    tmp_path: Path, why: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "file" / "store" if why == "under a file" else tmp_path / "store"
    (tmp_path / "file").touch()
    made = Path.mkdir

    def refused(path: Path, mode: int = 0o777, **options: bool) -> None:
        if path.is_relative_to(tmp_path) and why == "read-only":
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))
        made(path, mode, **options)

    monkeypatch.setattr(Path, "mkdir", refused)
    store = await open_store(StoreLimits(folder, ephemeral=True))
    await put_into(store, b"text")
    assert not store.spool.is_relative_to(tmp_path)
    await store.aclose()
    (record,) = [record for record in caplog.records if record.name == "fetchstash.store"]
    assert record.levelname == "WARNING"
    assert record.getMessage().startswith("a temporary folder keeps this run: The store")
    assert str(folder) in record.getMessage()
    with pytest.raises(StoreError, match=r"cannot be made|may not be read or written"):
        await open_store(StoreLimits(folder, ephemeral=True, run="named"))


@pytest.mark.anyio
@pytest.mark.parametrize("fault", ["damaged", "newer fetchstash", "is not a folder"])
async def test_an_ephemeral_run_hides_no_other_fault_of_the_folder(
    limits: StoreLimits, fault: str
) -> None:
    if fault == "is not a folder":
        limits.folder.touch()
    else:
        await (await open_store(limits)).aclose()
    catalogue = limits.folder / "catalog.db"
    if fault == "damaged":
        catalogue.write_bytes(b"no catalogue" * 999)
    elif fault == "newer fetchstash":
        with sqlite3.connect(catalogue) as db:
            db.execute("PRAGMA user_version = 99")
        db.close()
    with pytest.raises(StoreError, match=fault):
        await open_store(StoreLimits(limits.folder, ephemeral=True))
