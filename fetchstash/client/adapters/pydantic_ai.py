"""PydanticAI: a capability whose model requests recover from an overflow.

agent = Agent(model, capabilities=[RecoveryCapability(Recovery())])
agent = Agent(model, capabilities=[ProcessHistory(HistoryCompactor().create_history_processor())])
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Literal, cast

from fetchstash.client._policy import Request
from fetchstash.client._recovery import Recovery
from fetchstash.client._streaming import Attempt, Outcome, Steps, is_large, step
from fetchstash.client._streams import a_string, an_object, is_object
from fetchstash.client.adapters import Needs, Options, account_of, configured

with Needs("pydantic-ai", "pydantic-ai-slim", "2.68"):
    from pydantic_ai import RetryModelRequest
    from pydantic_ai.capabilities import AbstractCapability
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


@dataclass
class RecoveryCapability(AbstractCapability[Any]):
    """Sends a model request that was too large once more, smaller.

    PydanticAI asks before each attempt what to send and tells what came of it, which is what
    ``Recovery.steps`` takes. The other fields are those of ``Policy``.
    """

    recovery: Recovery | None = None
    window: int | None = None
    max_output: int | None = None
    compaction_mode: Literal["tiered", "legacy"] | None = None
    remaining_seconds: Callable[[], float | None] | None = None
    _steps: Steps | None = field(default=None, init=False, repr=False)
    _next: Attempt | None = field(default=None, init=False, repr=False)
    _large: bool = field(default=False, init=False, repr=False)
    _original: list[ModelMessage] = field(
        default_factory=list[ModelMessage], init=False, repr=False
    )

    def __post_init__(self) -> None:
        names = ("window", "max_output", "compaction_mode", "remaining_seconds")
        options = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
        self._recovery = configured(self.recovery, cast("Options", options))

    async def for_run(self, ctx: Any) -> "RecoveryCapability":  # noqa: ARG002 - the SDK's signature
        """Return an instance for one run, which has steps of its own and the same Recovery."""
        return RecoveryCapability(self._recovery)

    async def prepare_model_request(self, ctx: Any, request_context: Any) -> Any:  # noqa: ARG002 - the SDK's signature
        """Put the next attempt's messages and settings into the request."""
        if self._next is None:
            self._original = list(request_context.messages)
            data = to_data(self._original)
            self._large = is_large(data)
            self._steps = self._recovery.steps(_request(request_context, data))
            first = await step(self._steps, large=self._large)
            assert isinstance(first, Attempt)
            self._next = first
        request_context.messages = from_data(self._next.messages, self._original)
        return request_context

    async def on_model_request_error(
        self,
        ctx: Any,  # noqa: ARG002 - the framework's signature
        *,
        request_context: Any,  # noqa: ARG002 - as above
        error: Exception,
    ) -> ModelResponse:
        """Ask for another attempt, or raise the model's error."""
        if self._steps is None:
            raise error
        following = await step(self._steps, Outcome(error=error), large=self._large)
        if isinstance(following, Attempt):
            self._next = following
            raise RetryModelRequest from error
        self._steps = self._next = None
        raise error from error.__cause__

    async def after_model_request(
        self,
        ctx: Any,  # noqa: ARG002 - the framework's signature
        *,
        request_context: Any,  # noqa: ARG002 - as above
        response: ModelResponse,
    ) -> ModelResponse:
        """Report the answer."""
        if self._steps is not None:
            with suppress(StopIteration):
                self._steps.send(Outcome(response))
            self._steps = self._next = None
        return response

    async def on_run_error(self, ctx: Any, *, error: BaseException) -> Any:  # noqa: ARG002 - the SDK's signature
        """Report an answer that failed after its first output: no other hook hears of it."""
        if self._steps is not None and isinstance(error, Exception):
            with suppress(StopIteration):
                self._steps.send(Outcome(error=error, committed=True))
        self._steps = self._next = None
        raise error


def _request(context: Any, data: list[dict[str, Any]]) -> Request:
    model, parameters = context.model, context.model_request_parameters
    settings = an_object(context.model_settings)
    tools = [
        [tool.name, tool.description, tool.parameters_json_schema]
        for tool in getattr(parameters, "function_tools", ())
    ]
    instructions = [a_string(getattr(last, "instructions", "")) for last in context.messages[-1:]]
    window = an_object(getattr(model, "profile", None)).get("context_window")
    output = settings.get("max_tokens")
    return Request(
        data,
        "anthropic",
        model=a_string(getattr(model, "model_name", "")),
        endpoint=a_string(getattr(model, "base_url", "")),
        fixed=[part for part in (*instructions, tools) if part] or None,
        window=window if isinstance(window, int) else None,
        output=output if isinstance(output, int) else None,
        account=account_of(*_credentials(model)),
    )


def _credentials(model: Any) -> list[Any]:
    """Return the keys of the SDK's client behind a model, whatever its provider calls them."""
    client = getattr(model, "client", None)
    holders = (client, getattr(client, "_api_client", None))  # google-genai's is inside
    keys: list[Any] = []
    for holder in holders:
        renewed = getattr(holder, "_api_key_provider", None)  # its keys change, its account stays
        keys.append(renewed or getattr(holder, "api_key", None))
        keys += [getattr(holder, name, None) for name in ("auth_token", "organization", "project")]
    return keys


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
    key = next(key for key in ("content", "text", "value") if key in block)
    content = block[key]
    if key == "content" and isinstance(content, list):  # a result's text, and the files beside it
        content = [one["text"] if is_object(one) and "text" in one else one for one in content]
    return replace(part, content=content)
