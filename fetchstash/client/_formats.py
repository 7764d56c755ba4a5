"""Chat Completions, Responses, Anthropic, Gemini: their messages as parts.

    [background extraction]
    Note what is worth remembering.

    [user]
    Read the manual.

    [assistant calls fetch]
    {"url":"https://a.example/"}

    [tool]
    ...

A text of the user's whose first line is the mark is such a prompt, and of the class
background_extraction: nobody said it, and what it quotes is bounded as the conversation itself
would be. The text before the first heading is the extractor's task, and stays.

Messages are plain JSON data, as each provider documents them; nothing here keeps a reference into
them or changes them. What a format has that is not named here (images, server-side tools, encrypted
blocks) is opaque: counted, and left as it is.
"""

import base64
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

from fetchstash.client._media import strip_media
from fetchstash.client._policy import Format, Message
from fetchstash.client._streams import a_string, an_object, is_list, is_object, objects
from fetchstash.errors import BadArgument

Kind = Literal["text", "call", "result", "reasoning", "opaque"]
Role = Literal["system", "user", "assistant", "tool"]
Shape = Literal["", "fixed", "shell", "logs", "texts", "function_response"]
"""What has to stand at a part's place. "": an object for an object, a string for all else. "fixed":
what stands there now, for the provider takes nothing else. The others are lists or objects that the
provider defines; ``as_value`` in ``_stubs.py`` makes them."""
Place = tuple[int, tuple[str | int, ...]]
"""The number of a message, and the keys and indexes that lead to a value inside it.

An index into a text is that of a section.
"""


@dataclass(frozen=True, slots=True)
class Part:
    """One piece of a message, with the value at ``place``: text, arguments, a result's content.

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
    shape: Shape = ""

    @property
    def message(self) -> int:
        """The number of the message it stands in."""
        return self.place[0]

    @property
    def text(self) -> str:
        """The value as the provider charges for it: a string itself, anything else as JSON."""
        return self.value if isinstance(self.value, str) else as_json(self.value)


Row = tuple[Kind, str, Shape]
_ARRAYS = frozenset({"shell", "logs", "texts"})

_CHAT_ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}


def as_json(value: Any) -> str:
    """Return compact JSON of any value: bytes as the base64 that is sent, other objects as text."""
    return _ENCODER.encode(value)


def _jsonable(value: Any) -> str:
    data = getattr(value, "data", value)  # PydanticAI's BinaryContent
    if isinstance(data, bytes | bytearray):
        return base64.b64encode(data).decode()
    return str(value)


_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=_jsonable)
"""Made once: ``json.dumps`` makes one in each call that has options."""

_TEXT_KEYS = ("text", "stdout", "stderr", "logs")
"""Where blocks and shell outputs have their text."""


def plain(value: Any) -> str:
    """Return a result as readable text: its text, or the texts of its blocks; else its JSON.

    An object with one value reads as that value. JSON would escape what somebody greps for, and
    hide a fence. A label stands for each medium.
    """
    stripped, _ = strip_media(value)
    if is_object(stripped) and len(stripped) == 1:
        stripped = next(iter(stripped.values()))
    if isinstance(stripped, str):
        return stripped
    texts = [_block_text(block) for block in stripped] if is_list(stripped) else []
    return "\n".join(texts) if texts and all(texts) else as_json(stripped)


def _block_text(block: Any) -> str:
    texts = [a_string(an_object(block).get(key)) for key in _TEXT_KEYS]
    return a_string(block) or "\n".join(filter(None, texts))


EXTRACTION_MARK = "[background extraction]"

_HEADING = re.compile(
    r"^\[(system|user|assistant|tool)(?: calls ([^\]\n]{0,100}))?\]\n", re.MULTILINE
)


@dataclass(frozen=True, slots=True)
class Section:
    """The text under a heading: ``text[start:end]`` of the prompt."""

    start: int
    end: int
    kind: Kind
    role: Role
    name: str = ""


def is_extraction(text: str) -> bool:
    """Return whether this is a prompt of a memory extractor: its first line is the mark."""
    return text.startswith(EXTRACTION_MARK) and text[len(EXTRACTION_MARK) :][:1] in {"", "\n"}


def sections(text: str) -> Iterator[Section]:
    """Yield the sections of a prompt in order, empty ones too: their numbers must not change."""
    headings = list(_HEADING.finditer(text))
    starts = [*(heading.start() for heading in headings), len(text)]
    for heading, end in zip(headings, starts[1:], strict=True):
        stop = heading.end() + len(text[heading.end() : end].rstrip("\n"))
        role, name = cast("Role", heading[1]), heading[2]
        kind: Kind = "call" if name is not None else "result" if role == "tool" else "text"
        yield Section(heading.end(), stop, kind, role, name or "")


def parts(messages: Sequence[Message], format: Format) -> list[Part]:
    """Return all parts of ``messages`` in order.

    A message of no known shape is one opaque part, and an extractor's prompt is several.

    Raises BadArgument for an unknown format.
    """
    read = _READERS.get(format)
    if read is None:
        known = ", ".join(_READERS)
        raise BadArgument(f"format is {format!r}.", f"It must be one of {known}.")
    pieces: list[Part] = []
    for number, message in enumerate(messages):
        if not is_object(message):
            pieces.append(Part((number, ()), "opaque", "user", message))
            continue
        for part in read(number, message):
            pieces += _pieces(part)
    return pieces


def replace_values(messages: Sequence[Message], changes: Mapping[Place, Any]) -> list[Message]:
    """Return ``messages`` with the values at these places replaced.

    Values without a change are shared, not copied.
    """
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
    """Yield a part; an extractor's prompt is split into its task and the quoted sections."""
    if part.kind != "text" or part.role != "user" or not is_extraction(part.text):
        yield part
        return
    number, path = part.place
    quoted = list(sections(part.text))
    task = part.text[: quoted[0].start] if quoted else part.text
    yield Part(part.place, "opaque", part.role, task, background=True)
    for index, section in enumerate(quoted):
        value = part.text[section.start : section.end]
        place = (number, (*path, index))
        yield Part(place, section.kind, section.role, value, name=section.name, background=True)


