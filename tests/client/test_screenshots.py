"""Loops of screenshots, through the real SDKs, end well where a provider bounds pictures.

``test_media_limits.py`` has 200 of them without an SDK, in every format. Each request repeats all
that went before, so these loops go on no further than well past the bound.
"""

from collections.abc import Callable
from typing import Any

import pytest

from fetchstash.client import Recovery
from tests.client import sdks
from tests.client.conversations import medium
from tests.client.loopback import Loopback
from tests.client.media_requests import picture, shown, widths
from tests.client.sdks import langchain_agent, module, needs

pytestmark = [pytest.mark.long, pytest.mark.filterwarnings("default")]


def openai(url: str, recovery: Recovery, width: int, steps: int) -> None:
    """The screenshot comes as a message of the user's, behind the result of the tool."""
    client = sdks.openai(url, recovery)
    messages: list[Any] = [{"role": "user", "content": "Watch the page."}]
    for number in range(steps):
        function = {"name": "shoot", "arguments": "{}"}
        calls = [{"id": f"call_{number}", "type": "function", "function": function}]
        block = medium("openai_chat", "image/png", picture(number, width))
        messages += [
            {"role": "assistant", "content": None, "tool_calls": calls},
            {"role": "tool", "tool_call_id": f"call_{number}", "content": "taken"},
            {"role": "user", "content": [block]},
        ]
        client.chat.completions.create(model="m", messages=messages)


def anthropic(url: str, recovery: Recovery, width: int, steps: int) -> None:
    client = sdks.anthropic(url, recovery)
    messages: list[Any] = [{"role": "user", "content": "Watch the page."}]
    for number in range(steps):
        block = medium("anthropic", "image/png", picture(number, width))
        use: dict[str, Any] = {
            "type": "tool_use",
            "id": f"toolu_{number}",
            "name": "shoot",
            "input": {},
        }
        result: dict[str, Any] = {
            "type": "tool_result",
            "tool_use_id": use["id"],
            "content": [block],
        }
        messages += [
            {"role": "assistant", "content": [use]},
            {"role": "user", "content": [result]},
        ]
        client.messages.create(model="m", max_tokens=9, messages=messages)


def langchain(url: str, recovery: Recovery, width: int, steps: int) -> None:
    """With ChatAnthropic: of openai's SDK under LangChain the transform alone takes minutes."""
    chat = module("langchain_anthropic").ChatAnthropic
    model = chat(model="m", base_url=url, api_key="k", max_retries=0, max_tokens=9)
    agent = langchain_agent(url, recovery, model=model)
    made = module("langchain_core.messages")
    messages: list[Any] = [made.HumanMessage("Watch the page.")]
    for number in range(steps):
        call: dict[str, Any] = {"name": "shoot", "args": {}, "id": f"call_{number}"}
        block = medium("anthropic", "image/png", picture(number, width))
        messages += [
            made.AIMessage("", tool_calls=[call]),
            made.ToolMessage("taken", tool_call_id=call["id"]),
            made.HumanMessage([block]),
        ]
        agent.invoke({"messages": messages})


LOOPS = [
    pytest.param(openai, marks=needs("openai"), id="openai"),
    pytest.param(anthropic, marks=needs("anthropic"), id="anthropic"),
    pytest.param(langchain, marks=needs("langchain"), id="langchain"),
]


def too_many(most: int) -> Callable[[Any], str]:
    def refuse(body: Any) -> str:
        count = len(list(shown(body["messages"])))
        return f"too many images and documents: {count} + 0 > {most}" if count > most else ""

    return refuse


def too_wide(body: Any) -> str:
    wide = max(widths(body["messages"]), default=0) > 2_000
    words = "At least one of the image dimensions exceed max allowed size: 2000 pixels"
    return words if wide else ""


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize(
    ("refuse", "width", "steps"),
    [(too_many(20), 64, 60), (too_many(100), 64, 130), (too_wide, 2_100, 60)],
)
def test_a_loop_of_screenshots_is_refused_once_at_the_most(
    loop: Callable[..., None], refuse: Callable[[Any], str], width: int, steps: int
) -> None:
    with Loopback("good") as provider:
        provider.refuse = refuse
        loop(provider.url, Recovery(), width, steps)
    assert provider.refused == 1
    assert len(provider.bodies) == steps + 1
    assert all(list(shown(body["messages"][-1])) for body in provider.bodies)
