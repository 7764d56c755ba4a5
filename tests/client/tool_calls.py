"""Answers with tool calls, as the providers' APIs give them, plain and streamed."""

import itertools
import json
from typing import Any

_numbers = itertools.count(1)
Streamed = list[dict[str, Any] | str]


def chat(parallel: int) -> tuple[dict[str, Any], Streamed]:
    """Return a Chat Completions answer that calls ``fetch``, and its chunks."""
    base: dict[str, Any] = {"id": "c1", "created": 1, "model": "m"}
    calls = [
        {"id": f"call_{number}", "type": "function", "function": function(number)}
        for number in itertools.islice(_numbers, parallel)
    ]
    message = {"role": "assistant", "content": None, "tool_calls": calls}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    whole = {
        **base,
        "object": "chat.completion",
        "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}],
        "usage": usage,
    }
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": None}]
    deltas += [{"tool_calls": [{"index": n, **call}]} for n, call in enumerate(calls)]
    chunks: Streamed = [
        {**base, "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": d}]}
        for d in deltas
    ]
    end: dict[str, Any] = {"index": 0, "delta": {}, "finish_reason": "tool_calls"}
    return whole, [
        *chunks,
        {**base, "object": "chat.completion.chunk", "choices": [end]},
        "[DONE]",
    ]


def function(number: int) -> dict[str, Any]:
    return {"name": "fetch", "arguments": json.dumps({"page": number})}


def responses(parallel: int) -> tuple[dict[str, Any], Streamed]:
    """Return a Responses answer with reasoning and calls, and its events."""
    first = next(_numbers)
    items: list[dict[str, Any]] = [{"type": "reasoning", "id": f"rs_{first}", "summary": []}]
    items += [
        {
            "type": "function_call",
            "id": f"fc_{number}",
            "call_id": f"call_{number}",
            "status": "completed",
            **function(number),
        }
        for number in itertools.islice(_numbers, parallel)
    ]
    base: dict[str, Any] = {
        "id": "r1", "object": "response", "created_at": 1, "model": "m", "tools": [],
        "tool_choice": "auto", "parallel_tool_calls": True, "error": None,
    }  # fmt: skip
    whole = base | {"status": "completed", "output": items}
    events: Streamed = [{"type": "response.created", "response": base | {"output": []}}]
    for index, item in enumerate(items):
        events.append({"type": "response.output_item.added", "output_index": index, "item": item})
        events.append({"type": "response.output_item.done", "output_index": index, "item": item})
    events.append({"type": "response.completed", "response": whole})
    return whole, [
        event | {"sequence_number": number}
        for number, event in enumerate(events)
        if not isinstance(event, str)
    ]


def anthropic(parallel: int) -> tuple[dict[str, Any], Streamed]:
    """Return a Messages answer that thinks and calls, and its events."""
    blocks: list[dict[str, Any]] = [{"type": "thinking", "thinking": "hm", "signature": "s"}]
    blocks += [
        {"type": "tool_use", "id": f"toolu_{number}", "name": "fetch", "input": {"page": number}}
        for number in itertools.islice(_numbers, parallel)
    ]
    base = {"id": "m1", "type": "message", "role": "assistant", "model": "m"}
    usage = {"input_tokens": 1, "output_tokens": 1}
    whole = base | {"content": blocks, "stop_reason": "tool_use", "usage": usage}
    events: Streamed = [
        {"type": "message_start", "message": base | {"content": [], "usage": usage}}
    ]
    for index, block in enumerate(blocks):
        thinks = block["type"] == "thinking"
        empty: dict[str, Any] = {"thinking": "", "signature": ""} if thinks else {"input": {}}
        deltas = (
            [
                {"type": "thinking_delta", "thinking": "hm"},
                {"type": "signature_delta", "signature": "s"},
            ]
            if thinks
            else [{"type": "input_json_delta", "partial_json": json.dumps(block["input"])}]
        )
        events.append(
            {"type": "content_block_start", "index": index, "content_block": block | empty}
        )
        events += [
            {"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas
        ]
        events.append({"type": "content_block_stop", "index": index})
    delta = {"stop_reason": "tool_use"}
    events.append({"type": "message_delta", "delta": delta, "usage": {"output_tokens": 1}})
    return whole, [*events, {"type": "message_stop"}]


def gemini(parallel: int) -> tuple[dict[str, Any], Streamed]:
    """Return a Gemini answer with calls, and its chunks."""
    parts = [
        {"functionCall": {"name": "fetch", "args": {"page": number}}, "thoughtSignature": "cw=="}
        for number in itertools.islice(_numbers, parallel)
    ]
    candidate = {"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}
    whole: dict[str, Any] = {"candidates": [candidate], "usageMetadata": {"totalTokenCount": 2}}
    return whole, [whole]
