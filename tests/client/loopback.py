"""A provider on loopback with the paths, bodies, errors and streams of the real ones."""

import itertools
import json
import re
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

OVERFLOW = (
    "This model's maximum context length is 2000 tokens. "
    "However, your messages resulted in 6000 tokens."
)
TOO_LONG = "prompt is too long: 6000 tokens > 2000 maximum"
GEMINI_TOO_LONG = (
    "The input token count (6000) exceeds the maximum number of tokens allowed (2000)."
)


class Loopback:
    """Answers each request with the next word of ``script``.

    overflow, good, other (an error), late (an overflow after output), early
    (Anthropic alone: an overflow as an event of a stream, before any output), overloaded (Anthropic
    alone: 529), full and half (Anthropic alone: an answer that ends for the window before it
    begins, or after its first words), call and calls (an answer that calls a tool once, or twice at
    once).

    With a ``limit`` a request that is larger is refused, whatever the script says: in tokens of
    four characters, a picture or a file being 1,000. With ``hold_after`` a stream stops after so
    many events until ``released`` is set; ``released_in_time`` says whether it was. A script that
    has run out goes on with its last word. ``headers`` are sent with every error.
    ``bodies`` are the requests as they came. A ``refusal``, a status and a body, answers every
    request; with status 200 the body is the one event of a stream.
    """

    def __init__(
        self, *script: str, headers: Mapping[str, str] | None = None, limit: int | None = None
    ) -> None:
        self.script = list(script)
        self.limit = limit
        self.refused = 0
        self.refusal: tuple[int, str] | None = None
        self.hold_after = 0
        self.released = threading.Event()
        self.released_in_time = True
        self.headers = dict(headers or {})
        self.bodies: list[dict[str, Any]] = []
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def word(self, body: dict[str, Any]) -> str:
        """Return the word that answers a request."""
        if self.limit is not None and tokens(body) > self.limit:
            self.refused += 1
            return f"overflow {tokens(body)} {self.limit}"
        return self.script.pop(0) if len(self.script) > 1 else self.script[0]

    @property
    def sizes(self) -> list[int]:
        return [len(json.dumps(body)) for body in self.bodies]

    def __enter__(self) -> Self:
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()


def tokens(body: Any) -> int:
    """Return the size of a request as this provider counts it."""
    text = json.dumps(body)
    media = _BASE64.findall(text)
    return (len(text) - sum(map(len, media))) // 4 + 1_000 * len(media)


_BASE64 = re.compile(r"[A-Za-z0-9+/_=-]{1000,}")


def _handler(loopback: Loopback) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            loopback.bodies.append(body)
            streams = body.get("stream") or "streamGenerateContent" in self.path
            if loopback.refusal:
                status, text = loopback.refusal
                text = f"data: {text}\n\n" if status == 200 else text
                answer: Any = [text]
            else:
                word = loopback.word(body)
                status, answer = _answer(self.path.partition("?")[0], word, bool(streams))
                text = "".join(answer) if streams and status == 200 else json.dumps(answer)
            holds = loopback.hold_after if streams and status == 200 else 0
            self.send_response(status)
            self.send_header(
                "Content-Type",
                "text/event-stream" if streams and status == 200 else "application/json",
            )
            if not holds:
                self.send_header("Content-Length", str(len(text.encode())))
            for name, value in loopback.headers.items() if status != 200 else ():
                self.send_header(name, value)
            self.end_headers()
            if holds:
                self.wfile.write("".join(answer[:holds]).encode())
                self.wfile.flush()
                loopback.released_in_time = loopback.released.wait(20)
                text = "".join(answer[holds:])
            self.wfile.write(text.encode())

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - base class
            pass

    return Handler


def _answer(path: str, word: str, streams: bool) -> tuple[int, Any]:
    word, *numbers = word.split()
    answer, calls = ANSWERS.get(path.rpartition("/v1")[2], (_gemini, _gemini_calls))
    named = path.endswith(("/responses", "/messages"))
    if word in {"call", "calls"}:
        whole, events = calls(1 if word == "call" else 2)
        return 200, _sse(*events, named=named) if streams else whole
    status, said = answer(word, streams)
    return status, _with_numbers(said, *numbers) if numbers else said


def _with_numbers(said: Any, size: str, limit: str) -> Any:
    """Return a refusal with these numbers in the place of those that it always states."""
    text = json.dumps(said).replace("6000", size).replace("2000", limit)
    return json.loads(text)


