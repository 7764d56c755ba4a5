"""How each host speaks with its model: what a request holds, and how an answer is written.

Anthropic's Messages, OpenAI's Responses and Chat Completions, Gemini's generateContent, as much as
a scripted model needs: it calls one tool after the other, then says an answer. Each reads a request
(the results ``heard`` so far, our tools that are ``offered`` by the host's names) and writes an
answer (a ``call``, a ``wait`` until the host has started its servers, a text to ``say``), which
``stream`` turns into events: each its name ("" for none) and its data.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

SERVER = "fetchstash"
GATEWAY = "gateway"
"""What ``register --wrap`` calls the one gateway; hosts put the name before a tool's."""

DONE = "All of it was done."
STARTED = "The server has started."
TOOLS = ("fetch_content", "artifact_grep", "artifact_slice")
"""What the frameworks call by the server's own names; hosts put a prefix before them."""
FINAL = "final_answer"
"""The tool with which an agent of smolagents ends."""
MAX_WAITS = 20
"""Messages after which the model gives up waiting for a server."""
CALL = "fetchstash_call_"
"""How the ids of our calls begin."""


@dataclass(frozen=True, slots=True)
class Step:
    """A call that the model makes: a tool of ours and its arguments."""

    tool: str
    arguments: dict[str, Any]
    server: str = SERVER


@dataclass(slots=True)
class Heard:
    """What reached the model as the result of a call."""

    text: str = ""
    pictures: list[str] = field(default_factory=list[str])

    def take(self, part: Any) -> None:
        """Add a content part of any of the three APIs."""
        if isinstance(part, str):
            self.text += part
            return
        match part:
            case {"text": str(text)}:
                self.text += text
            case {"type": "image", "source": {"media_type": str(media_type)}}:
                self.pictures.append(media_type)
            case {"type": "input_image", "image_url": str(url)}:
                self.pictures.append(url.removeprefix("data:").partition(";")[0])
            case {"inlineData": {"mimeType": str(media_type)}}:
                self.pictures.append(media_type)
            case _:
                self.text += json.dumps(part, ensure_ascii=False)


def _listed(content: Any) -> list[Any]:
    """Return the parts of a content, which may be one alone."""
    return [*content] if isinstance(content, list) else [content]


def _kind(item: Any) -> str:
    """Return the type of an item of Responses; one without is a message."""
    return "message" if isinstance(item, str) else str(item.get("type", "message"))


def _ours(names: list[str]) -> dict[str, str]:
    """Return our tools among the names that a host gives them: mcp__fetchstash__fetch_content."""
    ours = {_short(name): name for name in names}
    return {name: of_host for name, of_host in ours.items() if name}


def _short(name: str) -> str:
    """Return the server's own name of a tool, "" if it is not ours."""
    for tool in TOOLS:
        if name.endswith(tool):
            return tool
    server = next((server for server in (SERVER, GATEWAY) if server in name), "")
    return name.rpartition(server)[2].lstrip("_/") if server else ""


def _too_long(size: int, window: int) -> Any:
    """Return OpenAI's refusal of a request, in tokens of four bytes."""
    message = (
        f"This model's maximum context length is {window // 4} tokens. However, your messages "
        f"resulted in {size // 4} tokens. Please reduce the length of the messages."
    )
    error = {"message": message, "type": "invalid_request_error", "param": "messages"}
    return {"error": {**error, "code": "context_length_exceeded"}}


class _Anthropic:
    """POST /v1/messages."""

    def heard(self, request: Any) -> list[Heard]:
        results: list[Heard] = []
        for message in request["messages"]:
            for block in _listed(message["content"]):
                match block:
                    case {"type": "tool_result", "tool_use_id": str(call)} if call.startswith(CALL):
                        results.append(Heard())
                        for part in _listed(block.get("content", "")):
                            results[-1].take(part)
                    case _:
                        pass
        return results

    def offered(self, request: Any) -> dict[str, str]:
        return _ours([tool["name"] for tool in request.get("tools", [])])

    def call(self, step: Step, name: str, number: int) -> Any:
        use = {"type": "tool_use", "id": f"{CALL}{number}", "name": name, "input": step.arguments}
        return self._message(use, "tool_use")

    def wait(self, request: Any) -> Any:
        tools = [tool["name"] for tool in request.get("tools", [])]
        named = {"type": "tool_use", "id": f"wait_{len(request['messages'])}"}
        if "WaitForMcpServers" in tools:
            asked: dict[str, Any] = {"name": "WaitForMcpServers", "input": {}}
        elif "ToolSearch" in tools and len(request["messages"]) < MAX_WAITS:
            names = ",".join(f"mcp__{SERVER}__{tool}" for tool in TOOLS)
            asked = {"name": "ToolSearch", "input": {"query": f"select:{names}"}}
        else:
            return None
        return self._message(named | asked, "tool_use")

    def refuse(self, size: int, window: int) -> Any:
        said = f"prompt is too long: {size // 4} tokens > {window // 4} maximum"
        return {"type": "error", "error": {"type": "invalid_request_error", "message": said}}

    def say(self, text: str) -> Any:
        return self._message({"type": "text", "text": text}, "end_turn")

    def _message(self, block: Any, reason: str) -> Any:
        return {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "scripted",
            "content": [block],
            "stop_reason": reason,
            "stop_sequence": None,
            "usage": {"input_tokens": 1, "output_tokens": 1},
        }

    def stream(self, answer: Any) -> Iterator[tuple[str, Any]]:
        (block,) = answer["content"]
        if block["type"] == "text":
            empty: dict[str, Any] = {"type": "text", "text": ""}
            delta = {"type": "text_delta", "text": block["text"]}
        else:
            empty = block | {"input": dict[str, Any]()}
            written = json.dumps(block["input"])
            delta = {"type": "input_json_delta", "partial_json": written}
        stop = {"stop_reason": answer["stop_reason"], "stop_sequence": None}
        events: list[dict[str, Any]] = [
            {"type": "message_start", "message": {**answer, "content": [], "stop_reason": None}},
            {"type": "content_block_start", "index": 0, "content_block": empty},
            {"type": "content_block_delta", "index": 0, "delta": delta},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": stop, "usage": {"output_tokens": 1}},
            {"type": "message_stop"},
        ]
        for event in events:
            yield str(event["type"]), event


