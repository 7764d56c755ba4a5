"""How each host speaks with its model: what a request holds, and how an answer is written.

Anthropic's Messages, OpenAI's Responses and Chat Completions, Gemini's generateContent, as much as
a scripted model needs: it calls one tool after the other, then says an answer. Each reads a request
(the results ``heard`` so far, our tools that are ``offered`` by the host's names) and writes an
answer (a ``call``, a ``wait`` until the host has started its servers, a text to ``say``), as the
fake of the client's tests does.
"""

import json
from dataclasses import dataclass, field
from typing import Any

from tests.client.loopback import APIS, GEMINI, Answer, Api, ToolCall, responded, with_numbers

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
CALL = "fetchstash_"
"""What stands in the ids of our calls."""


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


class Speech:
    """One API."""

    api: Api

    def heard(self, request: Any) -> list[Heard]:
        """Return the results of our calls that a request holds."""
        raise NotImplementedError

    def offered(self, request: Any) -> dict[str, str]:
        """Return our tools that a request offers, each with the host's name for it."""
        raise NotImplementedError

    def wait(self, request: Any) -> Answer | None:
        """Return what makes the host wait for its servers, None where it waits by itself."""
        del request
        return None

    def call(self, step: Step, name: str, number: int) -> Answer:
        """Return the call of a step."""
        return self.api.write([ToolCall(f"{CALL}{number}", name, step.arguments)])

    def say(self, text: str) -> Answer:
        """Return a text."""
        return self.api.write(text)

    def refuse(self, size: int, window: int) -> Any:
        """Return the refusal of a request that is too long, in tokens of four bytes."""
        return with_numbers(self.api.refusal("overflow"), str(size // 4), str(window // 4))


class _Anthropic(Speech):
    """POST /v1/messages."""

    api = APIS["/messages"]

    def heard(self, request: Any) -> list[Heard]:
        results: list[Heard] = []
        for message in request["messages"]:
            for block in _listed(message["content"]):
                match block:
                    case {"type": "tool_result", "tool_use_id": str(call)} if CALL in call:
                        results.append(Heard())
                        for part in _listed(block.get("content", "")):
                            results[-1].take(part)
                    case _:
                        pass
        return results

    def offered(self, request: Any) -> dict[str, str]:
        return _ours([tool["name"] for tool in request.get("tools", [])])

    def wait(self, request: Any) -> Answer | None:
        tools = [tool["name"] for tool in request.get("tools", [])]
        number = f"wait_{len(request['messages'])}"
        if "WaitForMcpServers" in tools:
            return self.api.write([ToolCall(number, "WaitForMcpServers", {})])
        if "ToolSearch" in tools and len(request["messages"]) < MAX_WAITS:
            names = ",".join(f"mcp__{SERVER}__{tool}" for tool in TOOLS)
            return self.api.write([ToolCall(number, "ToolSearch", {"query": f"select:{names}"})])
        return None


class _Responses(Speech):
    """POST /v1/responses. Models of Codex call tools by themselves, or by JavaScript (`exec`)."""

    api = APIS["/responses"]

    def heard(self, request: Any) -> list[Heard]:
        results: list[Heard] = []
        for item in _listed(request["input"]):
            if _kind(item).endswith("call_output") and CALL in item["call_id"]:
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

    def call(self, step: Step, name: str, number: int) -> Answer:
        about = {"call_id": f"{CALL}{number}", "id": f"fc_{number}", "status": "completed"}
        if name == "exec":
            tool = f"tools.mcp__{step.server}__{step.tool}({json.dumps(step.arguments)})"
            program = (
                f"const result = await {tool};\n"
                "for (const part of result.content)"
                " part.type === 'image' ? image(part) : text(part.text);"
            )
            return responded({"type": "custom_tool_call", "name": "exec", "input": program} | about)
        space, _, short = name.rpartition("/")
        item = {"type": "function_call", "name": short, "arguments": json.dumps(step.arguments)}
        return responded(item | about | ({"namespace": space} if space else {}))

    def wait(self, request: Any) -> Answer | None:
        named = {"call_id": "wait", "id": "wait", "status": "completed"}
        if "tool_search" in [tool["type"] for tool in request.get("tools", [])]:
            asked = {"query": "open a website and read a PDF", "limit": 8}
            search = {"type": "tool_search_call", "execution": "client", "arguments": asked}
            return responded({**search, **named})
        if "exec_command" in [tool.get("name") for tool in request.get("tools", [])]:
            call = {"name": "exec_command", "arguments": '{"cmd": "sleep 0.5"}'}
            return responded({"type": "function_call", **call, **named})
        if '"exec"' not in json.dumps(request["input"][0]):
            return None
        program = (
            "await new Promise((done) => setTimeout(done, 300));"
            f"const isOurs = (tool) => /{SERVER}|{GATEWAY}/.test(tool.name);"
            f"if (ALL_TOOLS.some(isOurs)) text('{STARTED}');"
        )
        return responded({"type": "custom_tool_call", "name": "exec", "input": program, **named})


class _Chat(Speech):
    """POST /v1/chat/completions, of the frameworks: they give our tools their own names."""

    api = APIS["/chat/completions"]

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


class _Gemini(Speech):
    """POST /v1beta/models/MODEL:streamGenerateContent and :generateContent."""

    api = GEMINI

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

    def call(self, step: Step, name: str, number: int) -> Answer:
        # What Gemini CLI adds to every schema, its model sends.
        more = {"wait_for_previous": True} if SERVER in name else {}
        return super().call(Step(step.tool, {**step.arguments, **more}), name, number)


def speech_of(path: str, request: Any) -> tuple[Speech, bool] | None:
    """Return the API of a path, and whether its answer is streamed; None for other paths."""
    if "/messages" in path:
        return _Anthropic(), bool(request.get("stream"))
    if path.startswith("/v1/responses"):
        return _Responses(), bool(request.get("stream"))
    if "/chat/completions" in path:
        return _Chat(), bool(request.get("stream"))
    return (_Gemini(), ":stream" in path) if "enerateContent" in path else None
