"""An agent on LiteLLM that survives its own context.

    PROVIDER_URL=http://127.0.0.1:8000 python examples/client_litellm.py

Each page that the agent fetches makes the conversation longer, until the provider says that it is
too long. What a stub takes the place of is kept in fetchstash's own store, where the tools of its
server find it. The window of a model that fetchstash does not know is learned from the refusal, or
given as ``window=``.
"""

import json
import os
import tempfile
from typing import Any

import litellm

from fetchstash.client import Policy, Recovery
from fetchstash.client.adapters.litellm import completion
from fetchstash.client.offload import StoreOffload

TOOL: Any = {
    "type": "function",
    "function": {
        "name": "fetch",
        "parameters": {"type": "object", "properties": {"page": {"type": "integer"}}},
    },
}
PROVIDER = {"api_base": f"{os.environ['PROVIDER_URL']}/v1", "api_key": "none"}


def fetch(page: int) -> str:
    """Fetch a page of the report."""
    return f"One line of page {page} of the report.\n" * 250


complete = completion(Recovery(Policy(offload=StoreOffload(tempfile.mkdtemp()))))
messages: list[Any] = [{"role": "user", "content": "Sum up the report."}]
while True:
    chunks = []
    for chunk in complete(
        model="openai/gpt-5", messages=messages, tools=[TOOL], stream=True, **PROVIDER
    ):
        print(chunk.choices[0].delta.content or "", end="", flush=True)
        chunks.append(chunk)
    answer: Any = litellm.stream_chunk_builder(chunks)
    message = answer.choices[0].message
    messages.append(message)
    if not message.tool_calls:
        break
    for call in message.tool_calls:
        page = fetch(**json.loads(call.function.arguments))
        messages.append({"role": "tool", "tool_call_id": call.id, "content": page})
