"""Replay real conversations in a window too small: compact beside LangChain's context editing.

    python -P bench/client_replay.py FOLDER [--share 0.35 0.5 0.7] [--target 0.3] [--every N]

FOLDER has transcripts as JSON files, {"messages": […]} in the format of Chat Completions. All are
replayed, or every Nth with --every. The window is a share of the transcript's own final size, and
both sides begin at 70 % of it. LangChain is that of requirements/tools.

Both loops are scripted: what the assistant says is the transcript's, so that their answers are
equal. "needed" counts the paths, hashes, constants and addresses in these answers that a message
before brought; "unseen" those that were not in the request any more, and "lost" those of them that
no reference leads to. Uncached tokens are those after the longest common beginning with the request
before, as a provider's prompt cache has it; "breaks" counts requests that changed this beginning.
"cost" counts a cached token as a tenth of an uncached one.

Before that it times the compactions of one long history, in milliseconds of CPU.
"""

import json
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from bench._run import peer
from fetchstash.client import Format, Policy, State, compact, count_tokens, orphans
from fetchstash.client._formats import as_json, parts
from scripts.drive.programs import options

FORMAT: Format = "openai_chat"
IDENTIFIER = re.compile(
    r"(?:[\w.-]+/)+[\w.-]+|\b[A-Z][A-Z0-9]{5,}\b|\b[0-9a-f]{8,}\b|\bhttps?://\S+"
)
TEXT = "the request returned a list of files src/main.py 42 0x7f { } value: naïve"
WINDOW = 200_000
"""The window in tokens of the long history."""
FIGURES = "sent uncached cost breaks over broken needed unseen lost cpu_ms"


@dataclass
class Kept:
    """An offload that remembers the identifiers that it was given."""

    identifiers: set[str] = field(default_factory=set[str])
    texts: int = 0

    def keep(self, text: str, name: str) -> str:  # noqa: ARG002 - the protocol's parameter
        """Keep ``text``."""
        self.identifiers.update(IDENTIFIER.findall(text))
        self.texts += 1
        return f"art_{self.texts:026d}".translate(str.maketrans("0189", "abhi"))


Shrink = Callable[[list[Any]], list[Any]]


def nothing(_messages: list[Any], _window: int, _policy: Policy) -> Shrink:
    return lambda history: history


def ours(_messages: list[Any], window: int, policy: Policy) -> Shrink:
    state = State()
    return lambda history: compact(history, FORMAT, window, state, policy=policy)[0]


def langchains(messages: list[Any], window: int, policy: Policy) -> Shrink:
    """Return what LangChain makes of a history: its own edit, with our count of the tokens."""
    middleware = peer("langchain.agents.middleware", "langchain")
    trigger = int(window * policy.compaction_pressure_ratio_soft)
    edit = middleware.ClearToolUsesEdit(trigger=trigger)
    edits = middleware.ContextEditingMiddleware(edits=[edit]).edits
    converted = peer("langchain_core.messages", "langchain").convert_to_messages(messages)

    def shrink(history: list[Any]) -> list[Any]:
        def count(_: Any) -> int:
            return size_of(history)

        edited = list(converted[: len(history)])
        for edit in edits:
            edit.apply(edited, count_tokens=count)
        return [
            message if now is before else {**message, "content": now.content}
            for message, now, before in zip(history, edited, converted, strict=False)
        ]

    return shrink