def _sse(*events: Any, named: bool = False) -> list[str]:
    """Write server-sent events (WHATWG HTML, section 9.2), with names where the API has them."""
    names = ["event: " + event["type"] + "\n" if named else "" for event in events]
    data = [event if isinstance(event, str) else json.dumps(event) for event in events]
    return [f"{name}data: {one}\n\n" for name, one in zip(names, data, strict=True)]


def _openai_error(word: str) -> dict[str, Any]:
    if word == "other":
        return {
            "error": {
                "message": "Invalid 'temperature'",
                "type": "invalid_request_error",
                "code": "invalid_value",
                "param": None,
            }
        }
    return {
        "error": {
            "message": OVERFLOW,
            "type": "invalid_request_error",
            "code": "context_length_exceeded",
            "param": "messages",
        }
    }


def _chat(word: str, streams: bool) -> tuple[int, Any]:
    if word in {"overflow", "other"}:
        return 400, _openai_error(word)
    base: dict[str, Any] = {"id": "c1", "created": 1, "model": "m"}
    if not streams:
        message = {"role": "assistant", "content": "Hello."}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        return 200, {
            **base,
            "object": "chat.completion",
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": usage,
        }
    chunks = [{"role": "assistant", "content": ""}, {"content": "Hel"}, {"content": "lo."}]
    events: list[Any] = [
        {
            **base,
            "object": "chat.completion.chunk",
            "choices": [{"index": 0, "delta": d, "finish_reason": None}],
        }
        for d in chunks
    ]
    if word == "late":
        return 200, _sse(*events[:2], _openai_error("overflow"))
    end: dict[str, Any] = {
        **events[0],
        "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}],
    }
    return 200, _sse(*events, end, "[DONE]")


def _responses(word: str, streams: bool) -> tuple[int, Any]:
    text: dict[str, Any] = {"type": "output_text", "text": "Hello.", "annotations": []}
    message: dict[str, Any] = {
        "type": "message",
        "id": "m1",
        "role": "assistant",
        "status": "completed",
        "content": [text],
    }
    base: dict[str, Any] = {
        "id": "r1",
        "object": "response",
        "created_at": 1,
        "model": "m",
        "tools": [],
        "tool_choice": "auto",
        "parallel_tool_calls": True,
    }
    done: dict[str, Any] = {**base, "status": "completed", "output": [message], "error": None}
    if not streams:
        return (400, _openai_error(word)) if word in {"overflow", "other"} else (200, done)
    created: dict[str, Any] = {
        "type": "response.created",
        "sequence_number": 0,
        "response": {**base, "output": []},
    }
    error = {
        "code": "context_length_exceeded" if word != "other" else "server_error",
        "message": "Your input is refused.",
    }
    failed: dict[str, Any] = {
        "type": "response.failed",
        "sequence_number": 3,
        "response": {**base, "status": "failed", "output": [], "error": error},
    }
    delta: dict[str, Any] = {
        "type": "response.output_text.delta",
        "sequence_number": 2,
        "item_id": "m1",
        "output_index": 0,
        "content_index": 0,
        "delta": "Hello.",
        "logprobs": [],
    }
    if word in {"overflow", "other"}:
        return 200, _sse(created, failed, named=True)
    last: dict[str, Any] = (
        failed
        if word == "late"
        else {"type": "response.completed", "sequence_number": 3, "response": done}
    )
    item: dict[str, Any] = {**message, "status": "in_progress", "content": []}
    added = {"type": "response.output_item.added", "sequence_number": 1, "output_index": 0}
    part = {"type": "response.content_part.added", "sequence_number": 1, "item_id": "m1"}
    part |= {"output_index": 0, "content_index": 0, "part": {**text, "text": ""}}
    return 200, _sse(created, {**added, "item": item}, part, delta, last, named=True)


