"""An agent on the anthropic SDK that survives its own context.

    PROVIDER_URL=http://127.0.0.1:8000 python examples/client_anthropic.py

The history holds a large tool result; the provider says that it is too long, and the request is
sent once more, smaller.
"""

import os

from anthropic import Anthropic

from fetchstash.client import Recovery
from fetchstash.client.adapters.anthropic import recovery_middleware

PROVIDER = os.environ["PROVIDER_URL"]
LARGE = "One line of a page that was fetched.\n" * 400

client = Anthropic(base_url=PROVIDER, api_key="none", middleware=[recovery_middleware(Recovery())])
answer = client.messages.create(
    model="claude-opus-4-6",
    max_tokens=1_000,
    messages=[
        {"role": "user", "content": "Sum up the page."},
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "1", "name": "fetch", "input": {}}],
        },
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "1", "content": LARGE}],
        },
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "2", "name": "fetch", "input": {}}],
        },
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "2", "content": "The end."}],
        },
        {"role": "user", "content": "Go on."},
    ],
)
print("".join(block.text for block in answer.content if block.type == "text"))
