"""Measure precision and recall of ``classify`` on labelled provider errors, and its slowest texts.

    python -P bench/client_classify.py overflow_errors.jsonl [--show] [--sdk openai]

Each line of the file is a JSON object with message, body, http_status, error_type, error_class,
code, provider, label and tags. With ``--sdk`` the errors are those that this SDK raises when a
provider on loopback answers so, in an environment of scripts/ci adapters that has it; "exact"
counts the overflows whose sizes are read from them as from the bare sentence.
"""

import argparse
import json
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from fetchstash.client import Verdict, classify
from tests.client.loopback import Loopback
from tests.client.sdk_errors import APIS, envelope, error_of

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


def of_sdk(sdk: str, provider: Loopback, row: dict[str, Any]) -> Exception | None:
    """Return what an SDK makes of a row, None where it does not speak the row's API.

    An answer with status 200 is the event of a stream, and one without an error is none.
    """
    family, body = row["family"], row["body"]
    api = "ollama" if family == "ollama" and "ollama" in APIS[sdk] else "openai"
    if row["provider"].startswith(("anthropic", "bedrock", "claude")):
        api = "anthropic"
    elif family.startswith("google"):
        api = "gemini"
    status = row["http_status"] or 400
    if api not in APIS[sdk] or (status == 200 and body is None):
        return None
    if body is None or (status == 200 and "error" not in body):
        text = envelope(api, status, row["message"], row["error_type"], row["code"])
    else:
        text = json.dumps(body)
    return error_of(sdk, api, provider, (status, "" if "no_body" in row["tags"] else text))


def score_sdk(sdk: str, rows: list[dict[str, Any]], *, show: bool) -> None:
    """Print how the errors of an SDK are told."""
    counts: Counter[str] = Counter()
    with Loopback("good") as provider:
        for row in rows:
            error = of_sdk(sdk, provider, row)
            if error is None or APART & set(row["tags"]):
                continue
            expected, verdict = row["label"], classify(error, row["provider"])
            bare = classify(row["body"] or row["message"], row["provider"])
            sizes = [(v.limit, v.requested_input, v.requested_output) for v in (bare, verdict)]
            told_wrong = tally(counts, expected, verdict)
            counts["exact"] += expected != "not_overflow" and sizes[0] == sizes[1]
            if show and (told_wrong or (verdict.overflow and sizes[0] != sizes[1])):
                print(f"  {expected} told as {verdict}: {row['message'][:160]!r}")
    print(f"{sdk:12} {rates(counts)} {dict(counts)}")


def tally(counts: Counter[str], expected: str, verdict: Verdict) -> bool:
    """Count a verdict, and return whether it is wrong."""
    counts["true"] += expected != "not_overflow" and verdict.overflow
    counts["false"] += expected == "not_overflow" and verdict.overflow
    counts["missed"] += expected != "not_overflow" and not verdict.overflow
    counts["mixed up"] += verdict.overflow and expected not in {"not_overflow", verdict.kind}
    counts["limits"] += verdict.limit is not None and verdict.overflow
    return expected != verdict.kind


def rates(counts: Counter[str]) -> str:
    precision = counts["true"] / max(counts["true"] + counts["false"], 1)
    recall = counts["true"] / max(counts["true"] + counts["missed"], 1)
    return f"precision {precision:.3f} recall {recall:.3f}"


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
    parser.add_argument("--sdk", choices=APIS, help="score the errors that this SDK raises")
    parser.add_argument("--show", action="store_true", help="print each error that was told wrong")
    options = parser.parse_args()
    if not options.corpus.is_file():
        parser.error(f"{options.corpus} is missing: give the path of a file of labelled errors.")
    rows = [json.loads(line) for line in options.corpus.read_text(encoding="utf-8").splitlines()]
    if options.sdk:
        score_sdk(options.sdk, rows, show=options.show)
        return 0
    for with_provider in (True, False):
        for shape in ("exception", "body", "message"):
            counts: Counter[str] = Counter()
            for row in rows:
                things = forms(row)
                if APART & set(row["tags"]) or shape not in things:
                    continue
                verdict = classify(things[shape], row["provider"] if with_provider else None)
                if tally(counts, row["label"], verdict) and options.show:
                    print(
                        f"  {row['label']} told as {verdict.kind} ({verdict.rule_id}): "
                        f"{row['message'][:160]!r}"
                    )
            told = "provider told" if with_provider else "provider not told"
            print(f"{shape:10} {told:18} {rates(counts)} {dict(counts)}")
    print(f"slowest of {len(HARD_WORDS) ** 2} hard texts: {slowest() * 1000:.0f} ms")
    return 0


if __name__ == "__main__":
    sys.exit(main())
