"""Recovery: one retry of a request that was too large, made smaller; and nothing else.

What happens is one generator without I/O, ``steps``: it yields what to send and takes what came of
it. The public methods only carry it out, with or without streams, in threads or in an event loop.
"""

import logging
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, Literal, TypeVar

from fetchstash.client._classify import UNSATISFIABLE, Verdict, classify
from fetchstash.client._compact import compact, reapply, shrink
from fetchstash.client._draft import Draft
from fetchstash.client._formats import parts
from fetchstash.client._learned import (
    Ceilings,
    LearnedLimits,
    learned_windows,
    usable_window,
    window_of,
)
from fetchstash.client._media_bounds import bounds_for
from fetchstash.client._media_limits import fit_media
from fetchstash.client._policy import Message, Offload, Policy, Request, State
from fetchstash.client._sizes import (
    OnEvent,
    Report,
    Sizes,
    SizeUnit,
    Target,
    count_tokens,
    emit,
    json_tokens,
    size_in_bytes,
)
from fetchstash.client._streaming import (
    AsyncRecoveringStream,
    Attempt,
    Outcome,
    RecoveringStream,
    Send,
    States,
    Steps,
    drive,
    is_large,
    problem_of,
    run_now,
)
from fetchstash.client._streams import aclose, close, get, reported_input
from fetchstash.errors import BadArgument, type_checked
from fetchstash.text import tokens

_log = logging.getLogger("fetchstash.client")

Stream = TypeVar("Stream", RecoveringStream, AsyncRecoveringStream)
Trigger = Literal["provider_error", "stream_event"]
Messages = Request | Sequence[Message]
"""A request. Messages alone are in the format of Chat Completions, and nothing else is known."""

HEADROOM = 0.9
"""Share of the limit to aim at: counts differ, and the next request is larger again."""

UNKNOWN_SHARES: Mapping[SizeUnit, float] = {"tokens": 0.5, "bytes": 0.25}
"""What to keep of the messages where the provider does not state how much is too much.

The body limits of proxies are 1, 10 or 100 MB, so that half is seldom enough.
"""

WINDOW_SHARE = 0.7
"""A request of at least this share of the window that the table knows was refused for that window:
estimates differ by less."""

DOUBT = 1.15
"""How much more than stated a provider may count where it states its limit alone."""

BYTES_SHARE = 0.5
"""Share of a body's ceiling to come down to before sending, so that the next requests fit, too."""

KEPT_BY_PROVIDER = (
    "The provider keeps the earlier conversation ({}), which cannot be shrunk from here: "
    "send the messages themselves, or begin a new conversation with a summary."
)


