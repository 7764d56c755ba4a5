"""Recovery: one retry, smaller, never after output, never twice; streams pass untouched."""

import re
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fetchstash.client import (
    Policy,
    Recovery,
    Request,
    State,
    ToolCall,
    compact,
    count_tokens,
    extractor_prompt,
    learned_windows,
    overflow_report,
    stub_oversized,
)
from fetchstash.client._streaming import Outcome
from fetchstash.errors import BadArgument
from fetchstash.text import tokens
from tests.client.conversations import medium
from tests.client.fakes import Events, FullMemo, Kept, Overflow, bytes_of, conversation, prose
from tests.client.test_compact import said, working

pytestmark = pytest.mark.anyio

HISTORY = conversation(prose(9_000), prose(9_000), "short")
OVERFLOW_EVENT = {
    "type": "response.failed",
    "response": {"error": {"code": "context_length_exceeded", "message": "too long"}},
}
CREATED = {"type": "response.created", "response": {"id": "1", "error": None}}
DELTA = {"type": "response.output_text.delta", "delta": "Hi"}
DONE = {"type": "response.completed", "response": {"status": "completed"}}


class Provider:
    """Answers requests with ``answers`` in turn: an exception is raised, a list is streamed."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.sizes: list[int] = []
        self.closed = 0
        self.pulled = 0

    def __call__(self, messages: Any, **options: Any) -> Any:
        self.sizes.append(bytes_of(messages))
        self.messages = messages
        self.options = options
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return Stream(self, answer) if isinstance(answer, list) else answer

    async def acall(self, messages: Any, **options: Any) -> Any:
        answer = self(messages, **options)
        return AsyncStream(answer) if isinstance(answer, Stream) else answer


class Stream:
    """A stream as SDKs give it: one event at a time, an exception among them is raised."""

    def __init__(self, provider: Provider, events: Any) -> None:
        self.provider = provider
        self.source = iter(events)

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        event = next(self.source)
        self.provider.pulled += 1
        if isinstance(event, Exception):
            raise event
        return event

    def close(self) -> None:
        self.provider.closed += 1


class AsyncStream:
    """The same, asynchronous."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream

    def __aiter__(self) -> AsyncIterator[Any]:
        return self

    async def __anext__(self) -> Any:
        try:
            return next(self.stream)
        except StopIteration:
            raise StopAsyncIteration from None

    async def aclose(self) -> None:
        self.stream.close()


Run = Callable[[Recovery, Provider, list[Any]], Any]


async def _call(recovery: Recovery, provider: Provider, history: list[Any]) -> Any:
    return recovery.call(provider, history)


async def _acall(recovery: Recovery, provider: Provider, history: list[Any]) -> Any:
    return await recovery.acall(provider.acall, history)


async def _stream(recovery: Recovery, provider: Provider, history: list[Any]) -> Any:
    return list(recovery.stream(provider, history))


async def _astream(recovery: Recovery, provider: Provider, history: list[Any]) -> Any:
    return [event async for event in recovery.astream(provider.acall, history)]


whole = pytest.mark.parametrize("run", [_call, _acall])
streamed = pytest.mark.parametrize("run", [_stream, _astream])
every = pytest.mark.parametrize(
    ("run", "good"),
    [(_call, {"ok": 1}), (_acall, {"ok": 1}), (_stream, [DELTA, DONE]), (_astream, [DELTA, DONE])],
)


@every
async def test_an_overflow_is_retried_once_with_a_smaller_request(run: Run, good: Any) -> None:
    provider, events = Provider(Overflow(), good), Events()
    assert await run(Recovery(Policy(offload=Kept()), events), provider, HISTORY) == good
    assert len(provider.sizes) == 2
    assert provider.sizes[1] < provider.sizes[0]
    assert events.outcomes == ["success"]

    def observer(name: str, attributes: dict[str, Any]) -> None:
        raise RuntimeError(name)

    provider.answers = [Overflow(), good]
    assert await run(Recovery(on_event=observer), provider, HISTORY) == good, "whatever it does"


TOO_LARGE_FOR_RATE = (
    "Request too large for m on tokens per min (TPM): Limit 12000, Requested 14137."
)


