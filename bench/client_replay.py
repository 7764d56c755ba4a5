"""What compaction does to real conversations: every request of each transcript, compacted for a window that is far too small.

    python bench/client_replay.py FOLDER [--share 0.35 0.5 0.7]

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
from pathlib import Path
from typing import Any

from fetchstash.client import Policy, State, compact, orphans
from fetchstash.client._classes import critical_messages
from fetchstash.client._formats import as_json, parts
from fetchstash.client._pairing import pair, units
from fetchstash.client._protect import untouchable
from fetchstash.client._sizes import exact_tokens, total

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
        return (
            f"art_{len(self.texts):026d}".replace("0", "a")
            .replace("1", "b")
            .replace("8", "h")
            .replace("9", "i")
        )


def replay(messages: list[Any], share: float, figures: Counter[str]) -> None:
    measure = exact_tokens(State())

    def size(some: list[Any]) -> int:
        return total(some, parts(some, "openai_chat"), measure)

    budget = int(size(messages) * share)
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
        figures["orphans"] += max(
            len(orphans(sent, "openai_chat")) - len(orphans(history, "openai_chat")), 0
        )
        keys.update((change.content_hash, change.target, change.label) for change in report.changes)
        found = parts(history, "openai_chat")
        pairing = pair(found)
        cut = units(len(history), found, pairing)
        fixed = untouchable(len(history), found, cut)
        texts = {as_json(message) for message in sent}
        figures["untouchable changed"] += sum(as_json(history[n]) not in texts for n in fixed)
        if report.tier != "critical":
            critical = critical_messages(found, pairing, policy.preserve_recent_critical_messages)
            figures["critical changed"] += sum(as_json(history[n]) not in texts for n in critical)
        if size([history[n] for n in sorted(fixed)]) > budget:
            figures["hopeless"] += 1
        elif size(sent) > budget:
            figures["over"] += 1
        figures[f"tier {report.tier}"] += 1
        figures["compactions"] += bool(report.changes)
        plain, now = [as_json(m) for m in history], [as_json(m) for m in sent]
        figures["uncached plain"] += size(history[common(plain, plain_before) :])
        figures["uncached"] += size(sent[common(now, sent_before) :])
        plain_before, sent_before = plain, now
    figures["rewritten twice"] += sum(times > 1 for times in keys.values())
    everything = "\n".join([*kept.texts, *(part.text for part in parts(sent, "openai_chat"))])
    figures["identifiers"] += len(identifiers(history))
    # JSON in a kept message escapes what its text has plain.
    figures["identifiers lost"] += sum(
        i not in everything and json.dumps(i)[1:-1] not in everything for i in identifiers(history)
    )


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
        over = figures["over"] / max(figures["requests"] - figures["hopeless"], 1)
        ratio = figures["uncached"] / max(figures["uncached plain"], 1)
        print(
            f"window {share:.0%}: over budget {over:.1%}, uncached {ratio:.2f} x no compaction, {dict(figures)}"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
