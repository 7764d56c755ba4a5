"""LangGraph's create_agent: the tools over MCP, and middleware that recovers a full context."""

import asyncio
import sys

from langchain.agents import create_agent
from langchain_mcp_adapters.client import MultiServerMCPClient

from fetchstash.client.adapters.langchain import recovery_middleware


async def main(question: str) -> None:
    server = {"transport": "stdio", "command": "fetchstash", "args": ["serve"]}
    tools = await MultiServerMCPClient({"fetchstash": server}).get_tools()
    agent = create_agent("openai:gpt-5", tools, middleware=[recovery_middleware()])
    state = await agent.ainvoke({"messages": [{"role": "user", "content": question}]})
    print(state["messages"][-1].text)


asyncio.run(main(sys.argv[1]))