def _replaced(value: Any, path: tuple[str | int, ...], new: Any) -> Any:
    if not path:
        return new
    if isinstance(value, str):
        section = list(sections(value))[int(path[0])]
        return value[: section.start] + str(new) + value[section.end :]
    copy: Any = value.copy()  # a dict or a list, for a place was read from this very value
    copy[path[0]] = _replaced(value[path[0]], path[1:], new)
    return copy


def _block(place: Place, role: Role, block: dict[str, Any]) -> Part:
    """Read a block of OpenAI's: its text; any other block is opaque."""
    number, path = place
    if isinstance(block.get("text"), str):
        return Part((number, (*path, "text")), "text", role, block["text"])
    return Part(place, "opaque", role, block)


def _content_parts(
    number: int,
    message: dict[str, Any],
    role: Role,
    read: Callable[[Place, Role, dict[str, Any]], Part] = _block,
) -> Iterator[Part]:
    """Yield the parts of ``content``, a string or a list of blocks."""
    content = message.get("content")
    if isinstance(content, str) and content:
        yield Part((number, ("content",)), "text", role, content)
    for index, block in objects(content):
        yield read((number, ("content", index)), role, block)


# What an item has, in order: the kind of a part, the key of its value ("" for the whole item), and
# its shape. Actions and operations have schemas of their own, a screenshot has to be one, and tools
# that were found have to be tools: these stay as they are.
_WHOLE: tuple[Row, ...] = (("opaque", "", ""),)
ITEM_TYPES: dict[str, tuple[Row, ...]] = {
    "message": (),
    "reasoning": (("reasoning", "", ""),),
    "function_call": (("call", "arguments", ""),),
    "function_call_output": (("result", "output", ""),),
    "custom_tool_call": (("call", "input", ""),),
    "custom_tool_call_output": (("result", "output", ""),),
    "tool_search_call": (("call", "arguments", "fixed"),),
    "tool_search_output": (("result", "tools", "fixed"),),
    "computer_call": (("call", "action", "fixed"),),
    "computer_call_output": (("result", "output", "fixed"),),
    "local_shell_call": (("call", "action", "fixed"),),
    "local_shell_call_output": (("result", "output", ""),),
    "shell_call": (("call", "action", "fixed"),),
    "shell_call_output": (("result", "output", "shell"),),
    "apply_patch_call": (("call", "operation", "fixed"),),
    "apply_patch_call_output": (("result", "output", ""),),
    "mcp_call": (("call", "arguments", ""), ("result", "output", "")),
    "code_interpreter_call": (("call", "code", ""), ("result", "outputs", "logs")),
    "file_search_call": (("call", "queries", "fixed"), ("result", "results", "texts")),
    "mcp_approval_request": (("call", "arguments", "fixed"),),
    "mcp_approval_response": (("result", "", "fixed"),),
    "program": (("call", "code", "fixed"),),
    "program_output": (("result", "result", ""),),
    "additional_tools": _WHOLE,
    "compaction": _WHOLE,
    "compaction_trigger": _WHOLE,
    "configuration_update": _WHOLE,
    "image_generation_call": _WHOLE,
    "item_reference": _WHOLE,
    "mcp_list_tools": _WHOLE,
    "web_search_call": _WHOLE,
}
"""Each item type of the API."""


