"""Read objects, chunks and events of providers: shapes, peeking, cut-off streams.

Events are read as objects or as plain data, of all providers alike. Lifecycle events, reasoning and
the events of the provider's own tools commit nothing: they are passed on at once, and a retry is
still possible after them.

LM Studio and Ollama truncate a prompt that is longer than the window they loaded the model with,
and so do some proxies (LM Studio documentation, "Context overflow policy"; Ollama, docs/faq.md,
"How can I specify the context window size?"). The counts in the answer show it.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, TypeGuard


def is_object(value: Any) -> TypeGuard[dict[str, Any]]:
    """Return whether this is a JSON object."""
    return isinstance(value, dict)


def is_list(value: Any) -> TypeGuard[list[Any]]:
    """Return whether this is a JSON array."""
    return isinstance(value, list)


def is_mapping(value: Any) -> TypeGuard[Mapping[Any, Any]]:
    """Return whether this has keys."""
    return isinstance(value, Mapping)


def is_collection(value: Any) -> TypeGuard[Iterable[Any]]:
    """Return whether this holds several values, and no keys."""
    return isinstance(value, list | tuple | set | frozenset)


def an_object(value: Any) -> dict[str, Any]:
    """Return the object that this is, an empty one if it is none."""
    return value if is_object(value) else {}


def a_string(value: Any) -> str:
    """Return the string that this is, "" if it is none."""
    return value if isinstance(value, str) else ""


def objects(value: Any) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the objects of an array with their indexes; of anything else nothing."""
    for index, item in enumerate(value if is_list(value) else ()):
        if is_object(item):
            yield index, item


_FAILED_TYPES = frozenset({"error", "response.failed", "response.incomplete"})
_ANSWER_FIELDS = (
    "content",
    "text",
    "tool_calls",
    "tool_call_chunks",
    "function_call",
    "refusal",
    "audio",
)
_REASONING_TYPES = frozenset({"reasoning", "thinking", "redacted_thinking", "reasoning_content"})
# Items that a client carries out, or whose work at a third party cannot be undone.
_ACTING_ITEMS = (
    "function_call",
    "custom_tool_call",
    "mcp_call",
    "mcp_approval_request",
    "computer_call",
    "local_shell_call",
    "shell_call",
    "apply_patch_call",
)
_GEMINI_ANSWERS = (
    "functionCall",
    "function_call",
    "inlineData",
    "inline_data",
    "fileData",
    "file_data",
)


def get(thing: Any, name: str) -> Any:
    """Return a field of an object or of plain data, None where there is none."""
    if is_mapping(thing):
        return thing.get(name)
    with suppress(Exception):  # a property may raise what it likes
        return getattr(thing, name, None)
    return None


def commits(event: Any) -> bool:
    """Return whether this event carries the answer: text, a refusal, media, or a call.

    Chat Completions: a choice's delta with content or calls. Responses: a text or arguments delta,
    or the start of a call. Anthropic: the start of a block, even of a thinking one: readers of the
    SDK count blocks, and could not begin again. Gemini: a candidate with parts that are no
    thoughts. LangChain: a message chunk with content or calls.
    """
    if isinstance(event, str):
        return event != ""
    kind = get(event, "type")
    if isinstance(kind, str) and kind.startswith("response."):
        return _responses_commits(kind, event)
    if kind in {"content_block_start", "content_block_delta"}:
        return True
    if _has_answer(event) or _has_answer(get(event, "message")):
        return True
    if any(map(_has_answer, _choices(event))):
        return True
    if any(get(choice, "text") for choice in _items(get(event, "choices"))):
        return True
    return any(
        not get(part, "thought")
        and (get(part, "text") or any(get(part, key) for key in _GEMINI_ANSWERS))
        for part in _gemini_parts(event)
    )


def reasons(event: Any) -> bool:
    """Return whether this event carries reasoning: no answer, but the prompt was taken in."""
    kind = str(get(event, "type"))
    if "reasoning" in kind or get(get(event, "delta"), "type") == "thinking_delta":
        return True
    if any(get(said, "reasoning_content") or get(said, "reasoning") for said in _choices(event)):
        return True
    return any(get(part, "thought") for part in _gemini_parts(event))


