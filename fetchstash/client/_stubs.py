"""Short texts in place of long ones: stubs of results, merged history, kept originals.

The client imports no handler, so the kinds of content that it reads and writes stand here.
"""

import json
import logging
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from fetchstash.client._formats import Part, as_json, plain
from fetchstash.client._media import strip_media
from fetchstash.client._policy import Merge, Message, Offload, Policy, content_hash
from fetchstash.client._sizes import OnEvent, context_window, emit, json_tokens
from fetchstash.client._streams import an_object, is_list, is_object
from fetchstash.errors import type_checked
from fetchstash.text import counted

HEAD_CHARS = 4_000
"""How much of a result is read: facts stand at its head."""

TEXT_KIND = "text"
HEAVY_KINDS = frozenset({"pdf", "office_doc", "unknown_binary"})
"""Contents of which a stub loses least: their text can be read again from the artifact."""

_REF = re.compile(r"\bart_[a-z2-7]{26}\b")
_KIND = re.compile(r'"content_kind"\s*:\s*"([a-z_]{2,20})"')
_MEDIA_TYPE = re.compile(
    r'"(?:media_type|mimeType|mime_type)"\s*:\s*"([\w.+-]{1,60}/[\w.+-]{1,80})"'
)
_SIZE = re.compile(r'"size_bytes"\s*:\s*(\d{1,15})')
_URL = re.compile(r'"(?:source_url|final_url|url)"\s*:\s*"([^"\s\\]{1,200})"')
_FENCE = re.compile(r'<untrusted-[0-9a-f]+ source="([^"\s]{1,200})"')
_FACTS_LINE = re.compile(r"\[Fetched ([\w ]{1,20}?) (?:artifact|page|image): [^\n]{1,300}?\]")
_KIND_OF_WORD = {
    "PDF": "pdf",
    "DOCX": "office_doc",
    "PPTX": "office_doc",
    "ODT": "office_doc",
    "ODP": "office_doc",
    "EPUB": "office_doc",
    "XLSX": "spreadsheet",
    "HTML": "html",
}
_KIND_OF_TYPE = {"application/pdf": "pdf", "application/octet-stream": "unknown_binary"}
# Bytes that a careless tool decoded as text, or sent as base64: what PDF (ISO 32000-2, 7.5.2) and
# ZIP (APPNOTE, 4.3.7) begin with.
_SIGNATURES = (
    ("%PDF-", "pdf"),
    ("JVBERi0", "pdf"),
    ("PK\x03\x04", "office_doc"),
    ("UEsDB", "office_doc"),
)
_NO_TEXT = re.compile("[\ufffd\x00-\x08\x0e-\x1a\x1c-\x1f\x80-\x9f]")

_WHITE_SPACE = str.maketrans("\t\n\v\f\r", " " * 5)


@dataclass(frozen=True, slots=True)
class ArtifactFacts:
    """Facts of a result's content; "" and None where it states none; ``line`` is its facts line."""

    artifact_ref: str = ""
    content_kind: str = ""
    media_type: str = ""
    size_bytes: int | None = None
    source_url: str = ""
    line: str = ""


def facts_of(result: str) -> ArtifactFacts:
    """Read the facts of a tool result: fetchstash's own texts, structured facts, or plain bytes."""
    head = result[:HEAD_CHARS]
    fence = _FENCE.search(head)
    # Text inside the fence was fetched and may pretend to be facts.
    outside = head[: fence.start()] if fence else head
    kind, media_type, size, url, line = (
        pattern.search(outside) for pattern in (_KIND, _MEDIA_TYPE, _SIZE, _URL, _FACTS_LINE)
    )
    refs = set(_REF.findall(outside))  # a list of several artifacts is none of them
    media = media_type[1] if media_type else ""
    by_word = _KIND_OF_WORD.get(line[1].split()[0], "") if line else ""
    return ArtifactFacts(
        artifact_ref=refs.pop() if len(refs) == 1 else "",
        content_kind=kind[1] if kind else by_word or _by_bytes(head, media),
        media_type=media,
        size_bytes=int(size[1]) if size else None,
        source_url=url[1] if url else fence[1] if fence else "",
        line=line[0].strip("[]") if line else "",
    )


def _by_bytes(head: str, media_type: str) -> str:
    start = head.lstrip()[:400]
    for signature, kind in _SIGNATURES:
        # At the beginning, or as the beginning of a value in JSON.
        if start.startswith(signature) or f'"{signature}' in start:
            return kind
    # Most texts are plain ASCII, of which nothing has to be searched.
    if head.isascii() and head.translate(_WHITE_SPACE).isprintable():
        return _KIND_OF_TYPE.get(media_type, "")
    if len(_NO_TEXT.findall(head)) * 10 > len(head):
        return "unknown_binary"
    return _KIND_OF_TYPE.get(media_type, "")


_log = logging.getLogger("fetchstash.client")


