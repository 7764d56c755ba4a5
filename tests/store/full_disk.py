"""Fill the disk of a store, as a program of its own: python full_disk.py FOLDER.

What is acknowledged stays readable, every failure is a StoreError, and deleting works. SIGBUS would
end the program.
"""

import os
import re
import shutil
import sqlite3
import sys
from pathlib import Path
from typing import Any

import anyio

from fetchstash.errors import StoreError
from fetchstash.store import ArtifactStore, Facts, GrepQuery, StoreLimits, open_objects, open_store
from fetchstash.text.ranges import Ranges

CHECKPOINT = re.compile(r"(wal_autocheckpoint = )\d+")
connect = sqlite3.connect


def connect_eager(
    *place: Any, factory: type[sqlite3.Connection] = sqlite3.Connection, **options: Any
) -> sqlite3.Connection:
    """Connect to a catalogue with a checkpoint every ten pages, which meets the full disk too."""

    class Eager(factory):  # type: ignore[misc, valid-type]
        def execute(self, sql: str, *values: Any) -> Any:
            return super().execute(CHECKPOINT.sub(r"\g<1>10", sql), *values)

    return connect(*place, factory=Eager, **options)


async def put(store: ArtifactStore, size: int) -> str | None:
    """Put one artifact; None if the disk has no room for its files."""
    raw, text = store.spool / "raw", store.spool / "text"
    try:
        raw.write_bytes(os.urandom(size))
        text.write_bytes(b"some words\n" * 500)
    except OSError:  # the fetch itself met the full disk
        raw.unlink(missing_ok=True)
        text.unlink(missing_ok=True)
        return None
    return (await store.put(raw, text, Facts(), Ranges())).artifact_ref


async def read(store: ArtifactStore, refs: list[str]) -> None:
    """Read everything in every way."""
    assert (await store.list(limit=10_000)).total == len(refs)
    for ref in refs:
        assert (await store.get(ref)).artifact_ref == ref
        async with store.open_raw(ref) as path:
            assert path.read_bytes()
        reader = await store.open_text(ref)
        assert (await reader.grep(GrepQuery("words"))).total == reader.lines
        await reader.aclose()
    assert (await store.search("words", (), 3)).passages


def check_full(error: StoreError) -> None:
    """Raise the error again unless it says that the disk is full."""
    if "full" not in error.what:
        raise error


def fill(folder: Path) -> None:
    """Leave no room for a single byte."""
    for size in (2**20, 4096, 1):
        try:
            with (folder / f"junk-{size}").open("wb", buffering=0) as junk:
                while True:
                    junk.write(bytes(size))
        except OSError:
            continue
    os.sync()


async def main(folder: Path) -> None:
    sqlite3.connect = connect_eager  # type: ignore[assignment]
    limits = StoreLimits(folder / "store", max_total_bytes=2**30)
    store = await open_store(limits)
    refs: list[str] = []
    refusals = 0
    size = shutil.disk_usage(folder).free // 30
    for _ in range(60):
        try:
            ref = await put(store, size)
        except StoreError as error:
            check_full(error)
            refusals += 1
            ref = None
        if ref:
            refs.append(ref)
        else:
            size //= 2
        if refusals > 3:
            break
    assert refusals, "the disk never was full"
    await read(store, refs)
    fill(folder)
    await read(store, refs)
    objects = await open_objects(limits)
    assert await objects.failing() == "disk_full"
    try:
        await put(store, 10)
    except StoreError as error:
        check_full(error)
    for _ in range(8):
        await store.delete(refs.pop())
    await read(store, refs)
    assert await store.gc() == ()
    await store.aclose()
    fill(folder)
    again = await open_store(limits)
    await read(again, refs)
    await again.delete(refs.pop())
    await again.aclose()
    for junk in folder.glob("junk-*"):
        junk.unlink()
    os.sync()
    assert await objects.failing() == ""
    await objects.aclose()
    last = await open_store(limits)
    await read(last, refs)
    assert await put(last, 1000)
    assert not [finding for finding in await last.check() if finding.level == "fault"]
    await last.aclose()
    sys.stdout.write(f"{len(refs)} kept\n")


if __name__ == "__main__":
    anyio.run(main, Path(sys.argv[1]))
