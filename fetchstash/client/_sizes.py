"""How large a request is: in bytes as it goes over the wire, and in tokens, counted or estimated."""

from collections.abc import Sequence
from typing import Any, Literal

from fetchstash import tokens
from fetchstash.client._formats import Format, Message, Part, as_json, parts
from fetchstash.client._media import strip_media
from fetchstash.client._policy import State, content_hash

SizeUnit = Literal["tokens", "bytes"]

MESSAGE_TOKENS = 4
"""What frames a message in the documented chat templates (OpenAI cookbook, counting tokens)."""

CALL_TOKENS = 12
"""What frames a call or a result: the tool's name, the id, and the markers. Rather too much."""

EXACT_CHARS = 2_048
"""A text that is longer is estimated from samples: counting 4 MB takes a second."""

SAMPLE_CHARS, SAMPLE_EVERY_CHARS, MOST_SAMPLES = 256, 4_096, 64
"""Samples are spread over the whole text, which is often made of unlike parts."""

REMEMBERED_CHARS = 256
"""A text that is shorter is counted faster than it is looked up."""


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


class Sizes:
    """The sizes of parts in tokens, remembered in the state of a conversation.

    A string is known again by its identity, and an equal one by its hash. What was not asked for
    since the last ``Sizes`` of the same state is forgotten.
    """

    def __init__(self, state: State) -> None:
        self._counts = state.token_counts
        self._before, self._digests = state.digests, dict[int, tuple[str, str]]()
        self._texts: dict[int, tuple[Any, str]] = {}
        self._containers: dict[int, tuple[Any, int]] = {}
        state.digests = self._digests

    def text(self, part: Part) -> str:
        """Return the text of a part. JSON of the same object is written once."""
        if isinstance(part.value, str):
            return part.value
        entry = self._texts.get(id(part.value))
        if entry is None:
            entry = self._texts[id(part.value)] = (part.value, part.text)
        return entry[1]

    def digest(self, part: Part) -> str:
        """Return the hash of a part's text."""
        return self._digest(self.text(part))

    def tokens(self, part: Part) -> int:
        """Return the tokens of a part."""
        # A model wrote the arguments of a call: base64 in them was charged as text.
        if isinstance(part.value, str) or part.kind == "call":
            return self.count(self.text(part))
        entry = self._containers.get(id(part.value))
        if entry is None:
            plain, media = strip_media(part.value)
            tokens = self.count(plain if isinstance(plain, str) else as_json(plain)) + media
            entry = self._containers[id(part.value)] = (part.value, tokens)
        return entry[1]

    def count(self, text: str) -> int:
        """Return the tokens of a text."""
        if len(text) < REMEMBERED_CHARS:
            return text_tokens(text)
        key = self._digest(text)
        if key not in self._counts:
            self._counts[key] = text_tokens(text)
        return self._counts[key]

    def total(self, messages: Sequence[Message], all_parts: Sequence[Part]) -> int:
        """Return the tokens of a request: all its parts, and what frames each message and call."""
        calls = sum(part.kind in {"call", "result"} for part in all_parts)
        framing = MESSAGE_TOKENS * len(messages) + CALL_TOKENS * calls
        return sum(map(self.tokens, all_parts)) + framing

    def _digest(self, text: str) -> str:
        if len(text) < REMEMBERED_CHARS:
            return content_hash(text)
        # An entry holds its text, so that no other string can have the same id.
        entry = self._digests.get(id(text)) or self._before.get(id(text))
        if entry is None or entry[0] is not text:
            entry = (text, content_hash(text))
        self._digests[id(text)] = entry
        return entry[1]


def measure(
    messages: Sequence[Message], format: Format, unit: SizeUnit, state: State | None = None
) -> int:
    """Return the size of ``messages`` in this unit. ``state`` remembers what was counted."""
    if unit == "bytes":
        return size_in_bytes(messages)
    return Sizes(state or State()).total(messages, parts(messages, format))
