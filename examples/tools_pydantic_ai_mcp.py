"""A PydanticAI agent with fetchstash's tools over MCP."""

import os
import sys

from fastmcp.client.transports import StdioTransport
from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset

server = StdioTransport("fetchstash", ["serve"], env=dict(os.environ))
agent = Agent("openai-chat:gpt-5", toolsets=[MCPToolset(server)])
print(agent.run_sync(sys.argv[1]).output)