@type_checked
class Recovery:
    """Sends requests, and saves those that are too large for the model.

    On an overflow the request is rewritten and sent once more: only if it got smaller, never after
    output was seen, never twice. ``on_event`` gets every decision. The first ``prefix``
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
            offload = _ObservedOffload(self.policy.offload, on_event)
            self.policy = replace(self.policy, offload=offload)
        self.on_event = on_event
        self.prefix = prefix
        self.provider = provider
        self.state = state
        self.report: Report | None = None
        self._states = States()
        self._learned = LearnedLimits()
        self._ceilings = Ceilings()
        if self.policy.compaction_mode == "tiered":
            tokens.preload()  # the first request is counted

    def call(self, send: Send, request: Messages) -> Any:
        """Return what ``send(messages)`` returns, after at most one retry with smaller messages.

        Raises what ``send`` raises; an overflow that was not cured, and whatever the retry raises,
        is not retryable, and ``overflow_report(error)`` has its report.
        """
        return run_now(self._sent(send, _as_request(request), is_async=False)).answer()

    async def acall(self, send: Callable[..., Awaitable[Any]], request: Messages) -> Any:
        """Return what the awaitable ``send(messages)`` resolves to, retried as ``call`` does."""
        return (await self._sent(send, _as_request(request), is_async=True)).answer()

    async def _sent(self, send: Send, request: Request, *, is_async: bool) -> Outcome:
        async def attempt(sent: Attempt) -> Outcome:
            try:
                response = sent.sent_by(send)
                response = await response if is_async else response
            except Exception as error:  # noqa: BLE001 - the steps raise it, unless they retry
                return Outcome(error=error)
            return Outcome(response, event=problem_of(response))

        # A synchronous caller waits in any case.
        large = is_async and is_large(request.messages)
        return await drive(self.steps(request), attempt, large=large)

    def stream(self, send: Send, request: Messages) -> Generator[Any]:
        """Yield what the stream of ``send(messages)`` yields, each event when it arrives.

        Until the answer itself begins the request may be retried once, as in ``call``; the events
        of the retry then follow those that were passed on already, and begin with the provider's
        own first event. Nothing is sent before the first event is asked for, and a stream that is
        abandoned is closed.
        """
        opened = self.open(send, request)
        try:
            for event in opened:  # noqa: UP028 - "yield from" would close the stream itself, and twice
                yield event
        finally:
            close(opened.stream)

    async def astream(self, send: Callable[..., Any], request: Messages) -> AsyncGenerator[Any]:
        """Yield what an asynchronous stream yields, retried as ``stream`` does.

        ``send`` is awaited, or returns an asynchronous iterator.
        """
        opened = await self.aopen(send, request)
        try:
            async for event in opened:
                yield event
        finally:
            await aclose(opened.stream)

    def open(
        self,
        send: Send,
        request: Messages,
        *,
        read: Callable[[Any], Any] | None = None,
        held: bool = False,
    ) -> RecoveringStream:
        """Open a stream at once and return it, as SDKs do, which send before they are iterated.

        ``read`` returns what an event of the SDK says. ``held``: nothing is passed on before the
        answer or its reasoning begins, for readers of the SDK that cannot begin again.
        """
        return run_now(self._stream(RecoveringStream, send, request, read, held=held).start())

    async def aopen(
        self,
        send: Send,
        request: Messages,
        *,
        read: Callable[[Any], Any] | None = None,
        held: bool = False,
    ) -> AsyncRecoveringStream:
        """Open an asynchronous stream at once and return it, as ``open`` does."""
        return await self._stream(AsyncRecoveringStream, send, request, read, held=held).start()

    def _stream(
        self, kind: type[Stream], send: Send, request: Messages, read: Any, *, held: bool
    ) -> Stream:
        request = _as_request(request)
        large, steps = is_large(request.messages), self.steps(request, "stream_event")
        on_end = partial(self._check_prompt, request, self._state(request))
        return kind(steps, send, read, held=held, large=large, on_end=on_end)

    def steps(self, request: Messages, event_trigger: Trigger = "provider_error") -> Steps:
        """Yield requests to send, receive their outcomes, and return the outcome for the caller."""
        request = _as_request(request)
        state = self._state(request)
        # Kept whole: a refusal for media decides again about all of them.
        original = request
        request = replace(original, messages=self._with_media(original, state)[0])
        first = Attempt(self._prepared(request, state))
        outcome = yield first
        with suppress(BadArgument):  # an unknown format: the rewrite reports it
            self._check_prompt(request, state, outcome.response, first)
        if outcome.problem is None or outcome.committed:
            return outcome
        verdict = self._verdict(outcome, request, state, first)
        trigger = "provider_error" if outcome.error is not None else event_trigger

        def tell(came_of_it: str) -> None:
            attributes = {
                "compression.trigger": trigger,
                "compression.provider": self.provider,
                "compression.detector": verdict.kind,
                "compression.retry_number": int(came_of_it in {"success", "retry_failed"}),
                "compression.outcome": came_of_it,
                "overflow.rule_id": verdict.rule_id,
            }
            emit(self.on_event, "compression", attributes)

        if verdict.action == "shrink_media":
            retry = self._retry_media(verdict, original, state, outcome.error, tell)
        else:
            retry = self._retry(verdict, request, state, first, outcome.error, tell)
        if retry is None:
            if outcome.error is not None and verdict.overflow and request.kept_by_provider:
                _note(outcome.error, KEPT_BY_PROVIDER.format(request.kept_by_provider))
            return outcome
        attempt, report = retry
        outcome = yield attempt
        tell("success" if outcome.problem is None else "retry_failed")
        if outcome.problem is not None and not outcome.committed:
            self._verdict(outcome, request, state, attempt)  # teaches the next request
        if outcome.error is not None:
            _mark(outcome.error, report)
        return outcome

    def _state(self, request: Request) -> State:
        return self.state or self._states.of(request.messages)

    def _check_prompt(self, request: Request, state: State, response: Any, sent: Attempt) -> None:
        """Record the size of the prompt that was answered, and report one that was truncated."""
        response = get(response, "response") or response  # an event that ends a Responses stream
        reported = reported_input(response)
        if reported is None:
            return
        self._limits(request).answered(request, reported)
        size = _counted(request, state, sent)
        verdict = classify(response, self.provider, sent_tokens=size)
        if verdict.kind == "truncated_silently":
            attributes = {
                "model": request.model,
                "reported_tokens": reported,
                "sent_tokens": size,
                "overflow.rule_id": verdict.rule_id,
            }
            emit(self.on_event, "prompt.truncated", attributes)

    def _limits(self, request: Request) -> LearnedLimits:
        """Return what this process learned, or only this Recovery if the model has no name."""
        return learned_windows if request.model or request.endpoint else self._learned

    def _verdict(self, outcome: Outcome, request: Request, state: State, sent: Attempt) -> Verdict:
        """Return the verdict on what went wrong, and learn from it.

        A limit that cannot be believed is left out: the request is then made smaller as if none
        were stated, and the next refusal decides.
        """
        verdict = classify(outcome.problem, self.provider)
        with suppress(BadArgument):  # an unknown format: the rewrite reports it
            if verdict.kind == "overflow_tokens":
                return self._learn_tokens(verdict, request, state, sent)
            if verdict.kind == "overflow_bytes":
                self._learn_bytes(verdict, request, sent)
            if verdict.kind == "overflow_media" and verdict.limit:
                self._limits(request).learn(request, verdict, 0)
                self._tell_limit(verdict, request, "media")
        return verdict

    def _learn_tokens(
        self, verdict: Verdict, request: Request, state: State, sent: Attempt
    ) -> Verdict:
        counted, limit = _counted(request, state, sent), verdict.limit
        learned = self._limits(request)
        # Tokens a minute that one request exceeds alone ("Requested 15041 > Limit 6000"): waiting
        # helps nothing, and it is the account's, not the model's window.
        if limit and verdict.rule_id == UNSATISFIABLE:
            stated = max(verdict.requested_input or 0, counted)
            self._ceilings.learn(request, int(limit * min(counted / stated, 1.0)), "tokens")
            self._tell_limit(verdict, request, "ceiling")
        elif limit and learned.believes(request, limit):
            learned.learn(request, verdict, counted)
            self._tell_limit(verdict, request, "window")
        elif limit:
            self._tell_limit(verdict, request, "doubted")
            verdict = replace(verdict, limit=None, requested_input=None)
        if verdict.limit is None:
            # No limit was stated, so the smallest refused size is the only bound that is known.
            state.refused_at = min(counted, state.refused_at or counted)
            window = window_of(request)
            if window and window * WINDOW_SHARE <= counted and verdict.action == "rewrite":
                verdict = replace(verdict, limit=window)
        return verdict

    def _learn_bytes(self, verdict: Verdict, request: Request, sent: Attempt) -> None:
        sizes = (size_in_bytes(sent.messages), size_in_bytes(request.fixed))
        # A proxy's bound is on the whole body, of which tools and system prompt cannot shrink.
        limit = verdict.limit or int(sum(sizes) * UNKNOWN_SHARES["bytes"])
        self._ceilings.learn(request, max(limit - sizes[1], limit // 10), "bytes")
        self._tell_limit(verdict, request, "ceiling")

    def _tell_limit(self, verdict: Verdict, request: Request, what: str) -> None:
        attributes = {
            "model": request.model,
            "learned": what,
            "limit": verdict.limit,
            "unit": verdict.unit,
            "words": verdict.evidence,
            "overflow.rule_id": verdict.rule_id,
        }
        emit(self.on_event, "limit.learned", attributes)

    def _with_media(
        self, request: Request, state: State, verdict: Verdict | None = None
    ) -> tuple[Sequence[Message], Report | None]:
        """Return the messages with their media within what is taken, and what was done."""
        bounds = None
        if self.policy.compaction_mode == "tiered":
            where = f"{self.provider} {request.endpoint} {request.model}"
            row = bounds_for(self.policy.media_bounds, where, window_of(request))
            bounds = self._limits(request).media_of(request, row)
        stated = None
        if verdict is not None and verdict.unit != "tokens":
            stated = verdict.unit, verdict.limit, verdict.requested_input
        if bounds is None and stated is None and not state.media:
            return request.messages, None
        try:
            messages, report = fit_media(
                request.messages, request.format, state, bounds, self.prefix, stated=stated
            )
        except Exception as failed:  # noqa: BLE001 - as in _prepared
            _log.warning("The media are sent as they are: %s", type(failed).__name__)
            return request.messages, None
        if report.changes:
            labels = Counter(change.label for change in report.changes)
            attributes = {"model": request.model, "bytes_before": report.before}
            attributes |= {"left_out": labels["left out"], "scaled": labels["scaled"]}
            emit(self.on_event, "media.reduced", attributes)
        return messages, report

    def _retry_media(
        self,
        verdict: Verdict,
        request: Request,
        state: State,
        error: Exception | None,
        tell: Callable[[str], None],
    ) -> tuple[Attempt, Report] | None:
        """Return an attempt with fewer or smaller media, None where none can be made."""
        if not self.policy.overflow_fallback:
            return None
        messages, report = self._with_media(request, state, verdict)
        if report is None:
            tell("compression_failed")
            return None
        self.report = report
        if not report.changes:
            tell("not_smaller")
            if error is not None:
                _mark(error, report)
            return None
        return Attempt(self._prepared(replace(request, messages=messages), state)), report

    def _prepared(self, request: Request, state: State) -> Sequence[Message]:
        """Return the first attempt's messages, compacted as the policy says.

        What cannot be compacted (an offload that fails, a format that is none) is sent as it is: it
        may fit all the same.
        """
        messages, policy = request.messages, self.policy
        if policy.compaction_mode == "legacy":
            return messages
        try:
            messages = self._within_bytes(request, state)
            learned = self._limits(request).of(request)
            ceiling = self._ceilings.of(request, "tokens")
            window = usable_window(policy.window, request, learned, ceiling, state.refused_at)
            if window is None:
                return reapply(messages, request.format, state, policy, self.prefix)
            output = request.output or policy.max_output or 0
            # A quarter at most: who asks for the largest output of a model rarely gets one, and the
            # messages need the room.
            reserve = json_tokens(request.fixed) + min(output, window // 4)
            compacted, report = compact(
                messages,
                request.format,
                max(window - reserve, window // 10),
                state,
                policy.remaining_seconds() if policy.remaining_seconds else None,
                policy=policy,
                prefix=self.prefix,
                window=window,
                on_event=self.on_event,
            )
        except Exception as failed:  # noqa: BLE001 - whatever it is, it is no reason not to ask the model
            _log.warning(
                "The request is sent as it is, for its compaction failed: %s", type(failed).__name__
            )
            return messages
        return compacted if report.smaller else messages

    def _within_bytes(self, request: Request, state: State) -> Sequence[Message]:
        """Return the messages, made smaller where they are over the bytes that were refused."""
        ceiling = self._ceilings.of(request, "bytes")
        if ceiling is None:
            return request.messages
        draft = Draft(request.messages, request.format, state, self.policy, self.prefix, "bytes")
        draft.reapply()
        # Stubs of an earlier rewrite may have made it small enough: then nothing new is decided.
        if draft.size > ceiling * HEADROOM:
            shrink(draft, int(ceiling * BYTES_SHARE), draft.size, for_retry=True)
        return draft.result()

    def _retry(
        self,
        verdict: Verdict,
        request: Request,
        state: State,
        sent: Attempt,
        error: Exception | None,
        tell: Callable[[str], None],
    ) -> tuple[Attempt, Report] | None:
        """Return a smaller attempt and what was changed in it, None if none can be made."""
        if verdict.action == "none" or not self.policy.overflow_fallback:
            return None
        try:
            clamped = clamped_output(verdict, request.max_output)
            if clamped is not None and request.max_output is not None:
                self.report = report = Report("tokens", request.max_output, clamped, clamped)
                return Attempt(sent.messages, clamped), report
            unit = _unit_of(verdict)
            size = _size(sent.messages, request, state, unit)
            sized = size_in_bytes if unit == "bytes" else json_tokens
            fixed = None if request.fixed is None else sized(request.fixed)
            goal = target_of(verdict, size, fixed).size
            draft = Draft(request.messages, request.format, state, self.policy, self.prefix, unit)
            report = shrink(draft, goal, size, for_retry=True)
            rewritten = draft.result()
            # In the limit's unit: the stub of a picture by URL has more bytes and fewer tokens.
            smaller = report.smaller and _size(rewritten, request, state, unit) < size
        except Exception as failed:  # noqa: BLE001 - whatever it is, the provider's error is raised from it
            tell("compression_failed")
            if error is not None:
                error.__cause__ = failed
            return None
        self.report = report
        if not smaller:
            tell("not_smaller")
            if error is not None:
                _mark(error, report)
            return None
        return Attempt(rewritten), report


class _ObservedOffload:
    """An offload whose failures are events."""

    def __init__(self, offload: Offload, on_event: OnEvent | None) -> None:
        self._offload = offload
        self._on_event = on_event

    def keep(self, text: str, name: str) -> str:
        try:
            return self._offload.keep(text, name)
        except Exception as error:
            attributes = {"error": type(error).__name__, "chars": len(text)}
            emit(self._on_event, "offload.failed", attributes)
            raise


def _as_request(request: Messages) -> Request:
    return request if isinstance(request, Request) else Request(request)


def _counted(request: Request, state: State, sent: Attempt) -> int:
    """Return the tokens of an attempt with all that is sent besides its messages."""
    return count_tokens(sent.messages, request.format, state) + json_tokens(request.fixed)


def _size(messages: Sequence[Message], request: Request, state: State, unit: SizeUnit) -> int:
    """Return the size of messages in the format of a request."""
    return Sizes(state, unit).total(messages, parts(messages, request.format))


def _unit_of(verdict: Verdict) -> SizeUnit:
    return "bytes" if verdict.kind == "overflow_bytes" else "tokens"


def target_of(verdict: Verdict, before: int, fixed: int | None = None) -> Target:
    """Return the size to aim at, in the verdict's unit, for messages that measure ``before`` here.

    ``fixed`` is the size of the rest of the request, which does not shrink; None if it is not
    known. The stated excess is subtracted, in our measure: the provider's count of the request
    tells how the two relate. Where the rest is not known and the provider counts more than we do,
    the difference is taken for the rest. The target is always below ``before``.
    """
    unit = _unit_of(verdict)
    if not verdict.limit:
        return Target(int(before * UNKNOWN_SHARES[unit]), unit)
    left = verdict.limit - (verdict.requested_output or 0)
    # An output that leaves no tenth of the window for the input is a misread number.
    room = left if left * 10 >= verdict.limit else verdict.limit
    aim = room * HEADROOM
    if verdict.requested_input:
        scale = verdict.requested_input / max(before + (fixed or 0), 1)
        # Unknown parts make the provider's count larger: they are no measure of ours.
        scale = min(scale, 1.0) if fixed is None else scale
        size = before - (verdict.requested_input - aim) / scale
    elif fixed is not None or unit == "bytes":
        # It was refused: the provider counts at least as much as its limit.
        scale = room / max(before + (fixed or 0), 1)
        size = aim / max(scale * DOUBT, 1.0 if unit == "bytes" else DOUBT) - (fixed or 0)
    else:
        size = min(room, before) * UNKNOWN_SHARES["tokens"]
    return Target(max(int(min(size, before * HEADROOM)), 0), unit)


def clamped_output(verdict: Verdict, max_output: int | None) -> int | None:
    """Return the output tokens to ask for instead of ``max_output``; None where that is no cure."""
    if (
        verdict.action != "clamp_output"
        or max_output is None
        or verdict.limit is None
        or verdict.requested_input is None
    ):
        return None
    # A hundredth for what the provider adds by itself.
    room = verdict.limit - verdict.requested_input - verdict.limit // 100
    return room if 0 < room < max_output else None


def overflow_report(error: BaseException) -> Report | None:
    """Return the report of an overflow that could not be cured, None for any other error."""
    return getattr(error, "overflow_report", None)


def _mark(error: Exception, report: Report) -> None:
    """Add the report to the provider's error, and whether another request may succeed.

    It is where the rewrite reached its target: the next request is made smaller than this one.
    """
    _note(error, report.sentence())
    with suppress(Exception):  # an exception that is frozen takes neither
        error.retryable = report.fits and report.smaller  # type: ignore[attr-defined]
        error.overflow_report = report  # type: ignore[attr-defined]


def _note(error: Exception, note: str) -> None:
    with suppress(Exception):
        error.add_note(note)
