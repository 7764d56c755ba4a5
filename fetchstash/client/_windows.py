"""Context windows: of models by their names, and of deployments that stated theirs in a refusal."""

import logging
import re
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from threading import Lock

from fetchstash.client._policy import Request

_log = logging.getLogger("fetchstash.client")
_warned: set[str] = set()

UNKNOWN_WINDOW = 120_000
"""What a model counts as that the table does not know."""

# Read on 2026-11-22: LiteLLM 1.106.2, model_prices_and_context_window_backup.json,
# max_input_tokens.
_FAMILIES = {
    8_192: "gpt-4 llama-3 moonshot-v1-8k",
    16_385: "gpt-3",
    30_720: "qwen-max",
    32_000: "mistral-small mistral-tiny moonshot-v1-32k",
    40_960: "qwen3-14b",
    65_536: "deepseek-r1 deepseek-v3",
    128_000: (
        "codestral command command-a-plus deepseek-coder gemma-3 glm-4 gpt-4-1106 gpt-4-turbo "
        "gpt-4o gpt-5-chat gpt-5.1-chat gpt-5.2-chat gpt-5.3 gpt-audio gpt-oss llama-3.1 "
        "llama-3.2 llama-3.3 open-mistral-nemo pixtral qwen-plus qwen-turbo"
    ),
    131_072: "deepseek-chat deepseek-reasoner llama-4 ministral-3b moonshot-v1 qwen3",
    163_840: "deepseek-v3.2",
    200_000: "claude glm-4.6 glm-4.7 glm-5 minimax-m2 o1 o3 o4",
    229_376: "kimi-k2.7",
    256_000: "command-a devstral grok-build grok-code qwen3-max qwen3-vl-plus",
    262_144: (
        "gemma-4 kimi-k2 magistral ministral mistral-large mistral-medium mistral-small-2603 "
        "mistral-small-latest qwen3-next"
    ),
    272_000: "gpt-5 gpt-5.3-codex gpt-5.4-mini gpt-5.4-nano",
    400_000: "gpt-5-pro gpt-5.1-codex gpt-5.6-cyber",
    500_000: "grok-4.5 grok-4.6 grok-4.7",
    922_000: "gpt-5.6 gpt-6",
    991_808: "qwen-flash qwen-plus-latest qwen3-coder qwen3.5 qwen3.7 qwen3.8",
    1_000_000: (
        "claude-fable claude-haiku-5 claude-mythos claude-opus-4-6 claude-opus-4-7 "
        "claude-opus-4-8 claude-opus-5 claude-sonnet-4-6 claude-sonnet-5 deepseek-flash "
        "deepseek-v4 glm-5.2 glm-5.3 grok-4 minimax-m3 qwen-turbo-latest"
    ),
    1_047_576: "gpt-4.1",
    1_048_576: "gemini kimi-k3 mistral-large-4",
    1_050_000: "gpt-5.4 gpt-5.5",
}
"""Families of models, known by how their names begin, by their windows in tokens."""

WINDOWS = {name: window for window, names in _FAMILIES.items() for name in names.split()}

_PLACES = re.compile(
    r"^(?:[a-z]{2,6}\.)?(?:anthropic|meta|mistral|cohere|deepseek|openai|qwen|google|moonshotai|zai)[.:]"
)


def known_window(model: str) -> int | None:
    """Return the context window of ``model`` in tokens, None if the table does not know it.

    A provider or region may stand before its name.
    """
    name = _PLACES.sub("", model.strip().lower().rpartition("/")[2])
    # The beginning ends at a word's end: "gpt-4" begins "gpt-4-0613", and not "gpt-4o".
    ends = (end for end in range(len(name), 0, -1) if not name[end:][:1].isalnum())
    return next((WINDOWS[name[:end]] for end in ends if name[:end] in WINDOWS), None)


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

    def learn(self, request: Request, limit: int, requested: int | None, counted: int) -> None:
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

    def of(self, request: Request) -> LearnedWindow | None:
        """Return what was learned of the model or deployment of this request."""
        return self._windows.get((request.endpoint, request.model))

    def clear(self) -> None:
        """Forget everything."""
        self._windows.clear()


learned_windows = LearnedWindows()
"""What this process learned."""


def usable_window(
    configured: int | None, request: Request, learned: LearnedWindow | None
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
