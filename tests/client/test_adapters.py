"""Each adapter against its real SDK and a provider on loopback.

An SDK that is not installed is skipped aloud. scripts/ci adapters makes one environment for each
SDK (they do not all resolve together) and runs this file in it.
"""

import importlib
import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from fetchstash.client import (
    CompactionConfig,
    HistoryCompactor,
    Policy,
    Recovery,
    State,
    learned_windows,
    overflow_report,
)
from tests.client import loopback
from tests.client.conversations import Turn, render
from tests.client.fakes import FullMemo, prose
from tests.client.loopback import OVERFLOW, Loopback

ROOT = Path(__file__).parents[2]
HISTORY = [
    Turn("user", "the task"),
    Turn("tools", "", (("fetch", "a", prose(9_000)),)),
    Turn("tools", "", (("fetch", "b", "short"),)),
    Turn("user", "Go on."),
]
SMALL = [Turn("user", "the task"), Turn("user", "Go on.")]


@dataclass(frozen=True)
class Case:
    """One way to call one SDK.

    ``run(url, history, recovery)`` returns the text of the answer, and raises what the SDK raises.
    """

    sdk: str
    way: str
    run: Callable[[str, list[Turn], Recovery], Awaitable[str]]
    streams: bool = False


def _openai(client: str, url: str, recovery: Recovery) -> Any:
    sdk, adapter = (
        importlib.import_module("openai"),
        importlib.import_module("fetchstash.client.adapters.openai"),
    )
    return adapter.recovering(
        getattr(sdk, client)(base_url=f"{url}/v1", api_key="k", max_retries=0), recovery
    )


async def _chat(url: str, history: list[Turn], recovery: Recovery) -> str:
    with _openai("OpenAI", url, recovery) as client:
        answer = client.chat.completions.create(model="m", messages=render(history, "openai_chat"))
    return str(answer.choices[0].message.content)


async def _achat(url: str, history: list[Turn], recovery: Recovery) -> str:
    async with _openai("AsyncOpenAI", url, recovery) as client:
        answer = await client.chat.completions.create(
            model="m", messages=render(history, "openai_chat")
        )
    return str(answer.choices[0].message.content)


async def _chat_stream(url: str, history: list[Turn], recovery: Recovery) -> str:
    with (
        _openai("OpenAI", url, recovery) as client,
        client.chat.completions.create(
            model="m", messages=render(history, "openai_chat"), stream=True
        ) as stream,
    ):
        return "".join(chunk.choices[0].delta.content or "" for chunk in stream)


async def _achat_stream(url: str, history: list[Turn], recovery: Recovery) -> str:
    async with _openai("AsyncOpenAI", url, recovery) as client:
        stream = await client.chat.completions.create(
            model="m", messages=render(history, "openai_chat"), stream=True
        )
        return "".join([chunk.choices[0].delta.content or "" async for chunk in stream])


async def _responses(url: str, history: list[Turn], recovery: Recovery) -> str:
    with _openai("OpenAI", url, recovery) as client:
        return str(
            client.responses.create(
                model="m", input=render(history, "openai_responses")
            ).output_text
        )


async def _aresponses(url: str, history: list[Turn], recovery: Recovery) -> str:
    async with _openai("AsyncOpenAI", url, recovery) as client:
        return str(
            (
                await client.responses.create(model="m", input=render(history, "openai_responses"))
            ).output_text
        )


async def _responses_stream(url: str, history: list[Turn], recovery: Recovery) -> str:
    with _openai("OpenAI", url, recovery) as client:
        events = list(
            client.responses.create(
                model="m", input=render(history, "openai_responses"), stream=True
            )
        )
    _raise_failed(events)
    return "".join(event.delta for event in events if event.type == "response.output_text.delta")


async def _aresponses_stream(url: str, history: list[Turn], recovery: Recovery) -> str:
    async with _openai("AsyncOpenAI", url, recovery) as client:
        stream = await client.responses.create(
            model="m", input=render(history, "openai_responses"), stream=True
        )
        events = [event async for event in stream]
    _raise_failed(events)
    return "".join(event.delta for event in events if event.type == "response.output_text.delta")


