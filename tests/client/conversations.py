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
    calls, results = list[Any](), list[Any]()
    for call_id, (name, argument, result) in zip(ids, turn.calls, strict=True):
        function = {"name": name, "arguments": json.dumps({"what": argument})}
        calls.append({"id": call_id, "type": "function", "function": function})
        results.append({"role": "tool", "tool_call_id": call_id, "content": result})
    return [{"role": "assistant", "content": turn.text or None, "tool_calls": calls}, *results]


def _responses(turn: Turn, ids: list[str]) -> list[Any]:
    if turn.kind != "tools":
        return [{"type": "message", "role": turn.kind, "content": turn.text}]
    items: list[Any] = [{"type": "reasoning", "id": f"rs_{ids[0]}", "summary": []}]
    items, outputs = items if turn.reasoning else [], list[Any]()
    for call_id, (name, argument, result) in zip(ids, turn.calls, strict=True):
        arguments = {"name": name, "arguments": json.dumps({"what": argument})}
        items.append({"type": "function_call", "call_id": call_id, **arguments})
        outputs.append({"type": "function_call_output", "call_id": call_id, "output": result})
    return items + outputs


def _anthropic(turn: Turn, ids: list[str]) -> list[Any]:
    if turn.kind != "tools":
        return [{"role": turn.kind, "content": [{"type": "text", "text": turn.text}]}]
    said: list[Any] = [{"type": "thinking", "thinking": "hm", "signature": "s"}]
    said, results = said if turn.reasoning else [], list[Any]()
    for call_id, (name, argument, result) in zip(ids, turn.calls, strict=True):
        said.append({"type": "tool_use", "id": call_id, "name": name, "input": {"what": argument}})
        results.append({"type": "tool_result", "tool_use_id": call_id, "content": result})
    return [{"role": "assistant", "content": said}, {"role": "user", "content": results}]


def _gemini(turn: Turn, _ids: list[str]) -> list[Any]:
    if turn.kind != "tools":
        role = "model" if turn.kind == "assistant" else "user"
        return [{"role": role, "parts": [{"text": turn.text}]}]
    said, results = list[Any](), list[Any]()
    for name, argument, result in turn.calls:
        said.append({"functionCall": {"name": name, "args": {"what": argument}}})
        results.append({"functionResponse": {"name": name, "response": {"result": result}}})
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


def medium(fmt: str, media_type: str, data: str) -> dict[str, Any]:
    """Return the block of a picture or of a PDF, whose bytes ``data`` has in base64."""
    url, shows = f"data:{media_type};base64,{data}", media_type.startswith("image/")
    file = {"filename": "a.pdf", "file_data": url}
    source = {"type": "base64", "media_type": media_type, "data": data}
    blocks: dict[tuple[str, bool], dict[str, Any]] = {
        ("openai_chat", True): {"type": "image_url", "image_url": {"url": url}},
        ("openai_chat", False): {"type": "file", "file": file},
        ("openai_responses", True): {"type": "input_image", "image_url": url, "detail": "auto"},
        ("openai_responses", False): {"type": "input_file", **file},
        ("anthropic", True): {"type": "image", "source": source},
        ("anthropic", False): {"type": "document", "source": source},
    }
    return blocks.get((fmt, shows), {"inlineData": {"mimeType": media_type, "data": data}})
