"""A LangChain agent that survives its own context.

    PROVIDER_URL=http://127.0.0.1:8000 python examples/client_langchain.py

The history holds a large tool result; the provider says that it is too long, and the request is
sent once more, smaller.
"""

import os
from typing import Any

from langchain.agents import create_agent
from langchain_core.messages import AnyMessage
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from fetchstash.client import Recovery
from fetchstash.client.adapters.langchain import recovery_middleware

PROVIDER = os.environ["PROVIDER_URL"]
LARGE = "One line of a page that was fetched.\n" * 400

model = ChatOpenAI(model="gpt-5", base_url=f"{PROVIDER}/v1", api_key=SecretStr("none"))
agent = create_agent(model, [], middleware=[recovery_middleware(Recovery())])
history: list[AnyMessage | dict[str, Any]] = [
    {"role": "user", "content": "Sum up the page."},
    {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"id": "1", "name": "fetch", "args": {}, "type": "tool_call"}],
    },
    {"role": "tool", "tool_call_id": "1", "content": LARGE},
    {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"id": "2", "name": "fetch", "args": {}, "type": "tool_call"}],
    },
    {"role": "tool", "tool_call_id": "2", "content": "The end."},
    {"role": "user", "content": "Go on."},
]
print(agent.invoke({"messages": history})["messages"][-1].content)
