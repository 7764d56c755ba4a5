"""An agent on the google-genai SDK that survives its own context.

    PROVIDER_URL=http://127.0.0.1:8000 python examples/client_google_genai.py

Each page that the agent fetches makes the conversation longer, until the provider says that it is
too long. What a stub takes the place of is kept in fetchstash's own store, where the tools of its
server find it. The window of a model that fetchstash does not know is learned from the refusal, or
given as ``window=``.
"""

import os
import tempfile

from google import genai
from google.genai.types import GenerateContentConfig, HttpOptions

from fetchstash.client import Policy, Recovery
from fetchstash.client.adapters.google_genai import recovering
from fetchstash.client.offload import StoreOffload


def fetch(page: int) -> str:
    """Fetch a page of the report."""
    return f"One line of page {page} of the report.\n" * 250


recovery = Recovery(Policy(offload=StoreOffload(tempfile.mkdtemp())))
options = HttpOptions(base_url=os.environ["PROVIDER_URL"])
client = recovering(genai.Client(api_key="none", http_options=options), recovery)
# The SDK's own loop: it calls the function for as long as the model asks for it.
chat = client.chats.create(model="gemini-3-pro", config=GenerateContentConfig(tools=[fetch]))
for chunk in chat.send_message_stream("Sum up the report."):
    print(chunk.text or "", end="", flush=True)
