"""The four message formats, read as one: where in a request texts, calls, results and reasoning stand, and how one is replaced.

Messages are plain JSON data, as each provider documents them; nothing here keeps a reference into
them or changes them. What a format has that is not named here (images, server-side tools, encrypted
blocks) is opaque: counted, and left as it is.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from fetchstash.client._sections import is_extraction, sections
from fetchstash.client._shapes import a_string, an_object, is_list, is_object, objects

Format = Literal["openai_chat", "openai_responses", "anthropic", "gemini"]
Kind = Literal["text", "call", "result", "reasoning", "opaque"]
Role = Literal["system", "user", "assistant", "tool"]
Message = Any
Place = tuple[int, tuple[str | int, ...]]
"""The number of a message, and the keys and indexes that lead to a value inside it; an index into a text is that of a section."""


@dataclass(frozen=True, slots=True)
class Part:
    """One piece of a message. ``value`` stands at ``place``: a text, a call's arguments, a result's content.

    ``call_id`` is "" where the format gave none (Gemini does not have to). ``background``: it is
    only quoted, in the prompt of a memory extractor, so that a call of this kind has no result to
    be paired with.
    """

    place: Place
    kind: Kind
    role: Role
    value: Any
    call_id: str = ""
    name: str = ""
    background: bool = False

    @property
    def message(self) -> int:
        """The number of the message it stands in."""
        return self.place[0]

    @property
    def text(self) -> str:
        """The value as the provider is charged for it: itself if it is a string, else its JSON."""
        return self.value if isinstance(self.value, str) else as_json(self.value)


def as_json(value: Any) -> str:
    """Return compact JSON of any value, what JSON cannot say by its ``str``."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)


def plain(value: Any) -> str:
    """Return a result as it reads: its text, the texts of its blocks, or the one text that an object holds; else its JSON.

    JSON escapes what somebody greps for, and hides a fence.
    """
    if is_object(value) and len(value) == 1:
        value = next(iter(value.values()))
    texts = [a_string(block.get("text")) for _, block in objects(value)]
    if is_list(value) and texts and all(texts) and len(texts) == len(value):
        return "\n".join(texts)
    return value if isinstance(value, str) else as_json(value)


def parts(messages: Sequence[Message], format: Format) -> list[Part]:
    """Return all parts of ``messages`` in order. A message of no known shape is one opaque part, and an extractor's prompt several.

    Raises KeyError for an unknown format.
    """
    read = _READERS[format]
    return [
        piece
        for number, message in enumerate(messages)
        for part in (
            read(number, message)
            if is_object(message)
            else [Part((number, ()), "opaque", "user", message)]
        )
        for piece in _pieces(part)
    ]


def replace_values(messages: Sequence[Message], changes: Mapping[Place, Any]) -> list[Message]:
    """Return ``messages`` with the values at these places replaced. What is not on the way to a change is shared, not copied."""
    replaced = list(messages)
    for (number, path), value in changes.items():
        replaced[number] = _replaced(replaced[number], path, value)
    return replaced


def user_text(text: str, format: Format) -> Message:
    """Return a user message of this format that says ``text``."""
    if format == "gemini":
        return {"role": "user", "parts": [{"text": text}]}
    if format == "openai_responses":
        return {"type": "message", "role": "user", "content": text}
    return {"role": "user", "content": text}


def _pieces(part: Part) -> Iterator[Part]:
    """Yield a part itself, or what the prompt of an extractor is made of: its task, which is left alone, and what it quotes."""
    if part.kind != "text" or part.role != "user" or not is_extraction(part.text):
        yield part
        return
    number, path = part.place
    quoted = list(sections(part.text))
    task = part.text[: quoted[0].start] if quoted else part.text
    yield Part(part.place, "opaque", part.role, task, background=True)
    for index, one in enumerate(quoted):
        value = part.text[one.start : one.end]
        yield Part(
            (number, (*path, index)), one.kind, one.role, value, name=one.name, background=True
        )


def _replaced(value: Any, path: tuple[str | int, ...], new: Any) -> Any:
    if not path:
        return new
    if isinstance(value, str):
        one = list(sections(value))[int(path[0])]
        return value[: one.start] + str(new) + value[one.end :]
    copy: Any = value.copy()  # a dict or a list, for a place was read from this very value
    copy[path[0]] = _replaced(value[path[0]], path[1:], new)
    return copy


def _content(
    number: int, message: dict[str, Any], role: Role, key: str = "content"
) -> Iterator[Part]:
    """Yield the texts of a ``content`` that is a string or a list of typed blocks; other blocks are opaque."""
    content = message.get(key)
    if isinstance(content, str) and content:
        yield Part((number, (key,)), "text", role, content)
    for index, block in objects(content):
        if isinstance(block.get("text"), str):
            yield Part((number, (key, index, "text")), "text", role, block["text"])
        else:
            yield Part((number, (key, index)), "opaque", role, block)


_CHAT_ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}


