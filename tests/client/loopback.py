"""A provider on loopback with the paths, bodies, errors and streams of the real ones."""

import itertools
import json
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from tests.loopback import Quiet

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

    overflow, good, other (an error), late (an overflow after output), early (one as an event of a
    stream, before any output), overloaded (Anthropic alone: 529), full and half (Anthropic alone:
    an answer that ends for the window before it begins, or after its first words), call and calls
    (an answer that calls a tool once, or twice at once).

    With a ``limit`` a request that is larger is refused, whatever the script says: in tokens of
    four characters, a picture or a file being 1,000. With ``hold_after`` a stream stops after so
    many events until ``released`` is set; ``released_in_time`` says whether it was. A script that
    has run out goes on with its last word. ``headers`` are sent with every error.
    ``bodies`` are the requests as they came. A ``refusal``, a status and a body, answers every
    request; with status 200 the body is the one event of a stream. ``refuse`` returns the words
    that refuse a body with ``refuse_status``, "" if none do.
    """

    def __init__(
        self, *script: str, headers: Mapping[str, str] | None = None, limit: int | None = None
    ) -> None:
        self.script = list(script)
        self.limit = limit
        self.refused = 0
        self.refusal: tuple[int, str] | None = None
        self.refuse: Callable[[Any], str] = lambda _: ""
        self.refuse_status = 400
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
    class Handler(Quiet):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            loopback.bodies.append(body)
            streams = body.get("stream") or "streamGenerateContent" in self.path
            words = loopback.refuse(body)
            answer: Any
            if words:
                loopback.refused += 1
                error = {"type": "invalid_request_error", "message": words}
                status, answer = loopback.refuse_status, [{"type": "error", "error": error}]
                text = json.dumps(answer[0])
            elif loopback.refusal:
                status, text = loopback.refusal
                name = "event: error\n" if text.startswith('{"type": "error"') else ""
                text = f"{name}data: {text}\n\n" if status == 200 else text
                answer = [text]
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

    return Handler


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call of a tool; its id has the API's own prefix before this one."""

    id: str
    name: str
    arguments: Mapping[str, Any]


Said = str | Sequence[ToolCall]
"""What an answer says: a text, or calls."""

Answer = tuple[dict[str, Any], list[Any]]
"""An answer as a whole, and as events."""

_numbers = itertools.count(1)


def _answer(path: str, word: str, streams: bool) -> tuple[int, Any]:
    word, *numbers = word.split()
    api = APIS.get(path.rpartition("/v1")[2], GEMINI)
    status, said = api.answer(word, streams)
    return status, with_numbers(said, *numbers) if numbers else said


def with_numbers(said: Any, size: str, limit: str) -> Any:
    """Return a refusal with these numbers in the place of those that it always states."""
    text = json.dumps(said).replace("6000", size).replace("2000", limit)
    return json.loads(text)


@dataclass(frozen=True)
class Api:
    """How an API answers and refuses.

    ``late`` of its events come before an overflow after output. ``named``: its events have names.
    """

    write: Callable[[Said], Answer]
    refusal: Callable[[str], Any]
    late: int
    named: bool = False

    def answer(self, word: str, streams: bool) -> tuple[int, Any]:
        """Return the status and the body, or the events of the body, that a word stands for."""
        numbers = itertools.islice(_numbers, {"call": 1, "calls": 2}.get(word, 0))
        calls = [ToolCall(str(n), "fetch", {"page": n}) for n in numbers]
        whole, events = self.write(calls or "Hello.")
        if word in {"overflow", "other"}:
            if not (streams and self is APIS["/responses"]):
                return 400, self.refusal(word)
            events = [events[0], _failed(word)]  # which the API says inside the stream
        elif word == "overloaded":
            overloaded = {"type": "overloaded_error", "message": "Overloaded"}
            return 529, {"type": "error", "error": overloaded}
        elif word in {"late", "early"} and streams:
            error = _failed if self is APIS["/responses"] else self.refusal
            events = [*events[: self.late if word == "late" else 1], error("overflow")]
        elif word in {"full", "half"}:
            whole, events = _ended_for_the_window(whole, events, empty=word == "full")
        return 200, sse(*events, named=self.named) if streams else whole


