"""Google's ADK: the tools over MCP, and a Gemini client that recovers when the context is full."""

import asyncio
import sys
from functools import cached_property
from typing import Any

from google import genai
from google.adk.agents import LlmAgent
from google.adk.models import Gemini
from google.adk.runners import InMemoryRunner
from google.adk.tools.mcp_tool import McpToolset, StdioConnectionParams
from mcp import StdioServerParameters

from fetchstash.client.adapters.google_genai import recovering


class RecoveringGemini(Gemini):
    """The model, with a client that recovers."""

    @cached_property
    def api_client(self) -> Any:
        """Return the client, made when it is first used."""
        return recovering(genai.Client())


async def main(question: str) -> None:
    server = StdioServerParameters(command="fetchstash", args=["serve"])
    tools = McpToolset(connection_params=StdioConnectionParams(server_params=server, timeout=60))
    model = RecoveringGemini(model="gemini-3-pro")
    runner = InMemoryRunner(LlmAgent(name="reader", model=model, tools=[tools]))
    for event in await runner.run_debug(question, quiet=True):
        if event.is_final_response() and event.content:
            print(event.content.parts[0].text)
    await runner.close()


asyncio.run(main(sys.argv[1]))
