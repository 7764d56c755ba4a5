"""The openai SDK: Chat Completions and Responses that recover from an overflow, plain, streamed and asynchronous.

    client = recovering(OpenAI(), Recovery())
    client.chat.completions.create(model=…, messages=[…])

The SDK has no hook that can send a changed request, so the two create functions of a copy of the
client are replaced.
"""

from typing import Any, TypeVar

from openai import AsyncOpenAI, OpenAI

from fetchstash.client._recovery import Recovery
from fetchstash.client.adapters._wrapped import Shape, arecovering, recovering as _recovering

Client = TypeVar("Client", OpenAI, AsyncOpenAI)

CHAT = Shape("messages", "openai_chat", ("max_completion_tokens", "max_tokens"))
RESPONSES = Shape("input", "openai_responses", ("max_output_tokens",))


def recovering(client: Client, recovery: Recovery) -> Client:
    """Return a copy of ``client`` (it shares the connections) whose ``chat.completions.create`` and ``responses.create`` recover.

    Give a conversation a Recovery of its own. Inputs are dicts, as the API has them. Raises what
    the SDK raises.
    """
    copy = client.copy()
    wrap: Any = arecovering if isinstance(client, AsyncOpenAI) else _recovering
    for resource, shape in ((copy.chat.completions, CHAT), (copy.responses, RESPONSES)):
        # The resource is made once for a client and kept, so that a method set on it stays.
        object.__setattr__(resource, "create", wrap(resource.create, recovery, shape))
    return copy