@every
async def test_a_request_above_the_whole_rate_limit_is_sent_once_more_under_it(
    run: Run, good: Any
) -> None:
    """The limit is the customer's, not the model's: it holds for some minutes, and is no window."""
    history = conversation(prose(30_000), prose(30_000), "short")
    provider, recovery = Provider(Overflow(TOO_LARGE_FOR_RATE), good), Recovery()
    assert await run(recovery, provider, history) == good
    assert len(provider.sizes) == 2
    assert count_tokens(provider.messages, "openai_chat") < 12_000
    provider.answers = [good, good]
    longer = [*history, *conversation(prose(30_000), prose(30_000), "short")[2:]]
    assert await run(recovery, provider, longer) == good
    assert len(provider.sizes) == 3, "the ceiling is known before the request is sent"
    assert count_tokens(provider.messages, "openai_chat") < 12_000
    assert not list(learned_windows)
    assert await run(Recovery(), provider, longer) == good
    assert provider.messages == longer


def test_a_window_far_below_the_known_one_is_learned_when_it_is_stated_again() -> None:
    """Such a number is mostly of something else: it would shrink every later request."""
    refusal = "This model's maximum context length is 9000 tokens, and the prompt has 18000."
    for stated in ([], [9_000]):
        provider, events = Provider(Overflow(refusal), {"ok": 1}), Events()
        Recovery(on_event=events).call(provider, Request(HISTORY, model="gpt-4o"))
        assert [learned.limit for learned in learned_windows] == stated
        expected = "window" if stated else "doubted"
        assert [event["learned"] for event in events.of("limit.learned")] == [expected]


START: dict[str, Any] = {"type": "message_start", "message": {"content": []}}
BLOCK = {"type": "content_block_start", "content_block": {"type": "text", "text": ""}}
FULL = {"type": "message_delta", "delta": {"stop_reason": "model_context_window_exceeded"}}
OVERLOADED = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}


@streamed
@pytest.mark.parametrize(
    ("first", "second", "shown"),
    [
        ([], None, []),
        ([OVERFLOW_EVENT], [DELTA, DONE], [DELTA, DONE]),
        ([CREATED, OVERFLOW_EVENT], [CREATED, DELTA, DONE], [CREATED, CREATED, DELTA, DONE]),
        ([CREATED, Overflow()], [CREATED, DELTA, DONE], [CREATED, CREATED, DELTA, DONE]),
        ([CREATED, DELTA, OVERFLOW_EVENT], None, [CREATED, DELTA, OVERFLOW_EVENT]),
        ([CREATED, OVERLOADED], None, [CREATED, OVERLOADED]),
        ([START, FULL], [START, BLOCK], [START, START, BLOCK]),
        ([START, BLOCK, FULL], None, [START, BLOCK, FULL]),
    ],
)
async def test_a_stream_is_retried_for_an_overflow_before_its_first_output_alone(
    run: Run, first: list[Any], second: list[Any] | None, shown: list[Any]
) -> None:
    provider = Provider(first, second or [DELTA])
    assert await run(Recovery(), provider, HISTORY) == shown
    assert len(provider.sizes) == provider.closed == (2 if second else 1)
    assert sorted(provider.sizes, reverse=True) == provider.sizes


async def test_a_stream_is_passed_on_chunk_by_chunk_and_closed_where_it_is_left() -> None:
    chunks: list[Any] = [CREATED, DELTA, dict(DELTA), DONE]
    provider, later = Provider(chunks), Provider(chunks)
    stream, waiting = Recovery().stream(provider, HISTORY), Recovery().astream(later.acall, HISTORY)
    for number, chunk in enumerate(chunks[:3], start=1):
        assert next(stream) is await anext(waiting) is chunk
        assert provider.pulled == later.pulled == number  # not one chunk ahead
    stream.close()
    await waiting.aclose()
    assert (provider.closed, later.closed) == (1, 1)
    assert (provider.pulled, later.pulled) == (3, 3)


@every
@pytest.mark.parametrize("second", [Overflow, ValueError])
async def test_an_error_of_the_retry_is_raised_as_not_retryable_with_the_report(
    run: Run, good: Any, second: type[Exception]
) -> None:
    error = second("the prompt is too long")
    provider, events = Provider(Overflow(), error, good), Events()
    recovery = Recovery(on_event=events)
    with pytest.raises(second) as caught:
        await run(recovery, provider, HISTORY)
    assert caught.value is error
    assert len(provider.sizes) == 2
    assert recovery.report
    assert recovery.report.smaller
    assert overflow_report(error) is recovery.report
    assert error.retryable is False  # type: ignore[attr-defined]
    assert events.outcomes == ["retry_failed"]


WAIT = "Rate limit on tokens per min (TPM): Limit 50000, Used 47949, Requested 3006."


