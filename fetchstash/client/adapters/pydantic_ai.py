"""PydanticAI: a capability whose model requests recover from an overflow.

agent = Agent(model, capabilities=[RecoveryCapability(Recovery())])
agent = Agent(model, capabilities=[ProcessHistory(HistoryCompactor().create_history_processor())])
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from fetchstash.client._policy import Request
from fetchstash.client._recovery import Recovery
from fetchstash.client._streaming import Attempt, Outcome, Steps, is_large, step
from fetchstash.client._streams import a_string, an_object
from fetchstash.client.adapters._wrapped import Needs, Options, configured

with Needs("pydantic-ai", "pydantic-ai-slim", "2.68"):
    from pydantic_ai import RetryModelRequest
    from pydantic_ai.capabilities import AbstractCapability
    from pydantic_ai.messages import ModelMessage, ModelResponse

    from fetchstash.client.adapters._pydantic_messages import from_data, to_data


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
        """Put what the next attempt sends."""
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
    )