@dataclass(frozen=True, slots=True)
class Kept:
    """The place of a kept content: ``ref`` is "" if it is not, ``lost`` if keeping it failed."""

    ref: str = ""
    lost: bool = False

    @property
    def clause(self) -> str:
        """The words that say so after a description of the content; "" without an offload."""
        if self.lost:
            return ", gone from the context and not kept"
        return f", kept as {self.ref}" if self.ref else ""


def keep(offload: Offload | None, text: str, name: str, artifact_ref: str = "") -> Kept:
    """Return the reference of a content: its artifact's own, or that of the offload.

    Never raises: what cannot be kept has to leave the context all the same.
    """
    if artifact_ref or offload is None:
        return Kept(artifact_ref)
    try:
        return Kept(offload.keep(text, name))
    except Exception as error:  # noqa: BLE001 - whatever a store raises, the model still has to be asked
        _log.warning("A content that leaves the context could not be kept: %s", error)
        return Kept(lost=True)


RESULT_TARGET, ARGUMENTS_TARGET, HISTORY_TARGET = 200, 120, 160
"""Tokens that a stub may have: of a tool result, of a call's arguments, of an older text."""

LONG_VALUE_CHARS = 200
"""A string in arguments that is longer is a document, not a parameter."""

LONG_OBJECT_CHARS = 2_000
"""An object in arguments that is still longer without such strings is one, too."""

WORTH = 0.8
"""A stub with more than this share of its content is no gain: a prompt cache goes cold for it."""

SMALLEST_PREVIEW_CHARS = 200
"""A shorter preview tells nothing that the summary does not."""

_STUBS_FENCE = re.compile(r"<(untrusted-[0-9a-f]+) ")
_SENTENCE = re.compile(r"[^\n]{8,240}?(?:[.!?](?=\s|$)|(?=\n|$))")


