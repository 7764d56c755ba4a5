"""Grep of 100 MB: seconds, as a multiple of Debian's ripgrep on one thread over the same file.

python -P bench/store_grep.py [--mb 100] [--repeat 5]
"""

import argparse
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import anyio

from bench._store_text import write_text
from fetchstash.store import Facts, GrepQuery, StoreLimits, open_store
from fetchstash.text.ranges import Ranges

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


async def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--mb", type=int, default=100)
    parser.add_argument("--repeat", type=int, default=5)
    args = parser.parse_args()
    peer = shutil.which("rg")
    if not peer:
        print("ripgrep is missing (apt-get install ripgrep): only our own times are shown")
    with tempfile.TemporaryDirectory() as folder:
        store = await open_store(StoreLimits(Path(folder) / "store", max_total_bytes=2**40))
        write_text(store.spool / "text", args.mb, longest=17, needles=1e-4)
        (store.spool / "raw").write_bytes(b"")
        facts = await store.put(store.spool / "raw", store.spool / "text", Facts(), Ranges())
        reader = await store.open_text(facts.artifact_ref)
        print(f"{args.mb} MB, {reader.lines} lines; best of {args.repeat}, in seconds")
        print(f"{'pattern':14}{'matches':>10}{'ours':>9}{'rg':>9}{'ratio':>8}")
        for name, (query, arguments) in PATTERNS.items():
            total = 0
            own: list[float] = []
            other: list[float] = []
            for _ in range(args.repeat):
                began = time.perf_counter()
                matches = await reader.grep(query)
                own.append(time.perf_counter() - began)
                total, stopped = matches.total, matches.stopped
                if peer:
                    seconds, count = ripgrep(arguments, Path(facts.path or ""))
                    other.append(seconds)
                    if count != total:
                        print(f"{name}: ripgrep counts {count}, we {total} {stopped}")
            ours = min(own)
            theirs = min(other) if other else float("nan")
            print(f"{name:14}{total:>10}{ours:>9.3f}{theirs:>9.3f}{ours / theirs:>8.1f}")
        await reader.aclose()
        await store.aclose()


if __name__ == "__main__":
    anyio.run(main)