class _Responses:
    """POST /v1/responses. Models of Codex call tools by themselves, or by JavaScript (`exec`)."""

    def heard(self, request: Any) -> list[Heard]:
        results: list[Heard] = []
        for item in _listed(request["input"]):
            if _kind(item).endswith("call_output") and item["call_id"].startswith(CALL):
                results.append(Heard())
                for part in _listed(item["output"]):
                    results[-1].take(part)
        return results

    def offered(self, request: Any) -> dict[str, str]:
        tools = list(request.get("tools", []))
        for item in _listed(request["input"]):
            if _kind(item) in ("additional_tools", "tool_search_output"):
                tools += item["tools"]
        names: list[str] = []
        for tool in tools:
            if tool["type"] == "namespace":
                tools_of_it = [inner["name"] for inner in tool["tools"]]
                if "exec" in tools_of_it:
                    outputs = [item.get("output") for item in request["input"]]
                    return {"*": "exec"} if STARTED in json.dumps(outputs) else {}
                names += [f"{tool['name']}/{name}" for name in tools_of_it]
            elif "name" in tool:
                names.append(tool["name"])
        return _ours(names)

    def call(self, step: Step, name: str, number: int) -> Any:
        if name == "exec":
            tool = f"tools.mcp__{step.server}__{step.tool}({json.dumps(step.arguments)})"
            program = (
                f"const result = await {tool};\n"
                "for (const part of result.content)"
                " part.type === 'image' ? image(part) : text(part.text);"
            )
            item: dict[str, Any] = {"type": "custom_tool_call", "name": "exec", "input": program}
        else:
            space, _, short = name.rpartition("/")
            written = json.dumps(step.arguments)
            item = {"type": "function_call", "name": short, "arguments": written}
            if space:
                item["namespace"] = space
        about = {"call_id": f"{CALL}{number}", "id": f"fc_{number}", "status": "completed"}
        return self._response({**item, **about})

    def wait(self, request: Any) -> Any:
        named = {"call_id": "wait", "id": "wait", "status": "completed"}
        if "tool_search" in [tool["type"] for tool in request.get("tools", [])]:
            asked = {"query": "open a website and read a PDF", "limit": 8}
            search = {"type": "tool_search_call", "execution": "client", "arguments": asked}
            return self._response({**search, **named})
        if "exec_command" in [tool.get("name") for tool in request.get("tools", [])]:
            call = {"name": "exec_command", "arguments": '{"cmd": "sleep 0.5"}'}
            return self._response({"type": "function_call", **call, **named})
        if '"exec"' not in json.dumps(request["input"][0]):
            return None
        program = (
            "await new Promise((done) => setTimeout(done, 300));"
            f"const isOurs = (tool) => /{SERVER}|{GATEWAY}/.test(tool.name);"
            f"if (ALL_TOOLS.some(isOurs)) text('{STARTED}');"
        )
        call = {"type": "custom_tool_call", "name": "exec", "input": program}
        return self._response({**call, **named})

    def refuse(self, size: int, window: int) -> Any:
        return _too_long(size, window)

    def say(self, text: str) -> Any:
        part: dict[str, Any] = {"type": "output_text", "text": text, "annotations": []}
        said = {"type": "message", "role": "assistant", "id": "msg_0", "status": "completed"}
        return self._response({**said, "content": [part]})

    def _response(self, item: dict[str, Any]) -> Any:
        details = {
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens_details": {"reasoning_tokens": 0},
        }
        return {
            "id": "resp_1",
            "object": "response",
            "created_at": 1,
            "status": "completed",
            "model": "scripted",
            "output": [item],
            "parallel_tool_calls": False,
            "tool_choice": "auto",
            "tools": [],
            "usage": {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2, **details},
        }

    def stream(self, answer: Any) -> Iterator[tuple[str, Any]]:
        events: list[dict[str, Any]] = [
            {"type": "response.created", "response": {**answer, "output": []}},
            {"type": "response.output_item.done", "output_index": 0, "item": answer["output"][0]},
            {"type": "response.completed", "response": answer},
        ]
        for event in events:
            yield str(event["type"]), event


