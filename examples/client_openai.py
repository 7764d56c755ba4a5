"""An agent on the openai SDK that survives its own context.

    PROVIDER_URL=http://127.0.0.1:8000 python examples/client_openai.py

The history holds a large tool result; the provider says that it is too long, and the request is
sent once more, smaller.
"""

import os

from openai import OpenAI

from fetchstash.client import Recovery
from fetchstash.client.adapters.openai import recovering

PROVIDER = os.environ["PROVIDER_URL"]
LARGE = "One line of a page that was fetched.\n" * 400

client = recovering(OpenAI(base_url=f"{PROVIDER}/v1", api_key="none"), Recovery())
answer = client.chat.completions.create(
    model="gpt-5",
    messages=[
        {"role": "user", "content": "Sum up the page."},
        {
            "role": "assistant",
            "tool_calls": [
                {"id": "1", "type": "function", "function": {"name": "fetch", "arguments": "{}"}}
            ],
        },
        {"role": "tool", "tool_call_id": "1", "content": LARGE},
        {"role": "assistant", "content": "It is long. Shall I go on?"},
        {
            "role": "assistant",
            "tool_calls": [
                {"id": "2", "type": "function", "function": {"name": "fetch", "arguments": "{}"}}
            ],
        },
        {"role": "tool", "tool_call_id": "2", "content": "The end."},
        {"role": "user", "content": "Yes."},
    ],
)
print(answer.choices[0].message.content)