@every
@pytest.mark.parametrize(
    ("error", "history", "policy", "outcomes"),
    [
        pytest.param(ValueError("on fire"), HISTORY, Policy(), [], id="another error"),
        pytest.param(Overflow(WAIT), HISTORY, Policy(), [], id="a rate limit"),
        pytest.param(Overflow(), HISTORY, Policy(overflow_fallback=False), [], id="turned off"),
        pytest.param(
            Overflow(), conversation("a", "b"), Policy(), ["not_smaller"], id="cannot shrink"
        ),
    ],
)
async def test_an_error_that_no_smaller_request_cures_is_raised_after_one_request(
    run: Run, good: Any, error: Exception, history: list[Any], policy: Policy, outcomes: list[str]
) -> None:
    provider, events = Provider(error, good), Events()
    with pytest.raises(type(error)) as caught:
        await run(Recovery(policy, events), provider, history)
    assert caught.value is error
    assert len(provider.sizes) == 1
    assert events.outcomes == outcomes


@every
async def test_an_offload_that_fails_is_reported_and_ends_no_recovery(run: Run, good: Any) -> None:
    class Broken:
        def keep(self, text: str, name: str) -> str:  # noqa: ARG002 - the protocol names them
            raise OSError("disk full")

    provider, events = Provider(Overflow(), good), Events()
    assert await run(Recovery(Policy(offload=Broken()), events), provider, HISTORY) == good
    assert len(provider.sizes) == 2
    assert "gone from the context and not kept" in str(provider.messages)
    assert {failure["error"] for failure in events.of("offload.failed")} == {"OSError"}
    assert events.outcomes == ["success"]


@every
async def test_failure_of_the_rewrite_raises_the_providers_error_from_it(
    run: Run, good: Any
) -> None:
    provider, events = Provider(Overflow(), good), Events()
    with pytest.raises(Overflow) as caught:
        await run(Recovery(on_event=events, state=State(memo=FullMemo())), provider, HISTORY)
    assert isinstance(caught.value.__cause__, OSError)
    assert len(provider.sizes) == 1
    assert events.outcomes == ["compression_failed"]


def test_the_prefix_of_a_recovery_stays_byte_for_byte_in_a_retry() -> None:
    provider = Provider(Overflow(), {"ok": 1})
    assert Recovery(prefix=4).call(provider, HISTORY) == {"ok": 1}
    assert provider.messages[:4] == HISTORY[:4]
    assert provider.messages[4:] != HISTORY[4:]


@every
async def test_a_conversation_without_an_overflow_stays_unchanged(run: Run, good: Any) -> None:
    provider, events = Provider(good), Events()
    assert await run(Recovery(on_event=events), provider, HISTORY) == good
    assert provider.sizes == [bytes_of(HISTORY)]
    assert not events


@pytest.mark.parametrize("committed", [True, False])
def test_an_overflow_that_an_adapter_hears_of_after_output_is_not_retried(
    *, committed: bool
) -> None:
    steps, overflow = Recovery().steps(HISTORY), Overflow()
    next(steps)
    outcome = Outcome(error=overflow, committed=committed)
    if not committed:
        assert bytes_of(steps.send(outcome).messages) < bytes_of(HISTORY)
        return
    with pytest.raises(StopIteration) as end:
        steps.send(outcome)
    assert end.value.value.error is overflow
    assert overflow_report(overflow) is None


@streamed
async def test_a_second_overflow_in_a_stream_reaches_the_reader_as_it_came(run: Run) -> None:
    provider = Provider([OVERFLOW_EVENT], [CREATED, OVERFLOW_EVENT], [DELTA])
    events = Events()
    recovery = Recovery(on_event=events)
    assert await run(recovery, provider, HISTORY) == [CREATED, OVERFLOW_EVENT]
    assert len(provider.sizes) == 2
    assert recovery.report
    assert recovery.report.smaller
    assert events.outcomes == ["retry_failed"]
    assert events[-1][1]["compression.trigger"] == "stream_event"


FIRST_OUTPUTS: list[Any] = [
    "text",
    {"choices": [{"delta": {"content": "Hi"}}]},
    {"choices": [{"delta": {"tool_calls": [{"index": 0, "function": {"name": "f"}}]}}]},
    {"choices": [{"delta": {"refusal": "no"}}]},
    {"choices": [{"text": "Hi"}]},
    {"type": "response.function_call_arguments.delta", "delta": "{}"},
    {"type": "content_block_delta", "delta": {"type": "input_json_delta", "partial_json": "{"}},
    {
        "type": "content_block_start",
        "content_block": {"type": "tool_use", "name": "now", "input": {}},
    },
    {"type": "content_block_start", "content_block": {"type": "thinking", "thinking": ""}},
    {"type": "response.output_item.added", "item": {"type": "function_call", "name": "f"}},
    {"type": "response.mcp_call.in_progress"},
    {"candidates": [{"content": {"parts": [{"functionCall": {"name": "f"}}]}}]},
]


