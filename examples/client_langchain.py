"""An agent on LangChain that survives its own context.

    PROVIDER_URL=http://127.0.0.1:8000 python examples/client_langchain.py

Each page that the agent fetches makes the conversation longer, until the provider says that it is
too long. What a stub takes the place of is kept in fetchstash's own store, where the tools of its
server find it. The window of a model that fetchstash does not know is learned from the refusal, or
given as ``window=``.
"""

import os
import tempfile
from typing import Any

from langchain.agents import create_agent
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from fetchstash.client import Policy, Recovery
from fetchstash.client.adapters.langchain import recovery_middleware
from fetchstash.client.offload import StoreOffload


def fetch(page: int) -> str:
    """Fetch a page of the report."""
    return f"One line of page {page} of the report.\n" * 250


recovery = Recovery(Policy(offload=StoreOffload(tempfile.mkdtemp())))
model = ChatOpenAI(
    model="gpt-5", base_url=f"{os.environ['PROVIDER_URL']}/v1", api_key=SecretStr("none")
)
agent = create_agent(model, [fetch], middleware=[recovery_middleware(recovery)])
question: Any = {"messages": [{"role": "user", "content": "Sum up the report."}]}
stream: Any = agent.stream(question, stream_mode="messages")
for chunk, about in stream:
    if about["langgraph_node"] == "model":
        print(chunk.text, end="", flush=True)