def _raise_failed(events: list[Any]) -> None:
    """A Responses stream raises nothing: whoever reads it sees the failure as an event."""
    for event in events:
        if event.type == "response.failed":
            raise RuntimeError(event.response.error.code)


def _anthropic_client(client: str, url: str, recovery: Recovery) -> Any:
    sdk, adapter = (
        importlib.import_module("anthropic"),
        importlib.import_module("fetchstash.client.adapters.anthropic"),
    )
    # The SDK's own retries are left on: it must not use them for an overflow.
    return getattr(sdk, client)(
        base_url=url, api_key="k", max_retries=2, middleware=[adapter.recovery_middleware(recovery)]
    )


async def _anthropic(url: str, history: list[Turn], recovery: Recovery) -> str:
    with _anthropic_client("Anthropic", url, recovery) as client:
        return str(
            client.messages.create(model="m", max_tokens=9, messages=render(history, "anthropic"))
            .content[0]
            .text
        )


async def _aanthropic(url: str, history: list[Turn], recovery: Recovery) -> str:
    async with _anthropic_client("AsyncAnthropic", url, recovery) as client:
        return str(
            (
                await client.messages.create(
                    model="m", max_tokens=9, messages=render(history, "anthropic")
                )
            )
            .content[0]
            .text
        )


async def _anthropic_stream(url: str, history: list[Turn], recovery: Recovery) -> str:
    with (
        _anthropic_client("Anthropic", url, recovery) as client,
        client.messages.stream(
            model="m", max_tokens=9, messages=render(history, "anthropic")
        ) as stream,
    ):
        return "".join(stream.text_stream)


async def _aanthropic_stream(url: str, history: list[Turn], recovery: Recovery) -> str:
    async with (
        _anthropic_client("AsyncAnthropic", url, recovery) as client,
        client.messages.stream(
            model="m", max_tokens=9, messages=render(history, "anthropic")
        ) as stream,
    ):
        return "".join([text async for text in stream.text_stream])


def _genai(url: str, recovery: Recovery) -> Any:
    genai = importlib.import_module("google.genai")
    adapter = importlib.import_module("fetchstash.client.adapters.google_genai")
    options = genai.types.HttpOptions(base_url=url)
    return adapter.recovering(genai.Client(api_key="k", http_options=options), recovery)


async def _gemini(url: str, history: list[Turn], recovery: Recovery) -> str:
    models = _genai(url, recovery).models
    return str(models.generate_content(model="m", contents=render(history, "gemini")).text)


async def _agemini(url: str, history: list[Turn], recovery: Recovery) -> str:
    models = _genai(url, recovery).aio.models
    answer = await models.generate_content(model="m", contents=render(history, "gemini"))
    return str(answer.text)


async def _gemini_stream(url: str, history: list[Turn], recovery: Recovery) -> str:
    models = _genai(url, recovery).models
    stream = models.generate_content_stream(model="m", contents=render(history, "gemini"))
    return "".join(chunk.text or "" for chunk in stream)


async def _agemini_stream(url: str, history: list[Turn], recovery: Recovery) -> str:
    models = _genai(url, recovery).aio.models
    stream = await models.generate_content_stream(model="m", contents=render(history, "gemini"))
    return "".join([chunk.text or "" async for chunk in stream])


def _litellm_options(url: str, history: list[Turn]) -> dict[str, Any]:
    return {
        "model": "openai/m",
        "messages": render(history, "openai_chat"),
        "api_base": f"{url}/v1",
        "api_key": "k",
        "max_retries": 0,
    }


async def _litellm(url: str, history: list[Turn], recovery: Recovery) -> str:
    adapter = importlib.import_module("fetchstash.client.adapters.litellm")
    return str(
        adapter.completion(recovery)(**_litellm_options(url, history)).choices[0].message.content
    )


async def _alitellm(url: str, history: list[Turn], recovery: Recovery) -> str:
    adapter = importlib.import_module("fetchstash.client.adapters.litellm")
    return str(
        (await adapter.acompletion(recovery)(**_litellm_options(url, history)))
        .choices[0]
        .message.content
    )


