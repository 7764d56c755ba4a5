"""Recovery: one retry of a request that was too large, made smaller; and nothing else.

What happens is one generator without I/O, ``steps``: it says what to send and is told what came of
it. The four public methods only carry it out, with or without streams, in threads or in an event
loop.
"""

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, Literal

from fetchstash.client._classify import UNSATISFIABLE, Verdict, classify
from fetchstash.client._compact import compact, reapply
from fetchstash.client._formats import Format, Message
from fetchstash.client._oversized import LearnedWindows, learned_windows, usable_window
from fetchstash.client._policy import NOTHING_KNOWN, Policy, RequestInfo, State
from fetchstash.client._rewrite import (
    clamped_output,
    fixed_size,
    rewrite_for_retry,
    target_of,
    unit_of,
)
from fetchstash.client._sizes import (
    OnEvent,
    Report,
    count_tokens,
    emit,
    json_tokens,
    measure,
    size_in_bytes,
)
from fetchstash.client._streaming import (
    AsyncRecoveringStream,
    Attempt,
    Conversations,
    Outcome,
    RecoveringStream,
    Send,
    Steps,
    adrive,
    drive,
    is_large,
)
from fetchstash.client._streams import aclose, close, empty_answer, failure, get, reported_input
from fetchstash.client._stubs import ObservedOffload

_log = logging.getLogger("fetchstash.client")

Trigger = Literal["provider_error", "stream_event"]

KEPT_BY_PROVIDER = (
    "The provider keeps the earlier conversation ({}), which cannot be shrunk from here: "
    "send the messages themselves, or begin a new conversation with a summary."
)


