"""Sizes of messages in tokens and bytes, the windows of models, and reports of what was changed."""

import logging
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal

from fetchstash.client._formats import Part, as_json, parts
from fetchstash.client._media import Media, media_tokens, strip_media
from fetchstash.client._policy import Format, Message, State, content_hash
from fetchstash.client._streams import is_list, is_object
from fetchstash.errors import type_checked
from fetchstash.system import telemetry
from fetchstash.text import tokens

SizeUnit = Literal["tokens", "bytes"]


@dataclass(frozen=True, slots=True)
class Target:
    """The size that a request may have."""

    size: int
    unit: SizeUnit = "tokens"


MESSAGE_TOKENS = 4
"""What frames a message in the documented chat templates (OpenAI cookbook, counting tokens)."""

CALL_TOKENS = 12
"""What frames a call or a result: the tool's name, the id, and the markers. Rather too much."""

EXACT_CHARS = 2_048
"""A text that is longer is estimated from samples: counting 4 MB takes a second."""

SAMPLE_CHARS, SAMPLE_EVERY_CHARS, MOST_SAMPLES = 256, 4_096, 64
"""Samples are spread over the whole text, which is often made of unlike parts."""

REMEMBERED_CHARS = 256
"""A text that is shorter stands for itself in all keys: hashing it costs more than comparing it."""


def size_in_bytes(value: Any) -> int:
    """Return the bytes of ``value`` as compact JSON in UTF-8."""
    return len(as_json(value).encode("utf-8", "surrogatepass"))