def sse(*events: Any, named: bool = False) -> list[str]:
    """Write server-sent events (WHATWG HTML, section 9.2), with names where the API has them."""
    names = ["event: " + event["type"] + "\n" if named else "" for event in events]
    data = [event if isinstance(event, str) else json.dumps(event) for event in events]
    return [f"{name}data: {one}\n\n" for name, one in zip(names, data, strict=True)]


def _openai_refusal(word: str) -> dict[str, Any]:
    if word == "other":
        error = {"message": "Invalid 'temperature'", "code": "invalid_value", "param": None}
    else:
        code = "context_length_exceeded"
        error = {"message": OVERFLOW, "code": code, "param": "messages"}
    return {"error": error | {"type": "invalid_request_error"}}


def _chat(said: Said) -> Answer:
    calls = [
        {"id": f"call_{call.id}", "type": "function"}
        | {"function": {"name": call.name, "arguments": json.dumps(call.arguments)}}
        for call in (said if not isinstance(said, str) else ())
    ]
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": None if calls else ""}]
    deltas += [{"tool_calls": [{"index": n, **call}]} for n, call in enumerate(calls)]
    deltas += [{"content": text} for text in (said[:3], said[3:])] if isinstance(said, str) else []
    message: dict[str, Any] = {"role": "assistant", "content": None if calls else said}
    message |= {"tool_calls": calls} if calls else {}
    reason = "tool_calls" if calls else "stop"
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    whole: dict[str, Any] = {"id": "c1", "created": 1, "model": "m", "object": "chat.completion"}
    chunk = whole | {"object": "chat.completion.chunk"}
    choice: dict[str, Any] = {"index": 0, "finish_reason": reason}
    ends: list[dict[str, Any]] = [
        *({"delta": d, "finish_reason": None} for d in deltas),
        {"delta": {}},
    ]
    chunks = [chunk | {"choices": [choice | end]} for end in ends]
    return whole | {"choices": [choice | {"message": message}], "usage": usage}, [*chunks, "[DONE]"]


RESPONSE: dict[str, Any] = {
    "id": "r1",
    "object": "response",
    "created_at": 1,
    "model": "m",
    "tools": [],
    "tool_choice": "auto",
    "parallel_tool_calls": True,
    "output": [],
    "error": None,
}


def _responses(said: Said) -> Answer:
    """Write a message, or reasoning and calls."""
    if isinstance(said, str):
        text: dict[str, Any] = {"type": "output_text", "text": said, "annotations": []}
        message: dict[str, Any] = {"type": "message", "id": "m1", "role": "assistant"}
        return responded(message | {"status": "completed", "content": [text]})
    return responded(
        {"type": "reasoning", "id": f"rs_{said[0].id}", "summary": []},
        *(
            {"type": "function_call", "id": f"fc_{call.id}", "call_id": f"call_{call.id}"}
            | {"status": "completed", "name": call.name, "arguments": json.dumps(call.arguments)}
            for call in said
        ),
    )


def responded(*items: dict[str, Any]) -> Answer:
    """Write items as a response."""
    events: list[Any] = [{"type": "response.created", "response": RESPONSE}]
    for index, item in enumerate(items):
        begun: dict[str, Any] = {**item}
        if "content" in item:
            begun |= {"status": "in_progress", "content": []}
        place = {"output_index": index}
        events.append({"type": "response.output_item.added", "item": begun} | place)
        for text in item.get("content", ()):
            at: dict[str, Any] = {"item_id": item["id"], "content_index": 0} | place
            said: dict[str, Any] = {"delta": text["text"], "logprobs": []}
            events += [
                {"type": "response.content_part.added", "part": text | {"text": ""}} | at,
                {"type": "response.output_text.delta"} | said | at,
            ]
        events.append({"type": "response.output_item.done", "item": item} | place)
    whole = RESPONSE | {"status": "completed", "output": [*items]}
    events.append({"type": "response.completed", "response": whole})
    return whole, [event | {"sequence_number": n} for n, event in enumerate(events)]


