"""Results that are too large by themselves: for the window, or for what is left of it."""

import json
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from fetchstash.client._events import OnEvent
from fetchstash.client._formats import Part, plain
from fetchstash.client._oversized import ToolCall, oversized_stub
from fetchstash.client._shapes import is_object
from fetchstash.client._stubs import (
    MOST_PREVIEW_TOKENS,
    RESULT_TARGET,
    WORTH,
    as_value,
    preview_stub,
)
from fetchstash.client._work import BYTES_PER_TOKEN, PREVIEW, SMALLEST_TOKENS, Work


def stub_oversized(work: Work, window: int, on_event: OnEvent | None) -> None:
    """Replace each result that is strictly above the policy's share of a context window."""
    limit = window * work.policy.oversized_fraction
    for part in work.all_parts:
        if part.kind != "result" or part.background or part.message < work.prefix:
            continue
        if part.shape == "fixed" or part.place in work.changes:
            continue
        size = work.sizes.tokens(part)
        if size > limit:
            call = ToolCall(part.call_id, work.name_of(part), _arguments(work, part))
            make = partial(oversized_stub, part.value, call, size, window, work.policy, on_event)
            work.put(part, 2, (RESULT_TARGET, f"oversized:{call.name}"), make)


def stub_unavoidable(work: Work, goal: int) -> None:
    """Shrink the latest results first if no other stub can bring the size down to ``goal``.

    Older results would be lost for nothing.
    """
    if sum(work.size_of(part) for part in work.all_parts if part.message in work.kept) > goal:
        stub_latest(work, goal)


def stub_latest(work: Work, goal: int) -> None:
    """Give results of the latest exchange a preview instead, largest first, until ``goal``.

    As few as possible go, and these share the room that is left.
    """
    latest = next((unit for unit in reversed(work.units) if unit.exchange), None)
    if latest is None or work.size <= goal:
        return
    first = max(latest.start, work.prefix)
    results = [
        part
        for part in work.all_parts
        if part.kind == "result" and first <= part.message < latest.end
        if work.is_large(part, SMALLEST_TOKENS["result"]) and work.has_room_to_shrink(part)
    ]
    results.sort(key=work.size_of, reverse=True)
    scale = BYTES_PER_TOKEN if work.unit == "bytes" else 1
    sizes = [work.size_of(part) // scale for part in results]
    count, share = _shares(sizes, (work.size - goal) // scale + 1)
    target = max(share // 50 * 50, RESULT_TARGET)  # rounded, so that a retry makes the same stub
    for part in results[:count]:
        work.candidates += 1
        make = partial(_preview, work, part, target * scale)
        if work.put(part, 2, (target, PREVIEW + work.name_of(part)), make):
            work.stage = max(work.stage, 2)


def _arguments(work: Work, part: Part) -> dict[str, Any]:
    value: Any = work.calls[part.place].value if part.place in work.calls else {}
    with suppress(ValueError, RecursionError):
        value = json.loads(value) if isinstance(value, str) else value
    return value if is_object(value) else {"arguments": value}


def _preview(work: Work, part: Part, room: int) -> dict[str, Any]:
    def size(stub: Any) -> int:
        return work.value_size(as_value(part, stub))

    return preview_stub(plain(part.value), work.name_of(part), work.policy.offload, room, size)


def _shares(sizes: Sequence[int], excess: int) -> tuple[int, int]:
    """Return how many of the falling ``sizes`` to replace, and the tokens that each may have."""
    for count in range(1, len(sizes) + 1):
        share = (sum(sizes[:count]) - excess) // count
        if share >= RESULT_TARGET:
            return count, min(share, MOST_PREVIEW_TOKENS, int(sizes[count - 1] * WORTH))
    return len(sizes), RESULT_TARGET
