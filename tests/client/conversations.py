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


def blocks_of(message: Any, fmt: str) -> list[Any]:
    """Return what a message is made of; a content that is a string is one block."""
    content = message.get("parts" if fmt == "gemini" else "content")
    if isinstance(content, str):
        return [{"text": content}] if content else []
    return content or []


def texts_of(messages: list[Any], fmt: str, role: str) -> list[str]:
    """Return the texts that a role says, without those of messages that call a tool."""
    texts: list[str] = []
    for message in messages:
        blocks = blocks_of(message, fmt)
        said_by = "assistant" if message.get("role") == "model" else message.get("role")
        calls = message.get("tool_calls") or any(
            block.get("type") == "tool_use" or "functionCall" in block for block in blocks
        )
        if said_by == role and not calls:
            texts += [block["text"] for block in blocks if isinstance(block.get("text"), str)]
    return texts


def results(messages: list[Any], fmt: str) -> list[tuple[dict[str, Any], str]]:
    """Return where the result of each call stands: in which object, under which key."""
    if fmt == "openai_chat":
        return [(message, "content") for message in messages if message["role"] == "tool"]
    if fmt == "openai_responses":
        return [(item, "output") for item in messages if item.get("type") == "function_call_output"]
    blocks = [block for message in messages for block in blocks_of(message, fmt)]
    if fmt == "anthropic":
        return [(block, "content") for block in blocks if block.get("type") == "tool_result"]
    answers = [block["functionResponse"] for block in blocks if "functionResponse" in block]
    return [(answer, "response") for answer in answers]


def stub_of(result: Any) -> Any:
    """Return a stub as data: a format takes it as an object or as its JSON."""
    return json.loads(result) if isinstance(result, str) else result
