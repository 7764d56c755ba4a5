"""Run an agent's loop that never floods its context: a chat model and the tools of fetchstash.

python examples/agent_loop.py MODEL_URL QUESTION [FLAGS OF fetchstash serve ...]

The loop keeps no tool result that is longer than the server made it, and counts what the context
holds.
"""

import json
import sys
from typing import Any

import anyio
import httpx2
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp_types import CallToolResult, TextContent

ROUNDS = 8


async def main(model_url: str, question: str, *flags: str) -> None:
    server = StdioServerParameters(command="fetchstash", args=["serve", *flags])
    async with Client(server) as client, httpx2.AsyncClient() as http:
        listed = (await client.list_tools()).tools
        tools = [
            {
                "type": "function",
                "function": {
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": tool.input_schema,
                },
            }
            for tool in listed
        ]
        messages: list[dict[str, Any]] = [{"role": "user", "content": question}]
        for _ in range(ROUNDS):
            request = {"model": "any", "messages": messages, "tools": tools}
            answer = (
                (await http.post(f"{model_url}/chat/completions", json=request))
                .raise_for_status()
                .json()
            )
            message = answer["choices"][0]["message"]
            messages.append(message)
            if not message.get("tool_calls"):
                print(message["content"])
                print(f"The context held {len(json.dumps(messages)):,} characters at the end.")
                return
            for call in message["tool_calls"]:
                function = call["function"]
                result = await client.call_tool(function["name"], json.loads(function["arguments"]))
                assert isinstance(result, CallToolResult)
                text = "\n".join(
                    part.text for part in result.content if isinstance(part, TextContent)
                )
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": text})
        print("The model asked for more rounds than there are.")


if __name__ == "__main__":
    anyio.run(main, sys.argv[1], sys.argv[2], *sys.argv[3:])
