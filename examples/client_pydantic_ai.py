"""An agent on PydanticAI that survives its own context.

    PROVIDER_URL=http://127.0.0.1:8000 python examples/client_pydantic_ai.py

Each page that the agent fetches makes the conversation longer, until the provider says that it is
too long. What a stub takes the place of is kept in fetchstash's own store, where the tools of its
server find it. The window of a model that fetchstash does not know is learned from the refusal, or
given as ``window=``.
"""

import asyncio
import os
import tempfile

from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from fetchstash.client import Policy, Recovery
from fetchstash.client.adapters.pydantic_ai import RecoveryCapability
from fetchstash.client.offload import StoreOffload


def fetch(page: int) -> str:
    """Fetch a page of the report."""
    return f"One line of page {page} of the report.\n" * 250


async def main() -> None:
    recovery = Recovery(Policy(offload=StoreOffload(tempfile.mkdtemp())))
    provider = OpenAIProvider(base_url=f"{os.environ['PROVIDER_URL']}/v1", api_key="none")
    model = OpenAIChatModel("gpt-5", provider=provider)
    agent = Agent(model, tools=[fetch], capabilities=[RecoveryCapability(recovery)])
    async with agent.run_stream("Sum up the report.") as stream:
        async for text in stream.stream_text(delta=True):
            print(text, end="", flush=True)


asyncio.run(main())