def _responses(number: int, item: dict[str, Any]) -> Iterator[Part]:
    """Yield the parts of one item. One of an unknown type is never changed."""
    kind = a_string(item.get("type")) or ("message" if "role" in item else "item_reference")
    if kind == "message":
        role = _CHAT_ROLES.get(a_string(item.get("role")), "user")
        yield from _content_parts(number, item, role)
        return
    # A local_shell_call_output has the id of its call and no call_id.
    call_id = a_string(item.get("call_id") or item.get("id"))
    name = a_string(item.get("name")) or kind
    unknown: Kind = "result" if kind.endswith("_output") else "call"
    paired: tuple[Row, ...] = ((unknown, "", "fixed"),) if a_string(item.get("call_id")) else _WHOLE
    rows = ITEM_TYPES.get(kind, paired)
    if kind == "mcp_approval_response":
        call_id = a_string(item.get("approval_request_id"))
    diff = an_object(item.get("operation")).get("diff")
    if kind == "apply_patch_call" and isinstance(diff, str):
        at = (number, ("operation", "diff"))
        yield Part(at, "call", "assistant", diff, call_id, "apply_patch")
        return
    for part_kind, key, shape in rows:
        place: Place = (number, (key,) if key else ())
        value = item.get(key, "") if key else item
        if part_kind == "call":
            yield Part(place, "call", "assistant", value, call_id, name, shape=shape)
        elif part_kind == "result":
            # An array becomes an array; what is none (null, where a tool failed) stays.
            made: Shape = "fixed" if shape in _ARRAYS and not is_list(value) else shape
            yield Part(place, "result", "tool", value or "", call_id, shape=made)
        else:
            yield Part(place, part_kind, "assistant", item)


def _openai_chat(number: int, message: dict[str, Any]) -> Iterator[Part]:
    """Read a message of Chat Completions (OpenAI API reference, "Create chat completion")."""
    role: Role = _CHAT_ROLES.get(a_string(message.get("role")), "user")
    if role == "tool":
        # The deprecated function role has no call id: its name stands for it, as in the call.
        name = a_string(message.get("name"))
        call_id = a_string(message.get("tool_call_id")) or f"function:{name}"
        place: Place = (number, ("content",))
        yield Part(place, "result", role, message.get("content", ""), call_id, name)
        return
    for key in ("reasoning_content", "reasoning", "reasoning_details"):
        if message.get(key):
            yield Part((number, (key,)), "reasoning", role, message[key])
    yield from _content_parts(number, message, role)
    for index, call in objects(message.get("tool_calls")):
        kind = "custom" if "custom" in call else "function"
        what = an_object(call.get(kind))
        key = "input" if kind == "custom" else "arguments"
        if key in what:
            place = (number, ("tool_calls", index, kind, key))
            identity = a_string(call.get("id")), a_string(what.get("name"))
            yield Part(place, "call", role, what[key], *identity)
    legacy = an_object(message.get("function_call"))
    if legacy:
        name, place = a_string(legacy.get("name")), (number, ("function_call", "arguments"))
        yield Part(place, "call", role, legacy.get("arguments", ""), f"function:{name}", name)


def _anthropic(number: int, message: dict[str, Any]) -> Iterator[Part]:
    """Read a message of the Messages API (Anthropic API reference, "Messages")."""
    role: Role = _CHAT_ROLES.get(a_string(message.get("role")), "user")
    return _content_parts(number, message, role, _anthropic_block)


def _anthropic_block(place: Place, role: Role, block: dict[str, Any]) -> Part:
    kind, (number, path) = a_string(block.get("type")), place
    if kind == "text":
        return Part((number, (*path, "text")), "text", role, a_string(block.get("text")))
    if kind.endswith("tool_use"):
        # Of the tools that the provider runs only one over MCP has free arguments.
        shape: Shape = "" if kind in {"tool_use", "mcp_tool_use"} else "fixed"
        identity = a_string(block.get("id")), a_string(block.get("name"))
        at = (number, (*path, "input"))
        return Part(at, "call", "assistant", block.get("input", {}), *identity, shape=shape)
    if kind in {"thinking", "redacted_thinking"}:
        return Part(place, "reasoning", role, block)
    if "tool_use_id" not in block and kind != "tool_result":
        return Part(place, "opaque", role, block)
    call_id = a_string(block.get("tool_use_id"))
    if kind == "tool_result":
        return Part(
            (number, (*path, "content")), "result", "tool", block.get("content", ""), call_id
        )
    return _server_result(place, block, call_id)