def replay(
    messages: list[Any], share: float, target: float, make: Callable[..., Shrink]
) -> Counter[str]:
    """Replay one transcript, and return what happened."""
    window = int(size_of(messages) * share)
    kept, figures = Kept(), Counter[str]()
    policy = Policy(offload=kept, compaction_target_ratio=target)
    shrink = make(messages, window, policy)
    known: set[str] = set()
    before: list[str] = []
    for number, message in enumerate(messages):
        if number and message["role"] == "assistant":
            history = messages[:number]
            started = time.process_time()
            sent = shrink(history)
            figures["cpu_ms"] += round((time.process_time() - started) * 1000)
            now = [as_json(one) for one in sent]
            pairs = enumerate(zip(now, before, strict=False))
            same = next((n for n, (a, b) in pairs if a != b), len(before))
            sizes = [tokens_of(one) for one in now]
            figures["sent"] += sum(sizes)
            figures["uncached"] += sum(sizes[same:])
            figures["breaks"] += same < len(before)
            figures["over"] += sum(sizes) > window
            figures["broken"] += is_broken(history, sent)
            needed = identifiers(as_json(message)) & known
            unseen = needed - set().union(*map(identifiers, now))
            figures["needed"] += len(needed)
            figures["unseen"] += len(unseen)
            figures["lost"] += len(unseen - kept.identifiers)
            before = now
        known |= identifiers(as_json(message))
    return figures


def is_broken(history: list[Any], sent: list[Any]) -> bool:
    """Return whether a call lost its result, or the latest words of either side are gone."""
    latest = (
        next((m for m in reversed(history) if m["role"] == role and says(m)), None)
        for role in ("user", "assistant")
    )
    return len(orphans(sent, FORMAT)) > len(orphans(history, FORMAT)) or any(
        message not in sent for message in latest if message
    )


def says(message: Any) -> bool:
    return bool(message.get("content")) and not message.get("tool_calls")


@cache
def tokens_of(message: str) -> int:
    return count_tokens([json.loads(message)], FORMAT)


def size_of(messages: list[Any]) -> int:
    return sum(tokens_of(as_json(message)) for message in messages)


@cache
def identifiers(message: str) -> frozenset[str]:
    texts = (part.text for part in parts([json.loads(message)], FORMAT))
    return frozenset(found for text in texts for found in IDENTIFIER.findall(text))


def exchange(call_id: str, result: str) -> list[Any]:
    """Return a call and its result."""
    call = {"id": call_id, "type": "function", "function": {"name": "read", "arguments": "{}"}}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call_id, "content": result},
    ]


def long_history() -> list[Any]:
    """Return a history of 4.4 MB: results of 2 to 60 KB of words and numbers."""
    draw = random.Random(8)
    messages: list[Any] = [{"role": "user", "content": "The task."}]
    made = 0
    while made < 4_400_000:
        result = " ".join(draw.choices([*TEXT.split(), "\n"], k=draw.randint(400, 12_000)))
        messages += exchange(f"call_{made}", result)
        made += len(result)
    return messages


def compactions() -> tuple[float, float]:
    """Return the CPU milliseconds of the first compaction, and the most of ten later ones."""
    state, history, times = State(), long_history(), list[float]()
    count_tokens(exchange("a", TEXT), FORMAT)  # the vocabulary is loaded before
    for number in range(11):
        started = time.process_time()
        compact(history, FORMAT, WINDOW, state, window=WINDOW)
        times.append((time.process_time() - started) * 1000)
        history += exchange(f"next_{number}", "The result of one more step. " * 40)
    return times[0], max(times[1:])


def main() -> int:
    target = Policy().compaction_target_ratio
    chosen = options(__doc__, "*.json", share=[0.35, 0.5, 0.7], target=target, every=1)
    first, later = compactions()
    print(f"compaction: first {first:.0f} ms of CPU, later at most {later:.0f}", flush=True)
    files = sorted(chosen.folder.glob("*.json"))[:: chosen.every]
    sides = {"no compaction": nothing, "ours": ours, "LangChain": langchains}
    if peer("langchain", "langchain") is None:
        del sides["LangChain"]
    transcripts = [json.loads(file.read_text(encoding="utf-8"))["messages"] for file in files]
    columns = FIGURES.split()
    print(f"{'window':8}{'':14}" + "".join(f"{name:>11}" for name in columns))
    for share in chosen.share:
        for name, make in sides.items():
            figures = Counter[str]()
            for messages in transcripts:
                figures += replay(messages, share, chosen.target, make)
            figures["cost"] = figures["uncached"] + (figures["sent"] - figures["uncached"]) // 10
            row = "".join(f"{figures[figure]:11,}" for figure in columns)
            print(f"{share:<8.0%}{name:14}{row}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