def _openai_chat(number: int, message: dict[str, Any]) -> Iterator[Part]:
    """Read a message of the Chat Completions API (OpenAI API reference, "Create chat completion", messages)."""
    role: Role = _CHAT_ROLES.get(a_string(message.get("role")), "user")
    if role == "tool":
        # The deprecated function role has no call id: its name stands for it, as in the call.
        call_id = (
            a_string(message.get("tool_call_id")) or f"function:{a_string(message.get('name'))}"
        )
        yield Part(
            (number, ("content",)),
            "result",
            role,
            message.get("content", ""),
            call_id,
            a_string(message.get("name")),
        )
        return
    for key in ("reasoning_content", "reasoning", "reasoning_details"):
        if message.get(key):
            yield Part((number, (key,)), "reasoning", role, message[key])
    yield from _content(number, message, role)
    for index, call in objects(message.get("tool_calls")):
        kind = "custom" if "custom" in call else "function"
        what = an_object(call.get(kind))
        key = "input" if kind == "custom" else "arguments"
        if key in what:
            place = (number, ("tool_calls", index, kind, key))
            yield Part(
                place, "call", role, what[key], a_string(call.get("id")), a_string(what.get("name"))
            )
    legacy = an_object(message.get("function_call"))
    if legacy:
        name = a_string(legacy.get("name"))
        yield Part(
            (number, ("function_call", "arguments")),
            "call",
            role,
            legacy.get("arguments", ""),
            f"function:{name}",
            name,
        )


def _openai_responses(number: int, item: dict[str, Any]) -> Iterator[Part]:
    """Read an item of the Responses API's input (OpenAI API reference, "Create a model response", input)."""
    kind = a_string(item.get("type"))
    call_id = a_string(item.get("call_id"))
    if kind == "reasoning":
        yield Part((number, ()), "reasoning", "assistant", item)
    elif call_id and kind.endswith("_output"):
        yield Part((number, ("output",)), "result", "tool", item.get("output", ""), call_id)
    elif call_id and kind.endswith("_call"):
        key = next(
            (key for key in ("arguments", "input", "action", "operation") if key in item),
            "arguments",
        )
        # Only text arguments may be rewritten: an action or operation has a schema of its own.
        yield Part(
            (number, (key,)),
            "call",
            "assistant",
            item.get(key, ""),
            call_id,
            a_string(item.get("name")) or kind,
        )
    elif "role" in item:
        yield from _content(number, item, _CHAT_ROLES.get(a_string(item.get("role")), "user"))
    else:
        yield Part((number, ()), "opaque", "assistant", item)


def _anthropic(number: int, message: dict[str, Any]) -> Iterator[Part]:
    """Read a message of the Messages API (Anthropic API reference, "Messages", messages.content)."""
    role: Role = _CHAT_ROLES.get(a_string(message.get("role")), "user")
    content = message.get("content")
    if isinstance(content, str) and content:
        yield Part((number, ("content",)), "text", role, content)
    for index, block in objects(content):
        kind = a_string(block.get("type"))
        place = ("content", index)
        if kind == "text":
            yield Part((number, (*place, "text")), "text", role, a_string(block.get("text")))
        elif kind == "tool_use":
            identity = a_string(block.get("id")), a_string(block.get("name"))
            yield Part((number, (*place, "input")), "call", role, block.get("input", {}), *identity)
        elif kind == "tool_result":
            call_id = a_string(block.get("tool_use_id"))
            yield Part(
                (number, (*place, "content")), "result", "tool", block.get("content", ""), call_id
            )
        elif kind in {"thinking", "redacted_thinking"}:
            yield Part((number, place), "reasoning", role, block)
        else:
            yield Part((number, place), "opaque", role, block)


_GEMINI_ROLES: dict[str, Role] = {"model": "assistant", "system": "system"}


def _gemini(number: int, message: dict[str, Any]) -> Iterator[Part]:
    """Read a Content of the Gemini API (Gemini API reference, "Content" and "Part"); both spellings of its keys are in use."""
    role: Role = _GEMINI_ROLES.get(a_string(message.get("role")), "user")
    for index, part in objects(message.get("parts")):
        place = ("parts", index)
        call_key = next(
            (key for key in ("functionCall", "function_call") if isinstance(part.get(key), dict)),
            "",
        )
        result_key = next(
            (
                key
                for key in ("functionResponse", "function_response")
                if isinstance(part.get(key), dict)
            ),
            "",
        )
        what = an_object(part.get(call_key or result_key))
        identity = a_string(what.get("id")), a_string(what.get("name"))
        if call_key:
            yield Part(
                (number, (*place, call_key, "args")),
                "call",
                "assistant",
                what.get("args", {}),
                *identity,
            )
        elif result_key:
            yield Part(
                (number, (*place, result_key, "response")),
                "result",
                "tool",
                what.get("response", {}),
                *identity,
            )
        elif part.get("thought"):
            yield Part((number, place), "reasoning", role, part)
        elif isinstance(part.get("text"), str):
            yield Part((number, (*place, "text")), "text", role, part["text"])
        else:
            yield Part((number, place), "opaque", role, part)


_READERS: dict[str, Callable[[int, dict[str, Any]], Iterator[Part]]] = {
    "openai_chat": _openai_chat,
    "openai_responses": _openai_responses,
    "anthropic": _anthropic,
    "gemini": _gemini,
}