def failure(event: Any) -> Any:
    """Return the failure that an event or a response reports, None if it reports none.

    Some providers send errors with status 200: as an event of the stream (OpenAI's Responses,
    Anthropic), as a body with an ``error`` and no choices (OpenRouter), or as a finish reason
    without any content.
    """
    kind = get(event, "type")
    status = get(event, "status")
    # Gateways send an error in a chunk that has no answer; MiniMax a status of its own beside 200.
    said = get(event, "error_message") or get(event, "error_msg")
    own_status = get(get(event, "base_resp"), "status_code")
    if (isinstance(said, str) and said) or (isinstance(own_status, int) and own_status != 0):
        return event
    if kind in _FAILED_TYPES or get(event, "error") or get(get(event, "response"), "error"):
        return event
    if status == "failed" and get(event, "object") == "response":
        return event
    # An answer with content that ends for its length was cut, and its prompt fitted.
    if commits(event):
        return None
    # An ordinary end is no failure. Mistral says model_length.
    ends = finish_reasons(event)
    return next((one for one in ends if "context" in one or one == "model_length"), None)


def finish_reasons(event: Any) -> list[str]:
    """Return the reasons for which an answer ended, as the provider names them."""
    named = [get(event, "stop_reason"), get(get(event, "delta"), "stop_reason")]
    named += [get(choice, "finish_reason") for choice in _items(get(event, "choices"))]
    named += [get(event, "done_reason")]  # Ollama's own API
    return [reason for reason in named if isinstance(reason, str)]


def close(stream: Any) -> None:
    """Close a stream. Its errors do not matter: its connection is not used again."""
    with suppress(Exception):
        stream.close()


async def aclose(stream: Any) -> None:
    """Close an asynchronous stream, whichever way it names that."""
    with suppress(Exception):
        closing = stream.aclose() if hasattr(stream, "aclose") else stream.close()
        if hasattr(closing, "__await__"):
            await closing


def _responses_commits(kind: str, event: Any) -> bool:
    if kind == "response.output_item.added":
        return get(get(event, "item"), "type") in _ACTING_ITEMS
    if "partial_image" in kind or kind.startswith("response.mcp_call."):
        return True
    return kind.endswith(".delta") and not any(
        word in kind for word in ("reasoning", "code_interpreter")
    )


def _has_answer(thing: Any) -> bool:
    if thing is None or isinstance(thing, str):
        return False
    for name in _ANSWER_FIELDS:
        value = get(thing, name)
        if is_list(value) and name == "content":
            value = [block for block in value if get(block, "type") not in _REASONING_TYPES]
        # Responses of HTTP clients have a method text().
        if value and not callable(value):
            return True
    return False


def _choices(event: Any) -> Iterator[Any]:
    """Yield what each choice of Chat Completions says: its delta, and its message."""
    for choice in _items(get(event, "choices")):
        yield get(choice, "delta")
        yield get(choice, "message")


def _gemini_parts(event: Any) -> Iterator[Any]:
    for candidate in _items(get(event, "candidates")):
        yield from _items(get(get(candidate, "content"), "parts"))


def _items(value: Any) -> Iterable[Any]:
    return value if is_collection(value) else ()


SMALLEST_PROMPT_TOKENS = 2_000
"""Below it an estimate of the prompt says too little."""

CUT_SHARE = 0.5
"""Fewer reported prompt tokens than this share of the estimate: no estimate is that wrong."""


def empty_answer(response: Any) -> bool:
    """Return whether an answer ended for its length before it began.

    It has no content, no reasoning and at most one token. A model that spent its tokens on hidden
    reasoning reports these as completion tokens.
    """
    if not {"length", "max_tokens"}.intersection(finish_reasons(response)):
        return False
    written = _count(response, "completion_tokens", "output_tokens", "eval_count")
    return written is not None and written <= 1 and not commits(response) and not reasons(response)


def reported_input(response: Any) -> int | None:
    """Return the prompt tokens that an answer reports, cached ones included, or None."""
    counted = _count(response, "prompt_tokens", "input_tokens", "prompt_eval_count")
    if counted is None:
        return None
    usage = get(response, "usage")  # Anthropic reports what came from its cache beside the rest
    cached = [get(usage, f"cache_{name}_input_tokens") for name in ("read", "creation")]
    return counted + sum(count for count in cached if isinstance(count, int))


def cut_prompt(response: Any, sent: int) -> bool:
    """Return whether an answer reports far fewer prompt tokens than the ``sent`` ones."""
    reported = reported_input(response) or 0
    return sent >= SMALLEST_PROMPT_TOKENS and 0 < reported < sent * CUT_SHARE


def _count(response: Any, *names: str) -> int | None:
    """Return the first of these counts that the usage of an answer, or the answer itself, has."""
    usage = get(response, "usage")
    for name in names:
        for holder in (usage, response):
            count = get(holder, name)
            if isinstance(count, int) and not isinstance(count, bool):
                return count
    return None
