"""How large the context windows of models are, in tokens."""

import re

SOURCE, READ_ON = (
    "LiteLLM 1.106.2, model_prices_and_context_window_backup.json, max_input_tokens",
    "2026-11-21",
)
"""Where the table is from, and when it was read. Of several figures for one family the one for most of its entries is taken."""

UNKNOWN_WINDOW = 120_000
"""What a model counts as that the table does not know."""

WINDOWS = {
    "claude": 200_000,
    "claude-haiku-5": 1_000_000,
    "claude-instant": 100_000,
    "claude-opus-4-6": 1_000_000,
    "claude-opus-5": 1_000_000,
    "claude-sonnet-5": 1_000_000,
    "command-a": 128_000,
    "deepseek-chat": 131_072,
    "deepseek-r1": 131_072,
    "deepseek-v3": 128_000,
    "deepseek-v4": 1_000_000,
    "gemini": 1_048_576,
    "gemma-3": 128_000,
    "glm-4.6": 200_000,
    "glm-4.7": 200_000,
    "glm-5.3": 1_000_000,
    "gpt-3.5-turbo": 16_384,
    "gpt-4": 8_192,
    "gpt-4-0125": 128_000,
    "gpt-4-1106": 128_000,
    "gpt-4-32k": 32_768,
    "gpt-4-turbo": 128_000,
    "gpt-4.1": 1_047_576,
    "gpt-4o": 128_000,
    "gpt-5": 272_000,
    "gpt-5-chat": 128_000,
    "gpt-5.1-chat": 111_616,
    "gpt-5.2-chat": 111_616,
    "gpt-5.5": 922_000,
    "gpt-6": 922_000,
    "gpt-oss": 128_000,
    "grok-4": 128_000,
    "kimi-k2": 262_144,
    "llama-3": 8_192,
    "llama-3.1": 128_000,
    "llama-3.2": 128_000,
    "llama-3.3": 128_000,
    "llama-4": 131_072,
    "mistral-large": 32_000,
    "mistral-large-2407": 128_000,
    "mistral-large-3": 256_000,
    "o1": 200_000,
    "o1-mini": 128_000,
    "o3": 200_000,
    "o4-mini": 200_000,
    "qwen3": 131_072,
    "qwen3-14b": 40_960,
}
"""Windows by the beginning of a model's name; a longer one wins. Where a family's windows differ, the smaller one is safe."""

_PLACES = re.compile(
    r"^(?:[a-z]{2,6}\.)?(?:anthropic|meta|mistral|cohere|deepseek|openai|qwen|google|moonshotai|zai)[.:]"
)


def known_window(model: str) -> int | None:
    """Return the context window of ``model`` in tokens, whatever provider or region stands before its name; None if unknown."""
    name = _PLACES.sub("", model.strip().lower().rpartition("/")[2])
    # The next character ends the beginning: "gpt-4" is neither "gpt-41" nor "gpt-4o", but it is
    # "gpt-4-0613".
    fitting = [
        prefix
        for prefix in WINDOWS
        if name.startswith(prefix) and not name[len(prefix) :][:1].isalnum()
    ]
    return WINDOWS[max(fitting, key=len)] if fitting else None
