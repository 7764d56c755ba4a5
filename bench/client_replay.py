"""Replay real conversations: compact every request of each transcript for a window too small.

    python -P bench/client_replay.py FOLDER [--share 0.35 0.5 0.7]

FOLDER has transcripts as JSON files, {"messages": […]} in the format of Chat Completions. The
window is a share of the transcript's own final size. Uncached tokens are those after the longest
common beginning with the request before, as a provider's prompt cache has it.
"""

import argparse
import json
import re
import sys
import time
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

from fetchstash.client import Policy, State, compact, orphans
from fetchstash.client._formats import parts
from fetchstash.client._parts import as_json
from fetchstash.client._sizes import CALL_TOKENS, MESSAGE_TOKENS
from fetchstash.text import tokens

IDENTIFIER = re.compile(
    r"(?:[\w.-]+/)+[\w.-]+|\b[A-Z][A-Z0-9]{5,}\b|\b[0-9a-f]{8,}\b|\bhttps?://\S+"
)


class Kept:
    """An offload that remembers what it was given."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def keep(self, text: str, name: str) -> str:  # noqa: ARG002 - the protocol's parameter
        """Keep ``text``."""
        self.texts.append(text)
        return f"art_{len(self.texts):026d}".translate(str.maketrans("0189", "abhi"))


def replay(messages: list[Any], share: float, figures: Counter[str]) -> None:
    """Replay one transcript, and add what happened to ``figures``."""
    budget = int(size_of(messages) * share)
    kept = Kept()
    state, policy = State(), Policy(offload=kept)
    history: list[Any] = []
    sent: list[Any] = []
    plain_before: list[str] = []
    sent_before: list[str] = []
    keys: Counter[tuple[str, int, str]] = Counter()
    for end in range(1, len(messages)):
        if messages[end].get("role") != "assistant":
            continue
        history = messages[:end]
        started = time.process_time()
        sent, report = compact(history, "openai_chat", budget, state, policy=policy)
        figures["ms"] += round((time.process_time() - started) * 1000)
        figures["requests"] += 1
        orphaned = len(orphans(sent, "openai_chat")) - len(orphans(history, "openai_chat"))
        figures["orphans"] += max(orphaned, 0)
        keys.update((change.content_hash, change.target, change.label) for change in report.changes)
        plain, now = [as_json(m) for m in history], [as_json(m) for m in sent]
        figures["answer lost"] += lost(plain, now, latest(history, "assistant"))
        figures["user turn lost"] += lost(plain, now, latest(history, "user"))
        figures["over"] += size_of(sent) > budget
        figures[f"tier {report.tier}"] += 1
        figures["compactions"] += bool(report.changes)
        figures["uncached plain"] += size_of(history[common(plain, plain_before) :])
        figures["uncached"] += size_of(sent[common(now, sent_before) :])
        plain_before, sent_before = plain, now
    figures["rewritten twice"] += sum(times > 1 for times in keys.values())
    everything = "\n".join([*kept.texts, *(part.text for part in parts(sent, "openai_chat"))])
    wanted = identifiers(history)
    figures["identifiers"] += len(wanted)
    # JSON in a kept message escapes what its text has plain.
    figures["identifiers lost"] += sum(
        i not in everything and json.dumps(i)[1:-1] not in everything for i in wanted
    )


@cache
def exact_tokens(text: str) -> int:
    return tokens.count(text).tokens


def size_of(messages: list[Any]) -> int:
    """Return the tokens of a request, of which every one is counted."""
    found = parts(messages, "openai_chat")
    calls = sum(part.kind in {"call", "result"} for part in found)
    framing = MESSAGE_TOKENS * len(messages) + CALL_TOKENS * calls
    return sum(exact_tokens(part.text) for part in found) + framing


def latest(history: list[Any], role: str) -> int | None:
    """Return the number of the latest message of this role that has text and no call."""
    numbers = [
        number
        for number, message in enumerate(history)
        if message["role"] == role and message.get("content") and not message.get("tool_calls")
    ]
    return numbers[-1] if numbers else None


def lost(plain: list[str], now: list[str], number: int | None) -> bool:
    return number is not None and plain[number] not in now


def identifiers(history: list[Any]) -> set[str]:
    return {
        found for part in parts(history, "openai_chat") for found in IDENTIFIER.findall(part.text)
    }


def common(now: list[str], before: list[str]) -> int:
    return next(
        (n for n, (a, b) in enumerate(zip(now, before, strict=False)) if a != b),
        min(len(now), len(before)),
    )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--share", type=float, nargs="+", default=[0.35, 0.5, 0.7])
    options = parser.parse_args()
    files = sorted(options.folder.glob("*.json")) if options.folder.is_dir() else []
    if not files:
        print(
            f"{options.folder} has no transcripts: give a folder of JSON files with messages.",
            file=sys.stderr,
        )
        return 2
    for share in options.share:
        figures: Counter[str] = Counter()
        for file in files:
            replay(json.loads(file.read_text(encoding="utf-8"))["messages"], share, figures)
        over = figures["over"] / max(figures["requests"], 1)
        ratio = figures["uncached"] / max(figures["uncached plain"], 1)
        summary = f"over budget {over:.1%}, uncached {ratio:.2f} x no compaction"
        print(f"window {share:.0%}: {summary}, {dict(figures)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
