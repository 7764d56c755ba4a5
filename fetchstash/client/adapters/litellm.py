"""LiteLLM: completion functions that recover from an overflow, plain, streamed and asynchronous, whatever the provider behind.

completion = completion(Recovery())
completion(model=…, messages=[…])
"""

from collections.abc import Awaitable, Callable
from typing import Any

import litellm

from fetchstash.client._recovery import Recovery
from fetchstash.client.adapters._wrapped import Shape, arecovering, recovering

CHAT = Shape("messages", "openai_chat", ("max_completion_tokens", "max_tokens"))


def completion(recovery: Recovery) -> Callable[..., Any]:
    """Return ``litellm.completion`` with recovery. ``messages`` is given by name, as dicts."""
    return recovering(litellm.completion, recovery, CHAT)


def acompletion(recovery: Recovery) -> Callable[..., Awaitable[Any]]:
    """Return ``litellm.acompletion`` with recovery."""
    return arecovering(litellm.acompletion, recovery, CHAT)
