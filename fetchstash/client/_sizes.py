"""How large a request is: in bytes as it goes over the wire, and in tokens, counted or estimated."""

from collections.abc import Callable, Sequence
from typing import Any, Literal

from fetchstash import tokens
from fetchstash.client._formats import Format, Message, Part, as_json, parts
from fetchstash.client._policy import State, content_hash
from fetchstash.client._shapes import is_list, is_object

SizeUnit = Literal["tokens", "bytes"]

MESSAGE_TOKENS = 4
"""What a message costs besides its content, in the chat templates that are documented (OpenAI cookbook, counting tokens)."""

CALL_TOKENS = 12
"""What a call or a result costs besides its content: the tool's name, the id, and the markers around them. Rather too much."""

PICTURE_TOKENS = 1_600
"""What a picture costs at the most in the current models' vision documents; its base64 is no text that is charged for."""

SAMPLE_CHARS = 512


def size_in_bytes(value: Any) -> int:
    """Return the bytes of ``value`` as compact JSON in UTF-8."""
    return len(as_json(value).encode("utf-8", "surrogatepass"))


def exact_tokens(state: State) -> Callable[[Part], int]:
    """Return a counter of a part's tokens that counts each content once for as long as ``state`` lives."""

    def count(part: Part) -> int:
        text, pictures = _told(part)
        if len(text) < 64:
            return tokens.count(text).tokens + pictures
        key = content_hash(text)
        if key not in state.token_counts:
            state.token_counts[key] = tokens.count(text).tokens
        return state.token_counts[key] + pictures

    return count


def sampled_tokens(part: Part) -> int:
    """Estimate the tokens of a part from two samples: within a few percent of the count in a hundredth of its time."""
    text, pictures = _told(part)
    return sample_text(text) + pictures


def sample_text(text: str) -> int:
    """Estimate the tokens of a text."""
    if len(text) <= SAMPLE_CHARS:
        return tokens.count(text).tokens
    half = SAMPLE_CHARS // 2
    middle = len(text) // 2
    sample = text[:half] + text[middle : middle + half]
    return round(tokens.count(sample).tokens * len(text) / len(sample))


def sample_json(value: Any) -> int:
    """Estimate the tokens of plain data; None has none."""
    return 0 if value is None else sample_text(value if isinstance(value, str) else as_json(value))


def total(messages: Sequence[Message], found: Sequence[Part], size: Callable[[Part], int]) -> int:
    """Return the tokens of a request: of all its parts, and of what frames each message and each call."""
    calls = sum(part.kind in {"call", "result"} for part in found)
    return sum(size(part) for part in found) + MESSAGE_TOKENS * len(messages) + CALL_TOKENS * calls


def measure(messages: Sequence[Message], format: Format, unit: SizeUnit) -> int:
    """Return the size of ``messages`` in this unit; tokens are estimated."""
    return (
        size_in_bytes(messages)
        if unit == "bytes"
        else total(messages, parts(messages, format), sampled_tokens)
    )


def _told(part: Part) -> tuple[str, int]:
    """Return the text of a part, and the tokens of the pictures in it: it may be one, and a tool's result may hold some."""
    if part.kind == "opaque" and _is_picture(part.value):
        return "", PICTURE_TOKENS
    if part.kind == "result" and is_list(part.value):
        rest = [block for block in part.value if not _is_picture(block)]
        pictures = len(part.value) - len(rest)
        return (as_json(rest), PICTURE_TOKENS * pictures) if pictures else (part.text, 0)
    return part.text, 0


def _is_picture(value: Any) -> bool:
    """Return whether this is a block of media: of such a type, or with such a key."""
    if not is_object(value):
        return False
    named = [*value, value.get("type")]
    return any(
        word in str(name)
        for name in named
        for word in ("image", "inline", "file", "audio", "media", "video")
    )
