"""A durable put against a plain program that promises the same; grep beside ripgrep; search.

    python -P bench/store.py [--puts 40] [--mb 100] [--warm-up 350] [--artifacts 1000]

put writes two files, raw and text, three ways:

bare   each file is written and fsynced
plain  a program of a few lines that promises what a put does: when it returns, both files are found
       again by a name with their facts, an alteration of either can be noticed, and a copy of the
       facts stands outside the catalogue. So it also hashes both files and counts the text, writes
       the facts to a file (a put does not sync it either), and commits them as a row of SQLite. It
       has no index of URLs or runs, no lock of its own, no limits and no retention.
put    by way of the spool, and in the catalogue

--warm-up puts come before, until the logs of the catalogues have their size. grep is that of
Debian's ripgrep on one thread over the same file, if it is installed; search is over so many new
--artifacts. Both have --mb of text.
"""

import hashlib
import json
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from argparse import Namespace
from functools import partial
from pathlib import Path
from statistics import median

import anyio

from bench._run import load
from fetchstash.store import ArtifactStore, GrepQuery, StoreLimits, open_store
from scripts.drive.programs import options
from scripts.torture.kept import put

SIZES = {"10 KB": 10_000, "100 KB": 100_000, "1 MB": 1_000_000, "10 MB": 10_000_000}
WORDS = (
    "system",
    "time",
    "value",
    "data",
    "user",
    "request",
    "server",
    "result",
    "memory",
    "order",
    "page",
    "1984",
    "42",
    "naïve",
    "well-known",
    "12-34",
    "2026-x",
    "数据",
)
NEEDLE = "the quarterly needle of 2026-11-21 is aaaa\n"
PATTERNS = {
    "literal": GrepQuery("quarterly needle", literal=True),
    "ignore-case": GrepQuery("QUARTERLY NEEDLE", literal=True, ignore_case=True),
    "alternation": GrepQuery("quarterly|annually|needle of"),
    "class": GrepQuery(r"[0-9]{4}-[0-9]{2}-[0-9]{2}"),
    "(a+)+$": GrepQuery("(a+)+$"),
}


def write(path: Path, data: bytes) -> None:
    """Write a file to the disk itself."""
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def bare(folder: Path, name: str, raw: bytes, text: bytes) -> None:
    """Write both files and fsync them."""
    for kind, data in (("raw", raw), ("text", text)):
        write(folder / f"{name}.{kind}", data)


def plain(folder: Path, db: sqlite3.Connection, name: str, raw: bytes, text: bytes) -> None:
    """Write both files and their facts, so that they survive a crash under their names."""
    for kind, data in (("raw", raw), ("text", text)):
        write(folder / f"{name}.tmp", data)
        (folder / f"{name}.tmp").rename(folder / kind / name)
        descriptor = os.open(folder / kind, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)
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
    (folder / "facts" / name).write_text(facts)
    db.execute("INSERT INTO artifact VALUES (?, ?)", (name, facts))


def plain_catalogue(folder: Path) -> sqlite3.Connection:
    """Make the folders and the catalogue of the plain program."""
    for kind in ("raw", "text", "facts"):
        (folder / kind).mkdir()
    db = sqlite3.connect(folder / "plain.db", isolation_level=None)
    db.execute("PRAGMA journal_mode = wal")
    db.execute("PRAGMA synchronous = full")
    db.execute("CREATE TABLE artifact (name TEXT PRIMARY KEY, facts TEXT)")
    return db


async def opened(folder: Path) -> ArtifactStore:
    """Open a store without limits."""
    return await open_store(StoreLimits(folder, max_total_bytes=2**40, max_artifacts=10**6))


async def puts(folder: Path, repeat: int, warm_up: int) -> None:
    """Print the medians of a put and of the other ways, for each size."""
    store, db = await opened(folder / "store"), plain_catalogue(folder)
    for n in range(warm_up):
        await put(store, b"%d" % n, b"%d" % n)
        plain(folder, db, f"warm-{n}", b"", b"")
    ways = {"bare": partial(bare, folder), "plain": partial(plain, folder, db)}
    print("p50 in ms        put     bare   ratio    plain   ratio")
    for name, size in SIZES.items():
        taken: dict[str, list[float]] = {"put": [], "bare": [], "plain": []}
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
        print(f"{name:12}{p50['put']:8.2f}{''.join(ratios)}", flush=True)
    db.close()
    await store.aclose()