@streamed
@pytest.mark.parametrize("output", FIRST_OUTPUTS, ids=repr)
async def test_no_event_is_held_back_or_retried_after_the_first_output(
    run: Run, output: Any
) -> None:
    provider = Provider([CREATED, output, Overflow()], [DELTA])
    stream = Recovery().stream(provider, HISTORY)
    assert [next(stream), next(stream)] == [CREATED, output]
    assert provider.pulled == 2
    provider = Provider([CREATED, output, Overflow()], [DELTA])
    with pytest.raises(Overflow):
        await run(Recovery(), provider, HISTORY)
    assert len(provider.sizes) == 1


NO_OUTPUTS: list[Any] = [
    {"choices": [{"delta": {"role": "assistant", "content": ""}}]},
    {"choices": []},
    {"type": "message_start", "message": {"content": []}},
    {"choices": [{"delta": {"reasoning_content": "hm"}}]},
    {"choices": [{"delta": {"reasoning": "hm"}}]},
    {"type": "response.in_progress"},
    {"type": "response.reasoning_summary_text.delta", "delta": "hm"},
    {"type": "response.output_item.added", "item": {"type": "reasoning"}},
    {"type": "response.web_search_call.searching"},
    {"type": "response.code_interpreter_call_code.delta", "delta": "1"},
    {"candidates": [{"content": {"parts": [{"text": "hm", "thought": True}]}}]},
    {"candidates": [{"content": {"role": "model"}}]},
    "",
    None,
    b"",
    7,
]


@streamed
@pytest.mark.parametrize("event", NO_OUTPUTS, ids=repr)
async def test_an_overflow_after_events_without_an_answer_is_still_cured(
    run: Run, event: Any
) -> None:
    """Lifecycle, reasoning and the provider's own tools; the retry's events follow."""
    provider = Provider([event, event, Overflow()], [event, DELTA, DONE])
    assert await run(Recovery(), provider, HISTORY) == [event, event, event, DELTA, DONE]
    assert len(provider.sizes) == 2


@whole
async def test_an_error_body_with_status_200_is_an_overflow_too(run: Run) -> None:
    body = {
        "error": {
            "message": "This endpoint's maximum context length is 128000 tokens.",
            "code": 400,
        },
        "choices": None,
    }
    provider = Provider(body, {"choices": [{"message": {"content": "Hi"}}]})
    assert await run(Recovery(), provider, HISTORY) == {"choices": [{"message": {"content": "Hi"}}]}


@whole
async def test_an_answer_that_ended_before_it_began_is_asked_for_again_with_less(run: Run) -> None:
    """LM Studio and others answer so when the prompt fills the window."""
    empty: dict[str, Any] = {"choices": [{"message": {"content": ""}, "finish_reason": "length"}]}
    empty |= {"usage": {"prompt_tokens": 4_096, "completion_tokens": 0}}
    provider, events = Provider(empty, {"ok": 1}), Events()
    assert await run(Recovery(on_event=events), provider, HISTORY) == {"ok": 1}
    assert provider.sizes[1] < provider.sizes[0]
    assert [name for name, _ in events] == ["prompt.truncated", "compression"]


def test_an_output_dominant_overflow_is_retried_with_less_output_and_the_same_messages() -> None:
    words = (
        "maximum context length is 8192 tokens. However, you requested 8292 tokens "
        "(158 in the messages, 8134 in the completion)"
    )
    provider = Provider(Overflow(words), {"ok": 1})
    assert Recovery().call(provider, Request(HISTORY, max_output=8134)) == {"ok": 1}
    assert provider.sizes[0] == provider.sizes[1]
    assert provider.options == {"max_output": 8192 - 158 - 81}


@pytest.mark.parametrize(("mode", "stays"), [("tiered", True), ("legacy", False)])
def test_stubs_stay_where_they_are_in_the_next_request(mode: Any, stays: bool) -> None:
    provider = Provider(Overflow(), {"ok": 1}, {"ok": 2})
    recovery = Recovery(Policy(offload=Kept(), compaction_mode=mode))
    recovery.call(provider, HISTORY)
    more = [{"role": "assistant", "content": "Hi"}, {"role": "user", "content": "go on"}]
    recovery.call(provider, [*HISTORY, *more])
    assert (provider.sizes[2] < provider.sizes[0]) is stays


