"""Measure precision and recall of ``classify`` on labelled provider errors, and its slowest texts.

    python -P bench/client_classify.py overflow_errors.jsonl [--show]

Each line of the file is a JSON object with message, body, http_status, error_type, error_class,
code, provider, label and tags.
"""

import argparse
import json
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from fetchstash.client import classify

# Words that begin a pattern, and go on to another.
HARD_WORDS = (
    "context",
    "tokens",
    "prompt",
    "exceeds",
    "maximum",
    "file",
    "1",
    "input",
    "messages",
    "limit",
    "request",
    "size",
    "too long",
)
APART = {"ambiguous", "shrink_may_help"}


def forms(row: dict[str, Any]) -> dict[str, Any]:
    """Return the shapes of an error: an exception with all of it, the body, the bare message."""

    class ProviderError(Exception):
        status_code = row["http_status"]
        body = row["body"]
        code = row["code"]
        type = row["error_type"]

    shapes: dict[str, Any] = {"exception": ProviderError(row["message"]), "message": row["message"]}
    if row["body"] is not None:
        shapes["body"] = row["body"]
    return shapes


def slowest() -> float:
    """Return the seconds of the slowest long text, each made of two repeated words."""
    seconds = 0.0
    for first in HARD_WORDS:
        for second in HARD_WORDS:
            started = time.process_time()
            classify(f"{first} {second} " * 10_000)
            seconds = max(seconds, time.process_time() - started)
    return seconds


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--show", action="store_true", help="print each error that was told wrong")
    options = parser.parse_args()
    if not options.corpus.is_file():
        print(
            f"{options.corpus} is missing: give the path of a file of labelled errors.",
            file=sys.stderr,
        )
        return 2
    rows = [json.loads(line) for line in options.corpus.read_text(encoding="utf-8").splitlines()]
    for with_provider in (True, False):
        for shape in ("exception", "body", "message"):
            counts: Counter[str] = Counter()
            for row in rows:
                things = forms(row)
                if APART & set(row["tags"]) or shape not in things:
                    continue
                verdict = classify(things[shape], row["provider"] if with_provider else None)
                expected, found = row["label"], verdict.kind
                counts["true"] += expected != "not_overflow" and verdict.overflow
                counts["false"] += expected == "not_overflow" and verdict.overflow
                counts["missed"] += expected != "not_overflow" and not verdict.overflow
                counts["mixed up"] += verdict.overflow and expected not in {"not_overflow", found}
                counts["limits"] += verdict.limit is not None and verdict.overflow
                if options.show and expected != found:
                    print(
                        f"  {expected} told as {found} ({verdict.rule_id}): "
                        f"{row['message'][:160]!r}"
                    )
            precision = counts["true"] / max(counts["true"] + counts["false"], 1)
            recall = counts["true"] / max(counts["true"] + counts["missed"], 1)
            told = "provider told" if with_provider else "provider not told"
            print(
                f"{shape:10} {told:18} precision {precision:.3f} recall {recall:.3f} {dict(counts)}"
            )
    print(f"slowest of {len(HARD_WORDS) ** 2} hard texts: {slowest() * 1000:.0f} ms")
    return 0


if __name__ == "__main__":
    sys.exit(main())
