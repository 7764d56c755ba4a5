#!/usr/bin/env python3
"""Torture fetch: forbidden URLs, rebinding, bombs, slow servers and dead name servers.

Prints a line for each part and exits with 1 where one missed its mark. Every part stays on this
machine: in a network namespace, or on loopback.
"""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from tests.fetch.hostile import BOMBS, bomb, measured, serve
from tests.fetch.lab import FOLLOWED, WAYS, is_safe, leaks, run_lab, why_no_lab

TEN_GIB = 10 * 2**30
ENDLESS = (
    *("/silent", "/slow-header", "/slow-body", "/endless-body", "/endless-1xx", "/huge-header"),
    *("/one-byte-chunks", "/lying-length", "/lying-length-long", "/blank-header"),
)
DEADLINE = 2.0


class Report:
    """Prints what happened, and remembers whether all went well."""

    def __init__(self) -> None:
        self.failed = False

    def line(self, part: str, result: object, *, good: bool) -> None:
        """Print one line."""
        self.failed |= not good
        print(f"{'ok  ' if good else 'MISS'} {part}: {result}", flush=True)

    def measure(
        self, part: str, run: Callable[[], dict[str, Any]], good: Callable[[dict[str, Any]], bool]
    ) -> None:
        """Print the first of three measures that is good, or the last.

        What is ours to mend takes its time in each of them; what the machine does comes and goes.
        """
        result = run()
        for _ in range(2):
            if not good(result):
                print(f"     {part}: {result}, once more")
                result = run()
        self.line(part, result, good=good(result))


def ways(report: Report, path: Path, names: Sequence[str]) -> None:
    """Fetch every row of the corpus in each way by which a page or a site names an address."""
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    for way in names:
        taken = [{**row, "via": way} for row in rows if row.get("via") != "redirect"]
        results = run_lab(taken)
        wrong = [
            (row["id"], result)
            for row, result in zip(taken, results, strict=True)
            if not is_safe(row, result) and (leaks(result) or not row.get("policy_choice"))
        ]
        for found in wrong:
            report.line(f"  {way}, {found[0]}", found[1], good=False)
        fetched = sum(bool(result["fetched"]) for result in results)
        led = fetched > 0 or way not in FOLLOWED
        counts = f"{len(taken) - len(wrong)} right, {len(wrong)} wrong, {fetched} fetched"
        report.line(f"{way}, {len(taken)} rows", counts, good=led and not wrong)


def corpus(report: Report, path: Path, pythons: list[str]) -> None:
    """Fetch every row of the corpus over real sockets, with each interpreter."""
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    for python in pythons:
        results = run_lab(rows, python)
        counted: Counter[str] = Counter()
        for row, result in zip(rows, results, strict=True):
            choice = "policy choice, " if row.get("policy_choice") else ""
            safe = is_safe(row, result)
            counted[f"{choice}{row['expected']} {'right' if safe else 'wrong'}"] += 1
            if not safe:
                report.line(f"  {row['id']}", result, good=bool(choice) and not leaks(result))
        wrong = sum(
            number for what, number in counted.items() if what in {"block wrong", "allow wrong"}
        )
        report.line(f"corpus, {python}", dict(counted), good=not wrong)


def rebinding(report: Report, count: int) -> None:
    """Fetch names that turn inside after their first answer, half of them by way of robots.txt."""
    rows: list[dict[str, Any]] = [
        {
            "id": str(number),
            "url": f"http://r{number}.{'rebind' if number % 4 < 2 else 'rebindmeta'}.test/",
            "expected": "block",
            "category": "rebinding",
            "limits": {"respect_robots": number % 2 == 0},
        }
        for number in range(count)
    ]
    results = run_lab(rows)
    inside = [result for result in results if leaks(result)]
    fetched = sum(bool(result["fetched"]) for result in results)
    counts = f"{len(inside)} inside, {fetched} fetched from the first, public answer"
    result = f"{counts}, {count - fetched} refused"
    report.line(f"{count} rebinding fetches", result, good=not inside)


