"""CrewAI: the tools over MCP. A hook compacts the conversation before each request."""

import os
import sys

from crewai import Agent
from crewai.hooks import LLMCallHookContext, before_llm_call
from crewai.mcp import MCPServerStdio

from fetchstash.client import State, compact

WINDOW = int(os.environ.get("WINDOW", "400000"))  # tokens; less than the model has
state = State()


@before_llm_call
def compact_first(context: LLMCallHookContext) -> None:
    context.messages[:], _ = compact(context.messages, "openai_chat", WINDOW, state)


agent = Agent(
    role="Reader",
    goal="Answer questions about pages and documents",
    backstory="You read what you are asked about, and nothing more than you need.",
    llm="openai/gpt-5",
    mcps=[MCPServerStdio(command="fetchstash", args=["serve"])],
)
print(agent.kickoff(sys.argv[1]).raw)
