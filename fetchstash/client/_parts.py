"""The parts of a message that can be rewritten, and those of OpenAI's Responses.

Source: OpenAI API reference, "Create a model response", input.
Each item type that the API defines is named in ``ITEM_TYPES``; a test compares them with the SDK's.
An item that is not known is a part that is counted and never changed.
"""

import base64
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from fetchstash.client._media import strip_media
from fetchstash.client._streams import a_string, an_object, is_list, is_object, objects

Kind = Literal["text", "call", "result", "reasoning", "opaque"]
Role = Literal["system", "user", "assistant", "tool"]
Message = Any
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
        """The value as the provider is charged for it: itself if it is a string, else its JSON."""
        return self.value if isinstance(self.value, str) else as_json(self.value)


CHAT_ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}


def as_json(value: Any) -> str:
    """Return compact JSON of any value: bytes as the base64 that is sent, other objects as text."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=_jsonable)


def _jsonable(value: Any) -> str:
    data = getattr(value, "data", value)  # PydanticAI's BinaryContent
    if isinstance(data, bytes | bytearray):
        return base64.b64encode(data).decode()
    return str(value)


_TEXT_KEYS = ("text", "stdout", "stderr", "logs")
"""Where blocks and shell outputs have their text."""


def plain(value: Any) -> str:
    """Return a result as it reads: its text, or the texts of its blocks; else its JSON.

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


def content_parts(
    number: int, message: dict[str, Any], role: Role, key: str = "content"
) -> Iterator[Part]:
    """Yield the texts of ``content``, a string or a list of blocks; other blocks are opaque."""
    content = message.get(key)
    if isinstance(content, str) and content:
        yield Part((number, (key,)), "text", role, content)
    for index, block in objects(content):
        if isinstance(block.get("text"), str):
            yield Part((number, (key, index, "text")), "text", role, block["text"])
        else:
            yield Part((number, (key, index)), "opaque", role, block)


Reader = Callable[[int, dict[str, Any]], Iterator[Part]]


def responses_parts(number: int, item: dict[str, Any]) -> Iterator[Part]:
    """Yield the parts of one item."""
    kind = a_string(item.get("type")) or ("message" if "role" in item else "item_reference")
    yield from ITEM_TYPES.get(kind, _unknown)(number, item)


def _message(number: int, item: dict[str, Any]) -> Iterator[Part]:
    yield from content_parts(number, item, CHAT_ROLES.get(a_string(item.get("role")), "user"))


def _reasoning(number: int, item: dict[str, Any]) -> Iterator[Part]:
    yield Part((number, ()), "reasoning", "assistant", item)


def _opaque(number: int, item: dict[str, Any]) -> Iterator[Part]:
    yield Part((number, ()), "opaque", "assistant", item)


def _call(key: str, shape: Shape = "") -> Reader:
    """Return a reader of calls whose arguments stand at ``key``."""

    def read(number: int, item: dict[str, Any]) -> Iterator[Part]:
        name = a_string(item.get("name")) or a_string(item.get("type"))
        call_id = a_string(item.get("call_id") or item.get("id"))
        yield Part(
            (number, (key,)), "call", "assistant", item.get(key, ""), call_id, name, shape=shape
        )

    return read


def _result(key: str, shape: Shape = "") -> Reader:
    """Return a reader of results whose content stands at ``key``."""

    def read(number: int, item: dict[str, Any]) -> Iterator[Part]:
        # A local_shell_call_output has the id of its call and no call_id.
        call_id = a_string(item.get("call_id") or item.get("id"))
        yield Part((number, (key,)), "result", "tool", item.get(key) or "", call_id, shape=shape)

    return read


def _call_with_result(
    arguments: str, result: str, shape: Shape = "", arguments_shape: Shape = ""
) -> Reader:
    """Return a reader of what a tool of the provider's did: call and result are one item."""

    def read(number: int, item: dict[str, Any]) -> Iterator[Part]:
        yield from _call(arguments, arguments_shape)(number, item)
        yield from _result(result, shape if is_list(item.get(result)) or not shape else "fixed")(
            number, item
        )

    return read


def _patch(number: int, item: dict[str, Any]) -> Iterator[Part]:
    operation, call_id = an_object(item.get("operation")), a_string(item.get("call_id"))
    if isinstance(operation.get("diff"), str):
        place = (number, ("operation", "diff"))
        yield Part(place, "call", "assistant", operation["diff"], call_id, "apply_patch")
    else:
        yield from _call("operation", "fixed")(number, item)


def _approval(number: int, item: dict[str, Any]) -> Iterator[Part]:
    call_id = a_string(item.get("approval_request_id"))
    yield Part((number, ()), "result", "user", item, call_id, shape="fixed")


def _unknown(number: int, item: dict[str, Any]) -> Iterator[Part]:
    """Yield an item that is not known: paired if it names its call, and never changed."""
    call_id, kind = a_string(item.get("call_id")), a_string(item.get("type"))
    if not call_id:
        yield from _opaque(number, item)
    elif kind.endswith("_output"):
        yield Part((number, ()), "result", "tool", item, call_id, shape="fixed")
    else:
        yield Part((number, ()), "call", "assistant", item, call_id, kind, shape="fixed")


# Actions and operations have schemas of their own, a screenshot has to be one, and tools that were
# found have to be tools: these stay as they are.
ITEM_TYPES: dict[str, Reader] = {
    "message": _message,
    "reasoning": _reasoning,
    "function_call": _call("arguments"),
    "function_call_output": _result("output"),
    "custom_tool_call": _call("input"),
    "custom_tool_call_output": _result("output"),
    "tool_search_call": _call("arguments", "fixed"),
    "tool_search_output": _result("tools", "fixed"),
    "computer_call": _call("action", "fixed"),
    "computer_call_output": _result("output", "fixed"),
    "local_shell_call": _call("action", "fixed"),
    "local_shell_call_output": _result("output"),
    "shell_call": _call("action", "fixed"),
    "shell_call_output": _result("output", "shell"),
    "apply_patch_call": _patch,
    "apply_patch_call_output": _result("output"),
    "mcp_call": _call_with_result("arguments", "output"),
    "code_interpreter_call": _call_with_result("code", "outputs", "logs"),
    "file_search_call": _call_with_result("queries", "results", "texts", "fixed"),
    "mcp_approval_request": _call("arguments", "fixed"),
    "mcp_approval_response": _approval,
    "program": _call("code", "fixed"),
    "program_output": _result("result"),
    "additional_tools": _opaque,
    "compaction": _opaque,
    "compaction_trigger": _opaque,
    "configuration_update": _opaque,
    "image_generation_call": _opaque,
    "item_reference": _opaque,
    "mcp_list_tools": _opaque,
    "web_search_call": _opaque,
}
"""A reader for each item type of the API."""
