"""PydanticAI: a capability whose model requests recover from an overflow.

agent = Agent(model, capabilities=[RecoveryCapability(Recovery())])
agent = Agent(model, capabilities=[ProcessHistory(HistoryCompactor().create_history_processor())])
"""

from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from pydantic_ai import RetryModelRequest
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import ModelMessage, ModelResponse

from fetchstash.client._recovery import Attempt, Outcome, Recovery, Steps
from fetchstash.client.adapters._pydantic_messages import from_data, to_data


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
