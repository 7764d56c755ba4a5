"""An agent on the google-genai SDK that survives its own context.

    PROVIDER_URL=http://127.0.0.1:8000 python examples/client_google_genai.py

The history holds a large tool result; the provider says that it is too long, and the request is
sent once more, smaller.
"""

import os

from google import genai

from fetchstash.client import Recovery
from fetchstash.client.adapters.google_genai import recovering

PROVIDER = os.environ["PROVIDER_URL"]
LARGE = "One line of a page that was fetched.\n" * 400

options = genai.types.HttpOptions(base_url=PROVIDER)
client = recovering(genai.Client(api_key="none", http_options=options), Recovery())
answer = client.models.generate_content(
    model="gemini-3-pro",
    contents=[
        {"role": "user", "parts": [{"text": "Sum up the page."}]},
        {"role": "model", "parts": [{"functionCall": {"name": "fetch", "args": {}}}]},
        {
            "role": "user",
            "parts": [{"functionResponse": {"name": "fetch", "response": {"result": LARGE}}}],
        },
        {"role": "model", "parts": [{"functionCall": {"name": "fetch", "args": {}}}]},
        {
            "role": "user",
            "parts": [{"functionResponse": {"name": "fetch", "response": {"result": "The end."}}}],
        },
        {"role": "user", "parts": [{"text": "Go on."}]},
    ],
)
print(answer.text)
