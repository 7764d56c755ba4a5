"""PydanticAI: the tools over MCP, and a capability that recovers when the context is full."""

import sys

from fastmcp.client.transports import StdioTransport
from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset

from fetchstash.client.adapters.pydantic_ai import RecoveryCapability

server = MCPToolset(StdioTransport("fetchstash", ["serve"]), init_timeout=60)
agent = Agent("openai-chat:gpt-5", toolsets=[server], capabilities=[RecoveryCapability()])
print(agent.run_sync(sys.argv[1]).output)