def text_tokens(text: str) -> int:
    """Return the tokens of a text; those of a long one are estimated from samples of it."""
    if len(text) <= EXACT_CHARS:
        return tokens.count(text).tokens
    number = min(max(len(text) // SAMPLE_EVERY_CHARS, 4), MOST_SAMPLES)
    stride = (len(text) - SAMPLE_CHARS) / (number - 1)
    starts = [round(index * stride) for index in range(number)]
    sample = "".join(text[start : start + SAMPLE_CHARS] for start in starts)
    return round(tokens.count(sample).tokens * len(text) / len(sample))


def json_tokens(value: Any) -> int:
    """Return the tokens of plain data, its media by the rules of their providers; None has none."""
    if value is None:
        return 0
    plain, media = strip_media(value)
    return text_tokens(plain if isinstance(plain, str) else as_json(plain)) + media


@dataclass(frozen=True, slots=True)
class _Container:
    """An object or array: its long texts, and the tokens of its media, apart from the rest."""

    value: Any
    rest: str
    texts: list[str]
    media: int


class Sizes:
    """The sizes of parts in ``unit``; tokens are remembered in the state of a conversation.

    A long string is known again by its identity, and an equal one by its hash, wherever it stands.
    With ``forget`` hashes are forgotten that were not asked for since the last ``Sizes`` that
    forgot: whoever counts a conversation as it came says so, and not who counts what is sent, where
    stubs stand for its long texts.
    """

    def __init__(self, state: State, unit: SizeUnit = "tokens", *, forget: bool = False) -> None:
        self._unit = unit
        self._counts = state.token_counts
        self._before, self._digests = state.digests, state.digests
        self._containers: dict[int, _Container] = {}
        if forget:
            state.digests = self._digests = {}

    def of(self, part: Part) -> int:
        """Return the size of a part."""
        if self._unit == "bytes":
            return size_in_bytes(part.value)
        if isinstance(part.value, str):
            return self._count(part.value)
        container = self._container(part)
        texts = sum(map(self._count, container.texts))
        return self._count(container.rest) + texts + container.media

    def of_value(self, value: Any) -> int:
        """Return the size of a value in the place of a part."""
        return self.of(Part((0, ()), "text", "user", value))

    def total(self, messages: Sequence[Message], all_parts: Sequence[Part]) -> int:
        """Return the size of a request: in tokens all parts, and what frames messages and calls."""
        if self._unit == "bytes":
            return size_in_bytes(messages)
        calls = sum(part.kind in {"call", "result"} for part in all_parts)
        framing = MESSAGE_TOKENS * len(messages) + CALL_TOKENS * calls
        return sum(map(self.of, all_parts)) + framing

    def digest(self, part: Part) -> str:
        """Return the hash of a part's text. Media count by their type and size alone."""
        if isinstance(part.value, str):
            return self._digest(part.value)
        container = self._container(part)
        # JSON holds no bare NUL (RFC 8259, section 7): no two lists of texts are joined to the
        # same.
        return content_hash("\0".join([container.rest, *map(self._digest, container.texts)]))

    def has_media(self, part: Part) -> bool:
        """Return whether there is a picture, a document or the like in a part."""
        return not isinstance(part.value, str) and self._container(part).media > 0

    def _count(self, text: str) -> int:
        key = text if len(text) < REMEMBERED_CHARS else self._digest(text)
        if key not in self._counts:
            self._counts[key] = text_tokens(text)
        return self._counts[key]

    def _container(self, part: Part) -> _Container:
        container = self._containers.get(id(part.value))
        if container is None:
            # A model wrote the arguments of a call: base64 in them was charged as text.
            plain, media = part.value, 0
            if part.kind != "call":
                plain, media = strip_media(plain, self._media_tokens)
            texts: list[str] = []
            rest = as_json(_without_long_texts(plain, texts))
            # It holds the value itself: another object must not get its id.
            container = _Container(part.value, rest, texts, media)
            self._containers[id(part.value)] = container
        return container

    def _media_tokens(self, media: Media) -> int:
        key = f"{media.provider} {media.media_type} {media.low_detail} {self._digest(media.data)}"
        if key not in self._counts:
            self._counts[key] = media_tokens(media)
        return self._counts[key]

    def _digest(self, content: str | bytes) -> str:
        if len(content) < REMEMBERED_CHARS:
            return content_hash(content)
        # An entry holds its content, so that nothing else can have the same id.
        entry = self._digests.get(id(content)) or self._before.get(id(content))
        if entry is None or entry[0] is not content:
            entry = (content, content_hash(content))
        self._digests[id(content)] = entry
        return entry[1]


def _without_long_texts(value: Any, texts: list[str]) -> Any:
    """Return plain data without its long texts, which are added to ``texts``."""
    if isinstance(value, str):
        if len(value) < REMEMBERED_CHARS:
            return value
        texts.append(value)
        return ""
    if is_object(value):
        return {key: _without_long_texts(inner, texts) for key, inner in value.items()}
    if is_list(value):
        return [_without_long_texts(inner, texts) for inner in value]
    return value


@type_checked
def count_tokens(messages: Sequence[Message], format: Format, state: State | None = None) -> int:
    """Return the tokens of ``messages``: counted where tiktoken is installed, else estimated.

    ``state`` remembers what was counted.
    """
    return Sizes(state or State()).total(messages, parts(messages, format))


Tier = Literal["", "normal", "pressure", "critical"]


@dataclass(frozen=True, slots=True)
class Change:
    """One content that was replaced by a stub made just now.

    ``target`` and ``label`` are those of its memo key; ``before`` and ``after`` are in the report's
    unit.
    """

    message: int
    stage: int
    content_hash: str
    target: int
    label: str
    before: int
    after: int


@dataclass(frozen=True, slots=True)
class Report:
    """Sizes in ``unit``: ``before``, ``after``, and the ``target`` that was aimed at.

    ``changes`` are new; ``reused`` counts stubs that were in force already. ``skipped`` counts what
    was left as it was, by reason: cache_hit, policy_preserve, no_pressure, no_gain. ``stage`` is
    the last one that was needed (0: none). ``unshrinkable`` has the size of what the provider takes
    only as it is, by type: pictures, encrypted results, calls of its own tools.
    """

    unit: SizeUnit
    before: int
    after: int
    target: int
    changes: tuple[Change, ...] = ()
    reused: int = 0
    skipped: Mapping[str, int] = field(default_factory=dict[str, int])
    tier: Tier = ""
    stage: int = 0
    merged_messages: int = 0
    unshrinkable: Mapping[str, int] = field(default_factory=dict[str, int])

    @property
    def fits(self) -> bool:
        """Whether the request is within the target."""
        return self.after <= self.target

    @property
    def smaller(self) -> bool:
        """Whether anything was gained."""
        return self.after < self.before

    def sentence(self) -> str:
        """Return the outcome in one sentence."""
        what = f"{self.before} {self.unit} became {self.after}, the target being {self.target}"
        if self.fits:
            return f"The request was made smaller and sent once more: {what}."
        rest = "the rest is the system prompt, the task, the last user turn and the latest exchange"
        as_is = ""
        if self.unshrinkable:
            size = f"{sum(self.unshrinkable.values())} {self.unit}"
            names = ", ".join(sorted(self.unshrinkable))
            as_is = f" {size} are in blocks of {names}, which the provider takes only as they are."
        return f"Nothing more can be shrunk: {what}; {rest}.{as_is}"


OnEvent = Callable[[str, dict[str, Any]], None]
"""Called with an event's name (compression, compaction and others) and its attributes."""


def emit(on_event: OnEvent | None, name: str, attributes: dict[str, Any]) -> None:
    """Report a decision. An observer that fails changes nothing: the agent's request goes first."""
    telemetry.event(name, **attributes)
    if on_event is not None:
        with suppress(Exception):
            on_event(name, attributes)


def emit_prompt(on_event: OnEvent | None, prompt: str, compacted_fields: int) -> None:
    """Report the prompt of a memory extractor: its length, and how many contents were shortened."""
    figures = {
        "extractor_prompt_chars": len(prompt),
        "extractor_prompt_est_tokens": text_tokens(prompt),
        "extractor_compacted_fields": compacted_fields,
    }
    emit(on_event, "extractor.prompt", figures)


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


@type_checked
def context_window(model: str, windows: Mapping[str, int] | None = None) -> int:
    """Return the context window of ``model`` in tokens.

    ``windows`` are the caller's own figures, by model name, and go first. A model that
    the table does not know counts as 120,000 tokens, with one warning.
    """
    known = (windows or {}).get(model) or known_window(model)
    if known is None and model not in _warned:
        _warned.add(model)
        what = "The context window of model %r is not known: %d tokens are assumed."
        _log.warning(what, model, UNKNOWN_WINDOW)
    return known or UNKNOWN_WINDOW