class Recovery:
    """Sends requests, and saves those that are too large for the model.

    On an overflow the request is rewritten and sent once more: only if it got smaller, never after
    output was seen, never twice. ``on_event`` is told of every decision. The first ``prefix``
    messages of each request stay byte for byte. ``provider`` settles what only one provider's error
    means. One Recovery serves many conversations at once: the state of each keeps its stubs where
    they are from request to request, so that prompt caches stay warm and the same overflow does not
    come back. Give ``state`` to keep that of a single conversation yourself. ``report`` is that of
    the last overflow, None before there was one: for failures that are no exception.
    """

    def __init__(
        self,
        policy: Policy | None = None,
        on_event: OnEvent | None = None,
        prefix: int = 0,
        *,
        provider: str = "",
        state: State | None = None,
    ) -> None:
        self.policy = policy or Policy()
        if self.policy.offload is not None:
            offload = ObservedOffload(self.policy.offload, on_event)
            self.policy = replace(self.policy, offload=offload)
        self.on_event = on_event
        self.prefix = prefix
        self.provider = provider
        self.state = state
        self.report: Report | None = None
        self._conversations = Conversations()
        self._learned = LearnedWindows()

    def call(
        self,
        send: Send,
        messages: Sequence[Message],
        format: Format = "openai_chat",
        *,
        max_output: int | None = None,
        request: RequestInfo = NOTHING_KNOWN,
    ) -> Any:
        """Return what ``send(messages)`` returns, after at most one retry with smaller messages.

        Give ``max_output``, the output tokens that the request asks for, if ``send`` takes
        ``max_output=`` to ask for fewer. Raises what ``send`` raises; an overflow that was not
        cured, and whatever the retry raises, is not retryable, and ``overflow_report(error)`` tells
        of it.
        """

        def attempt(sent: Attempt) -> Outcome:
            try:
                response = sent.sent_by(send)
            except Exception as error:  # noqa: BLE001 - the steps raise it, unless they retry
                return Outcome(error=error)
            return _outcome(response)

        return drive(self.steps(messages, format, max_output, "provider_error", request), attempt)

    async def acall(
        self,
        send: Callable[..., Awaitable[Any]],
        messages: Sequence[Message],
        format: Format = "openai_chat",
        *,
        max_output: int | None = None,
        request: RequestInfo = NOTHING_KNOWN,
    ) -> Any:
        """Do as ``call`` does, where ``send`` is awaited."""

        async def attempt(sent: Attempt) -> Outcome:
            try:
                response = await sent.sent_by(send)
            except Exception as error:  # noqa: BLE001 - as in call
                return Outcome(error=error)
            return _outcome(response)

        return await adrive(
            self.steps(messages, format, max_output, "provider_error", request),
            attempt,
            large=is_large(messages),
        )

    def stream(
        self,
        send: Send,
        messages: Sequence[Message],
        format: Format = "openai_chat",
        *,
        max_output: int | None = None,
        request: RequestInfo = NOTHING_KNOWN,
    ) -> Generator[Any]:
        """Yield what the stream of ``send(messages)`` yields, each event when it arrives.

        Until the answer itself begins the request may be retried once, as in ``call``; the events
        of the retry then follow those that were passed on already, and begin with the provider's
        own first event. Nothing is sent before the first event is asked for, and a stream that is
        abandoned is closed.
        """
        opened = self.open(send, messages, format, max_output=max_output, request=request)
        try:
            for event in opened:  # noqa: UP028 - "yield from" would close the stream itself, and twice
                yield event
        finally:
            close(opened.stream)

    async def astream(
        self,
        send: Callable[..., Any],
        messages: Sequence[Message],
        format: Format = "openai_chat",
        *,
        max_output: int | None = None,
        request: RequestInfo = NOTHING_KNOWN,
    ) -> AsyncGenerator[Any]:
        """Do as ``stream`` does; ``send`` is awaited, or returns an asynchronous iterator."""
        opened = await self.aopen(send, messages, format, max_output=max_output, request=request)
        try:
            async for event in opened:
                yield event
        finally:
            await aclose(opened.stream)

    def open(
        self,
        send: Send,
        messages: Sequence[Message],
        format: Format = "openai_chat",
        *,
        max_output: int | None = None,
        request: RequestInfo = NOTHING_KNOWN,
        read: Callable[[Any], Any] | None = None,
        held: bool = False,
    ) -> RecoveringStream:
        """Open a stream at once and return it, as SDKs do, which send before they are iterated.

        ``read`` gives what an event of the SDK says. ``held``: nothing is passed on before the
        answer or its reasoning begins, for readers of the SDK that cannot begin again.
        """
        steps, on_end = self._stream_steps(messages, format, max_output, request)
        return RecoveringStream(steps, send, read, held=held, on_end=on_end).open()

    async def aopen(
        self,
        send: Send,
        messages: Sequence[Message],
        format: Format = "openai_chat",
        *,
        max_output: int | None = None,
        request: RequestInfo = NOTHING_KNOWN,
        read: Callable[[Any], Any] | None = None,
        held: bool = False,
    ) -> AsyncRecoveringStream:
        """Do as ``open`` does, with an asynchronous stream."""
        steps, on_end = self._stream_steps(messages, format, max_output, request)
        stream = AsyncRecoveringStream(steps, send, read, held=held, on_end=on_end)
        return await stream.open(large=is_large(messages))

    def _stream_steps(
        self,
        messages: Sequence[Message],
        format: Format,
        max_output: int | None,
        request: RequestInfo,
    ) -> tuple[Steps, Callable[[Any, Attempt], None]]:
        """Return the steps of a stream, and what is called at its end."""
        steps = self.steps(messages, format, max_output, "stream_event", request)
        on_end = partial(self._check_prompt, self._state(messages), format, request)
        return steps, on_end

    def steps(
        self,
        messages: Sequence[Message],
        format: Format = "openai_chat",
        max_output: int | None = None,
        event_trigger: Trigger = "provider_error",
        request: RequestInfo = NOTHING_KNOWN,
    ) -> Steps:
        """Yield what to send, take what came of it, and return the outcome that is the caller's."""
        state = self._state(messages)
        first = Attempt(self._prepared(messages, format, state, request))
        outcome = yield first
        with suppress(KeyError):  # an unknown format: the rewrite reports it
            self._check_prompt(state, format, request, outcome.response, first)
        if outcome.problem is None or outcome.committed:
            return outcome
        trigger: Trigger = "provider_error" if outcome.error is not None else event_trigger
        verdict = classify(outcome.problem, self.provider)
        with suppress(KeyError):  # an unknown format: the rewrite reports it
            self._learn(verdict, first.messages, format, state, request)
        retry = self._retry(
            verdict, outcome.error, messages, first, format, state, max_output, trigger, request
        )
        if retry is None:
            if outcome.error is not None and verdict.overflow and request.kept_by_provider:
                _note(outcome.error, KEPT_BY_PROVIDER.format(request.kept_by_provider))
            return outcome
        attempt, report = retry
        outcome = yield attempt
        self._tell(trigger, verdict, "success" if outcome.problem is None else "retry_failed")
        if outcome.error is not None:
            _mark(outcome.error, report)
        return outcome

    def _state(self, messages: Sequence[Message]) -> State:
        return self.state or self._conversations.state(messages)

    def _check_prompt(
        self, state: State, format: Format, request: RequestInfo, response: Any, sent: Attempt
    ) -> None:
        """Report an answer to a prompt that the provider truncated in silence."""
        response = get(response, "response") or response  # an event that ends a Responses stream
        if reported_input(response) is None:
            return
        size = count_tokens(sent.messages, format, state) + json_tokens(request.fixed)
        verdict = classify(response, self.provider, sent_tokens=size)
        if verdict.kind == "truncated_silently":
            attributes = {
                "model": request.model,
                "reported_tokens": reported_input(response),
                "sent_tokens": size,
                "overflow.rule_id": verdict.rule_id,
            }
            emit(self.on_event, "prompt.truncated", attributes)

    def _learned_windows(self, request: RequestInfo) -> LearnedWindows:
        """Return what this process learned, or only this Recovery if the model has no name."""
        return learned_windows if request.model or request.endpoint else self._learned

    def _learn(
        self,
        verdict: Verdict,
        messages: Sequence[Message],
        format: Format,
        state: State,
        request: RequestInfo,
    ) -> None:
        """Remember the window that a refusal states, and how its count relates to ours."""
        if verdict.kind != "overflow_tokens" or not verdict.limit:
            return
        if verdict.rule_id == UNSATISFIABLE:
            return
        counted = count_tokens(messages, format, state) + json_tokens(request.fixed)
        learned = self._learned_windows(request)
        learned.learn(request, verdict.limit, verdict.requested_input, counted)

    def _window(self, request: RequestInfo) -> int | None:
        """Return the context window of the request's model in tokens, None if it is not known."""
        learned = self._learned_windows(request).of(request)
        return usable_window(self.policy.window, request, learned)

    def _budget(self, request: RequestInfo, window: int) -> int:
        """Return the tokens that messages may have in the model's window."""
        output = request.output or self.policy.max_output or 0
        reserve = json_tokens(request.fixed) + min(output, window // 4)
        return max(window - reserve, window // 10)

    def _prepared(
        self, messages: Sequence[Message], format: Format, state: State, request: RequestInfo
    ) -> Sequence[Message]:
        """Return what the first attempt sends: the messages, compacted as the policy says.

        What cannot be compacted (an offload that fails, a format that is none) is sent as it is: it
        may fit all the same.
        """
        if self.policy.compaction_mode == "legacy":
            return messages
        try:
            window = self._window(request)
            if window is None:
                return reapply(messages, format, state, self.policy, self.prefix)
            budget = self._budget(request, window)
            remaining = self.policy.remaining_seconds
            options: dict[str, Any] = {
                "window": window,
                "remaining_seconds": remaining() if remaining else None,
                "policy": self.policy,
                "prefix": self.prefix,
                "on_event": self.on_event,
            }
            compacted, report = compact(messages, format, budget, state, **options)
        except Exception as failed:  # noqa: BLE001 - whatever it is, it is no reason not to ask the model
            _log.warning(
                "The request is sent as it is, for its compaction failed: %s", type(failed).__name__
            )
            return messages
        return compacted if report.smaller else messages

    def _retry(
        self,
        verdict: Verdict,
        error: Exception | None,
        messages: Sequence[Message],
        sent: Attempt,
        format: Format,
        state: State,
        max_output: int | None,
        trigger: Trigger,
        request: RequestInfo,
    ) -> tuple[Attempt, Report] | None:
        """Return a smaller attempt and what made it so, None where there is none to make."""
        if verdict.action == "none" or not self.policy.overflow_fallback:
            return None
        try:
            clamped = clamped_output(verdict, max_output)
            if clamped is not None and max_output is not None:
                self.report = Report("tokens", max_output, clamped, clamped)
                return Attempt(sent.messages, clamped), self.report
            size = measure(sent.messages, format, unit_of(verdict), state)
            target = target_of(verdict, size, fixed_size(verdict, request))
            rewritten, report = rewrite_for_retry(
                messages, format, target, self.policy, state, self.prefix, size
            )
        except Exception as failed:  # noqa: BLE001 - whatever it is, the provider's error is raised from it
            self._tell(trigger, verdict, "compression_failed")
            if error is not None:
                error.__cause__ = failed
            return None
        self.report = report
        if not report.smaller or size_in_bytes(rewritten) >= size_in_bytes(sent.messages):
            self._tell(trigger, verdict, "not_smaller")
            if error is not None:
                _mark(error, report)
            return None
        return Attempt(rewritten), report

    def _tell(self, trigger: Trigger, verdict: Verdict, outcome: str) -> None:
        attributes = {
            "compression.trigger": trigger,
            "compression.provider": self.provider,
            "compression.detector": verdict.kind,
            "compression.retry_number": 1 if outcome in {"success", "retry_failed"} else 0,
            "compression.outcome": outcome,
            "overflow.rule_id": verdict.rule_id,
        }
        emit(self.on_event, "compression", attributes)


def overflow_report(error: BaseException) -> Report | None:
    """Return the report of an overflow that could not be cured, None for any other error."""
    return getattr(error, "overflow_report", None)


def _outcome(response: Any) -> Outcome:
    problem = failure(response)
    if problem is None and empty_answer(response):
        problem = response
    return Outcome(response, event=problem)


def _mark(error: Exception, report: Report) -> None:
    """Note on the provider's own error that sending the same again is no use, and why."""
    _note(error, report.sentence())
    with suppress(Exception):  # an exception that is frozen takes neither
        error.retryable = False  # type: ignore[attr-defined]
        error.overflow_report = report  # type: ignore[attr-defined]


def _note(error: Exception, note: str) -> None:
    with suppress(Exception):
        error.add_note(note)
