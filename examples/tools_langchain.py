"""A LangChain agent with fetchstash's tools in its own process."""

import asyncio
import sys

from langchain.agents import create_agent

import fetchstash


async def main(question: str) -> None:
    async with fetchstash.open_stash() as stash:
        agent = create_agent("openai:gpt-5", fetchstash.tool_functions(stash))
        state = await agent.ainvoke({"messages": [{"role": "user", "content": question}]})
        print(state["messages"][-1].content)


asyncio.run(main(sys.argv[1]))
