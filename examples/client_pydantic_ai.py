"""A PydanticAI agent that survives its own context.

    PROVIDER_URL=http://127.0.0.1:8000 python examples/client_pydantic_ai.py

The history holds a large tool result; the provider says that it is too long, and the request is
sent once more, smaller.
"""

import os

from pydantic_ai import Agent
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from fetchstash.client import Recovery
from fetchstash.client.adapters.pydantic_ai import RecoveryCapability

PROVIDER = os.environ["PROVIDER_URL"]
LARGE = "One line of a page that was fetched.\n" * 400

model = OpenAIChatModel("gpt-5", provider=OpenAIProvider(base_url=f"{PROVIDER}/v1", api_key="none"))
agent = Agent(model, capabilities=[RecoveryCapability(Recovery())])
history: list[ModelMessage] = [
    ModelRequest(parts=[UserPromptPart("Sum up the page.")]),
    ModelResponse(parts=[ToolCallPart("fetch", {}, "1")]),
    ModelRequest(parts=[ToolReturnPart("fetch", LARGE, "1")]),
    ModelResponse(parts=[ToolCallPart("fetch", {}, "2")]),
    ModelRequest(parts=[ToolReturnPart("fetch", "The end.", "2")]),
]
print(agent.run_sync("Go on.", message_history=history).output)
