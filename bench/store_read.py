"""Slices out of texts of 1 to 1,000 MB, the memory of put, grep and slice; grep, and search.

python -P bench/store_read.py [--mb 1 10 100 1000] [--grep-mb 100] [--search-mb 100]

Grep is compared with Debian's ripgrep on one thread over the same file, if it is installed.
"""

import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import anyio

from bench._run import peak
from bench._store import write_text
from fetchstash.store import ArtifactStore, Facts, GrepQuery, StoreLimits, TextReader, open_store
from fetchstash.text.ranges import Ranges
from scripts.drive.programs import options
from scripts.torture.kept import put

PATTERNS = {
    "literal": (GrepQuery("quarterly needle", literal=True), ["-F", "quarterly needle"]),
    "ignore-case": (
        GrepQuery("QUARTERLY NEEDLE", literal=True, ignore_case=True),
        ["-i", "-F", "QUARTERLY NEEDLE"],
    ),
    "alternation": (
        GrepQuery("quarterly|annually|needle of"),
        ["-e", "quarterly|annually|needle of"],
    ),
    "class": (GrepQuery(r"[0-9]{4}-[0-9]{2}-[0-9]{2}"), ["-e", r"[0-9]{4}-[0-9]{2}-[0-9]{2}"]),
    "(a+)+$": (GrepQuery("(a+)+$"), ["-e", "(a+)+$"]),
}


def ripgrep(arguments: list[str], path: Path) -> tuple[float, int]:
    """Return the seconds of counting the matching lines, with the start, and the count."""
    began = time.perf_counter()
    done = subprocess.run(
        ["rg", "-j1", "--no-mmap", "-c", *arguments, path],
        capture_output=True,
        text=True,
        check=False,
    )
    return time.perf_counter() - began, int(done.stdout or 0)


async def fifty_lines(reader: TextReader, first: int) -> str:
    """Read 50 lines as a slice does."""
    start, end = await reader.char_of_line(first), await reader.char_of_line(first + 50)
    return await reader.read_chars(start, end)


async def slices(store: ArtifactStore, ref: str, repeat: int) -> tuple[list[float], list[float]]:
    """Return the seconds of 50 lines from an open text, and with opening and closing it."""
    chance = random.Random(2)
    reader = await store.open_text(ref)
    warm: list[float] = []
    cold: list[float] = []
    for _ in range(repeat):
        line = chance.randrange(1, reader.lines - 50)
        began = time.perf_counter()
        assert (await fifty_lines(reader, line)).count("\n") == 50
        warm.append(time.perf_counter() - began)
        began = time.perf_counter()
        other = await store.open_text(ref)
        await fifty_lines(other, line)
        await other.aclose()
        cold.append(time.perf_counter() - began)
    await reader.aclose()
    return warm, cold


async def one_size(folder: Path, megabytes: int, repeat: int) -> None:
    """Measure one size in a process of its own."""
    store = await open_store(StoreLimits(folder / "store", max_total_bytes=2**40))
    write_text(store.spool / "text", megabytes)
    (store.spool / "raw").write_bytes(b"")
    warm_up = GrepQuery("no such words")
    small = await put(store, b"", b"small\n")
    reader = await store.open_text(small.artifact_ref)
    await reader.grep(warm_up)  # imports RE2
    await reader.aclose()
    before = peak()
    began = time.perf_counter()
    facts = await store.put(store.spool / "raw", store.spool / "text", Facts(), Ranges())
    took = time.perf_counter() - began
    reader = await store.open_text(facts.artifact_ref)
    began = time.perf_counter()
    await reader.grep(warm_up)
    grep = time.perf_counter() - began
    warm, cold = await slices(store, facts.artifact_ref, repeat)
    grown = peak() - before
    began = time.perf_counter()
    if megabytes <= 100:
        await store.search("naïve memory of block 7", [facts.artifact_ref], 8)
    rank = time.perf_counter() - began
    await reader.aclose()
    quantiles = [statistics.quantiles(taken, n=100) for taken in (warm, cold)]
    figures = " ".join(f"{q[49] * 1000:8.3f} {q[98] * 1000:8.3f}" for q in quantiles)
    print(
        f"{megabytes:6} {figures} {grown / 2**20:10.1f} {took:8.2f} {grep:8.3f} {rank:8.2f}",
        flush=True,
    )
    await store.aclose()


async def grep(folder: Path, megabytes: int) -> None:
    """Print the best of five greps of each pattern, as a multiple of ripgrep's."""
    store = await open_store(StoreLimits(folder / "grep", max_total_bytes=2**40))
    write_text(store.spool / "text", megabytes, longest=17, needles=1e-4)
    (store.spool / "raw").write_bytes(b"")
    facts = await store.put(store.spool / "raw", store.spool / "text", Facts(), Ranges())
    reader = await store.open_text(facts.artifact_ref)
    peer = shutil.which("rg")
    lack = "" if peer else "; ripgrep is missing (apt-get install ripgrep)"
    print(f"\ngrep of {megabytes} MB, best of 5, in seconds{lack}")
    print(f"{'pattern':14}{'matches':>10}{'ours':>9}{'rg':>9}{'ratio':>8}")
    for name, (query, arguments) in PATTERNS.items():
        total, own, other = 0, list[float](), [float("nan")]
        for _ in range(5):
            began = time.perf_counter()
            matches = await reader.grep(query)
            own.append(time.perf_counter() - began)
            total = matches.total
            if peer:
                seconds, count = ripgrep(arguments, Path(facts.path or ""))
                other.append(seconds)
                if count != total:
                    print(f"{name}: ripgrep counts {count}, we {total} {matches.stopped}")
        ours, theirs = min(own), min(other[1:] or other)
        print(f"{name:14}{total:>10}{ours:>9.3f}{theirs:>9.3f}{ours / theirs:>8.1f}")
    await reader.aclose()
    await store.aclose()


async def search(folder: Path, megabytes: int) -> None:
    """Measure the search of a run of a thousand texts: the first, until all is indexed, later."""
    store = await open_store(StoreLimits(folder / "run", max_artifacts=10_000))
    write_text(store.spool / "common", 1)
    common = (store.spool / "common").read_bytes()[: megabytes * 1_000].rpartition(b"\n")[0]
    for n in range(1_000):
        text = common + b"\ndocument %d is about topic%d\n" % (n, n)
        await put(store, b"%d" % n, text)
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
    size = (folder / "run" / "search.db").stat().st_size / (megabytes * 2**20)
    print(f"\nsearch over 1,000 artifacts of {megabytes} MB: first {searches[0]:.2f} s, slowest")
    print(f"{max(searches):.2f} s, all indexed after {built:.1f} s, then {indexed * 1000:.0f} ms;")
    print(f"search.db has {size:.2f} x the text")
    await store.aclose()


def main() -> None:
    args = options(__doc__, mb=[1, 10, 100, 1000], grep_mb=100, search_mb=100, repeat=300, one=0)
    if args.one:
        with tempfile.TemporaryDirectory() as folder:
            anyio.run(one_size, Path(folder), args.one, args.repeat)
        return
    print("    MB   50 lines (ms)       open + 50 lines      memory      put     grep     rank")
    print("            p50      p99      p50      p99     grown MB       s        s        s")
    for megabytes in args.mb:
        subprocess.run(
            [sys.executable, "-P", __file__, "--one", str(megabytes), "--repeat", str(args.repeat)],
            check=True,
        )
    with tempfile.TemporaryDirectory() as folder:
        anyio.run(grep, Path(folder), args.grep_mb)
        anyio.run(search, Path(folder), args.search_mb)


if __name__ == "__main__":
    main()
