"""Time compaction and rewrite of a large history, and the import of the client.

The loop's stall is the longest time that another task of the event loop had to wait while a large
history was compacted; beside it that of a loop in which nothing else happens, on the same machine.

python -P bench/client_rewrite.py [--megabytes 4.4] [--times 40]
"""

import asyncio
import random
import sys
import time
from collections.abc import Awaitable
from typing import Any

from bench._run import import_seconds
from fetchstash.client import Policy, Recovery, State, Target, compact, rewrite
from fetchstash.text import tokens
from scripts.drive.programs import options

TEXT = "the request returned a list of files src/main.py 42 0x7f { } value: naïve"


def exchange(call_id: str, result: str) -> list[Any]:
    """Return a call and its result."""
    call = {"id": call_id, "type": "function", "function": {"name": "read", "arguments": "{}"}}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call_id, "content": result},
    ]


def history(size: int) -> list[Any]:
    """Return a history of this many bytes: results of 2 to 60 KB of words and numbers."""
    draw = random.Random(8)
    messages: list[Any] = [
        {"role": "system", "content": "Be good."},
        {"role": "user", "content": "The task."},
    ]
    made = 0
    while made < size:
        result = " ".join(draw.choices([*TEXT.split(), "\n"], k=draw.randint(400, 12_000)))
        messages += exchange(f"call_{made}", result)
        made += len(result)
    return messages


def compactions(messages: list[Any], window: int) -> tuple[float, float]:
    """Return the CPU milliseconds of the first compaction, and the most of ten later ones."""
    state = State()
    history, times = list(messages), list[float]()
    for number in range(11):
        started = time.process_time()
        compact(history, "openai_chat", window, state, window=window)
        times.append((time.process_time() - started) * 1000)
        history += exchange(f"next_{number}", "The result of one more step. " * 40)
    return times[0], max(times[1:])


async def longest_stall(working: Awaitable[Any]) -> tuple[float, float]:
    """Return the longest times in milliseconds that the loop stood still while this was awaited.

    The first is what other tasks had to wait, which a busy machine makes longer; the second the CPU
    that the loop's own thread took meanwhile.
    """
    longest = (0.0, 0.0)

    async def tick() -> None:
        nonlocal longest
        while True:
            wall, cpu = time.perf_counter(), time.thread_time()
            await asyncio.sleep(0.001)
            wall, cpu = time.perf_counter() - wall - 0.001, time.thread_time() - cpu
            longest = (max(longest[0], wall * 1000), max(longest[1], cpu * 1000))

    ticking = asyncio.create_task(tick())
    await working
    ticking.cancel()
    return longest


async def stalls(messages: list[Any], window: int) -> dict[str, tuple[float, float]]:
    """Return the stalls while a history is first compacted, later, and while nothing happens."""
    recovery = Recovery(Policy(window=window))
    tokens.count("The vocabulary is loaded from the start of a program on.")

    async def send(_: Any) -> dict[str, Any]:
        choice = {"message": {"content": "ok"}, "finish_reason": "stop"}
        return {"choices": [choice], "usage": {"prompt_tokens": window // 2}}

    first = await longest_stall(recovery.acall(send, messages))
    more = [*messages, *exchange("next", "The result of one more step. " * 40)]
    later = await longest_stall(recovery.acall(send, more))
    return {"first": first, "later": later, "idle": await longest_stall(asyncio.sleep(1))}


def main() -> int:
    chosen = options(__doc__, megabytes=4.4, times=40)
    messages = history(int(chosen.megabytes * 2**20))
    started = time.process_time()
    tokens.count("A text.")
    loading = (time.process_time() - started) * 1000
    first, later = compactions(messages, 200_000)
    print(
        f"compact first {first:.0f} ms, later at most {later:.0f} ms CPU; "
        f"the vocabulary before it {loading:.0f} ms"
    )
    for name, (wall, cpu) in asyncio.run(stalls(messages, 200_000)).items():
        print(f"the loop's stall, {name}: {wall:.0f} ms, of them {cpu:.1f} ms CPU of its own")
    targets = (
        Target(int(chosen.megabytes * 2**19), "bytes"),
        Target(int(chosen.megabytes * 2**17), "tokens"),
    )
    for target in targets:
        times: list[float] = []
        stubs = 0
        for _ in range(chosen.times):
            started = time.process_time()
            _, report = rewrite(messages, "openai_chat", target, state=State())
            times.append((time.process_time() - started) * 1000)
            stubs = len(report.changes)
        times.sort()
        median, p95 = times[len(times) // 2], times[int(len(times) * 0.95)]
        print(f"{target.unit:7} median {median:.1f} ms, p95 {p95:.1f} ms CPU, {stubs} stubs")
    imports = sorted(import_seconds("fetchstash.client") * 1000 for _ in range(7))
    print(f"import fetchstash.client: {imports[3]:.1f} ms CPU")
    return 0


if __name__ == "__main__":
    sys.exit(main())
