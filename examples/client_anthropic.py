"""An agent on the anthropic SDK that survives its own context.

    PROVIDER_URL=http://127.0.0.1:8000 python examples/client_anthropic.py

Each page that the agent fetches makes the conversation longer, until the provider says that it is
too long. What a stub takes the place of is kept in fetchstash's own store, where the tools of its
server find it. The window of a model that fetchstash does not know is learned from the refusal, or
given as ``window=``.
"""

import os
import tempfile
from typing import Any

from anthropic import Anthropic

from fetchstash.client import Policy, Recovery
from fetchstash.client.adapters.anthropic import recovery_middleware
from fetchstash.client.offload import StoreOffload

TOOL: Any = {
    "name": "fetch",
    "input_schema": {"type": "object", "properties": {"page": {"type": "integer"}}},
}


def fetch(page: int) -> str:
    """Fetch a page of the report."""
    return f"One line of page {page} of the report.\n" * 250


recovery = Recovery(Policy(offload=StoreOffload(tempfile.mkdtemp())))
middleware = recovery_middleware(recovery)
client = Anthropic(base_url=os.environ["PROVIDER_URL"], api_key="none", middleware=[middleware])
messages: list[Any] = [{"role": "user", "content": "Sum up the report."}]
while True:
    with client.messages.stream(
        model="claude-opus-4-6", max_tokens=1_000, messages=messages, tools=[TOOL]
    ) as stream:
        for text in stream.text_stream:
            print(text, end="", flush=True)
        answer = stream.get_final_message()
    messages.append({"role": "assistant", "content": answer.content})
    calls: list[Any] = [block for block in answer.content if block.type == "tool_use"]
    if not calls:
        break
    results = [
        {"type": "tool_result", "tool_use_id": call.id, "content": fetch(**call.input)}
        for call in calls
    ]
    messages.append({"role": "user", "content": results})