async def _litellm_stream(url: str, history: list[Turn], recovery: Recovery) -> str:
    adapter = importlib.import_module("fetchstash.client.adapters.litellm")
    stream = adapter.completion(recovery)(**_litellm_options(url, history), stream=True)
    return "".join(chunk.choices[0].delta.content or "" for chunk in stream)


async def _alitellm_stream(url: str, history: list[Turn], recovery: Recovery) -> str:
    adapter = importlib.import_module("fetchstash.client.adapters.litellm")
    stream = await adapter.acompletion(recovery)(**_litellm_options(url, history), stream=True)
    return "".join([chunk.choices[0].delta.content or "" async for chunk in stream])


def _langchain_agent(url: str, recovery: Recovery) -> Any:
    agents, openai = (
        importlib.import_module("langchain.agents"),
        importlib.import_module("langchain_openai"),
    )
    adapter = importlib.import_module("fetchstash.client.adapters.langchain")
    model = openai.ChatOpenAI(model="m", base_url=f"{url}/v1", api_key="k", max_retries=0)
    return agents.create_agent(model, [], middleware=[adapter.recovery_middleware(recovery)])


def _langchain_messages(history: list[Turn]) -> Any:
    return {
        "messages": importlib.import_module("langchain_core.messages").convert_to_messages(
            render(history, "openai_chat")
        )
    }


async def _langchain(url: str, history: list[Turn], recovery: Recovery) -> str:
    return str(
        _langchain_agent(url, recovery).invoke(_langchain_messages(history))["messages"][-1].content
    )


async def _alangchain(url: str, history: list[Turn], recovery: Recovery) -> str:
    return str(
        (await _langchain_agent(url, recovery).ainvoke(_langchain_messages(history)))["messages"][
            -1
        ].content
    )


async def _langchain_stream(url: str, history: list[Turn], recovery: Recovery) -> str:
    stream = _langchain_agent(url, recovery).stream(
        _langchain_messages(history), stream_mode="messages"
    )
    return "".join(chunk.content for chunk, _ in stream)


async def _alangchain_stream(url: str, history: list[Turn], recovery: Recovery) -> str:
    stream = _langchain_agent(url, recovery).astream(
        _langchain_messages(history), stream_mode="messages"
    )
    return "".join([chunk.content async for chunk, _ in stream])


def _pydantic_agent(url: str, recovery: Recovery) -> Any:
    ai, adapter = (
        importlib.import_module("pydantic_ai"),
        importlib.import_module("fetchstash.client.adapters.pydantic_ai"),
    )
    models, providers = (
        importlib.import_module("pydantic_ai.models.openai"),
        importlib.import_module("pydantic_ai.providers.openai"),
    )
    sdk = importlib.import_module("openai")
    client = sdk.AsyncOpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0)
    model = models.OpenAIChatModel("m", provider=providers.OpenAIProvider(openai_client=client))
    return ai.Agent(model, capabilities=[adapter.RecoveryCapability(recovery)])


def _pydantic_history(history: list[Turn]) -> list[Any]:
    m = importlib.import_module("pydantic_ai.messages")
    messages: list[Any] = []
    for number, turn in enumerate(history[:-1]):
        if turn.kind == "user":
            messages.append(m.ModelRequest(parts=[m.UserPromptPart(turn.text)]))
            continue
        names = [
            (name, {"what": what}, f"c{number}{n}", result)
            for n, (name, what, result) in enumerate(turn.calls)
        ]
        messages.append(
            m.ModelResponse(
                parts=[m.ToolCallPart(name, args, call) for name, args, call, _ in names]
            )
        )
        messages.append(
            m.ModelRequest(
                parts=[m.ToolReturnPart(name, result, call) for name, _, call, result in names]
            )
        )
    return messages


async def _pydantic(url: str, history: list[Turn], recovery: Recovery) -> str:
    answer = await _pydantic_agent(url, recovery).run(
        history[-1].text, message_history=_pydantic_history(history)
    )
    return str(answer.output)


