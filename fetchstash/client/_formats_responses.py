"""The items of OpenAI's Responses API, read as parts.

Source: OpenAI API reference, "Create a model response", input.
Each item type that the API defines is named in ``ITEM_TYPES``; a test compares them with the SDK's.
An item that is not known is a part that is counted and never changed.
"""

from collections.abc import Callable, Iterator
from typing import Any

from fetchstash.client._part import CHAT_ROLES, Part, Shape, content_parts
from fetchstash.client._shapes import a_string, an_object, is_list

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
