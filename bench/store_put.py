"""A durable put against a bare write and fsync of the same bytes; then writers and readers that share a folder.

python bench/store_put.py [--repeat 40] [--seconds 12] [--writers 4] [--readers 2] [--at FOLDER]
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import anyio

from fetchstash.ranges import Ranges
from fetchstash.store import Facts, LocalStore, StoreLimits, open_store

SIZES = {"10 KB": 10_000, "100 KB": 100_000, "1 MB": 1_000_000, "10 MB": 10_000_000}


def percentile(seconds: list[float], share: float) -> float:
    """Return the value, in milliseconds, that this share of the measurements does not exceed."""
    return sorted(seconds)[min(int(len(seconds) * share), len(seconds) - 1)] * 1000


def write(path: Path, data: bytes, *, sync: bool) -> None:
    with path.open("wb") as file:
        file.write(data)
        if sync:
            file.flush()
            os.fsync(file.fileno())


async def put(store: LocalStore, raw: bytes, text: bytes) -> str:
    """Put one artifact by way of the spool, and return its reference."""
    name = os.urandom(8).hex()
    raw_path, text_path = store.spool / f"{name}.raw", store.spool / f"{name}.text"
    write(raw_path, raw, sync=False)
    write(text_path, text, sync=False)
    return (await store.put(raw_path, text_path, Facts(), Ranges())).artifact_ref


async def against_bare(folder: Path, repeat: int) -> None:
    store = await open_store(StoreLimits(folder / "store", max_total_bytes=2**40, max_artifacts=10**6))
    print(f"{'raw and text':14}{'put p50':>10}{'bare p50':>10}{'ratio':>8}   (ms; bare: both files written and fsynced)")
    for name, size in SIZES.items():
        own: list[float] = []
        bare: list[float] = []
        for n in range(max(repeat * 10**6 // max(size, 10**6), 5)):
            raw = os.urandom(16) * (size // 32)
            text = b"%d " % n + b"some words of text\n" * (size // 38)
            began = time.perf_counter()
            for kind, data in (("raw", raw), ("text", text)):
                write(folder / f"bare-{kind}-{n}", data, sync=True)
            bare.append(time.perf_counter() - began)
            began = time.perf_counter()
            await put(store, raw, text)
            own.append(time.perf_counter() - began)
        ours, theirs = percentile(own, 0.5), percentile(bare, 0.5)
        print(f"{name:14}{ours:>10.2f}{theirs:>10.2f}{ours / theirs:>8.2f}")
    await store.aclose()


async def work(role: str, folder: Path, seconds: float) -> None:
    """Write or read for a while in a process of its own; print each call's seconds."""
    store = await open_store(StoreLimits(folder, max_artifacts=2000))
    end = time.monotonic() + seconds
    taken: list[float] = []
    while time.monotonic() < end:
        began = time.perf_counter()
        if role == "writer":
            await put(store, os.urandom(20_000), os.urandom(5_000).hex().encode() + b"\n")
        else:
            found = await store.list(limit=1)
            if not found.total:
                continue
            reader = await store.open_text(found.facts[0].artifact_ref)
            assert len(await reader.read_chars(0, 10_001)) == 10_001
            await reader.aclose()
        taken.append(time.perf_counter() - began)
    await store.aclose()
    print(" ".join(f"{one:.6f}" for one in taken))


def together(folder: Path, args: argparse.Namespace) -> None:
    roles = ["writer"] * args.writers + ["reader"] * args.readers
    command = [sys.executable, "-P", __file__, "--folder", str(folder), "--seconds", str(args.seconds), "--role"]
    running = [(role, subprocess.Popen([*command, role], stdout=subprocess.PIPE, text=True)) for role in roles]
    taken: dict[str, list[float]] = {"writer": [], "reader": []}
    errors = 0
    for role, process in running:
        output, _ = process.communicate()
        errors += process.returncode != 0
        taken[role] += [float(one) for one in output.split()]
    print(f"\n{args.writers} writers, {args.readers} readers, {args.seconds:g} s: {errors} processes with an error")
    print("reader: list, open, 10,001 characters, close; writer: spool and put 20 KB + 10 KB")
    for role, seconds in taken.items():
        p50, p99 = percentile(seconds, 0.5), percentile(seconds, 0.99)
        print(f"{role}: {len(seconds)} calls, p50 {p50:.2f} ms, p99 {p99:.2f} ms ({p99 / p50:.1f} x)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=40)
    parser.add_argument("--seconds", type=float, default=12)
    parser.add_argument("--writers", type=int, default=4)
    parser.add_argument("--readers", type=int, default=2)
    parser.add_argument("--at", type=Path, help="a folder on the disk to measure (default: the system's temporary one)")
    parser.add_argument("--role", choices=["writer", "reader"], help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.role:
        anyio.run(work, args.role, args.folder, args.seconds)
        return
    with tempfile.TemporaryDirectory(dir=args.at) as folder:
        anyio.run(against_bare, Path(folder), args.repeat)
        together(Path(folder) / "shared", args)


if __name__ == "__main__":
    main()