# The keys of the texts of these results. Other and encrypted results stay as they are.
_SERVER_TEXTS: dict[str, tuple[tuple[str, ...], ...]] = {
    "mcp_tool_result": (("content",),),
    "code_execution_tool_result": (("content", "stdout"), ("content", "stderr")),
    "bash_code_execution_tool_result": (("content", "stdout"), ("content", "stderr")),
    "text_editor_code_execution_tool_result": (("content", "content"),),
    "web_fetch_tool_result": (("content", "content", "source", "data"),),
}


def _server_result(place: Place, block: dict[str, Any], call_id: str) -> Part:
    """Read a result of a tool that the provider runs: its longest text, or all of it, unchanged."""
    texts: list[tuple[Any, tuple[str, ...]]] = []
    for path in _SERVER_TEXTS.get(a_string(block.get("type")), ()):
        owner, value = block, block.get(path[0])
        for key in path[1:]:
            owner, value = an_object(value), an_object(value).get(key)
        free = isinstance(value, str) and owner.get("type") != "base64"
        if free or (is_list(value) and block.get("type") == "mcp_tool_result"):
            texts.append((value, path))
    if not texts:
        return Part(place, "result", "tool", block, call_id, shape="fixed")
    value, path = max(texts, key=lambda text: len(text[0]))
    return Part((place[0], (*place[1], *path)), "result", "tool", value, call_id)


_GEMINI_ROLES: dict[str, Role] = {"model": "assistant", "system": "system"}


# A part's two keys, the kind of what stands there, and the key of its content.
_GEMINI_ROWS: tuple[tuple[str, str, Kind, str], ...] = (
    ("functionCall", "function_call", "call", "args"),
    ("functionResponse", "function_response", "result", "response"),
    ("toolCall", "tool_call", "call", "args"),
    ("toolResponse", "tool_response", "result", "response"),
    ("executableCode", "executable_code", "call", "code"),
    ("codeExecutionResult", "code_execution_result", "result", "output"),
)
_GEMINI_PARTS = {key: row[2:] for row in _GEMINI_ROWS for key in row[:2]}
_PROVIDERS_CALLS = frozenset({"toolCall", "tool_call", "executableCode", "executable_code"})


def _gemini(number: int, message: dict[str, Any]) -> Iterator[Part]:
    """Read a Content of the Gemini API (API reference); its keys have two spellings."""
    role: Role = _GEMINI_ROLES.get(a_string(message.get("role")), "user")
    for index, part in objects(message.get("parts")):
        place = ("parts", index)
        key = next((key for key in _GEMINI_PARTS if isinstance(part.get(key), dict)), "")
        if key:
            yield _gemini_tool(number, index, key, part[key])
        elif part.get("thought"):
            yield Part((number, place), "reasoning", role, part)
        elif isinstance(part.get("text"), str):
            yield Part((number, (*place, "text")), "text", role, part["text"])
        else:
            yield Part((number, place), "opaque", role, part)


def _gemini_tool(number: int, index: int, key: str, content: dict[str, Any]) -> Part:
    """Read a call or a result; one of the provider's own tools has a type instead of a name."""
    kind, inner = _GEMINI_PARTS[key]
    role: Role = "assistant" if kind == "call" else "tool"
    name = a_string(content.get("name") or content.get("toolType") or content.get("tool_type"))
    identity = a_string(content.get("id")), name
    if kind == "result" and content.get("parts"):  # pictures and files beside the response
        whole = (number, ("parts", index, key))
        return Part(whole, kind, role, content, *identity, shape="function_response")
    shape: Shape = "fixed" if key in _PROVIDERS_CALLS else ""
    place = (number, ("parts", index, key, inner))
    return Part(place, kind, role, content.get(inner, {}), *identity, shape=shape)


_READERS: dict[str, Callable[[int, dict[str, Any]], Iterator[Part]]] = {
    "openai_chat": _openai_chat,
    "openai_responses": _responses,
    "anthropic": _anthropic,
    "gemini": _gemini,
}
