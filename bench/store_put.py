"""A durable put against a plain program; then writers and readers that share a folder.

python -P bench/store_put.py [--repeat 40] [--seconds 12] [--writers 4] [--readers 2] [--at FOLDER]

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

import argparse
import functools
import hashlib
import itertools
import json
import math
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import anyio

from fetchstash.store import ArtifactStore, Facts, StoreLimits, open_store
from fetchstash.text.ranges import Ranges

WARM_UP = 350  # puts until the catalogues' logs have their size
SIZES = {"10 KB": 10_000, "100 KB": 100_000, "1 MB": 1_000_000, "10 MB": 10_000_000}


def percentile(seconds: list[float], share: float) -> float:
    """Return the value, in milliseconds, that this share of the measurements does not exceed.

    NaN where nothing was measured: on a busy machine a reader may see nothing in a short run.
    """
    if not seconds:
        return math.nan
    return sorted(seconds)[min(int(len(seconds) * share), len(seconds) - 1)] * 1000


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
    print("p50 in ms        put     bare   ratio    named   ratio    plain   ratio")
    for name, size in SIZES.items():
        taken: dict[str, list[float]] = {"put": [], "bare": [], "named": [], "plain": []}
        for n in range(max(repeat * 10**6 // max(size, 10**6), 5)):
            raw = os.urandom(16) * (size // 32)
            text = b"%d " % n + b"some words of text\n" * (size // 38)
            began = time.perf_counter()
            bare(folder, f"{n}", raw, text)
            taken["bare"].append(time.perf_counter() - began)
            began = time.perf_counter()
            await put(store, raw, text)
            taken["put"].append(time.perf_counter() - began)
            began = time.perf_counter()
            named(folder, f"{n}", raw, text)
            taken["named"].append(time.perf_counter() - began)
            began = time.perf_counter()
            plain.put(f"{size}-{n}", raw, text)
            taken["plain"].append(time.perf_counter() - began)
        p50 = {way: percentile(seconds, 0.5) for way, seconds in taken.items()}
        ways = ("bare", "named", "plain")
        ratios = [f"{p50[way]:9.2f}{p50['put'] / p50[way]:8.2f}" for way in ways]
        print(f"{name:12}{p50['put']:8.2f}{''.join(ratios)}")
    plain.close()
    await store.aclose()


class Queue:
    """How long the threads of this process have waited for a processor (Linux: schedstat)."""

    def __init__(self) -> None:
        self._files = [
            os.open(path, os.O_RDONLY) for path in Path("/proc/self/task").glob("*/schedstat")
        ]

    def waited(self) -> float:
        """Return seconds, of all threads together."""
        return sum(int(os.pread(file, 100, 0).split()[1]) for file in self._files) / 1e9


async def work(role: str, folder: Path, seconds: float) -> None:
    """Write or read for a while. Print the seconds of each call, and those in the run queue."""
    store = await open_store(StoreLimits(folder, max_artifacts=2000))
    name = os.urandom(8).hex()
    queue = None
    end = time.monotonic() + seconds
    taken: list[tuple[float, float]] = []
    for n in itertools.count():
        if time.monotonic() > end:
            break
        waited = queue.waited() if queue else 0.0
        began = time.perf_counter()
        if role == "put":
            await put(store, os.urandom(20_000), os.urandom(5_000).hex().encode() + b"\n")
        elif role == "bare":
            bare(
                store.spool,
                f"{name}-{n % 1000}",
                os.urandom(20_000),
                os.urandom(5_000).hex().encode() + b"\n",
            )
        else:
            found = await store.list(limit=1)
            if not found.total:
                continue
            reader = await store.open_text(found.facts[0].artifact_ref)
            assert len(await reader.read_chars(0, 10_001)) == 10_001
            await reader.aclose()
        took = time.perf_counter() - began
        queue = queue or Queue()  # now that all threads are there
        taken.append((took, queue.waited() - waited if waited else 0.0))
    await store.aclose()
    json.dump(taken, sys.stdout)


def together(folder: Path, args: argparse.Namespace, role: str) -> None:
    """Let processes write and read side by side, and print what each call took."""
    roles = [role] * args.writers + ["read"] * args.readers
    command = [
        sys.executable,
        "-P",
        __file__,
        "--folder",
        str(folder),
        "--seconds",
        str(args.seconds),
        "--role",
    ]
    # Each in a session of its own, as hosts start them: by session Linux shares out its processors
    # (sched(7), autogroup).
    start = functools.partial(
        subprocess.Popen[str], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    running = [(role, start([*command, role])) for role in roles]
    taken: dict[str, list[tuple[float, float]]] = {role: [], "read": []}
    errors = 0
    for name, process in running:
        output, _ = process.communicate()
        errors += process.returncode != 0
        taken[name] += json.loads(output or "[]")
    for name, calls in taken.items():
        p50, p99 = (percentile([took for took, _ in calls], share) for share in (0.5, 0.99))
        own = percentile([took - waited for took, waited in calls], 0.99)
        print(f"{name:6}{len(calls):8}{p50:9.2f}{p99:9.2f}{p99 / p50:8.1f} x{own:12.2f}{errors:8}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeat", type=int, default=40)
    parser.add_argument("--seconds", type=float, default=12)
    parser.add_argument("--writers", type=int, default=4)
    parser.add_argument("--readers", type=int, default=2)
    parser.add_argument(
        "--at",
        type=Path,
        help="a folder on the disk to measure (default: the system's temporary one)",
    )
    parser.add_argument("--role", choices=["put", "bare", "read"], help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.role:
        anyio.run(work, args.role, args.folder, args.seconds)
        return
    print(f"load {os.getloadavg()[0]:.1f}, {os.cpu_count()} processors")
    with tempfile.TemporaryDirectory(dir=args.at) as folder:
        anyio.run(against_plain, Path(folder), args.repeat)
        print(
            f"\n{args.writers} processes that write 20 KB and 10 KB beside {args.readers} "
            f"readers, {args.seconds:g} s"
        )
        print(
            "read: list, open, 10,001 characters, close. on cpu: without the time that the call "
            "waited for a processor"
        )
        print("         calls  p50 (ms)      p99              p99 on cpu  errors")
        together(Path(folder) / "shared", args, "put")
        together(Path(folder) / "shared", args, "bare")


if __name__ == "__main__":
    main()