def some_text(megabytes: int) -> bytes:
    """Return numbered blocks of lines of 1 to 17 words, a needle after one of 10,000."""
    chance = random.Random(1)
    block = ""
    while len(block) < 2**20:
        block += " ".join(chance.choices(WORDS, k=chance.randint(1, 17))) + "\n"
        block += NEEDLE if chance.random() < 1e-4 else ""
    encoded = block.encode()[: 2**20].rsplit(b"\n", 1)[0] + b"\n"
    return b"".join(b"block %d\n" % number + encoded for number in range(megabytes))


def ripgrep(query: GrepQuery, path: Path) -> tuple[float, int]:
    """Return the seconds of counting the matching lines, with the start, and the count."""
    flags = ["-F"] * query.literal + ["-i"] * query.ignore_case
    began = time.perf_counter()
    command = ["rg", "-j1", "--no-mmap", "-c", *flags, "-e", query.pattern, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return time.perf_counter() - began, int(done.stdout or 0)


async def grep(folder: Path, text: bytes) -> None:
    """Print the best of five greps of each pattern, as a multiple of ripgrep's."""
    store = await opened(folder / "grep")
    facts = await put(store, b"", text)
    reader = await store.open_text(facts.artifact_ref)
    peer = shutil.which("rg")
    lack = "" if peer else "; ripgrep is missing (apt-get install ripgrep)"
    print(f"\ngrep of {len(text) >> 20} MB, best of 5, in seconds{lack}")
    print(f"{'pattern':14}{'matches':>10}{'ours':>9}{'rg':>9}{'ratio':>8}")
    for name, query in PATTERNS.items():
        total, own, other = 0, list[float](), list[float]()
        for _ in range(5):
            began = time.perf_counter()
            matches = await reader.grep(query)
            own.append(time.perf_counter() - began)
            total = matches.total
            if peer:
                seconds, count = ripgrep(query, Path(facts.path or ""))
                other.append(seconds)
                if count != total:
                    print(f"{name}: ripgrep counts {count}, we {total} {matches.stopped}")
        ours, theirs = min(own), min(other, default=float("nan"))
        print(f"{name:14}{total:>10}{ours:>9.3f}{theirs:>9.3f}{ours / theirs:>8.1f}")
    await reader.aclose()
    await store.aclose()


async def search(folder: Path, text: bytes, count: int) -> None:
    """Print the times of searching ``count`` texts: the first, until all is indexed, later."""
    store = await opened(folder / "run")
    common = text[: len(text) // count].rpartition(b"\n")[0]
    for n in range(count):
        await put(store, b"%d" % n, common + b"\ndocument %d is about topic%d\n" % (n, n))
    began, searches = time.perf_counter(), list[float]()
    while True:
        search_began = time.perf_counter()
        result = await store.search("document about topic17", (), 8)
        searches.append(time.perf_counter() - search_began)
        if not result.pending:
            break
        await anyio.sleep(0.5)  # the thread that indexes goes on
    built = time.perf_counter() - began
    assert "topic17" in result.passages[0].text
    began = time.perf_counter()
    await store.search("document about topic18", (), 8)
    indexed = time.perf_counter() - began
    size = (folder / "run" / "search.db").stat().st_size / len(text)
    print(f"\nsearch over {count:,} artifacts: first {searches[0]:.2f} s, ", end="")
    print(f"slowest {max(searches):.2f} s,")
    print(f"all indexed after {built:.1f} s, then {indexed * 1000:.0f} ms; ", end="")
    print(f"search.db has {size:.2f} x the text")
    await store.aclose()


async def measure(folder: Path, chosen: Namespace) -> None:
    """Print all of it."""
    await puts(folder, chosen.puts, chosen.warm_up)
    text = some_text(chosen.mb)
    await grep(folder, text)
    await search(folder, text, chosen.artifacts)


def main() -> int:
    chosen = options(__doc__, puts=40, mb=100, warm_up=350, artifacts=1_000)
    print(load())
    with tempfile.TemporaryDirectory() as folder:
        anyio.run(measure, Path(folder), chosen)
    return 0


if __name__ == "__main__":
    sys.exit(main())
