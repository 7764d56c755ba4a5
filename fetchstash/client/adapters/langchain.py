"""LangChain: a middleware for ``create_agent`` whose model calls recover from an overflow.

    agent = create_agent(model, tools, middleware=[recovery_middleware(Recovery())])

A middleware sees a model call as one answer, even while its tokens go out to who streams the agent.
They go out through callbacks, and so a callback tells whether an overflow came before the answer
began, or after it and too late.
"""

import json
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Unpack

from fetchstash.client._policy import Request
from fetchstash.client._recovery import Recovery
from fetchstash.client._streaming import Attempt, Outcome, drive, is_large, run_now
from fetchstash.client._streams import a_string, an_object, commits, failure, is_list, is_object
from fetchstash.client.adapters import Needs, Options, account_of, configured

with Needs("langchain", "langchain", "1.4"):
    from langchain.agents.middleware import AgentMiddleware
    from langchain_core.callbacks import BaseCallbackHandler
    from langchain_core.messages import (
        AIMessage,
        BaseMessage,
        HumanMessage,
        SystemMessage,
        ToolMessage,
    )
    from langchain_core.tracers.context import register_configure_hook

_CALL_BLOCKS = frozenset({"function_call", "custom_tool_call", "tool_use", "tool_call"})
"""Blocks that repeat a message's calls in its content (OpenAI's Responses, Anthropic)."""


class _Watch(BaseCallbackHandler):
    """Notes whether a model call has put out a piece of its answer."""

    run_inline = True  # in the event loop: a thread of its own could note it too late

    def __init__(self) -> None:
        self.output = False

    def on_llm_new_token(self, token: Any, *, chunk: Any = None, **_: Any) -> None:
        """Note a token, or a piece of a tool call."""
        self.output = self.output or (bool(token) if chunk is None else commits(chunk))


_watch: ContextVar[_Watch | None] = ContextVar("fetchstash_watch", default=None)
register_configure_hook(_watch, inheritable=True)


@contextmanager
def _watched() -> Generator[_Watch]:
    """Watch the model calls made in this context."""
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
        """Return the answer of a model call in a synchronous run."""
        return run_now(self._sent(request, handler, is_async=False)).answer()

    async def awrap_model_call(self, request: Any, handler: Any) -> Any:
        """Return the answer of a model call in an asynchronous run."""
        return (await self._sent(request, handler, is_async=True)).answer()

    async def _sent(self, request: Any, handler: Any, *, is_async: bool) -> Outcome:
        original = list(request.messages)

        async def attempt(sent: Attempt) -> Outcome:
            messages = _messages(sent.messages, original)
            with _watched() as watch:
                try:
                    response = handler(request.override(messages=messages))
                    return _outcome(await response if is_async else response)
                except Exception as error:  # noqa: BLE001 - the steps raise it, unless they retry
                    return Outcome(error=error, committed=watch.output)

        large = is_async and is_large([message.content for message in original])
        return await drive(self.recovery.steps(_request(request)), attempt, large=large)


def recovery_middleware(
    recovery: Recovery | None = None, **options: Unpack[Options]
) -> RecoveryMiddleware:
    """Return the middleware."""
    return RecoveryMiddleware(configured(recovery, options))


def _outcome(response: Any) -> Outcome:
    """Return the outcome of an answer, which may have ended for the window before it began."""
    message = next(iter(getattr(response, "result", ())), None)
    reason = None if commits(message) else failure(getattr(message, "response_metadata", None))
    return Outcome(response, event=reason)


def _request(request: Any) -> Request:
    model, settings = request.model, an_object(request.model_settings)
    system = getattr(request.system_message, "content", None)
    window = an_object(getattr(model, "profile", None)).get("max_input_tokens")
    output = settings.get("max_tokens") or getattr(model, "max_tokens", None)
    tools = [_tool(tool) for tool in request.tools or ()]
    return Request(
        _data(request.messages),
        model=a_string(getattr(model, "model_name", "") or getattr(model, "model", "")),
        endpoint=_endpoint(model),
        fixed=[part for part in (system, tools) if part] or None,
        window=window if isinstance(window, int) else None,
        output=output if isinstance(output, int) else None,
        account=account_of(*_credentials(model)),
    )


