"""How each host speaks with its model: what a request holds, and how an answer is written.

Anthropic's Messages, OpenAI's Responses and Gemini's generateContent, as much as a scripted model
needs: it calls one tool after the other and then says that it is done. Each API reads a request
(the results ``heard`` so far, our tools that are ``offered`` by the host's names) and writes an
answer (a ``call``, a ``wait`` until the host has started its servers, a text to ``say``), which
``stream`` turns into events: each its name ("" for none) and its data.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

SERVER = "fetchstash"
WRAPPED = "other_fetchstash"
"""A server behind the gateway, registered under a name of its own; hosts put it before a tool's."""

DONE = "All of it was done."
STARTED = "The server has started."
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


def _ours(names: list[str]) -> dict[str, str]:
    """Return our tools among the names that a host gives them: mcp__fetchstash__fetch_content."""
    ours = {name.rpartition(SERVER)[2].lstrip("_/"): name for name in names if SERVER in name}
    return {name: of_host for name, of_host in ours.items() if name}


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
        if "WaitForMcpServers" not in [tool["name"] for tool in request.get("tools", [])]:
            return None
        named = {"type": "tool_use", "id": "wait", "name": "WaitForMcpServers"}
        return self._message({**named, "input": dict[str, Any]()}, "tool_use")

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
        for item in request["input"]:
            if item["type"].endswith("call_output") and item["call_id"].startswith(CALL):
                results.append(Heard())
                for part in _listed(item["output"]):
                    results[-1].take(part)
        return results

    def offered(self, request: Any) -> dict[str, str]:
        tools = list(request.get("tools", []))
        for item in request["input"]:
            if item["type"] in ("additional_tools", "tool_search_output"):
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
        return {**item, "call_id": f"{CALL}{number}", "id": f"item_{number}", "status": "completed"}

    def wait(self, request: Any) -> Any:
        named = {"call_id": "wait", "id": "wait", "status": "completed"}
        if "tool_search" in [tool["type"] for tool in request.get("tools", [])]:
            asked = {"query": "open a website and read a PDF", "limit": 8}
            return {"type": "tool_search_call", "execution": "client", "arguments": asked, **named}
        if "exec_command" in [tool.get("name") for tool in request.get("tools", [])]:
            call = {"name": "exec_command", "arguments": '{"cmd": "sleep 0.5"}'}
            return {"type": "function_call", **call, **named}
        if '"exec"' not in json.dumps(request["input"][0]):
            return None
        program = (
            "await new Promise((done) => setTimeout(done, 300));"
            f"if (ALL_TOOLS.some((tool) => tool.name.includes('{SERVER}'))) text('{STARTED}');"
        )
        return {"type": "custom_tool_call", "name": "exec", "input": program, **named}

    def say(self, text: str) -> Any:
        part: dict[str, Any] = {"type": "output_text", "text": text, "annotations": []}
        return {"type": "message", "role": "assistant", "id": "item_0", "content": [part]}

    def stream(self, answer: Any) -> Iterator[tuple[str, Any]]:
        response = {"id": "resp_1", "object": "response", "output": [answer]}
        usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
        for event in (
            {"type": "response.created", "response": {**response, "output": []}},
            {"type": "response.output_item.done", "output_index": 0, "item": answer},
            {"type": "response.completed", "response": {**response, "usage": usage}},
        ):
            yield str(event["type"]), event


class _Gemini:
    """POST /v1beta/models/MODEL:streamGenerateContent and :generateContent."""

    def heard(self, request: Any) -> list[Heard]:
        results: list[Heard] = []
        for content in request["contents"]:
            of_a_call = False
            for part in content["parts"]:
                if SERVER in part.get("functionResponse", {}).get("name", ""):
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
        # What this host adds to every schema, its model sends.
        arguments = {**step.arguments, "wait_for_previous": True}
        return self._candidate({"functionCall": {"name": name, "args": arguments}})

    def wait(self, request: Any) -> Any:
        del request  # it waits by itself

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


Speech = _Anthropic | _Responses | _Gemini


def speech_of(path: str, request: Any) -> tuple[Speech, bool] | None:
    """Return the API of a path, and whether its answer is streamed; None for other paths."""
    if "/messages" in path:
        return _Anthropic(), bool(request.get("stream"))
    if path.startswith("/v1/responses"):
        return _Responses(), True
    return (_Gemini(), ":stream" in path) if "enerateContent" in path else None
