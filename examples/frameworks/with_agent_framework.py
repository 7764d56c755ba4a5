"""Microsoft Agent Framework: the tools over MCP, and a client that recovers a full context."""

import asyncio
import sys

from agent_framework import Agent, MCPStdioTool
from agent_framework.openai import OpenAIChatCompletionClient
from openai import AsyncOpenAI

from fetchstash.client.adapters.openai import recovering


async def main(question: str) -> None:
    # OpenAIChatClient leaves the messages with OpenAI, where nobody can make them fewer.
    client = OpenAIChatCompletionClient("gpt-5", async_client=recovering(AsyncOpenAI()))
    async with MCPStdioTool("fetchstash", "fetchstash", args=["serve"]) as tools:
        print((await Agent(client, tools=[tools]).run(question)).text)


asyncio.run(main(sys.argv[1]))
