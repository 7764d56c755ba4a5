"""Strands Agents: the tools over MCP, and a client that recovers when the context is full."""

import sys

from mcp import StdioServerParameters, stdio_client
from openai import AsyncOpenAI
from strands import Agent
from strands.models.openai import OpenAIModel
from strands.tools.mcp import MCPClient

from fetchstash.client.adapters.openai import recovering

server = StdioServerParameters(command="fetchstash", args=["serve"])
model = OpenAIModel(client=recovering(AsyncOpenAI()), model_id="gpt-5")
tools = MCPClient(lambda: stdio_client(server))
print(Agent(model=model, tools=[tools], callback_handler=None)(sys.argv[1]))