def _failed(word: str) -> dict[str, Any]:
    """Return the event by which a stream of the Responses API refuses a request."""
    code = "context_length_exceeded" if word != "other" else "server_error"
    error = {"code": code, "message": "Your input is refused."}
    response = RESPONSE | {"status": "failed", "error": error}
    return {"type": "response.failed", "sequence_number": 9, "response": response}


def _anthropic_refusal(word: str) -> dict[str, Any]:
    message = TOO_LONG if word == "overflow" else "temperature: must be less than or equal to 1"
    return {"type": "error", "error": {"type": "invalid_request_error", "message": message}}


def _anthropic(said: Said) -> Answer:
    """Write a text, or a thought and calls."""
    blocks: list[tuple[dict[str, Any], dict[str, Any], list[dict[str, Any]]]]
    if isinstance(said, str):
        delta = {"type": "text_delta", "text": said}
        blocks = [({"type": "text", "text": said}, {"text": ""}, [delta])]
    else:
        thought = {"type": "thinking", "thinking": "hm", "signature": "s"}
        deltas: list[dict[str, Any]] = [
            {"type": "thinking_delta", "thinking": "hm"},
            {"type": "signature_delta", "signature": "s"},
        ]
        blocks = [(thought, {"thinking": "", "signature": ""}, deltas)]
        for call in said:
            use = {"type": "tool_use", "id": f"toolu_{call.id}", "name": call.name}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(call.arguments)}
            blocks.append((use | {"input": call.arguments}, {"input": {}}, [delta]))
    reason = "end_turn" if isinstance(said, str) else "tool_use"
    base: dict[str, Any] = {"id": "m1", "type": "message", "role": "assistant", "model": "m"}
    base |= {"usage": {"input_tokens": 1, "output_tokens": 1}}
    events: list[Any] = [{"type": "message_start", "message": base | {"content": []}}]
    for index, (block, empty, deltas) in enumerate(blocks):
        here = {"index": index}
        events.append({"type": "content_block_start", "content_block": block | empty} | here)
        events += [{"type": "content_block_delta", "delta": delta} | here for delta in deltas]
        events.append({"type": "content_block_stop"} | here)
    end = {"type": "message_delta", "delta": {"stop_reason": reason}}
    events += [end | {"usage": {"output_tokens": 1}}, {"type": "message_stop"}]
    whole = base | {"content": [block for block, _, _ in blocks], "stop_reason": reason}
    return whole, events


def _ended_for_the_window(whole: Any, events: list[Any], *, empty: bool) -> Answer:
    """Return an answer of Anthropic's that ends for the window of the model."""
    reason = {"stop_reason": "model_context_window_exceeded"}
    start, *blocks, end, stop = events
    ended = [start, *([] if empty else blocks), end | {"delta": reason}, stop]
    return whole | reason | ({"content": []} if empty else {}), ended


def _gemini_refusal(word: str) -> dict[str, Any]:
    message = GEMINI_TOO_LONG if word == "overflow" else "Unknown name."
    return {"error": {"code": 400, "message": message, "status": "INVALID_ARGUMENT"}}


def _gemini(said: Said) -> Answer:
    parts: list[dict[str, Any]] = [{"text": said}] if isinstance(said, str) else []
    for call in said if not isinstance(said, str) else ():
        asked = {"name": call.name, "args": call.arguments}
        parts.append({"functionCall": asked, "thoughtSignature": "cw=="})

    def piece(parts: list[Any], **more: str) -> dict[str, Any]:
        return {"candidates": [{"content": {"role": "model", "parts": parts}, "index": 0} | more]}

    whole = piece(parts, finishReason="STOP") | {"usageMetadata": {"totalTokenCount": 2}}
    return whole, [piece(parts), piece([{"text": ""}], finishReason="STOP")]


GEMINI = Api(_gemini, _gemini_refusal, late=1)
APIS = {
    "/chat/completions": Api(_chat, _openai_refusal, late=2),
    "/responses": Api(_responses, _openai_refusal, late=4, named=True),
    "/messages": Api(_anthropic, _anthropic_refusal, late=3, named=True),
}
"""The APIs by their paths; that of Gemini has the name of the model in it."""
