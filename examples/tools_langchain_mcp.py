"""A LangChain agent with fetchstash's tools over MCP."""

import asyncio
import os
import sys

from langchain.agents import create_agent
from langchain_mcp_adapters.client import MultiServerMCPClient


async def main(question: str) -> None:
    server = {"transport": "stdio", "command": "fetchstash", "args": ["serve"]}
    client = MultiServerMCPClient({"fetchstash": {**server, "env": dict(os.environ)}})
    agent = create_agent("openai:gpt-5", await client.get_tools())
    state = await agent.ainvoke({"messages": [{"role": "user", "content": question}]})
    print(state["messages"][-1].content)


asyncio.run(main(sys.argv[1]))
