"""How large the context windows of models are, in tokens."""

import logging
import re
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from threading import Lock

from fetchstash.client._request import RequestInfo

_log = logging.getLogger("fetchstash.client")
_warned: set[str] = set()

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


def context_window(model: str, windows: Mapping[str, int] | None = None) -> int:
    """Return the context window of ``model`` in tokens; ``windows`` are the caller's own figures, by model name, and go first.

    A model that the table does not know counts as 120,000 tokens, with one warning.
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
    """What a refusal said.

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
