"""LangChain: a middleware for ``create_agent`` whose model calls recover from an overflow, sync, async and streamed.

    agent = create_agent(model, tools, middleware=[recovery_middleware(Recovery())])

A middleware sees a model call as one answer, even while its tokens go out to who streams the agent.
They go out through callbacks, and so a callback tells whether an overflow came before the first of
them, or after it and too late.
"""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from langchain.agents.middleware import AgentMiddleware
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tracers.context import register_configure_hook

from fetchstash.client._recovery import Attempt, Outcome, Recovery, adrive, drive
from fetchstash.client._streams import is_output


class _Watch(BaseCallbackHandler):
    """Notes whether a model call has put out anything."""

    run_inline = True  # in the event loop: a thread of its own could note it too late

    def __init__(self) -> None:
        self.output = False

    def on_llm_new_token(self, token: Any, *, chunk: Any = None, **_: Any) -> None:
        """Note a token, or a piece of a tool call or of reasoning."""
        self.output = self.output or bool(token) or is_output(chunk)


_watch: ContextVar[_Watch | None] = ContextVar("fetchstash_watch", default=None)
register_configure_hook(_watch, inheritable=True)


@contextmanager
def _watched() -> Generator[_Watch]:
    """Watch the model calls that are made inside."""
    watch = _Watch()
    token = _watch.set(watch)
    try:
        yield watch
    finally:
        _watch.reset(token)


class RecoveryMiddleware(AgentMiddleware[Any, Any, Any]):
    """Calls the model once more with smaller messages when they were too large for it."""

    def __init__(self, recovery: Recovery) -> None:
        super().__init__()
        self.recovery = recovery

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        """Do it for a synchronous run."""
        original = list(request.messages)

        def attempt(what: Attempt) -> Outcome:
            with _watched() as watch:
                try:
                    return Outcome(
                        handler(request.override(messages=_messages(what.messages, original)))
                    )
                except Exception as error:  # noqa: BLE001 - told to the steps, which raise it if it is not to be cured
                    return Outcome(error=error, committed=watch.output)

        return drive(self.recovery.steps(_data(original)), attempt)

    async def awrap_model_call(self, request: Any, handler: Any) -> Any:
        """Do it for an asynchronous run."""
        original = list(request.messages)

        async def attempt(what: Attempt) -> Outcome:
            with _watched() as watch:
                try:
                    return Outcome(
                        await handler(request.override(messages=_messages(what.messages, original)))
                    )
                except Exception as error:  # noqa: BLE001 - as in wrap_model_call
                    return Outcome(error=error, committed=watch.output)

        return await adrive(self.recovery.steps(_data(original)), attempt)


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
        calls = [
            {"id": call["id"], "function": {"name": call["name"], "arguments": call["args"]}}
            for call in message.tool_calls
        ]
        return {
            "role": "assistant",
            "content": message.content,
            **({"tool_calls": calls} if calls else {}),
        }
    return {
        "role": "system" if isinstance(message, SystemMessage) else "user",
        "content": message.content,
    }


def _messages(sent: Sequence[dict[str, Any]], original: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Return the messages that this data stands for: the objects themselves where nothing was changed."""
    return [
        _back(data, original[data["index"]]) if "index" in data else HumanMessage(data["content"])
        for data in sent
    ]


def _back(data: dict[str, Any], message: BaseMessage) -> BaseMessage:
    before = _one(message)
    changes: dict[str, Any] = {}
    if data["content"] != before["content"]:
        changes["content"] = data["content"]
    if data.get("tool_calls") != before.get("tool_calls") and isinstance(message, AIMessage):
        arguments = [call["function"]["arguments"] for call in data["tool_calls"]]
        changes["tool_calls"] = [
            {**call, "args": args} for call, args in zip(message.tool_calls, arguments, strict=True)
        ]
    return message.model_copy(update=changes) if changes else message
