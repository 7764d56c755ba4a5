"""AutoGen: the tools over MCP, and a client that recovers a full context."""

import asyncio
import sys

from autogen_agentchat.agents import AssistantAgent
from autogen_core.models import ModelFamily, ModelInfo
from autogen_ext.models.openai import BaseOpenAIChatCompletionClient
from autogen_ext.tools.mcp import McpWorkbench, StdioServerParams
from openai import AsyncOpenAI

from fetchstash.client.adapters.openai import recovering

ABILITIES = ModelInfo(
    vision=False,
    function_calling=True,
    json_output=True,
    structured_output=True,
    family=ModelFamily.UNKNOWN,
)


async def main(question: str) -> None:
    client = recovering(AsyncOpenAI())
    model = BaseOpenAIChatCompletionClient(
        client, create_args={"model": "gpt-5"}, model_info=ABILITIES
    )
    server = StdioServerParams(command="fetchstash", args=["serve"])
    async with McpWorkbench(server) as tools:
        agent = AssistantAgent("reader", model, workbench=tools, max_tool_iterations=20)
        print((await agent.run(task=question)).messages[-1].to_text())


asyncio.run(main(sys.argv[1]))
