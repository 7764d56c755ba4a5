"""A durable put against a plain program that promises the same.

python -P bench/store_put.py [--repeat 40] [--at FOLDER]

All of it writes the same two files, raw and text.

bare   each file is written and fsynced
named  each is also renamed and its folder fsynced: it survives a crash under its name
plain  a program of a few lines that promises what a put does: when it returns, both files are found
       again by a name with their facts, an alteration of either can be noticed, and a copy of the
       facts stands outside the catalogue. So it also hashes both files and counts the text, writes
       the facts to a file (a put does not sync it either), and commits them as a row of SQLite. It
       has no index of URLs or runs, no lock of its own, no limits and no retention.
put    by way of the spool, and in the catalogue

On ext4 without a journal, making a file takes longer the more inodes of its group were freed in the
last minutes (recently_deleted in Linux's fs/ext4/ialloc.c). Where tests or an earlier run have just
deleted thousands of files, measure in a new folder directly under / (--at).
"""

import hashlib
import json
import os
import sqlite3
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median

import anyio

from bench._run import load
from fetchstash.store import ArtifactStore, Facts, StoreLimits, open_store
from fetchstash.text.ranges import Ranges
from scripts.drive.programs import options

WARM_UP = 350  # puts until the catalogues' logs have their size
Write = Callable[[str, bytes, bytes], None]
SIZES = {"10 KB": 10_000, "100 KB": 100_000, "1 MB": 1_000_000, "10 MB": 10_000_000}


def write(path: Path, data: bytes, *, sync: bool) -> None:
    with path.open("wb") as file:
        file.write(data)
        if sync:
            file.flush()
            os.fsync(file.fileno())


def bare(folder: Path, name: str, raw: bytes, text: bytes) -> None:
    """Write both files and fsync them."""
    for kind, data in (("raw", raw), ("text", text)):
        write(folder / f"{name}.{kind}", data, sync=True)


def named(folder: Path, name: str, raw: bytes, text: bytes) -> None:
    """Write both files, fsync them, rename them, and fsync the folders that they are in."""
    for kind, data in (("raw", raw), ("text", text)):
        write(folder / f"{name}.tmp", data, sync=True)
        (folder / f"{name}.tmp").rename(folder / kind / name)
        descriptor = os.open(folder / kind, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)


class Plain:
    """A plain store: two folders of files, one of facts, and a catalogue."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        for kind in ("raw", "text", "facts"):
            (folder / kind).mkdir()
        self._db = sqlite3.connect(folder / "plain.db", isolation_level=None)
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = FULL")
        self._db.execute("CREATE TABLE artifact (name TEXT PRIMARY KEY, facts TEXT NOT NULL)")

    def put(self, name: str, raw: bytes, text: bytes) -> None:
        """Keep both files and their facts."""
        measured = {
            "sha256": hashlib.sha256(raw).hexdigest(),
            "size_bytes": len(raw),
            "text_sha256": hashlib.sha256(text).hexdigest(),
            "text_bytes": len(text),
            "extracted_chars": len(text.decode()),
            "text_lines": text.count(b"\n"),
            "created_at": time.time(),
        }
        facts = json.dumps(measured)
        named(self._folder, name, raw, text)
        write(self._folder / "facts" / name, facts.encode(), sync=False)
        self._db.execute("INSERT INTO artifact VALUES (?, ?)", (name, facts))

    def close(self) -> None:
        """Close the catalogue."""
        self._db.close()


async def put(store: ArtifactStore, raw: bytes, text: bytes) -> str:
    """Put one artifact by way of the spool, and return its reference."""
    name = os.urandom(8).hex()
    raw_path, text_path = store.spool / f"{name}.raw", store.spool / f"{name}.text"
    write(raw_path, raw, sync=False)
    write(text_path, text, sync=False)
    return (await store.put(raw_path, text_path, Facts(), Ranges())).artifact_ref


async def against_plain(folder: Path, repeat: int) -> None:
    store = await open_store(
        StoreLimits(folder / "store", max_total_bytes=2**40, max_artifacts=10**6)
    )
    plain = Plain(folder)
    for n in range(WARM_UP):
        await put(store, b"%d" % n, b"%d" % n)
        plain.put(f"warm-{n}", b"", b"")
    ways: dict[str, Write] = {
        "bare": partial(bare, folder),
        "named": partial(named, folder),
        "plain": plain.put,
    }
    print("p50 in ms        put     bare   ratio    named   ratio    plain   ratio")
    for name, size in SIZES.items():
        taken: dict[str, list[float]] = {"put": [], "bare": [], "named": [], "plain": []}
        for n in range(max(repeat * 10**6 // max(size, 10**6), 5)):
            raw = os.urandom(16) * (size // 32)
            text = b"%d " % n + b"some words of text\n" * (size // 38)
            for way, write_both in ways.items():
                began = time.perf_counter()
                write_both(f"{size}-{n}", raw, text)
                taken[way].append(time.perf_counter() - began)
            began = time.perf_counter()
            await put(store, raw, text)
            taken["put"].append(time.perf_counter() - began)
        p50 = {way: median(seconds) * 1000 for way, seconds in taken.items()}
        ratios = [f"{p50[way]:9.2f}{p50['put'] / p50[way]:8.2f}" for way in ways]
        print(f"{name:12}{p50['put']:8.2f}{''.join(ratios)}")
    plain.close()
    await store.aclose()


def main() -> None:
    args = options(__doc__, repeat=40, at=Path(tempfile.gettempdir()))
    print(load())
    with tempfile.TemporaryDirectory(dir=args.at) as folder:
        anyio.run(against_plain, Path(folder), args.repeat)


if __name__ == "__main__":
    main()
