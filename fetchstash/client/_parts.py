"""The parts of a message that can be rewritten, and those of OpenAI's Responses.

Source: OpenAI API reference, "Create a model response", input.
Each item type that the API defines is named in ``ITEM_TYPES``; a test compares them with the SDK's.
An item that is not known is a part that is counted and never changed.
"""

import base64
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from fetchstash.client._media import strip_media
from fetchstash.client._streams import a_string, an_object, is_list, is_object, objects

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
        """The value as the provider is charged for it: itself if it is a string, else its JSON."""
        return self.value if isinstance(self.value, str) else as_json(self.value)


Row = tuple[Kind, str, Shape]
_ARRAYS = frozenset({"shell", "logs", "texts"})

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


def responses_parts(number: int, item: dict[str, Any]) -> Iterator[Part]:
    """Yield the parts of one item. One of an unknown type is never changed."""
    kind = a_string(item.get("type")) or ("message" if "role" in item else "item_reference")
    if kind == "message":
        role = CHAT_ROLES.get(a_string(item.get("role")), "user")
        yield from content_parts(number, item, role)
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
