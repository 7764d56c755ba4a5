"""How large the context windows of models are, in tokens."""

import logging
import re
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from threading import Lock

from fetchstash.client._policy import RequestInfo

_log = logging.getLogger("fetchstash.client")
_warned: set[str] = set()

SOURCE, READ_ON = (
    "LiteLLM 1.106.2, model_prices_and_context_window_backup.json, max_input_tokens",
    "2026-11-22",
)
"""Where the table is from, and when scripts/windows.py read it."""

UNKNOWN_WINDOW = 120_000
"""What a model counts as that the table does not know."""

WINDOWS = {
    "c4ai": 128_000,
    "chat-latest": 400_000,
    "claude": 200_000,
    "claude-fable-5": 1_000_000,
    "claude-haiku-5": 1_000_000,
    "claude-mythos-5": 1_000_000,
    "claude-mythos-preview": 1_000_000,
    "claude-opus-4": 200_000,
    "claude-opus-4-6": 1_000_000,
    "claude-opus-4-7": 1_000_000,
    "claude-opus-4-8": 1_000_000,
    "claude-opus-5": 1_000_000,
    "claude-sonnet-4": 200_000,
    "claude-sonnet-4-6": 1_000_000,
    "claude-sonnet-5": 1_000_000,
    "codestral-2508": 128_000,
    "codestral-latest": 128_000,
    "codestral-mamba-latest": 256_000,
    "command-a-03": 256_000,
    "command-a-plus-05": 128_000,
    "command-r-08": 128_000,
    "command-r-plus-08": 128_000,
    "command-r7b": 128_000,
    "computer-use-preview": 8_192,
    "computer-use-preview-2025": 8_192,
    "daybreak-blue-latest": 922_000,
    "daybreak-red-latest": 400_000,
    "deep-research-max-preview-04": 1_048_576,
    "deep-research-preview-04": 1_048_576,
    "deep-research-pro-preview-12": 1_048_576,
    "deepseek-chat": 131_072,
    "deepseek-coder": 128_000,
    "deepseek-flash": 1_000_000,
    "deepseek-r1": 65_536,
    "deepseek-reasoner": 131_072,
    "deepseek-v3": 65_536,
    "deepseek-v3.2": 163_840,
    "deepseek-v4": 1_000_000,
    "devstral-latest": 256_000,
    "devstral-medium-latest": 256_000,
    "devstral-small-latest": 256_000,
    "gemini": 1_048_576,
    "gemini-2.5-computer": 128_000,
    "gemini-2.5-pro": 1_048_576,
    "gemini-2.5-pro-preview-tts": 8_192,
    "gemini-omni-flash-preview": 131_072,
    "gemini-robotics-er-2": 131_072,
    "gemma-3": 128_000,
    "gemma-3-27b": 131_072,
    "gemma-4": 262_144,
    "glm-4": 128_000,
    "glm-4.6": 200_000,
    "glm-4.7": 200_000,
    "glm-5": 200_000,
    "glm-5-2": 1_048_576,
    "glm-5.2": 1_000_000,
    "glm-5.3": 1_000_000,
    "glm-5.3-flash": 1_048_576,
    "gpt-3": 16_385,
    "gpt-4": 8_192,
    "gpt-4-1106": 128_000,
    "gpt-4-turbo": 128_000,
    "gpt-4.1": 1_047_576,
    "gpt-4o": 128_000,
    "gpt-5": 272_000,
    "gpt-5-chat": 128_000,
    "gpt-5-pro": 400_000,
    "gpt-5.1": 272_000,
    "gpt-5.1-2025": 272_000,
    "gpt-5.1-chat": 128_000,
    "gpt-5.1-codex": 400_000,
    "gpt-5.1-codex-max": 400_000,
    "gpt-5.1-codex-mini": 400_000,
    "gpt-5.2-chat": 128_000,
    "gpt-5.3": 128_000,
    "gpt-5.3-codex": 272_000,
    "gpt-5.4": 1_050_000,
    "gpt-5.4-2026": 1_050_000,
    "gpt-5.4-mini": 272_000,
    "gpt-5.4-nano": 272_000,
    "gpt-5.4-pro": 1_050_000,
    "gpt-5.5": 1_050_000,
    "gpt-5.6": 922_000,
    "gpt-5.6-cyber": 400_000,
    "gpt-6": 922_000,
    "gpt-audio": 128_000,
    "gpt-audio-1": 128_000,
    "gpt-audio-2025": 128_000,
    "gpt-audio-mini-2025": 128_000,
    "gpt-daybreak-blue-latest": 922_000,
    "gpt-daybreak-red-latest": 400_000,
    "gpt-oss": 128_000,
    "grok-4": 1_000_000,
    "grok-4.5": 500_000,
    "grok-4.6": 500_000,
    "grok-4.7": 500_000,
    "grok-build-0": 256_000,
    "grok-build-latest": 500_000,
    "grok-code-fast": 256_000,
    "grok-code-fast-1": 256_000,
    "kimi-k2": 262_144,
    "kimi-k2.7": 229_376,
    "kimi-k3": 1_048_576,
    "labs-leanstral-1": 262_144,
    "learnlm-1": 32_767,
    "llama-3": 8_192,
    "llama-3.1": 128_000,
    "llama-3.2": 128_000,
    "llama-3.3": 128_000,
    "llama-4": 131_072,
    "lyria-3": 131_072,
    "lyria-realtime-exp": 1_048_576,
    "magistral-medium-latest": 262_144,
    "magistral-small-latest": 262_144,
    "minimax-m2": 200_000,
    "minimax-m3": 1_000_000,
    "ministral-14b": 262_144,
    "ministral-3": 262_144,
    "ministral-3-3b": 131_072,
    "ministral-3b": 131_072,
    "ministral-8b": 262_144,
    "mistral-code-agent-latest": 256_000,
    "mistral-code-fim-latest": 128_000,
    "mistral-code-latest": 128_000,
    "mistral-large-2512": 262_144,
    "mistral-large-3": 262_144,
    "mistral-large-4": 1_048_576,
    "mistral-large-latest": 262_144,
    "mistral-medium": 262_144,
    "mistral-medium-2604": 262_144,
    "mistral-medium-3": 262_144,
    "mistral-small": 32_000,
    "mistral-small-2603": 262_144,
    "mistral-small-latest": 262_144,
    "mistral-tiny": 32_000,
    "mistral-vibe-cli-fast": 262_144,
    "mistral-vibe-cli-latest": 262_144,
    "mistral-vibe-cli-with-tools": 262_144,
    "moonshot-v1": 131_072,
    "moonshot-v1-32k": 32_768,
    "moonshot-v1-8k": 8_192,
    "o1": 200_000,
    "o3": 200_000,
    "o4": 200_000,
    "open-mistral-nemo": 128_000,
    "pixtral-large-latest": 128_000,
    "qwen-coder": 1_000_000,
    "qwen-flash": 997_952,
    "qwen-flash-2025": 997_952,
    "qwen-max": 30_720,
    "qwen-plus": 129_024,
    "qwen-plus-2025": 129_024,
    "qwen-plus-2025-07-28": 997_952,
    "qwen-plus-2025-09": 997_952,
    "qwen-plus-latest": 997_952,
    "qwen-turbo": 129_024,
    "qwen-turbo-2024": 1_000_000,
    "qwen-turbo-2025": 1_000_000,
    "qwen-turbo-latest": 1_000_000,
    "qwen3": 131_072,
    "qwen3-14b": 40_960,
    "qwen3-30b": 129_024,
    "qwen3-coder": 997_952,
    "qwen3-max": 258_048,
    "qwen3-next": 262_144,
    "qwen3-vl-plus": 260_096,
    "qwen3.5": 991_808,
    "qwen3.7": 991_808,
    "qwen3.8": 991_808,
    "qwq-plus": 98_304,
    "voxtral-small-2507": 32_768,
    "voxtral-small-latest": 32_768,
    "zai-glm-5": 1_048_576,
    "zai-glm-latest": 1_048_576,
}
"""Windows by the beginning of a model's name; a longer beginning wins."""

