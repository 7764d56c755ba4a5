"""Tool results that alone would take too much of the context window: replaced by a stub."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from fetchstash.client._artifacts import facts_of
from fetchstash.client._events import OnEvent, emit
from fetchstash.client._formats import as_json, plain
from fetchstash.client._keep import Kept, keep
from fetchstash.client._policy import Policy
from fetchstash.client._shapes import is_list, is_object
from fetchstash.client._sizes import json_tokens
from fetchstash.client._windows import context_window

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
