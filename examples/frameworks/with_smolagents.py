"""smolagents: the tools over MCP, and a client that recovers when the context is full."""

import sys

from mcp import StdioServerParameters
from openai import OpenAI
from smolagents import MCPClient, OpenAIModel, ToolCallingAgent

from fetchstash.client.adapters.openai import recovering

model = OpenAIModel("gpt-5")
model.client = recovering(OpenAI())
server = StdioServerParameters(command="fetchstash", args=["serve"])
with MCPClient(server, structured_output=False) as tools:
    for tool in tools:  # smolagents demands every argument that it does not know as optional
        for argument in tool.inputs.values():
            argument["nullable"] = True
    print(ToolCallingAgent(tools=tools, model=model, verbosity_level=0).run(sys.argv[1]))