_PLACES = re.compile(
    r"^(?:[a-z]{2,6}\.)?(?:anthropic|meta|mistral|cohere|deepseek|openai|qwen|google|moonshotai|zai)[.:]"
)


def plain_name(model: str) -> str:
    """Return the name of a model without the provider or region before it, in lower case."""
    return _PLACES.sub("", model.strip().lower().rpartition("/")[2])


def known_window(model: str) -> int | None:
    """Return the context window of ``model`` in tokens, None if the table does not know it.

    A provider or region may stand before its name.
    """
    name = plain_name(model)
    # The beginning ends at a word's end: "gpt-4" begins "gpt-4-0613", and not "gpt-4o".
    fitting = [
        prefix
        for prefix in WINDOWS
        if name.startswith(prefix) and not name[len(prefix) :][:1].isalnum()
    ]
    return WINDOWS[max(fitting, key=len)] if fitting else None


def context_window(model: str, windows: Mapping[str, int] | None = None) -> int:
    """Return the context window of ``model`` in tokens.

    ``windows`` are the caller's own figures, by model name, and go first. A model that
    the table does not know counts as 120,000 tokens, with one warning.
    """
    known = (windows or {}).get(model) or known_window(model)
    if known is None and model not in _warned:
        _warned.add(model)
        _log.warning(
            "The context window of model %r is not known: %d tokens are assumed.",
            model,
            UNKNOWN_WINDOW,
        )
    return known or UNKNOWN_WINDOW