async def _pydantic_stream(url: str, history: list[Turn], recovery: Recovery) -> str:
    async with _pydantic_agent(url, recovery).run_stream(
        history[-1].text, message_history=_pydantic_history(history)
    ) as stream:
        return str(await stream.get_output())


CASES = [
    Case("openai", "chat", _chat),
    Case("openai", "async chat", _achat),
    Case("openai", "chat stream", _chat_stream, streams=True),
    Case("openai", "async chat stream", _achat_stream, streams=True),
    Case("openai", "responses", _responses),
    Case("openai", "async responses", _aresponses),
    Case("openai", "responses stream", _responses_stream, streams=True),
    Case("openai", "async responses stream", _aresponses_stream, streams=True),
    Case("anthropic", "messages", _anthropic),
    Case("anthropic", "async messages", _aanthropic),
    Case("anthropic", "messages stream", _anthropic_stream, streams=True),
    Case("anthropic", "async messages stream", _aanthropic_stream, streams=True),
    Case("google.genai", "generate", _gemini),
    Case("google.genai", "async generate", _agemini),
    Case("google.genai", "generate stream", _gemini_stream, streams=True),
    Case("google.genai", "async generate stream", _agemini_stream, streams=True),
    Case("litellm", "completion", _litellm),
    Case("litellm", "async completion", _alitellm),
    Case("litellm", "completion stream", _litellm_stream, streams=True),
    Case("litellm", "async completion stream", _alitellm_stream, streams=True),
    Case("langchain", "agent", _langchain),
    Case("langchain", "async agent", _alangchain),
    Case("langchain", "agent stream", _langchain_stream, streams=True),
    Case("langchain", "async agent stream", _alangchain_stream, streams=True),
    Case("pydantic_ai", "run", _pydantic),
    Case("pydantic_ai", "run stream", _pydantic_stream, streams=True),
]

# Streams that raise nothing: whoever reads them sees the failure as an event, which carries no
# report.
FAILURES_ARE_EVENTS = {"responses stream", "async responses stream"}


ONLY = os.environ.get("ADAPTER_UNDER_TEST", "")
"""The one SDK to test, where others are installed with it."""


def installed(sdk: str) -> bool:
    if ONLY and sdk.replace(".", "_") != ONLY:
        return False
    try:
        return importlib.util.find_spec(sdk) is not None
    except ModuleNotFoundError:
        return False


