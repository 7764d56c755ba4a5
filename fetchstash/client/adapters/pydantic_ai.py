"""PydanticAI: a capability whose model requests recover from an overflow, and a history processor.

agent = Agent(model, capabilities=[RecoveryCapability(Recovery())])
agent = Agent(model, capabilities=[ProcessHistory(HistoryCompactor().create_history_processor())])
"""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, cast

from pydantic_ai import RetryModelRequest
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import (
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

from fetchstash.client._history import HistoryCompactor
from fetchstash.client._recovery import Attempt, Outcome, Recovery, Steps


@dataclass
class RecoveryCapability(AbstractCapability[Any]):
    """Sends a model request that was too large once more, smaller.

    PydanticAI asks before each attempt what to send and tells what came of it, which is just what
    ``Recovery.steps`` wants to know.
    """

    recovery: Recovery
    _steps: Steps | None = field(default=None, init=False, repr=False)
    _next: Attempt | None = field(default=None, init=False, repr=False)
    _original: list[ModelMessage] = field(
        default_factory=list[ModelMessage], init=False, repr=False
    )

    async def for_run(self, ctx: Any) -> "RecoveryCapability":  # noqa: ARG002 - the SDK's signature
        """Return an instance for one run, which has steps of its own and the conversation's Recovery."""
        return RecoveryCapability(self.recovery)

    async def prepare_model_request(self, ctx: Any, request_context: Any) -> Any:  # noqa: ARG002 - the SDK's signature
        """Put what the next attempt sends."""
        if self._next is None:
            self._original = list(request_context.messages)
            self._steps = self.recovery.steps(to_data(self._original), "anthropic")
            self._next = next(self._steps)
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
        try:
            self._next = self._steps.send(Outcome(error=error))
        except StopIteration:
            self._steps = self._next = None
            raise error from error.__cause__
        raise RetryModelRequest from error

    async def after_model_request(
        self,
        ctx: Any,  # noqa: ARG002 - the framework's signature
        *,
        request_context: Any,  # noqa: ARG002 - as above
        response: ModelResponse,
    ) -> ModelResponse:
        """Tell what came of it."""
        if self._steps is not None:
            with suppress(StopIteration):
                self._steps.send(Outcome(response))
            self._steps = self._next = None
        return response

    async def on_run_error(self, ctx: Any, *, error: BaseException) -> Any:  # noqa: ARG002 - the SDK's signature
        """Tell of an answer that failed after its first output: no other hook hears of it."""
        if self._steps is not None and isinstance(error, Exception):
            with suppress(StopIteration):
                self._steps.send(Outcome(error=error, committed=True))
        self._steps = self._next = None
        raise error


def history_processor(
    compactor: HistoryCompactor,
) -> Callable[[list[ModelMessage]], Awaitable[list[ModelMessage]]]:
    """Return a processor for ``ProcessHistory`` that compacts a history when it needs it."""
    compactor.format = "anthropic"

    async def process(messages: list[ModelMessage]) -> list[ModelMessage]:
        data = to_data(messages)
        if not compactor.needs_compaction(data):
            return messages
        return from_data((await compactor.compact(data)).compacted_messages, messages)

    return process


def to_data(messages: Sequence[ModelMessage]) -> list[dict[str, Any]]:
    """Return messages as Anthropic's data, whose blocks are most like theirs; ``index`` leads back to the object."""
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
    """Return the messages that this data stands for: the objects themselves where nothing was changed."""
    return [
        _back(one, original[one["index"]])
        if "index" in one
        else ModelRequest(parts=[UserPromptPart(one["content"])])
        for one in data
    ]


def _block(part: Any) -> dict[str, Any]:
    match part:
        case ToolCallPart():
            return {
                "type": "tool_use",
                "id": part.tool_call_id,
                "name": part.tool_name,
                "input": part.args_as_dict(),
            }
        case ToolReturnPart():
            return {
                "type": "tool_result",
                "tool_use_id": part.tool_call_id,
                "content": part.model_response_str(),
            }
        case RetryPromptPart() if part.tool_name:
            return {
                "type": "tool_result",
                "tool_use_id": part.tool_call_id,
                "content": part.model_response(),
            }
        case ThinkingPart():
            return {"type": "thinking", "thinking": part.content}
        case TextPart():
            return {"type": "text", "text": part.content}
        case UserPromptPart() if isinstance(part.content, str):
            return {"type": "text", "text": part.content}
        case _:
            return {"type": part.part_kind, "value": getattr(part, "content", "")}


def _back(data: dict[str, Any], message: ModelMessage) -> ModelMessage:
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
    return replace(
        part, content=block["content"] if block["type"] == "tool_result" else block["text"]
    )
