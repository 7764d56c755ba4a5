"""LiteLLM: the tools over MCP, and a completion function that recovers when the context is full."""

import asyncio
import sys

from litellm.experimental_mcp_client import call_openai_tool, load_mcp_tools
from mcp import ClientSession, StdioServerParameters, stdio_client

from fetchstash.client.adapters.litellm import acompletion


async def main(question: str) -> None:
    complete = acompletion()
    server = StdioServerParameters(command="fetchstash", args=["serve"])
    async with stdio_client(server) as streams, ClientSession(*streams) as session:
        await session.initialize()
        tools = await load_mcp_tools(session, format="openai")
        messages = [{"role": "user", "content": question}]
        while True:
            answer = await complete(model="openai/gpt-5", messages=messages, tools=tools)
            messages.append(answer.choices[0].message)
            if not messages[-1].tool_calls:
                break
            for call in messages[-1].tool_calls:
                result = await call_openai_tool(session, call)
                text = "".join(part.text for part in result.content if part.type == "text")
                messages.append({"role": "tool", "tool_call_id": call.id, "content": text})
    print(messages[-1].content)


asyncio.run(main(sys.argv[1]))
