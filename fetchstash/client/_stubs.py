"""Stubs of contents that left the context: short sentences and facts, no mark of a cut."""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from fetchstash.client._artifacts import TEXT_KIND, facts_of
from fetchstash.client._formats import Part, as_json, plain
from fetchstash.client._keep import Kept, keep
from fetchstash.client._media import strip_media
from fetchstash.client._policy import Offload
from fetchstash.client._shapes import an_object, is_list, is_object

RESULT_TARGET, ARGUMENTS_TARGET, HISTORY_TARGET = 200, 120, 160
"""Tokens that a stub may have: of a tool result, of a call's arguments, of an older text."""

LONG_VALUE_CHARS = 200
"""A string in arguments that is longer is a document, not a parameter."""

LONG_OBJECT_CHARS = 2_000
"""An object in arguments that is still longer without such strings is one, too."""

WORTH = 0.8
"""A stub with more than this share of its content is no gain: a prompt cache goes cold for it."""

MOST_PREVIEW_TOKENS = 4_000
"""A preview is no longer, whatever room there is: what is kept can be read piece by piece."""

SMALLEST_PREVIEW_CHARS = 200
"""A shorter preview tells nothing that the summary does not."""

_FENCE = re.compile(r"<(untrusted-[0-9a-f]+) ")
_SENTENCE = re.compile(r"[^\n]{8,240}?(?:[.!?](?=\s|$)|(?=\n|$))")


def result_stub(text: str, tool: str, offload: Offload | None) -> dict[str, Any]:
    """Return the overflow stub of a result: a summary, key facts, and ``overflow_fallback``."""
    facts = facts_of(text)
    kept = Kept(facts.artifact_ref) if facts.artifact_ref else keep(offload, text, tool or "result")
    stub: dict[str, Any] = {
        "summary": _summary(text, tool, facts.line, kept),
        "artifact_ref": kept.ref,
        "content_kind": facts.content_kind or TEXT_KIND,
        "media_type": facts.media_type,
        "size_bytes": facts.size_bytes
        if facts.size_bytes is not None
        else len(text.encode("utf-8", "replace")),
        "source_url": facts.source_url,
    }
    return {key: value for key, value in stub.items() if value != ""} | {"overflow_fallback": True}


def preview_stub(
    text: str, tool: str, offload: Offload | None, room: int, size: Callable[[Any], int]
) -> dict[str, Any]:
    """Return the stub of a result with as much of its beginning as fits ``room`` by ``size``."""
    stub = result_stub(text, tool, offload)
    left = room - size(stub)
    chars = len(text)
    while left > 0 and chars > SMALLEST_PREVIEW_CHARS:
        preview = _beginning(text, chars)
        previewed = stub | {"preview": preview, "preview_chars": len(preview)}
        excess = size(previewed) - room
        if excess <= 0:
            return previewed
        # In proportion, and a little less: the beginning may be denser than the rest.
        chars = min(int(chars * left / (left + excess) * 0.95), chars // 8 * 7)
    return stub


def _beginning(text: str, chars: int) -> str:
    """Return the first characters, whole lines where that costs little, and close the fence."""
    shown = text[:chars]
    line_end = shown.rfind("\n") + 1
    shown = shown[:line_end] if line_end * 5 > chars * 4 else shown
    fence = _FENCE.search(shown)
    if fence and f"</{fence[1]}>" not in shown:
        shown += f"\n</{fence[1]}>"
    return shown


def arguments_stub(part: Part, offload: Offload | None) -> dict[str, Any] | None:
    """Return a call's arguments with each long text replaced by its size and reference.

    None if there is no long text.

    Parameters stay as they are.
    """
    value = part.value
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            value = {"arguments": value}
    if _shortened(value, "") == value:
        return None
    kept = keep(offload, part.text, f"arguments of {part.name}")
    shortened = _shortened(value, kept.clause)
    return shortened if is_object(shortened) else {"arguments": shortened}


def history_stub(text: str, role: str, offload: Offload | None) -> str:
    """Return one sentence for an older text, and the first sentence that it said."""
    kept = keep(offload, text, f"{role} message")
    began = first_sentence(text)
    begun = f" It began: {began}" if began else ""
    return f"(Earlier {role} message of {len(text)} characters{kept.clause}.{begun})"


def media_stub(value: Any) -> str | None:
    """Return the text of a block with a label for each medium in it; None if there is none."""
    content = an_object(value).get("value", value)  # PydanticAI's prompt: texts and media
    _, tokens = strip_media(content)
    return f"{plain(content)} (It was left out to save context.)" if tokens else None


def _text_block(text: str, block: Any) -> dict[str, Any]:
    """Return a block of text for the message that ``block`` stands in."""
    kind = an_object(block).get("type")
    if kind is None:  # Gemini's parts have no type
        return {"text": text}
    named = "input_text" if str(kind).startswith("input_") else "text"
    kept = {key: block[key] for key in ("cache_control",) if key in block}
    return {"type": named, "text": text, **kept}


def as_value(part: Part, stub: Mapping[str, Any] | str) -> Any:
    """Return a stub as the provider takes it: an object for an object, a string, or a shape."""
    if isinstance(stub, str):
        return _text_block(stub, part.value) if part.kind == "opaque" else stub
    text = as_json(stub)
    match part.shape:
        case "shell":
            return [{"stdout": text, "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}]
        case "logs":
            return [{"type": "logs", "logs": text}]
        case "texts":
            return [{"text": text}]
        case "function_response":
            rest = {key: value for key, value in part.value.items() if key != "parts"}
            return {**rest, "response": dict(stub)}
        case _:
            return dict(stub) if is_object(part.value) else text


def _summary(text: str, tool: str, line: str, kept: Kept) -> str:
    what = (
        line
        or f"Result of {tool or 'a tool'}: {len(text)} characters, {text.count(chr(10)) + 1} lines."
    )
    began = "" if line else first_sentence(text)
    how = " Call the tool again if it is needed."
    if kept.ref:
        how = f" Read it with artifact_slice or artifact_grep, artifact_ref={kept.ref}."
    elif kept.lost:
        how = f" It could not be kept, so that it is gone.{how}"
    return f"{what}{f' It began: {began}' if began else ''} It was left out to save context.{how}"


def first_sentence(text: str) -> str:
    """Return the first sentence or line, if it is short and printable; else ""."""
    match = _SENTENCE.match(text.lstrip()[:400])
    sentence = " ".join(match[0].split()) if match else ""
    return sentence if sentence.isprintable() and "\ufffd" not in sentence else ""


def _shortened(value: Any, kept: str) -> Any:
    if isinstance(value, str):
        return value if len(value) <= LONG_VALUE_CHARS else f"({len(value)} characters{kept})"
    if is_object(value):
        shortened = {key: _shortened(inner, kept) for key, inner in value.items()}
        # Many short values are a document, too.
        return (
            shortened
            if len(as_json(shortened)) <= LONG_OBJECT_CHARS
            else f"({len(value)} entries, {len(as_json(value))} characters{kept})"
        )
    if is_list(value):
        whole = as_json(value)
        if len(whole) > 2 * LONG_VALUE_CHARS:
            return f"({len(value)} items, {len(whole)} characters{kept})"
        return [_shortened(inner, kept) for inner in value]
    return value
