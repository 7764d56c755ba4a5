"""An agent on the openai SDK that survives its own context.

    PROVIDER_URL=http://127.0.0.1:8000 python examples/client_openai.py

Each page that the agent fetches makes the conversation longer, until the provider says that it is
too long. What a stub takes the place of is kept in fetchstash's own store, where the tools of its
server find it. The window of a model that fetchstash does not know is learned from the refusal, or
given as ``window=``.
"""

import json
import os
import tempfile
from typing import Any

from openai import OpenAI

from fetchstash.client import Policy, Recovery
from fetchstash.client.adapters.openai import recovering
from fetchstash.client.offload import StoreOffload

TOOL: Any = {
    "type": "function",
    "function": {
        "name": "fetch",
        "parameters": {"type": "object", "properties": {"page": {"type": "integer"}}},
    },
}


def fetch(page: int) -> str:
    """Fetch a page of the report."""
    return f"One line of page {page} of the report.\n" * 250


recovery = Recovery(Policy(offload=StoreOffload(tempfile.mkdtemp())))
client = recovering(OpenAI(base_url=f"{os.environ['PROVIDER_URL']}/v1", api_key="none"), recovery)
messages: list[Any] = [{"role": "user", "content": "Sum up the report."}]
while True:
    with client.chat.completions.stream(model="gpt-5", messages=messages, tools=[TOOL]) as stream:
        for event in stream:
            if event.type == "content.delta":
                print(event.delta, end="", flush=True)
        answer = stream.get_final_completion().choices[0].message
    messages.append(answer)
    if not answer.tool_calls:
        break
    for call in answer.tool_calls:
        page = fetch(**json.loads(call.function.arguments))
        messages.append({"role": "tool", "tool_call_id": call.id, "content": page})