MAX_LEARNED = 1_000
"""How many models and deployments are remembered; the least recently learned goes first."""


@dataclass(frozen=True, slots=True)
class LearnedWindow:
    """The window and the size that a refusal stated.

    ``limit`` is in the provider's tokens, ``scale`` of which one token of our count is. ``rest`` is
    what the request had besides its messages where only the provider knows that.
    """

    limit: int
    scale: float
    rest: int = 0

    @property
    def window(self) -> int:
        """The limit in tokens of our count, less the rest."""
        return int(max(self.limit - self.rest, self.limit // 10) / self.scale)


class LearnedWindows:
    """The windows that providers stated when they refused a request, by endpoint and model."""

    def __init__(self) -> None:
        self._windows: OrderedDict[tuple[str, str], LearnedWindow] = OrderedDict()
        self._lock = Lock()

    def learn(self, request: RequestInfo, limit: int, requested: int | None, counted: int) -> None:
        """Remember a stated limit, from a request that the provider and we counted.

        What the provider counts more than we do is its measure, or parts of the request that we do
        not know. A scale out of the ordinary is a misread number, and is bounded.
        """
        stated = requested or max(limit, counted)
        scale = min(max(stated / max(counted, 1), 0.8), 2.0)
        rest = 0
        if request.fixed is None and stated > counted:
            scale, rest = 1.0, stated - counted
        with self._lock:
            key = (request.endpoint, request.model)
            self._windows[key] = LearnedWindow(limit, scale, rest)
            self._windows.move_to_end(key)
            while len(self._windows) > MAX_LEARNED:
                self._windows.popitem(last=False)

    def of(self, request: RequestInfo) -> LearnedWindow | None:
        """Return what was learned of the model or deployment of this request."""
        return self._windows.get((request.endpoint, request.model))

    def clear(self) -> None:
        """Forget everything."""
        self._windows.clear()


learned_windows = LearnedWindows()
"""What this process learned."""


def usable_window(
    configured: int | None, request: RequestInfo, learned: LearnedWindow | None
) -> int | None:
    """Return the context window of a request's model in tokens, None if nobody knows it.

    The window that the caller configured goes first, then the model's own profile, then the table.
    A limit that the provider stated bounds them all.
    """
    window = (
        configured or request.window or (known_window(request.model) if request.model else None)
    )
    if learned is None:
        return window
    return min(window, learned.window) if window else learned.window
