"""The loop of each SDK to its end on a hard conversation, in a window that half is fixed parts of.

The task has a picture and a PDF and is marked for the prompt cache where the API has marks; the
model reasons and calls two tools at once; ten large results follow.
"""

import base64
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from fetchstash.client import Format, Policy, Recovery, orphans
from tests.client import sdks
from tests.client.conversations import medium
from tests.client.fakes import Kept, prose
from tests.client.loopback import Loopback
from tests.client.sdks import adapter, langchain_agent, module, needs, openai, pydantic_agent

pytestmark = [pytest.mark.anyio, pytest.mark.filterwarnings("default")]

LIMIT = 20_000
SYSTEM = prose(LIMIT * 2, "rule")
PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x02\0\0\0\x02\0" + bytes(60_000)
PDF = b"%PDF-1.7\n" + b"<< /Type /Page >>\n" * 2 + bytes(60_000)
PNG64, PDF64 = base64.b64encode(PNG).decode(), base64.b64encode(PDF).decode()
SCRIPT = ["calls"] * 5 + ["good"]
CHAT_TOOL: Any = {
    "type": "function",
    "function": {"name": "fetch", "parameters": {"type": "object", "properties": {}}},
}


def media(fmt: str) -> list[dict[str, Any]]:
    """Return the picture and the PDF of the task."""
    return [medium(fmt, "image/png", PNG64), medium(fmt, "application/pdf", PDF64)]


CHAT_TASK: Any = [{"type": "text", "text": "Sum up."}, *media("openai_chat")]


def fetch(page: int = 0) -> str:
    """Fetch a page."""
    return prose(9_000, f"page{page}x")


def recovery() -> Recovery:
    return Recovery(Policy(offload=Kept()))


async def chat(complete: Callable[..., Any], **fixed: Any) -> str:
    """Loop over Chat Completions, as openai and LiteLLM have them."""
    messages: list[Any] = [
        {"role": "system", "content": SYSTEM},
        {"role": "user", "content": CHAT_TASK},
    ]
    while True:
        answer = complete(messages=messages, tools=[CHAT_TOOL], **fixed).choices[0].message
        messages.append(answer)
        if not answer.tool_calls:
            return str(answer.content)
        messages += [
            {"role": "tool", "tool_call_id": call.id}
            | {"content": fetch(**json.loads(call.function.arguments))}
            for call in answer.tool_calls
        ]


async def openai_chat(url: str) -> str:
    return await chat(openai(url, recovery()).chat.completions.create, model="m")


async def openai_responses(url: str) -> str:
    client = openai(url, recovery())
    task = [{"type": "input_text", "text": "Sum up."}, *media("openai_responses")]
    items: list[Any] = [{"role": "user", "content": task}]
    tool: dict[str, Any] = {"type": "function", "name": "fetch", "parameters": {}, "strict": False}
    while True:
        answer = client.responses.create(model="m", instructions=SYSTEM, input=items, tools=[tool])
        items += answer.output
        calls = [item for item in answer.output if item.type == "function_call"]
        if not calls:
            return str(answer.output_text)
        items += [
            {"type": "function_call_output", "call_id": call.call_id}
            | {"output": fetch(**json.loads(call.arguments))}
            for call in calls
        ]


async def anthropic(url: str) -> str:
    client = sdks.anthropic(url, recovery())
    cached = {"cache_control": {"type": "ephemeral"}}
    task = [*media("anthropic"), {"type": "text", "text": "Sum up."} | cached]
    messages: list[Any] = [{"role": "user", "content": task}]
    request: dict[str, Any] = {
        "model": "m",
        "max_tokens": 100,
        "system": [{"type": "text", "text": SYSTEM} | cached],
        "tools": [{"name": "fetch", "input_schema": {"type": "object", "properties": {}}}],
    }
    while True:
        with client.messages.stream(messages=messages, **request) as stream:
            answer = stream.get_final_message()
        messages.append({"role": "assistant", "content": answer.content})
        calls = [block for block in answer.content if block.type == "tool_use"]
        if not calls:
            return str(answer.content[-1].text)
        results = [
            {"type": "tool_result", "tool_use_id": call.id, "content": fetch(**call.input)}
            for call in calls
        ]
        messages.append({"role": "user", "content": results})


async def google(url: str) -> str:
    types = module("google.genai.types")
    client = sdks.google(url, recovery())
    config = types.GenerateContentConfig(tools=[fetch], system_instruction=SYSTEM)
    task = [
        "Sum up.",
        types.Part.from_bytes(data=PNG, mime_type="image/png"),
        types.Part.from_bytes(data=PDF, mime_type="application/pdf"),
    ]
    chat = client.chats.create(model="m", config=config)
    return str(chat.send_message(task).text)


async def litellm(url: str) -> str:
    complete = adapter("litellm").completion(recovery())
    return await chat(complete, model="openai/m", api_base=f"{url}/v1", api_key="k")


async def langchain(url: str) -> str:
    agent = langchain_agent(url, recovery(), [fetch], system_prompt=SYSTEM)
    answer = await agent.ainvoke({"messages": [{"role": "user", "content": CHAT_TASK}]})
    return str(answer["messages"][-1].content)


async def pydantic_ai(url: str) -> str:
    ai = module("pydantic_ai")
    agent = pydantic_agent(url, recovery(), tools=[fetch], system_prompt=SYSTEM)
    task = [
        "Sum up.",
        ai.BinaryContent(PNG, media_type="image/png"),
        ai.BinaryContent(PDF, media_type="application/pdf"),
    ]
    return str((await agent.run(task)).output)


@pytest.mark.parametrize(
    ("loop", "key", "fmt"),
    [
        pytest.param(openai_chat, "messages", "openai_chat", marks=needs("openai")),
        pytest.param(openai_responses, "input", "openai_responses", marks=needs("openai")),
        pytest.param(anthropic, "messages", "anthropic", marks=needs("anthropic")),
        pytest.param(google, "contents", "gemini", marks=needs("google.genai")),
        pytest.param(litellm, "messages", "openai_chat", marks=needs("litellm")),
        pytest.param(langchain, "messages", "openai_chat", marks=needs("langchain")),
        pytest.param(pydantic_ai, "messages", "openai_chat", marks=needs("pydantic_ai")),
    ],
)
async def test_a_hard_conversation_goes_on_to_its_answer(
    loop: Callable[[str], Awaitable[str]], key: str, fmt: Format
) -> None:
    with Loopback(*SCRIPT, limit=LIMIT) as provider:
        assert await loop(provider.url) == "Hello."
    assert len(provider.bodies) == len(SCRIPT) + provider.refused
    assert provider.refused <= 2
    heads: set[str] = set()
    for body in provider.bodies:
        messages = body[key]
        assert orphans(messages, fmt) == []
        task = next(index for index, m in enumerate(messages) if "Sum up." in json.dumps(m))
        heads.add(json.dumps([body.get("system"), body.get("instructions"), messages[: task + 1]]))
    # The fixed parts and the task stay byte for byte, so that what is cached stays cached.
    assert len(heads) == 1
    # The latest results stand whole in the last request.
    assert "page" in json.dumps(provider.bodies[-1][key][-2:])