_ADDRESSES = ("openai_api_base", "anthropic_api_url", "azure_endpoint", "base_url", "endpoint_url")


def _endpoint(model: Any) -> str:
    """Return the address of a chat model, or the class of one that has the provider's own."""
    named = (a_string(getattr(model, name, "")) for name in _ADDRESSES)
    return next(filter(None, named), type(model).__name__)


def _credentials(model: Any) -> list[Any]:
    """Return the keys of a chat model, whatever its provider calls them, and the organization."""
    fields = an_object(getattr(model, "__dict__", None))
    keys = [
        value
        for name, value in sorted(fields.items())
        if hasattr(value, "get_secret_value") or (name.endswith("api_key") and callable(value))
    ]
    return [*keys, fields.get("openai_organization")]


def _tool(tool: Any) -> Any:
    if is_object(tool):
        return tool
    return [getattr(tool, name, None) for name in ("name", "description", "args")]


def _data(messages: Sequence[BaseMessage]) -> list[dict[str, Any]]:
    """Return messages as Chat Completions data; ``index`` leads back to the object."""
    return [{"index": index, **_as_data(message)} for index, message in enumerate(messages)]


def _as_data(message: BaseMessage) -> dict[str, Any]:
    if isinstance(message, ToolMessage):
        return {"role": "tool", "tool_call_id": message.tool_call_id, "content": message.content}
    if not isinstance(message, AIMessage):
        role = "system" if isinstance(message, SystemMessage) else "user"
        return {"role": role, "content": message.content}
    content: Any = message.content
    if is_list(content):  # a call's block is the call, which is counted and shrunk once
        content = [block for block in content if not _is_call(block)]
    data: dict[str, Any] = {"role": "assistant", "content": content}
    calls = [
        {"id": call["id"], "function": {"name": call["name"], "arguments": call["args"]}}
        for call in message.tool_calls
    ]
    return data | ({"tool_calls": calls} if calls else {})


def _is_call(block: Any) -> bool:
    return an_object(block).get("type") in _CALL_BLOCKS


def _messages(sent: Sequence[dict[str, Any]], original: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Return the messages of this data: the objects themselves where nothing was changed."""
    return [
        _restored(data, original[data["index"]])
        if "index" in data
        else HumanMessage(data["content"])
        for data in sent
    ]


def _restored(data: dict[str, Any], message: BaseMessage) -> BaseMessage:
    before = _as_data(message)
    changes: dict[str, Any] = {}
    if data["content"] != before["content"]:
        changes["content"] = data["content"]
    if data.get("tool_calls") != before.get("tool_calls") and isinstance(message, AIMessage):
        arguments = [call["function"]["arguments"] for call in data["tool_calls"]]
        changes["tool_calls"] = [
            {**call, "args": args} for call, args in zip(message.tool_calls, arguments, strict=True)
        ]
    if not changes:
        return message
    if is_list(message.content) and isinstance(message, AIMessage):
        changes["content"] = _content(message, data)
    return message.model_copy(update=changes)


def _content(message: AIMessage, data: dict[str, Any]) -> list[Any]:
    """Return the blocks of an answer with the changes of ``data``.

    LangChain sends the arguments of a call as its block has them.
    """
    calls = {call["id"]: call["function"]["arguments"] for call in data.get("tool_calls", ())}
    rest = iter(data["content"])
    return [
        _with_arguments(block, calls) if _is_call(block) else next(rest)
        for block in message.content
    ]


def _with_arguments(block: Any, calls: dict[Any, Any]) -> Any:
    arguments = calls.get(block.get("call_id") or block.get("id"))
    key = next((key for key in ("arguments", "input", "args") if key in block), "")
    if arguments is None or not key:
        return block
    return {**block, key: json.dumps(arguments) if isinstance(block[key], str) else arguments}