class _Chat:
    """POST /v1/chat/completions, of the frameworks: they give our tools their own names."""

    def heard(self, request: Any) -> list[Heard]:
        results: list[Heard] = []
        for message in request["messages"]:
            parts = [part for part in _listed(message.get("content")) if part]
            # smolagents says results as its user: "Observation: …".
            if message["role"] == "tool" or '"Observation:' in json.dumps(parts):
                results.append(Heard())
                for part in parts:
                    results[-1].take(part)
        return results

    def offered(self, request: Any) -> dict[str, str]:
        return _ours([tool["function"]["name"] for tool in request.get("tools", [])])

    def call(self, step: Step, name: str, number: int) -> Any:
        function = {"name": name, "arguments": json.dumps(step.arguments)}
        call = {"id": f"{CALL}{number}", "type": "function", "function": function}
        return self._completion({"content": None, "tool_calls": [call]}, "tool_calls")

    def wait(self, request: Any) -> Any:
        del request  # they wait for their servers by themselves

    def refuse(self, size: int, window: int) -> Any:
        return _too_long(size, window)

    def say(self, text: str) -> Any:
        return self._completion({"content": text}, "stop")

    def _completion(self, message: dict[str, Any], reason: str) -> Any:
        choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": reason}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        about = {"id": "chat_1", "created": 1, "model": "scripted", "usage": usage}
        return {**about, "object": "chat.completion", "choices": [choice]}

    def stream(self, answer: Any) -> Iterator[tuple[str, Any]]:
        (choice,) = answer["choices"]
        calls = [{"index": 0, **call} for call in choice["message"].get("tool_calls", [])]
        delta = choice["message"] | ({"tool_calls": calls} if calls else {})
        streamed = {"index": 0, "delta": delta, "finish_reason": choice["finish_reason"]}
        yield "", answer | {"object": "chat.completion.chunk", "choices": [streamed]}


class _Gemini:
    """POST /v1beta/models/MODEL:streamGenerateContent and :generateContent."""

    def heard(self, request: Any) -> list[Heard]:
        results: list[Heard] = []
        for content in request["contents"]:
            of_a_call = False
            for part in content["parts"]:
                if _short(part.get("functionResponse", {}).get("name", "")):
                    of_a_call = True
                    results.append(Heard())
                    response = part["functionResponse"]["response"]
                    values = list(response.values())
                    results[-1].take(values[0] if len(values) == 1 else response)
                    for inner in part["functionResponse"].get("parts", []):
                        results[-1].take(inner)
                elif of_a_call:
                    results[-1].take(part)
        return results

    def offered(self, request: Any) -> dict[str, str]:
        tools = request.get("tools", [])
        names = [each["name"] for tool in tools for each in tool.get("functionDeclarations", [])]
        return _ours(names)

    def call(self, step: Step, name: str, number: int) -> Any:
        del number
        # What Gemini CLI adds to every schema, its model sends.
        more = {"wait_for_previous": True} if SERVER in name else {}
        arguments = {**step.arguments, **more}
        return self._candidate({"functionCall": {"name": name, "args": arguments}})

    def wait(self, request: Any) -> Any:
        del request  # it waits by itself

    def refuse(self, size: int, window: int) -> Any:
        said = (
            f"The input token count ({size // 4}) exceeds the maximum number of tokens "
            f"allowed ({window // 4})."
        )
        return {"error": {"code": 400, "message": said, "status": "INVALID_ARGUMENT"}}

    def say(self, text: str) -> Any:
        return self._candidate({"text": text})

    def _candidate(self, part: Any) -> Any:
        content = {"role": "model", "parts": [part]}
        return {
            "candidates": [{"content": content, "finishReason": "STOP", "index": 0}],
            "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 1},
        }

    def stream(self, answer: Any) -> Iterator[tuple[str, Any]]:
        yield "", answer


Speech = _Anthropic | _Responses | _Chat | _Gemini


def speech_of(path: str, request: Any) -> tuple[Speech, bool] | None:
    """Return the API of a path, and whether its answer is streamed; None for other paths."""
    if "/messages" in path:
        return _Anthropic(), bool(request.get("stream"))
    if path.startswith("/v1/responses"):
        return _Responses(), bool(request.get("stream"))
    if "/chat/completions" in path:
        return _Chat(), bool(request.get("stream"))
    return (_Gemini(), ":stream" in path) if "enerateContent" in path else None
