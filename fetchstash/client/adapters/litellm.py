"""LiteLLM: completion functions that recover from an overflow, whatever the provider.

complete = completion(Recovery())
complete(model=…, messages=[…])
"""

import os
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Unpack

from fetchstash.client._recovery import Recovery
from fetchstash.client._streams import a_string
from fetchstash.client.adapters import CHAT, Needs, Options, account_of, as_data, configured

with Needs("litellm", "litellm", "1.100"):
    import litellm


def completion(recovery: Recovery | None = None, **options: Unpack[Options]) -> Callable[..., Any]:
    """Return ``litellm.completion`` with recovery. ``messages`` is given by name."""
    made = configured(recovery, options)
    return _recovering(litellm.completion, made.call, made.open)


def acompletion(
    recovery: Recovery | None = None, **options: Unpack[Options]
) -> Callable[..., Awaitable[Any]]:
    """Return ``litellm.acompletion`` with recovery."""
    made = configured(recovery, options)
    complete = _recovering(litellm.acompletion, made.acall, made.aopen)

    async def acomplete(*args: Any, **kwargs: Any) -> Any:
        return await complete(*args, **kwargs)

    return acomplete


def _recovering(
    create: Callable[..., Any], call: Callable[..., Any], stream: Callable[..., Any]
) -> Callable[..., Any]:
    """Return ``create`` with recovery: what it returns is awaited where that of ``create`` is.

    A call whose messages are a bare string has nothing to shrink, and passes.
    """

    def complete(*args: Any, **kwargs: Any) -> Any:
        messages = as_data(kwargs.get("messages"))
        if messages is None:
            return create(*args, **kwargs)
        window = _window(a_string(kwargs.get("model")))
        endpoint, account = _account(kwargs)
        send = CHAT.sending(lambda arguments: create(*args, **arguments), kwargs)
        run = stream if kwargs.get("stream") else call
        return run(send, CHAT.request(kwargs, messages, endpoint, window, account))

    return complete


def _account(arguments: Mapping[str, Any]) -> tuple[str, str]:
    """Return the provider's address, or else its name, and the hash of the account.

    LiteLLM takes a key from the call, from itself, or from the environment.
    """
    endpoint = a_string(arguments.get("api_base") or arguments.get("base_url"))
    key: Any = arguments.get("api_key")
    try:
        _, provider, own, base = litellm.get_llm_provider(
            a_string(arguments.get("model")),
            custom_llm_provider=arguments.get("custom_llm_provider"),
            api_base=endpoint or None,
            api_key=key,
        )
    except Exception:  # noqa: BLE001 - as in _window
        return endpoint, account_of(key or litellm.api_key)
    key = key or own or getattr(litellm, f"{provider}_key", None) or litellm.api_key
    key = key or os.environ.get(f"{provider.upper()}_API_KEY")
    return endpoint or base or provider, account_of(key, arguments.get("organization"))


def _window(model: str) -> int | None:
    """Return the window in LiteLLM's own list, None if it does not know the model."""
    try:
        window = litellm.get_model_info(model).get("max_input_tokens")
    except Exception:  # noqa: BLE001 - its errors for unknown models are of several classes
        return None
    return window if isinstance(window, int) else None
