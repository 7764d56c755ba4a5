"""Claude Agent SDK: the tools over MCP. Claude Code keeps and compacts the messages."""

import asyncio
import sys

from claude_agent_sdk import ClaudeAgentOptions, ResultMessage, query


async def main(question: str) -> None:
    options = ClaudeAgentOptions(
        mcp_servers={"fetchstash": {"command": "fetchstash", "args": ["serve"]}},
        allowed_tools=["mcp__fetchstash"],
    )
    async for message in query(prompt=question, options=options):
        if isinstance(message, ResultMessage):
            print(message.result)


asyncio.run(main(sys.argv[1]))
