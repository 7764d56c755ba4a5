"""Random conversations in all four formats, for property tests, as a provider would take them."""

import json
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

FORMATS = ("openai_chat", "openai_responses", "anthropic", "gemini")


@dataclass(frozen=True)
class Turn:
    """One step: the user or the model says something, or the model calls tools."""

    kind: str
    text: str
    calls: tuple[tuple[str, str, str], ...] = ()
    """Each a tool's name, its one argument, and its result."""
    reasoning: bool = False


_words = st.text("abc äß\n{}\"'é漢", max_size=40)
_long: st.SearchStrategy[str] = st.tuples(_words, st.integers(0, 200)).map(
    lambda drawn: (drawn[0] or "x") * drawn[1]
)
_call: st.SearchStrategy[tuple[str, str, str]] = st.tuples(
    st.sampled_from(["fetch", "read", "todo_write"]), _long, _long
)
_turn: st.SearchStrategy[Turn] = st.one_of(
    st.builds(Turn, st.just("user"), _long),
    st.builds(Turn, st.just("assistant"), _long),
    st.builds(
        Turn,
        st.just("tools"),
        _words,
        st.lists(_call, min_size=1, max_size=3).map(tuple),
        st.booleans(),
    ),
)
turns: st.SearchStrategy[list[Turn]] = st.lists(_turn, max_size=14).map(
    lambda middle: [Turn("user", "the task"), *middle]
)


def render(history: list[Turn], fmt: str, *, repeat_ids: bool = False) -> list[Any]:
    """Write this history in a format.

    ``repeat_ids``: each exchange uses the same call ids again, as real transcripts do.
    """
    messages: list[Any] = (
        [{"role": "system", "content": "Be good."}] if fmt.startswith("openai") else []
    )
    for number, turn in enumerate(history):
        ids = [f"call_{0 if repeat_ids else number}_{index}" for index in range(len(turn.calls))]
        messages += _WRITERS[fmt](turn, ids)
    return messages


def _chat(turn: Turn, ids: list[str]) -> list[Any]:
    if turn.kind != "tools":
        return [{"role": turn.kind, "content": turn.text}]
    calls = [
        {
            "id": i,
            "type": "function",
            "function": {"name": name, "arguments": json.dumps({"what": argument})},
        }
        for i, (name, argument, _) in zip(ids, turn.calls, strict=True)
    ]
    results = [
        {"role": "tool", "tool_call_id": i, "content": result}
        for i, (_, _, result) in zip(ids, turn.calls, strict=True)
    ]
    return [{"role": "assistant", "content": turn.text or None, "tool_calls": calls}, *results]


def _responses(turn: Turn, ids: list[str]) -> list[Any]:
    if turn.kind != "tools":
        return [{"type": "message", "role": turn.kind, "content": turn.text}]
    items: list[Any] = (
        [{"type": "reasoning", "id": f"rs_{ids[0]}", "summary": []}] if turn.reasoning else []
    )
    items += [
        {
            "type": "function_call",
            "call_id": i,
            "name": name,
            "arguments": json.dumps({"what": argument}),
        }
        for i, (name, argument, _) in zip(ids, turn.calls, strict=True)
    ]
    outputs = [
        {"type": "function_call_output", "call_id": i, "output": call[2]}
        for i, call in zip(ids, turn.calls, strict=True)
    ]
    return items + outputs


def _anthropic(turn: Turn, ids: list[str]) -> list[Any]:
    if turn.kind != "tools":
        return [{"role": turn.kind, "content": [{"type": "text", "text": turn.text}]}]
    said: list[Any] = (
        [{"type": "thinking", "thinking": "hm", "signature": "s"}] if turn.reasoning else []
    )
    said += [
        {"type": "tool_use", "id": i, "name": name, "input": {"what": argument}}
        for i, (name, argument, _) in zip(ids, turn.calls, strict=True)
    ]
    results = [
        {"type": "tool_result", "tool_use_id": i, "content": call[2]}
        for i, call in zip(ids, turn.calls, strict=True)
    ]
    return [{"role": "assistant", "content": said}, {"role": "user", "content": results}]


def _gemini(turn: Turn, _ids: list[str]) -> list[Any]:
    if turn.kind != "tools":
        return [
            {
                "role": "model" if turn.kind == "assistant" else "user",
                "parts": [{"text": turn.text}],
            }
        ]
    said = [
        {"functionCall": {"name": name, "args": {"what": argument}}}
        for name, argument, _ in turn.calls
    ]
    results = [
        {"functionResponse": {"name": name, "response": {"result": result}}}
        for name, _, result in turn.calls
    ]
    return [{"role": "model", "parts": said}, {"role": "user", "parts": results}]


_WRITERS = {
    "openai_chat": _chat,
    "openai_responses": _responses,
    "anthropic": _anthropic,
    "gemini": _gemini,
}
