"""LangChain: a middleware for ``create_agent`` whose model calls recover from an overflow, sync and async.

agent = create_agent(model, tools, middleware=[recovery_middleware(Recovery())])
"""

from collections.abc import Sequence
from typing import Any

from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from fetchstash.client._recovery import Recovery


class RecoveryMiddleware(AgentMiddleware[Any, Any, Any]):
    """Calls the model once more with smaller messages when they were too large for it."""

    def __init__(self, recovery: Recovery) -> None:
        super().__init__()
        self.recovery = recovery

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        """Do it for a synchronous run."""
        original = list(request.messages)
        return self.recovery.call(lambda sent: handler(request.override(messages=_messages(sent, original))), _data(original))

    async def awrap_model_call(self, request: Any, handler: Any) -> Any:
        """Do it for an asynchronous run."""
        original = list(request.messages)
        return await self.recovery.acall(
            lambda sent: handler(request.override(messages=_messages(sent, original))), _data(original)
        )


def recovery_middleware(recovery: Recovery) -> RecoveryMiddleware:
    """Return the middleware. Give a conversation a Recovery of its own."""
    return RecoveryMiddleware(recovery)


def _data(messages: Sequence[BaseMessage]) -> list[dict[str, Any]]:
    """Return messages as Chat Completions data; ``index`` leads back to the object, which keeps what the data does not say."""
    return [{"index": index, **_one(message)} for index, message in enumerate(messages)]


def _one(message: BaseMessage) -> dict[str, Any]:
    if isinstance(message, ToolMessage):
        return {"role": "tool", "tool_call_id": message.tool_call_id, "content": message.content}
    if isinstance(message, AIMessage):
        calls = [{"id": call["id"], "function": {"name": call["name"], "arguments": call["args"]}} for call in message.tool_calls]
        return {"role": "assistant", "content": message.content, **({"tool_calls": calls} if calls else {})}
    return {"role": "system" if isinstance(message, SystemMessage) else "user", "content": message.content}


def _messages(sent: Sequence[dict[str, Any]], original: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Return the messages that this data stands for: the objects themselves where nothing was changed."""
    return [_back(data, original[data["index"]]) if "index" in data else HumanMessage(data["content"]) for data in sent]


def _back(data: dict[str, Any], message: BaseMessage) -> BaseMessage:
    before = _one(message)
    changes: dict[str, Any] = {}
    if data["content"] != before["content"]:
        changes["content"] = data["content"]
    if data.get("tool_calls") != before.get("tool_calls") and isinstance(message, AIMessage):
        arguments = [call["function"]["arguments"] for call in data["tool_calls"]]
        changes["tool_calls"] = [{**call, "args": args} for call, args in zip(message.tool_calls, arguments, strict=True)]
    return message.model_copy(update=changes) if changes else message
