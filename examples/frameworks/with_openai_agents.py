"""OpenAI Agents SDK: the tools over MCP, and a client that recovers when the context is full."""

import asyncio
import sys

from agents import Agent, Runner, set_default_openai_client
from agents.mcp import MCPServerStdio
from openai import AsyncOpenAI

from fetchstash.client.adapters.openai import recovering


async def main(question: str) -> None:
    set_default_openai_client(recovering(AsyncOpenAI()))
    server = {"command": "fetchstash", "args": ["serve"]}
    async with MCPServerStdio(server, client_session_timeout_seconds=60) as fetchstash:
        agent = Agent("Reader", model="gpt-5", mcp_servers=[fetchstash])
        print((await Runner.run(agent, question)).final_output)


asyncio.run(main(sys.argv[1]))