def _anthropic(word: str, streams: bool) -> tuple[int, Any]:
    if word == "overloaded":
        return 529, {
            "type": "error",
            "error": {"type": "overloaded_error", "message": "Overloaded"},
        }
    if word in {"overflow", "other"}:
        message = TOO_LONG if word == "overflow" else "temperature: must be less than or equal to 1"
        return 400, {
            "type": "error",
            "error": {"type": "invalid_request_error", "message": message},
        }
    base: dict[str, Any] = {"id": "m1", "type": "message", "role": "assistant", "model": "m"}
    usage = {"input_tokens": 1, "output_tokens": 1}
    reason = "model_context_window_exceeded" if word in {"full", "half"} else "end_turn"
    if not streams:
        return 200, {
            **base,
            "content": [] if word == "full" else [{"type": "text", "text": "Hello."}],
            "stop_reason": reason,
            "usage": usage,
        }
    start: dict[str, Any] = {
        "type": "message_start",
        "message": {**base, "content": [], "usage": usage},
    }
    block = {
        "type": "content_block_start",
        "index": 0,
        "content_block": {"type": "text", "text": ""},
    }
    delta: dict[str, Any] = {
        "type": "content_block_delta",
        "index": 0,
        "delta": {"type": "text_delta", "text": "Hello."},
    }
    error = {"type": "error", "error": {"type": "invalid_request_error", "message": TOO_LONG}}
    if word == "early":
        return 200, _sse(start, error, named=True)
    if word == "late":
        return 200, _sse(start, block, delta, error, named=True)
    stop = {"type": "content_block_stop", "index": 0}
    end: dict[str, Any] = {
        "type": "message_delta",
        "delta": {"stop_reason": reason},
        "usage": {"output_tokens": 1},
    }
    if word == "full":
        return 200, _sse(start, end, {"type": "message_stop"}, named=True)
    return 200, _sse(start, block, delta, stop, end, {"type": "message_stop"}, named=True)


def _gemini(word: str, streams: bool) -> tuple[int, Any]:
    error = {"error": {"code": 400, "message": GEMINI_TOO_LONG, "status": "INVALID_ARGUMENT"}}
    if word == "overflow":
        return 400, error
    if word == "other":
        return 400, {
            "error": {"code": 400, "message": "Unknown name.", "status": "INVALID_ARGUMENT"}
        }
    piece = {
        "candidates": [{"content": {"role": "model", "parts": [{"text": "Hello."}]}, "index": 0}]
    }
    end: dict[str, Any] = {
        "candidates": [
            {"content": {"role": "model", "parts": [{"text": ""}]}, "finishReason": "STOP"}
        ]
    }
    if not streams:
        return 200, {**piece, "usageMetadata": {"totalTokenCount": 2}}
    return 200, _sse(piece, error if word == "late" else end)


# Answers that call the tool ``fetch``, whole and as events.

_numbers = itertools.count(1)
Streamed = list[dict[str, Any] | str]


def _chat_calls(parallel: int) -> tuple[dict[str, Any], Streamed]:
    """Return a Chat Completions answer that calls ``fetch``, and its chunks."""
    base: dict[str, Any] = {"id": "c1", "created": 1, "model": "m"}
    calls = [
        {"id": f"call_{number}", "type": "function", "function": _function(number)}
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
    return whole, [*chunks, {**base, "object": "chat.completion.chunk", "choices": [end]}, "[DONE]"]


def _function(number: int) -> dict[str, Any]:
    return {"name": "fetch", "arguments": json.dumps({"page": number})}


def _responses_calls(parallel: int) -> tuple[dict[str, Any], Streamed]:
    """Return a Responses answer with reasoning and calls, and its events."""
    first = next(_numbers)
    items: list[dict[str, Any]] = [{"type": "reasoning", "id": f"rs_{first}", "summary": []}]
    items += [
        {
            "type": "function_call",
            "id": f"fc_{number}",
            "call_id": f"call_{number}",
            "status": "completed",
            **_function(number),
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


def _anthropic_calls(parallel: int) -> tuple[dict[str, Any], Streamed]:
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


def _gemini_calls(parallel: int) -> tuple[dict[str, Any], Streamed]:
    """Return a Gemini answer with calls, and its chunks."""
    parts = [
        {"functionCall": {"name": "fetch", "args": {"page": number}}, "thoughtSignature": "cw=="}
        for number in itertools.islice(_numbers, parallel)
    ]
    candidate = {"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}
    whole: dict[str, Any] = {"candidates": [candidate], "usageMetadata": {"totalTokenCount": 2}}
    return whole, [whole]


ANSWERS = {
    "/chat/completions": (_chat, _chat_calls),
    "/responses": (_responses, _responses_calls),
    "/messages": (_anthropic, _anthropic_calls),
}
"""What answers the requests of an API by its path; Gemini's has the name of the model in it."""
