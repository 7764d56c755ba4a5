"""LiteLLM: completion functions that recover from an overflow, whatever the provider.

complete = completion(Recovery())
complete(model=…, messages=[…])
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Unpack

from fetchstash.client._policy import RequestInfo
from fetchstash.client._recovery import Recovery
from fetchstash.client._streams import a_string
from fetchstash.client.adapters._wrapped import (
    Needs,
    Options,
    Shape,
    arecovering,
    configured,
    recovering,
)

with Needs("litellm", "litellm", "1.100"):
    import litellm

CHAT = Shape(
    "messages",
    "openai_chat",
    ("max_completion_tokens", "max_tokens"),
    ("tools", "functions", "response_format"),
)


def completion(recovery: Recovery | None = None, **options: Unpack[Options]) -> Callable[..., Any]:
    """Return ``litellm.completion`` with recovery. ``messages`` is given by name."""
    return recovering(litellm.completion, configured(recovery, options), CHAT, _described)


def acompletion(
    recovery: Recovery | None = None, **options: Unpack[Options]
) -> Callable[..., Awaitable[Any]]:
    """Return ``litellm.acompletion`` with recovery."""
    return arecovering(litellm.acompletion, configured(recovery, options), CHAT, _described)


def _described(arguments: Mapping[str, Any]) -> RequestInfo:
    endpoint = a_string(arguments.get("api_base") or arguments.get("base_url"))
    return CHAT.request(arguments, endpoint, _window(a_string(arguments.get("model"))))


def _window(model: str) -> int | None:
    """Return the window in LiteLLM's own list, None if it does not know the model."""
    try:
        window = litellm.get_model_info(model).get("max_input_tokens")
    except Exception:  # noqa: BLE001 - its errors for unknown models are of several classes
        return None
    return window if isinstance(window, int) else None
