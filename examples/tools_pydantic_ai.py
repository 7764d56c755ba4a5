"""A PydanticAI agent with fetchstash's tools in its own process."""

import asyncio
import sys

from pydantic_ai import Agent

import fetchstash


async def main(question: str) -> None:
    async with fetchstash.open_stash() as stash:
        agent = Agent("openai-chat:gpt-5", tools=fetchstash.tool_functions(stash))
        print((await agent.run(question)).output)


asyncio.run(main(sys.argv[1]))
