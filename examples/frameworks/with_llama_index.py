"""LlamaIndex: the tools over MCP, and a client that recovers when the context is full."""

import asyncio
import sys

from llama_index.core.agent.workflow import FunctionAgent
from llama_index.llms.openai import OpenAI
from llama_index.tools.mcp import BasicMCPClient, McpToolSpec
from openai import AsyncOpenAI

from fetchstash.client.adapters.openai import recovering


async def main(question: str) -> None:
    server = BasicMCPClient("fetchstash", args=["serve"], timeout=60)
    tools = await McpToolSpec(client=server).to_tool_list_async()
    model = OpenAI("gpt-5", async_openai_client=recovering(AsyncOpenAI()))
    print(await FunctionAgent(tools=tools, llm=model).run(question))


asyncio.run(main(sys.argv[1]))