@every
async def test_a_request_that_cannot_be_compacted_is_sent_as_it_is(
    run: Run, good: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any, **__: Any) -> Any:
        raise OSError("out of memory")

    monkeypatch.setattr(tokens, "count", broken)
    provider = Provider(good)
    assert await run(Recovery(Policy(window=4_000)), provider, HISTORY) == good
    assert provider.sizes == [bytes_of(HISTORY)]


ODD_MESSAGES: list[Any] = [
    [],
    [None],
    ["text", 7],
    [{}],
    [{"role": "tool"}],
    ({"role": "user", "content": "x"},),
    [{"content": b"x"}],
]


@every
@pytest.mark.parametrize("messages", ODD_MESSAGES, ids=repr)
@pytest.mark.parametrize("window", [None, 1])
async def test_odd_messages_are_sent_as_they_are_and_the_providers_error_is_the_callers(
    run: Run, good: Any, messages: Any, window: int | None
) -> None:
    assert await run(Recovery(Policy(window=window)), Provider(good), messages) == good
    overflow = Overflow()
    provider = Provider(overflow, good)
    with pytest.raises(Overflow) as caught:
        await run(Recovery(Policy(window=window)), provider, messages)
    assert caught.value is overflow
    assert len(provider.sizes) == 1


def test_an_unknown_format_raises_the_providers_error_from_the_rewrites() -> None:
    no_format: Any = "no_format"
    assert Recovery(Policy(window=1)).call(Provider({"ok": 1}), Request(HISTORY, no_format)) == {
        "ok": 1
    }
    with pytest.raises(Overflow) as caught:
        Recovery().call(Provider(Overflow()), Request(HISTORY, no_format))
    assert isinstance(caught.value.__cause__, BadArgument)
    assert "format is 'no_format'. It must be one of " in str(caught.value.__cause__)
    assert "openai_chat, openai_responses, anthropic, gemini" in str(caught.value.__cause__)


@pytest.mark.parametrize(
    "error",
    [StopIteration("spent"), StopAsyncIteration("spent"), ExceptionGroup("all", [ValueError("x")])],
)
def test_an_exception_of_send_is_raised_without_a_cause_of_ours(error: Exception) -> None:
    with pytest.raises(type(error)) as caught:
        Recovery().call(Provider(error), HISTORY)
    assert caught.value is error
    assert caught.value.__cause__ is caught.value.__context__ is None


def test_messages_that_a_retry_merged_stay_merged_in_the_next_request() -> None:
    """Also where the refused request had stubs: a merge is known by the messages as they were."""
    old = [
        {"role": role, "content": f"{prose(300, role)} {number}"}
        for number in range(30)
        for role in ("user", "assistant")
    ]
    history = [*conversation(prose(40_000), "short"), *old, *conversation("ok")[2:]]
    sent: list[Any] = []
    refused = Overflow("prompt is too long")
    answers: list[Any] = [refused, "ok", refused, "ok", refused, "ok", "ok"]

    def send(messages: Any) -> Any:
        sent.append(messages)
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    recovery = Recovery(Policy(offload=Kept()), state=State())
    for _ in range(4):
        recovery.call(send, history)
    assert len(sent) == 7
    assert len(sent[5]) < len(sent[0])
    assert sent[6] == sent[5]


# --- Events: each documented one is emitted with its documented attributes, and none has content.

PAGE = Path(__file__).parents[2] / "docs" / "client.md"
CANARY = "canary"


def documented() -> dict[str, set[str]]:
    """Return the attributes of each event, as the table in the page has them."""
    table = PAGE.read_text(encoding="utf-8").partition("## Events")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `([a-z._]+)` \| (.+) \|$", table, re.MULTILINE)
    return {event: set(re.findall(r"`([a-z._0-9]+)`", attributes)) for event, attributes in rows}


