"""Streams: whether an event already is output, whether it is a failure, and the peek until the first of either.

Events are read as objects or as plain data, of all providers alike, and passed on as they came.
"""

from collections import deque
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from typing import Any

from fetchstash.client._shapes import is_list, is_mapping

_FAILED_TYPES = frozenset({"error", "response.failed", "response.incomplete"})
_OUTPUT_FIELDS = (
    "content",
    "text",
    "tool_calls",
    "tool_call_chunks",
    "function_call",
    "functionCall",
    "refusal",
    "reasoning_content",
    "reasoning",
    "audio",
)


def get(thing: Any, name: str) -> Any:
    """Return a field of an object or of plain data, None where there is none."""
    if is_mapping(thing):
        return thing.get(name)
    with suppress(Exception):  # a property may raise what it likes
        return getattr(thing, name, None)
    return None


def is_output(event: Any) -> bool:
    """Return whether this event carries the first piece of an answer: text, reasoning or a tool call that a user may have seen.

    Chat Completions: a choice's delta with content or calls. Responses: an event whose type ends in
    ``.delta``. Anthropic: a content_block_delta, or the start of a tool call, which may have no
    arguments to follow. Gemini: a candidate with parts. LangChain: a message chunk with content or
    calls. A bare string is text.
    """
    if isinstance(event, str):
        return event != ""
    kind = get(event, "type")
    if isinstance(kind, str) and (kind.endswith((".delta", "_delta")) and kind != "message_delta"):
        return True
    if kind == "content_block_start" and "tool" in str(get(get(event, "content_block"), "type")):
        return True
    if _has_output(event) or _has_output(get(event, "message")):
        return True
    choices = get(event, "choices")
    if is_list(choices) and any(
        _has_output(get(c, "delta")) or _has_output(get(c, "message")) or get(c, "text")
        for c in choices
    ):
        return True
    candidates = get(event, "candidates")
    return is_list(candidates) and any(get(get(c, "content"), "parts") for c in candidates)


def failure(event: Any) -> Any:
    """Return what an event or a response says went wrong, None if it says nothing of the kind.

    Some providers send errors with status 200: as an event of the stream (OpenAI's Responses,
    Anthropic), as a body with an ``error`` and no choices (OpenRouter), or as a finish reason
    without any content.
    """
    kind = get(event, "type")
    response = get(event, "response")
    status = get(event, "status")
    if (
        kind in _FAILED_TYPES
        or get(event, "error")
        or get(response, "error")
        or (status == "failed" and get(event, "object") == "response")
    ):
        return event
    if is_output(event):
        return None
    reasons = [get(event, "stop_reason"), get(get(event, "delta"), "stop_reason")]
    choices = get(event, "choices")
    reasons += [get(choice, "finish_reason") for choice in (choices if is_list(choices) else [])]
    # An ordinary end is no failure, and what is not a string is not a reason. Mistral says
    # model_length.
    return next(
        (
            reason
            for reason in reasons
            if isinstance(reason, str) and ("context" in reason or reason == "model_length")
        ),
        None,
    )


class Peek:
    """A stream, read up to its first output or failure; ``failure`` is that event, None if there was none."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream
        self.failure: Any = None
        self._read: deque[Any] = deque()
        self._rest: Any = None

    def take(self, event: Any) -> bool:
        """Note an event; return whether that is enough."""
        self._read.append(event)
        self.failure = failure(event)
        return self.failure is not None or is_output(event)

    def events(self) -> Iterator[Any]:
        """Yield what was read, then the rest as it comes. Nothing is kept of what was yielded."""
        while self._read:
            yield self._read.popleft()
        yield from self._rest

    async def aevents(self) -> AsyncIterator[Any]:
        """Do as ``events`` does, with an asynchronous stream."""
        while self._read:
            yield self._read.popleft()
        async for event in self._rest:
            yield event

    def goes_on(self, rest: Any) -> "Peek":
        """Note where the rest comes from."""
        self._rest = rest
        return self


def peek(stream: Any) -> Peek:
    """Read a stream up to its first output or failure. What it raises before that is raised here, and the stream is closed."""
    seen, events = Peek(stream), iter(stream)
    try:
        for event in events:
            if seen.take(event):
                break
    except BaseException:
        close(stream)
        raise
    return seen.goes_on(events)


async def apeek(stream: Any) -> Peek:
    """Do as ``peek`` does, with an asynchronous stream."""
    seen, events = Peek(stream), aiter(stream)
    try:
        async for event in events:
            if seen.take(event):
                break
    except BaseException:
        await aclose(stream)
        raise
    return seen.goes_on(events)


def close(stream: Any) -> None:
    """Close a stream that knows how; its connection is no use any more, so that nothing it raises matters."""
    with suppress(Exception):
        stream.close()


async def aclose(stream: Any) -> None:
    """Close an asynchronous stream, whichever way it names that."""
    with suppress(Exception):
        closing = stream.aclose() if hasattr(stream, "aclose") else stream.close()
        if hasattr(closing, "__await__"):
            await closing


def _has_output(thing: Any) -> bool:
    if thing is None or isinstance(thing, str):
        return False
    return any(bool(get(thing, name)) for name in _OUTPUT_FIELDS)