def result_stub(text: str, tool: str, offload: Offload | None) -> dict[str, Any]:
    """Return the overflow stub of a result: a summary, key facts, and ``overflow_fallback``."""
    facts = facts_of(text)
    # A result of fetchstash lies in the store already: its own reference is enough.
    kept = keep(offload, text, tool or "result", facts.artifact_ref)
    size = facts.size_bytes
    stub: dict[str, Any] = {
        "summary": _summary(text, tool, facts.line, kept),
        "artifact_ref": kept.ref,
        "content_kind": facts.content_kind or TEXT_KIND,
        "media_type": facts.media_type,
        "size_bytes": len(text.encode("utf-8", "replace")) if size is None else size,
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
    # An open fence would make all that follows in the request fetched text.
    fence = _STUBS_FENCE.search(shown)
    if fence and f"</{fence[1]}>" not in shown:
        shown += f"\n</{fence[1]}>"
    return shown


def arguments_stub(part: Part, offload: Offload | None) -> dict[str, Any] | None:
    """Return a call's arguments with each long text replaced by its size and reference.

    Parameters stay as they are. None if there is no long text.
    """
    value = part.value
    if isinstance(value, str):
        value = {"arguments": value}
        with suppress(ValueError, RecursionError):
            value = json.loads(part.value)
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
    return f"(Earlier {role} message of {counted(len(text), 'character')}{kept.clause}.{begun})"


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
    # OpenAI refuses the result of its own tools in any other form.
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


def _size(text: str) -> str:
    return f"{counted(len(text), 'character')}, {counted(text.count(chr(10)) + 1, 'line')}"


def _summary(text: str, tool: str, line: str, kept: Kept) -> str:
    what = line or f"Result of {tool or 'a tool'}: {_size(text)}."
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
        return value if len(value) <= LONG_VALUE_CHARS else f"({len(value):,} characters{kept})"
    if is_object(value):
        shortened = {key: _shortened(inner, kept) for key, inner in value.items()}
        # Many short values are a document, too.
        return (
            shortened
            if len(as_json(shortened)) <= LONG_OBJECT_CHARS
            else f"({counted(len(value), 'key')}, {len(as_json(value)):,} characters{kept})"
        )
    if is_list(value):
        whole = as_json(value)
        if len(whole) > 2 * LONG_VALUE_CHARS:
            return f"({counted(len(value), 'item')}, {len(whole):,} characters{kept})"
        return [_shortened(inner, kept) for inner in value]
    return value


QUOTED = 6
"""How many of the user's latest sentences a merged text quotes, and how many tools it names."""


def message_hash(message: Message) -> str:
    """Return the hash of a whole message."""
    return content_hash(as_json(message))


def merge_of(
    messages: Sequence[Message], all_parts: Sequence[Part], offload: Offload | None
) -> Merge:
    """Return the merge of ``messages``, whose parts are ``all_parts``."""
    # Plain text, because the escapes of JSON would hide words from a grep.
    whole = "\n\n".join(
        f"[{part.role} {part.kind} {part.name}]\n{plain(part.value)}" for part in all_parts
    )
    kept = keep(offload, whole, "earlier messages")
    return Merge(
        tuple(message_hash(message) for message in messages),
        merged_text(len(messages), all_parts, kept.clause),
    )


def merged_text(count: int, all_parts: Sequence[Part], kept: str = "") -> str:
    """Return the text in place of ``count`` messages; ``kept`` says where they are kept."""
    quotable = [part for part in all_parts if not part.background]
    tools = Counter(part.name or "a tool" for part in quotable if part.kind == "call")
    sentences = [
        first_sentence(part.text)
        for part in quotable
        if part.kind == "text" and part.role == "user"
    ]
    lines = [f"(Earlier part of this conversation: {counted(count, 'message')}{kept}."]
    if tools:
        named = ", ".join(f"{name} {times}x" for name, times in tools.most_common(QUOTED))
        lines.append(f"Tools were called: {named}.")
    quoted = [sentence for sentence in sentences if sentence][-QUOTED:]
    if quoted:
        lines.append("The user said, among other things:\n- " + "\n- ".join(quoted))
    return "\n".join(lines) + ")"


MAX_ARGUMENT_CHARS, MAX_ARGUMENTS_CHARS = 200, 1_000
"""What a stub repeats of one argument of the call, and of all of them."""

MAX_NAMES, MAX_NAME_CHARS = 12, 40
"""How many keys of a result it names, and how long they may be."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """The call whose result this is."""

    id: str
    name: str
    args: Mapping[str, Any] = field(default_factory=dict[str, Any])


@type_checked
def stub_oversized(
    result: Any,
    call: ToolCall,
    model_or_window: str | int,
    *,
    policy: Policy | None = None,
    on_event: OnEvent | None = None,
) -> Any:
    """Return ``result``, or a stub (an object) if it is too large for the model that will read it.

    That is strictly above ``policy.oversized_fraction`` of its context window. Give the name of the
    model, or its window in tokens. Text, or JSON, is measured in tokens, and media by the rules of
    their providers. ``policy.offload`` keeps the result, if there is one.
    """
    policy = policy or Policy()
    window = (
        context_window(model_or_window) if isinstance(model_or_window, str) else model_or_window
    )
    size = json_tokens(result)
    if size <= window * policy.oversized_fraction:
        return result
    return oversized_stub(result, call, size, window, policy, on_event)


def oversized_stub(
    result: Any,
    call: ToolCall,
    size: int,
    window: int,
    policy: Policy,
    on_event: OnEvent | None = None,
) -> dict[str, Any]:
    """Return the stub of a result of ``size`` tokens, too large for a ``window`` in tokens."""
    text = plain(result)
    kept = keep(policy.offload, text, call.name, facts_of(text).artifact_ref)
    attributes = {"tool": call.name, "tokens": size, "window": window}
    attributes |= {"artifact_ref": kept.ref or None}
    emit(on_event, "tool.result.oversized_excluded", attributes)
    share = f"{policy.oversized_fraction:.0%}"
    again = "Call the tool again for less: a smaller range, a filter, or fewer items."
    if kept.ref:
        tools = "artifact_grep or artifact_slice"
        again = f'Read what is needed of it: {tools}, artifact_ref="{kept.ref}".'
    elif kept.lost:
        again = f"It could not be kept, so that it is gone. {again}"
    return {
        "status": "oversized",
        "toolCallId": call.id,
        "toolName": call.name,
        "warning": f"The result of {call.name} is not shown: it has about {size} tokens.",
        "reason": f"It is larger than {share} of the context window of {window} tokens.",
        "toolInfo": {
            "toolName": call.name,
            "toolArgs": _clean(call.args),
            "structureInfo": structure_info(result),
        },
        "recommendation": again,
        "artifact_ref": kept.ref,
    }


def structure_info(result: Any) -> str:
    """Return in one line how a result is built: its keys, its items, its lines."""
    data = result
    if isinstance(result, str):
        with suppress(ValueError, RecursionError):
            data = json.loads(result)
        if isinstance(data, str):
            return f"text of {_size(result)}"
    if is_object(data):
        return f"object of {counted(len(data), 'key')}, among them {_names(data)}"
    if is_list(data):
        first = data[0] if data else None
        keys = f", the first with the keys {_names(first)}" if is_object(first) else ""
        return f"array of {counted(len(data), 'item')}{keys}"
    return type(data).__name__


def _names(data: Mapping[Any, Any]) -> str:
    """Return the first keys that are names, short and printable. Others would be content."""
    names = [str(name) for name in islice(data, MAX_NAMES)]
    return ", ".join(name for name in names if len(name) <= MAX_NAME_CHARS and name.isprintable())


def _clean(args: Mapping[str, Any]) -> dict[str, Any]:
    """Return short, printable arguments, none of them a document."""
    shown: dict[str, Any] = {}
    room = MAX_ARGUMENTS_CHARS
    for name, value in args.items():
        text = value if isinstance(value, str) else as_json(value)
        plain = "".join(character for character in text if character.isprintable())
        if len(plain) > MAX_ARGUMENT_CHARS:
            plain = f"({len(plain):,} characters)"
        room -= len(plain) + len(str(name))
        if room < 0:
            break
        shown["".join(filter(str.isprintable, str(name)))[:80]] = (
            plain if isinstance(value, str) or plain != text else value
        )
    return shown