def needs(sdk: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(
        not installed(sdk),
        reason=f"{sdk} is not installed here: scripts/ci adapters runs this where it is",
    )


def marked(cases: list[Case]) -> list[Any]:
    return [
        pytest.param(one, marks=needs(one.sdk), id=f"{one.sdk} {one.way}".replace(" ", "-"))
        for one in cases
    ]


@pytest.fixture(autouse=True)
def forget() -> None:
    """Forget the windows that other tests learned: a port may be given twice."""
    learned_windows.clear()


@pytest.fixture(params=marked(CASES))
def case(request: pytest.FixtureRequest) -> Case:
    one: Case = request.param
    return one


# The SDKs and what they bring in warn of their own affairs.
pytestmark = [pytest.mark.anyio, pytest.mark.filterwarnings("default")]


async def test_an_overflow_takes_exactly_two_requests_the_second_smaller_and_a_good_answer(
    case: Case,
) -> None:
    with Loopback("overflow", "good") as provider:
        assert await case.run(provider.url, HISTORY, Recovery()) == "Hello."
    assert len(provider.bodies) == 2
    assert provider.sizes[1] < provider.sizes[0]
    assert "overflow_fallback" in json.dumps(provider.bodies[1])


async def test_two_overflows_take_two_requests_and_end_in_the_sdks_own_error_with_the_report(
    case: Case,
) -> None:
    recovery = Recovery()
    with (
        Loopback("overflow") as provider,
        pytest.raises(Exception, match=r"context|too long|token") as caught,
    ):
        await case.run(provider.url, HISTORY, recovery)
    assert len(provider.bodies) == 2
    assert not type(caught.value).__module__.startswith("fetchstash")
    assert recovery.report
    assert recovery.report.smaller
    if case.way not in FAILURES_ARE_EVENTS:
        assert overflow_report(caught.value) is recovery.report
        assert getattr(caught.value, "retryable", None) is False


async def test_another_error_takes_one_request(case: Case) -> None:
    with (
        Loopback("other", "good") as provider,
        pytest.raises(Exception, match=r"(?i)temperature|unknown name|server_error"),
    ):
        await case.run(provider.url, HISTORY, Recovery())
    assert len(provider.bodies) == 1


async def test_a_request_that_cannot_shrink_is_sent_once(case: Case) -> None:
    with (
        Loopback("overflow", "good") as provider,
        pytest.raises(Exception, match=r"context|too long|token") as caught,
    ):
        await case.run(provider.url, SMALL, Recovery())
    assert len(provider.bodies) == 1
    if case.way not in FAILURES_ARE_EVENTS:
        assert overflow_report(caught.value)


async def test_an_overflow_after_output_takes_one_request(case: Case) -> None:
    if not case.streams:
        pytest.skip("nothing is output before the answer is whole")
    with (
        Loopback("late", "good") as provider,
        pytest.raises(Exception, match=r"(?i)context|too long|token|json|error"),
    ):
        await case.run(provider.url, HISTORY, Recovery())
    assert len(provider.bodies) == 1


async def test_a_request_without_an_overflow_stays_unchanged(case: Case) -> None:
    with Loopback("good") as provider:
        assert await case.run(provider.url, HISTORY, Recovery()) == "Hello."
    assert len(provider.bodies) == 1
    assert "overflow_fallback" not in json.dumps(provider.bodies[0])


@needs("anthropic")
@pytest.mark.parametrize("run", [_anthropic_stream, _aanthropic_stream])
async def test_an_overflow_that_anthropic_sends_inside_a_stream_is_cured_before_any_output(
    run: Any,
) -> None:
    with Loopback("early", "good") as provider:
        assert await run(provider.url, HISTORY, Recovery()) == "Hello."
    assert len(provider.bodies) == 2
    learned_windows.clear()
    with Loopback("early") as provider, pytest.raises(Exception, match="too long") as caught:
        await run(provider.url, HISTORY, Recovery())
    assert len(provider.bodies) == 2
    assert isinstance(caught.value, importlib.import_module("anthropic").APIStatusError)
    assert overflow_report(caught.value)


ANTHROPIC_CALLS = pytest.mark.parametrize(
    "run", [_anthropic, _aanthropic, _anthropic_stream, _aanthropic_stream]
)


@needs("anthropic")
@ANTHROPIC_CALLS
async def test_an_answer_that_anthropic_ends_for_the_window_is_retried_unless_it_began(
    run: Any,
) -> None:
    with Loopback("full", "good") as provider:
        assert await run(provider.url, HISTORY, Recovery()) == "Hello."
    assert len(provider.bodies) == 2
    assert provider.sizes[1] < provider.sizes[0]
    with Loopback("half", "good") as provider:
        assert await run(provider.url, HISTORY, Recovery()) == "Hello."
    assert len(provider.bodies) == 1


@needs("anthropic")
async def test_an_answer_that_stays_empty_for_the_window_is_returned_as_it_came() -> None:
    recovery = Recovery()
    with (
        Loopback("full") as provider,
        _anthropic_client("Anthropic", provider.url, recovery) as client,
    ):
        messages = render(HISTORY, "anthropic")
        answer = client.messages.create(model="m", max_tokens=9, messages=messages)
    assert answer.stop_reason == "model_context_window_exceeded"
    assert len(provider.bodies) == 2
    assert recovery.report


@needs("langchain")
async def test_an_answer_of_anthropics_that_ends_for_the_window_is_retried_in_langchain() -> None:
    agents = importlib.import_module("langchain.agents")
    adapter = importlib.import_module("fetchstash.client.adapters.langchain")
    chat = importlib.import_module("langchain_anthropic").ChatAnthropic
    with Loopback("full", "good") as provider:
        model = chat(model="m", base_url=provider.url, api_key="k", max_retries=0, max_tokens=9)
        agent = agents.create_agent(model, [], middleware=[adapter.recovery_middleware()])
        answer = agent.invoke(_langchain_messages(HISTORY))
    assert answer["messages"][-1].content == "Hello."
    assert len(provider.bodies) == 2


@needs("anthropic")
@ANTHROPIC_CALLS
async def test_anthropics_own_retries_never_send_an_overflow_again_whatever_the_answer_says(
    run: Any,
) -> None:
    """A proxy may send an overflow with a header that tells the SDK to retry."""
    with (
        Loopback("overflow", headers={"x-should-retry": "true"}) as provider,
        pytest.raises(Exception, match="too long") as caught,
    ):
        await run(provider.url, HISTORY, Recovery())
    assert len(provider.bodies) == 2
    assert isinstance(caught.value, importlib.import_module("anthropic").BadRequestError)
    assert overflow_report(caught.value)
    learned_windows.clear()
    with (
        Loopback("overflow", headers={"x-should-retry": "true"}) as provider,
        pytest.raises(Exception, match="too long"),
    ):
        await run(provider.url, SMALL, Recovery())
    assert len(provider.bodies) == 1


@needs("anthropic")
@pytest.mark.parametrize("run", [_anthropic, _aanthropic_stream])
async def test_anthropics_own_retries_are_left_for_every_other_error(run: Any) -> None:
    with Loopback("overloaded", "good", headers={"retry-after-ms": "1"}) as provider:
        assert await run(provider.url, HISTORY, Recovery()) == "Hello."
    assert len(provider.bodies) == 2
    assert provider.sizes[0] == provider.sizes[1]


@needs("anthropic")
async def test_failure_of_the_rewrite_is_the_cause_of_anthropics_error() -> None:
    with Loopback("overflow") as provider, pytest.raises(Exception, match="too long") as caught:
        await _anthropic(provider.url, HISTORY, Recovery(state=State(memo=FullMemo())))
    assert isinstance(caught.value.__cause__, OSError)
    assert len(provider.bodies) == 1


@needs("anthropic")
async def test_anthropics_count_of_tokens_is_that_of_the_messages_as_they_are() -> None:
    messages = render(HISTORY, "anthropic")
    with (
        Loopback("good") as provider,
        _anthropic_client("Anthropic", provider.url, Recovery(Policy(window=100))) as client,
    ):
        client.messages.count_tokens(model="m", messages=messages)
    assert provider.bodies[0]["messages"] == messages


# What speaks Chat Completions.
CHAT_STREAMS = [
    one
    for one in CASES
    if one.streams
    and "responses" not in one.way
    and one.sdk in {"openai", "litellm", "langchain", "pydantic_ai"}
]


@pytest.mark.parametrize("case", marked(CHAT_STREAMS))
async def test_an_overflow_that_a_chat_stream_says_after_its_role_is_cured_before_any_output(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Compatible servers may accept a request with status 200 and send the error as an event."""
    role = {"id": "c1", "created": 1, "model": "m", "object": "chat.completion.chunk"} | {
        "choices": [
            {"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}
        ]
    }
    error = {
        "error": {
            "message": OVERFLOW,
            "type": "invalid_request_error",
            "code": "context_length_exceeded",
        }
    }
    early = [f"data: {json.dumps(event)}\n\n" for event in (role, error)]
    answer: Any = vars(loopback)["_chat"]

    def chat(word: str, streams: bool) -> tuple[int, Any]:
        return (200, early) if word == "early" else answer(word, streams)

    monkeypatch.setattr(loopback, "_chat", chat)
    with Loopback("early", "good") as provider:
        assert await case.run(provider.url, HISTORY, Recovery()) == "Hello."
    assert len(provider.bodies) == 2
    assert provider.sizes[1] < provider.sizes[0]
    with Loopback("early") as provider, pytest.raises(Exception, match="context"):
        await case.run(provider.url, HISTORY, Recovery())
    assert len(provider.bodies) == 2


async def _langchain_events(url: str, history: list[Turn], recovery: Recovery) -> str:
    events = _langchain_agent(url, recovery).astream_events(
        _langchain_messages(history), version="v2"
    )
    return "".join(
        [e["data"]["chunk"].content async for e in events if e["event"] == "on_chat_model_stream"]
    )


@needs("langchain")
async def test_langchains_events_recover_from_an_overflow_and_show_the_good_answer_once() -> None:
    with Loopback("overflow", "good") as provider:
        assert await _langchain_events(provider.url, HISTORY, Recovery()) == "Hello."
    assert len(provider.bodies) == 2
    assert provider.sizes[1] < provider.sizes[0]
    with Loopback("overflow") as provider, pytest.raises(Exception, match="context") as caught:
        await _langchain_events(provider.url, HISTORY, Recovery())
    assert len(provider.bodies) == 2
    assert overflow_report(caught.value)
    with Loopback("late", "good") as provider, pytest.raises(Exception, match="context"):
        await _langchain_events(provider.url, HISTORY, Recovery())
    assert len(provider.bodies) == 1


@pytest.mark.parametrize(
    "run",
    [
        pytest.param(_langchain_stream, marks=needs("langchain")),
        pytest.param(_alangchain_stream, marks=needs("langchain")),
        pytest.param(_langchain_events, marks=needs("langchain")),
        pytest.param(_pydantic_stream, marks=needs("pydantic_ai")),
    ],
)
async def test_an_event_reports_a_retry_that_fails_after_output(run: Any) -> None:
    """The framework passes the tokens on; the adapter sees one answer or one error."""
    events: list[Any] = []
    recovery = Recovery(
        on_event=lambda _, attributes: events.append(attributes["compression.outcome"])
    )
    with (
        Loopback("overflow", "late") as provider,
        pytest.raises(Exception, match="context") as caught,
    ):
        await run(provider.url, HISTORY, recovery)
    assert len(provider.bodies) == 2
    assert events == ["retry_failed"]
    assert overflow_report(caught.value)


@needs("pydantic_ai")
async def test_a_pydantic_ai_agent_sends_a_history_that_was_compacted_first() -> None:
    ai, capabilities = (
        importlib.import_module("pydantic_ai"),
        importlib.import_module("pydantic_ai.capabilities"),
    )
    model = _pydantic_agent("http://127.0.0.1:1", Recovery()).model
    processor = HistoryCompactor(
        CompactionConfig(max_tokens=1_000, target_tokens=800)
    ).create_history_processor()
    with Loopback("good") as provider:
        model.client.base_url = f"{provider.url}/v1"
        agent = ai.Agent(model, capabilities=[capabilities.ProcessHistory(processor)])
        answer = await agent.run("Go on.", message_history=_pydantic_history(HISTORY))
    assert answer.output == "Hello."
    assert len(provider.bodies) == 1
    assert "overflow_fallback" in json.dumps(provider.bodies[0])
    assert provider.sizes[0] < 3_000


EXAMPLES = {
    "openai": "openai", "anthropic": "anthropic", "google.genai": "google_genai",
    "litellm": "litellm", "langchain": "langchain", "pydantic_ai": "pydantic_ai",
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("sdk", [pytest.param(sdk, marks=needs(sdk)) for sdk in EXAMPLES])
async def test_the_example_goes_on_to_its_answer_in_a_small_window(
    sdk: str, tmp_path: Path
) -> None:
    """Ten pages are four times what the window holds; the model calls once, and twice at once."""
    script = ["call", "calls"] * 3 + ["call", "good"]
    with Loopback(*script, limit=6_000) as provider:
        environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "PROVIDER_URL": provider.url,
            "TMPDIR": str(tmp_path),
        }
        program = [sys.executable, str(ROOT / "examples" / f"client_{EXAMPLES[sdk]}.py")]
        run = subprocess.run(
            program, env=environment, capture_output=True, text=True, timeout=120, check=False
        )
    assert run.returncode == 0, run.stderr
    assert run.stdout.endswith("Hello.")
    assert len(provider.bodies) == len(script) + provider.refused
    assert provider.refused <= 2
    assert "art_" in json.dumps(provider.bodies[-1])
