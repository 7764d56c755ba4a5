"""Serve a tool ``converse`` that sends a provider too long a conversation.

    overflow.py fetchstash | langchain-edits | langchain-summary

Runs in the environment of LangChain's lock.
"""

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from planted import serve

QUESTION = "Which berth is free for the ship NEEDLE-QUESTION?"
PAGES = 14


def conversation() -> list[dict[str, Any]]:
    """Return a question and fourteen calls with their results, 14,000 characters each."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": QUESTION}]
    for number in range(PAGES):
        function = {"name": "read", "arguments": f'{{"page": {number}}}'}
        call = {"id": f"call_{number}", "type": "function", "function": function}
        newest = "NEEDLE-NEWEST berth B-117 is free. " if number == PAGES - 1 else ""
        text = newest + f"Berth {number} is taken by a barge with gravel. " * 300
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"call_{number}", "content": text})
    return messages


def read(page: int) -> str:
    """Read a page."""
    return f"Page {page} is empty."


def converse(url: str) -> str:
    """Return what the provider at the end answered; whatever is raised is the answer, too."""
    base = f"{url}/v1"
    if sys.argv[1] == "fetchstash":
        from openai import OpenAI  # noqa: PLC0415 - in the lock's environment

        from fetchstash.client.adapters.openai import recovering  # noqa: PLC0415

        client = recovering(OpenAI(base_url=base, api_key="none", max_retries=0))
        answer = client.chat.completions.create(model="local", messages=conversation())
        return answer.choices[0].message.content or ""
    from langchain.agents import create_agent  # noqa: PLC0415
    from langchain.agents.middleware import ContextEditingMiddleware, SummarizationMiddleware  # noqa: PLC0415
    from langchain_openai import ChatOpenAI  # noqa: PLC0415

    model = ChatOpenAI(model="local", base_url=base, api_key="none", max_retries=0)
    edits = sys.argv[1] == "langchain-edits"
    middleware = ContextEditingMiddleware() if edits else SummarizationMiddleware(model=model)
    agent = create_agent(model, [read], middleware=[middleware])
    return str(agent.invoke({"messages": conversation()})["messages"][-1].content)


if __name__ == "__main__":
    serve("converse", converse)