@pytest.fixture(scope="module")
def told() -> Events:
    """Emit everything: a retry, a churn of compactions with stages and skips, stubs and prompts."""
    events = Events()
    policy = Policy(offload=Kept())
    answers: list[Any] = [Overflow(), {"ok": 1}]

    def send(_messages: Any) -> Any:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    Recovery(policy, events, provider="anthropic").call(
        send, conversation(prose(9_000, CANARY), "short", name="fetch")
    )

    class Broken:
        def keep(self, text: str, name: str) -> str:  # noqa: ARG002 - the protocol names them
            raise OSError(CANARY)

    answers[:] = [Overflow(), {"ok": 1, "usage": {"prompt_tokens": 1}}]
    Recovery(Policy(offload=Broken()), events).call(
        send, conversation(prose(90_000, CANARY), "short", name="fetch")
    )
    shown = medium("openai_chat", "image/png", "aGVsbG8=")
    pictures = [{"role": "user", "content": [shown]} for _ in range(4)]
    answers[:] = [Overflow("too many images: 6 > 3"), {"ok": 1}]
    Recovery(on_event=events).call(send, [{"role": "user", "content": "go"}, *pictures])
    answers[:] = [{"ok": 1, "usage": {"prompt_tokens": 1}}]
    Recovery(on_event=events).call(send, conversation(prose(90_000, CANARY), "short"))
    history = [
        *working(*[prose(4_000, f"{CANARY}{n}") for n in range(4)]),
        said("user", prose(2_000, CANARY)),
        said("user", "go"),
    ]
    history[2]["tool_calls"][0]["function"]["arguments"] = (
        f'{{"content": "{prose(3_000, CANARY).replace(chr(10), " ")}"}}'
    )
    history[4]["tool_calls"][0]["function"]["arguments"] = str(
        {f"{CANARY}{n}": n for n in range(100)}
    ).replace("'", '"')
    state = State()
    for _ in range(policy.churn_warning + 1):
        compact(history, "openai_chat", 1_500, state, policy=policy, on_event=events)
    stub_oversized(
        prose(9_000, CANARY),
        ToolCall("1", "fetch", {"q": CANARY}),
        100,
        policy=policy,
        on_event=events,
    )
    extractor_prompt(history, "openai_chat", 1_000, State(), policy=policy, on_event=events)
    extractor_prompt(history, "openai_chat", 1_000, State(), 1, policy=policy, on_event=events)
    return events


def test_each_documented_event_comes_with_its_attributes(told: Events) -> None:
    attributes: defaultdict[str, set[str]] = defaultdict(set)
    for name, event in told:
        attributes[name] |= set(event)
    assert set(attributes) == set(documented())
    for name, names in documented().items():
        assert names <= attributes[name], name
        counted = attributes[name] - names
        assert all(one.startswith(("applied.stage_", "skipped.")) for one in counted), name


def test_no_event_tells_content(told: Events) -> None:
    assert CANARY not in str(told)


def test_outcomes_tiers_and_reasons_are_those_of_the_page(told: Events) -> None:
    compactions = told.of("compaction")
    reasons = {
        reason
        for event in compactions
        for reason in str(event["compaction_skipped_reason"]).split(",")
        if reason
    }
    assert reasons <= {"cache_hit", "policy_preserve", "no_pressure", "no_gain"}
    assert {event["compaction_tier"] for event in compactions} <= {"normal", "pressure", "critical"}
    assert {event["compaction_stage"] for event in compactions} <= set(range(5))


def test_pictures_by_url_go_though_the_text_in_their_place_has_more_bytes() -> None:
    """A picture at an address costs tokens and few bytes: its size is that of the limit's unit."""
    picture = {"type": "image_url", "image_url": {"url": "https://a.example/1.png"}}
    shown = [{"role": "user", "content": [picture]} for _ in range(3)]
    history = [{"role": "user", "content": "Look."}, *shown, {"role": "user", "content": "And?"}]
    provider, events = Provider(Overflow("prompt is too long"), {"ok": 1}), Events()
    assert Recovery(on_event=events).call(provider, history) == {"ok": 1}
    first, second = provider.sizes
    assert second > first
    assert str(provider.messages).count("a.example") < len(shown)
    assert events.outcomes == ["success"]


def test_a_body_refused_for_its_bytes_is_not_sent_with_more() -> None:
    picture = {"type": "image_url", "image_url": {"url": "https://a.example/1.png"}}
    shown = [{"role": "user", "content": [picture]} for _ in range(3)]
    history = [{"role": "user", "content": "Look."}, *shown, {"role": "user", "content": "And?"}]
    provider, events = Provider(Overflow("Request body too large"), {"ok": 1}), Events()
    with pytest.raises(Overflow) as caught:
        Recovery(on_event=events).call(provider, history)
    assert len(provider.sizes) == 1
    assert events.outcomes == ["not_smaller"]
    assert overflow_report(caught.value)
