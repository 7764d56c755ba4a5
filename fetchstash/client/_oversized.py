"""Stubs of results that are too large for a model's window."""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Any

from fetchstash.client._formats import Part, as_json, plain
from fetchstash.client._policy import Policy
from fetchstash.client._sizes import OnEvent, emit, json_tokens
from fetchstash.client._streams import is_list, is_object
from fetchstash.client._stubs import (
    MOST_PREVIEW_TOKENS,
    RESULT_TARGET,
    WORTH,
    Kept,
    as_value,
    facts_of,
    keep,
    preview_stub,
)
from fetchstash.client._windows import context_window
from fetchstash.client._work import BYTES_PER_TOKEN, PREVIEW, SMALLEST_TOKENS, Work

MAX_ARGUMENT_CHARS, MAX_ARGUMENTS_CHARS = 200, 1_000
"""What a stub repeats of one argument of the call, and of all of them."""

MAX_NAMES, MAX_NAME_CHARS = 12, 40
"""How many keys of a result it names, and how long they may be."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """The call whose result this is."""

    id: str
    name: str
    args: Mapping[str, Any] = field(default_factory=dict[str, Any])


def stub_oversized(
    result: Any,
    call: ToolCall,
    model_or_window: str | int,
    *,
    policy: Policy | None = None,
    on_event: OnEvent | None = None,
) -> Any:
    """Return ``result``, or a stub (an object) if it is too large for the model that will read it.

    That is strictly above ``policy.oversized_fraction`` of its context window. Give the name of the
    model, or its window in tokens. Text, or JSON, is measured in tokens, and media by the rules of
    their providers. ``policy.offload`` keeps the result, if there is one.
    """
    policy = policy or Policy()
    window = (
        context_window(model_or_window) if isinstance(model_or_window, str) else model_or_window
    )
    size = json_tokens(result)
    if size <= window * policy.oversized_fraction:
        return result
    return oversized_stub(result, call, size, window, policy, on_event)


def oversized_stub(
    result: Any,
    call: ToolCall,
    size: int,
    window: int,
    policy: Policy,
    on_event: OnEvent | None = None,
) -> dict[str, Any]:
    """Return the stub of a result of ``size`` tokens, too large for a ``window`` in tokens."""
    text = plain(result)
    facts = facts_of(text)
    kept = Kept(facts.artifact_ref) if facts.artifact_ref else keep(policy.offload, text, call.name)
    ref = kept.ref
    emit(
        on_event,
        "tool.result.oversized_excluded",
        {"tool": call.name, "tokens": size, "window": window, "artifact_ref": ref or None},
    )
    share = f"{policy.oversized_fraction:.0%}"
    return {
        "status": "oversized",
        "toolCallId": call.id,
        "toolName": call.name,
        "warning": f"The result of {call.name} is not shown: it has about {size} tokens.",
        "reason": f"It is larger than {share} of the context window of {window} tokens.",
        "toolInfo": {
            "toolName": call.name,
            "toolArgs": _clean(call.args),
            "structureInfo": structure_info(result),
        },
        "recommendation": _recommendation(kept),
        "artifact_ref": ref,
    }


def _recommendation(kept: Kept) -> str:
    if kept.ref:
        tools = "artifact_grep or artifact_slice"
        return f'Read what is needed of it: {tools}, artifact_ref="{kept.ref}".'
    lost = "It could not be kept, so that it is gone. " if kept.lost else ""
    return f"{lost}Call the tool again for less: a smaller range, a filter, or fewer items."


def structure_info(result: Any) -> str:
    """Return in one line how a result is built: its keys, its items, its lines."""
    if isinstance(result, str):
        try:
            data: Any = json.loads(result)
        except (ValueError, RecursionError):
            data = result
        if isinstance(data, str):
            return f"text of {len(result)} characters, {result.count(chr(10)) + 1} lines"
        result = data
    if is_object(result):
        return f"object of {len(result)} keys, among them {_names(result)}"
    if is_list(result):
        first = result[0] if result else None
        keys = f", the first with the keys {_names(first)}" if is_object(first) else ""
        return f"array of {len(result)} items{keys}"
    return type(result).__name__


def _names(data: Mapping[Any, Any]) -> str:
    """Return the first keys that are names, short and printable. Others would be content."""
    names = [str(name) for name in islice(data, MAX_NAMES)]
    return ", ".join(name for name in names if len(name) <= MAX_NAME_CHARS and name.isprintable())


def _clean(args: Mapping[str, Any]) -> dict[str, Any]:
    """Return short, printable arguments, none of them a document."""
    shown: dict[str, Any] = {}
    room = MAX_ARGUMENTS_CHARS
    for name, value in args.items():
        text = value if isinstance(value, str) else as_json(value)
        plain = "".join(character for character in text if character.isprintable())
        if len(plain) > MAX_ARGUMENT_CHARS:
            plain = f"({len(plain)} characters)"
        room -= len(plain) + len(str(name))
        if room < 0:
            break
        shown["".join(filter(str.isprintable, str(name)))[:80]] = (
            plain if isinstance(value, str) or plain != text else value
        )
    return shown


def results_stub_oversized(work: Work, window: int, on_event: OnEvent | None) -> None:
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