def blackholes(report: Report) -> None:
    """Time good fetches while twenty look-ups hang, and alone, in turn: the quickest of ten."""
    stuck = [f"http://n{number}.blackhole.test/" for number in range(20)]
    alone: dict[str, Any] = {"id": "alone", "url": "http://example.com/", "expected": "allow"}
    rows = [
        alone,
        *(row for _ in range(10) for row in (alone, {**alone, "id": "beside", "beside": stuck})),
    ]
    results = run_lab(rows)[1:]
    times = {
        name: min(result["milliseconds"] for result in results if result["id"] == name)
        for name in ("alone", "beside")
    }
    added = times["beside"] - times["alone"]
    report.line("twenty black-holed names add to a good fetch", f"{added:.1f} ms", good=added <= 50)


def bombs(report: Report, many: int) -> None:
    """Fetch bombs of 10 GiB, one and many at a time."""
    port, stop = serve(TEN_GIB)
    for coding in BOMBS:
        bomb(coding, TEN_GIB)  # made before it is measured
        report.measure(
            f"bomb, {coding}",
            partial(measured, port, f"/bomb/{coding.replace(', ', '+')}"),
            lambda result: (
                result["cpu_seconds"] < 2
                and result["extra_mb"] <= 64
                and set(result["outcomes"]) == {"too_large"}
            ),
        )
    for coding in ("gzip", "br", "gzip+gzip"):
        report.measure(
            f"{many} bombs at once, {coding}",
            partial(measured, port, f"/bomb/{coding}", many),
            lambda result: result["extra_mb"] <= 700 and result["stall_ms"] <= 500,
        )
    stop()


def endless(report: Report) -> None:
    """Fetch from servers that never end, that lie, and that flood."""
    port, stop = serve()
    for path in ENDLESS:
        report.measure(
            f"deadline {DEADLINE:g} s, {path}",
            partial(measured, port, path, deadline=DEADLINE),
            lambda result: result["seconds"] < DEADLINE + 0.5 and result["stall_ms"] < 100,
        )
    stop()


def main() -> None:
    """Run the parts that were asked for, or all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--corpus",
        type=Path,
        help="ssrf_vectors.jsonl; without it that part is left out, and said so",
    )
    parser.add_argument(
        "--python",
        action="append",
        help="interpreter with fetchstash's dependencies (more than once; default: this)",
    )
    names = ["corpus", "ways", "rebinding", "blackholes", "bombs", "endless"]
    parser.add_argument("--only", choices=names)
    parser.add_argument(
        "--ways", nargs="+", choices=WAYS, default=WAYS, metavar="NAME", help="default: all"
    )
    parser.add_argument("--rebinding", type=int, default=1_000, metavar="COUNT")
    parser.add_argument("--bombs", type=int, default=100, metavar="COUNT", help="how many at once")
    args = parser.parse_args()
    report = Report()
    no_lab = why_no_lab()
    parts = {
        "corpus": lambda: corpus(report, args.corpus, args.python or [sys.executable]),
        "ways": lambda: ways(report, args.corpus, args.ways),
        "rebinding": lambda: rebinding(report, args.rebinding),
        "blackholes": lambda: blackholes(report),
        "bombs": lambda: bombs(report, args.bombs),
        "endless": lambda: endless(report),
    }
    for name in [args.only] if args.only else list(parts):
        no_file = args.corpus is None or not args.corpus.is_file()
        if name in {"corpus", "ways"} and no_file:
            print(f"SKIPPED: torture fetch {name} needs --corpus ssrf_vectors.jsonl")
        elif no_lab and name in {"corpus", "ways", "rebinding", "blackholes"}:
            print(f"SKIPPED: torture fetch {name}: {no_lab}")
        else:
            parts[name]()
    sys.exit(report.failed)


if __name__ == "__main__":
    main()
