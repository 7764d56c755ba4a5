"""PydanticAI's messages as plain data, and back. Imports the SDK."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

from pydantic_ai.messages import (
    BaseToolCallPart,
    BaseToolReturnPart,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    RetryPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)


def to_data(messages: Sequence[ModelMessage]) -> list[dict[str, Any]]:
    """Return messages as Anthropic's data; ``index`` leads back to the object."""
    return [
        {
            "role": "assistant" if isinstance(message, ModelResponse) else "user",
            "index": index,
            "content": [_block(part) for part in message.parts],
        }
        for index, message in enumerate(messages)
    ]


def from_data(
    data: Sequence[dict[str, Any]], original: Sequence[ModelMessage]
) -> list[ModelMessage]:
    """Return the messages of this data: the objects themselves where nothing was changed."""
    return [
        _restored(message, original[message["index"]])
        if "index" in message
        else ModelRequest(parts=[UserPromptPart(message["content"])])
        for message in data
    ]


def _block(part: Any) -> dict[str, Any]:
    match part:
        case BaseToolCallPart():  # one that is no ToolCallPart is of a tool that the provider runs
            kind = "tool_use" if isinstance(part, ToolCallPart) else "server_tool_use"
            identity = {"type": kind, "id": part.tool_call_id, "name": part.tool_name}
            return identity | {"input": _arguments(part)}
        case ToolReturnPart():
            identity = {"type": "tool_result", "tool_use_id": part.tool_call_id}
            return identity | {"content": _result(part)}
        case BaseToolReturnPart():
            identity = {"type": "server_tool_result", "tool_use_id": part.tool_call_id}
            return identity | {"content": part.model_response_str()}
        case RetryPromptPart() if part.tool_name:
            identity = {"type": "tool_result", "tool_use_id": part.tool_call_id}
            return identity | {"content": part.model_response()}
        case ThinkingPart():
            return {"type": "thinking", "thinking": part.content}
        case TextPart():
            return {"type": "text", "text": part.content}
        case UserPromptPart() if isinstance(part.content, str):
            return {"type": "text", "text": part.content}
        case _:
            return {"type": part.part_kind, "value": getattr(part, "content", "")}


def _arguments(part: BaseToolCallPart) -> Any:
    """Return the arguments of a call, as text where they are no JSON object."""
    try:
        return part.args_as_dict()
    except (ValueError, AssertionError):
        return part.args


def _result(part: ToolReturnPart) -> Any:
    """Return the text of a result, with its files beside it: pictures and documents are no text."""
    text = part.model_response_str()
    return [{"type": "text", "text": text}, *part.files] if part.files else text


def _restored(data: dict[str, Any], message: ModelMessage) -> ModelMessage:
    before = [_block(part) for part in message.parts]
    if data["content"] == before:
        return message
    changed = [
        part if now == was else _changed(part, now)
        for part, now, was in zip(message.parts, data["content"], before, strict=True)
    ]
    return replace(message, parts=cast("Any", changed))


def _changed(part: Any, block: dict[str, Any]) -> Any:
    if block["type"] == "tool_use":
        return replace(part, args=block["input"])
    content = block["content"] if block["type"] == "tool_result" else block["text"]
    return replace(part, content=content)
