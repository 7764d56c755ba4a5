"""Each SDK with its adapter, and the ways to call it, against a provider at a URL.

An SDK that is not installed is skipped aloud. scripts/ci adapters makes environments that have it,
and names in ADAPTERS_UNDER_TEST those that are tested there.
"""

import importlib
import importlib.util
import os
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from functools import partial
from inspect import isawaitable
from typing import Any

import pytest

from fetchstash.client import Recovery
from tests.client.conversations import Turn, render
from tests.client.fakes import prose

HISTORY = [
    Turn("user", "the task"),
    Turn("tools", "", (("fetch", "a", prose(9_000)),)),
    Turn("tools", "", (("fetch", "b", "short"),)),
    Turn("user", "Go on."),
]

ONLY = [name for name in os.environ.get("ADAPTERS_UNDER_TEST", "").split(",") if name]
"""The SDKs to test, where others are installed with them; all if there are none."""

module = importlib.import_module


def adapter(name: str) -> Any:
    return module(f"fetchstash.client.adapters.{name}")


def installed(sdk: str) -> bool:
    if ONLY and sdk.replace(".", "_") not in ONLY:
        return False
    try:
        return importlib.util.find_spec(sdk) is not None
    except ModuleNotFoundError:
        return False


def needs(sdk: str) -> pytest.MarkDecorator:
    reason = f"{sdk} is not installed here: scripts/ci adapters runs this where it is"
    return pytest.mark.skipif(not installed(sdk), reason=reason)


def openai(
    url: str,
    recovery: Recovery | None = None,
    client: str = "OpenAI",
    key: str = "k",
    **options: Any,
) -> Any:
    made = getattr(module("openai"), client)(base_url=f"{url}/v1", api_key=key, max_retries=0)
    return adapter("openai").recovering(made, recovery, **options)


def anthropic(
    url: str, recovery: Recovery | None = None, client: str = "Anthropic", key: str = "k"
) -> Any:
    middleware = [adapter("anthropic").recovery_middleware(recovery)]
    # The SDK's own retries are left on: it must not use them for an overflow.
    sdk = getattr(module("anthropic"), client)
    return sdk(base_url=url, api_key=key, max_retries=2, middleware=middleware)


def google(url: str, recovery: Recovery | None = None, key: str = "k") -> Any:
    genai = module("google.genai")
    options = genai.types.HttpOptions(base_url=url)
    return adapter("google_genai").recovering(
        genai.Client(api_key=key, http_options=options), recovery
    )


def langchain_agent(
    url: str, recovery: Recovery | None = None, tools: Any = (), model: Any = None, **options: Any
) -> Any:
    model = model or chat_openai(url)
    middleware = [adapter("langchain").recovery_middleware(recovery)]
    agents = module("langchain.agents")
    return agents.create_agent(model, list(tools), middleware=middleware, **options)


def chat_openai(url: str, *, key: str = "k", **options: Any) -> Any:
    chat = module("langchain_openai").ChatOpenAI
    return chat(model="m", base_url=f"{url}/v1", api_key=key, max_retries=0, **options)


def langchain_messages(history: list[Turn]) -> Any:
    convert = module("langchain_core.messages").convert_to_messages
    return {"messages": convert(render(history, "openai_chat"))}


def pydantic_model(url: str, key: str = "k") -> Any:
    client = module("openai").AsyncOpenAI(base_url=f"{url}/v1", api_key=key, max_retries=0)
    provider = module("pydantic_ai.providers.openai").OpenAIProvider(openai_client=client)
    return module("pydantic_ai.models.openai").OpenAIChatModel("m", provider=provider)


def pydantic_agent(
    url: str, recovery: Recovery | None = None, key: str = "k", **options: Any
) -> Any:
    capability = adapter("pydantic_ai").RecoveryCapability(recovery)
    agent = module("pydantic_ai").Agent
    return agent(pydantic_model(url, key), capabilities=[capability], **options)


def pydantic_history(history: list[Turn]) -> list[Any]:
    """Return the messages before the last turn, which is what the agent is asked."""
    m = module("pydantic_ai.messages")
    messages: list[Any] = []
    for number, turn in enumerate(history[:-1]):
        if turn.kind == "user":
            messages.append(m.ModelRequest(parts=[m.UserPromptPart(turn.text)]))
            continue
        calls, results = list[Any](), list[Any]()
        for index, (name, what, result) in enumerate(turn.calls):
            calls.append(m.ToolCallPart(name, {"what": what}, f"c{number}{index}"))
            results.append(m.ToolReturnPart(name, result, f"c{number}{index}"))
        messages += [m.ModelResponse(parts=calls), m.ModelRequest(parts=results)]
    return messages


@dataclass(frozen=True)
class Case:
    """One way to call one SDK.

    ``pieces(url, history, recovery)`` yields the text of the answer, of a stream for each event,
    and raises what the SDK raises. ``first`` is how many events an SDK reads before it passes the
    first on: 0 where it reads all.
    """

    sdk: str
    way: str
    pieces: Callable[[str, list[Turn], Recovery], AsyncIterator[str]]
    streams: bool = False
    first: int = 0

    async def run(self, url: str, history: list[Turn], recovery: Recovery) -> str:
        return "".join([piece async for piece in self.pieces(url, history, recovery)])


async def _each(answer: Any, *, streams: bool) -> AsyncIterator[Any]:
    """Yield an answer, or the events of a stream, of a synchronous or an asynchronous client."""
    awaited = isawaitable(answer)
    answer = await answer if awaited else answer
    if not streams:
        yield answer
    elif awaited or not hasattr(answer, "__iter__"):
        async for event in answer:
            yield event
    else:
        for event in answer:
            yield event


def _chat_text(part: Any, *, streams: bool) -> str:
    choice = part.choices[0]
    return str((choice.delta if streams else choice.message).content or "")


async def _openai_chat(
    url: str, history: list[Turn], recovery: Recovery, name: str, *, streams: bool
) -> AsyncIterator[str]:
    create = openai(url, recovery, name).chat.completions.create
    answer = create(model="m", messages=render(history, "openai_chat"), stream=streams)
    async for part in _each(answer, streams=streams):
        yield _chat_text(part, streams=streams)


async def _openai_responses(
    url: str, history: list[Turn], recovery: Recovery, name: str, *, streams: bool
) -> AsyncIterator[str]:
    create = openai(url, recovery, name).responses.create
    answer = create(model="m", input=render(history, "openai_responses"), stream=streams)
    async for part in _each(answer, streams=streams):
        if streams and part.type == "response.failed":
            # A Responses stream raises nothing: whoever reads it sees the failure as an event.
            raise RuntimeError(part.response.error.code)
        if streams:
            yield part.delta if part.type == "response.output_text.delta" else ""
        else:
            yield part.output_text


async def _anthropic(
    url: str, history: list[Turn], recovery: Recovery, name: str, *, streams: bool
) -> AsyncIterator[str]:
    create = anthropic(url, recovery, name).messages.create
    messages = render(history, "anthropic")
    answer = create(model="m", max_tokens=9, messages=messages, stream=streams)
    async for part in _each(answer, streams=streams):
        if streams:
            yield part.delta.text if part.type == "content_block_delta" else ""
        else:
            yield part.content[0].text


async def _google(
    url: str, history: list[Turn], recovery: Recovery, name: str, *, streams: bool
) -> AsyncIterator[str]:
    made = google(url, recovery)
    models = made.aio.models if name == "aio" else made.models
    create = models.generate_content_stream if streams else models.generate_content
    async for part in _each(create(model="m", contents=render(history, "gemini")), streams=streams):
        yield part.text or ""


async def _litellm(
    url: str, history: list[Turn], recovery: Recovery, name: str, *, streams: bool
) -> AsyncIterator[str]:
    complete = getattr(adapter("litellm"), name)(recovery)
    options = {"api_base": f"{url}/v1", "api_key": "k", "max_retries": 0, "stream": streams}
    messages = render(history, "openai_chat")
    answer = complete(model="openai/m", messages=messages, **options)
    async for part in _each(answer, streams=streams):
        yield _chat_text(part, streams=streams)


async def _langchain(
    url: str, history: list[Turn], recovery: Recovery, name: str, *, streams: bool
) -> AsyncIterator[str]:
    options = {"stream_mode": "messages"} if streams else {}
    call = getattr(langchain_agent(url, recovery), name)
    async for part in _each(call(langchain_messages(history), **options), streams=streams):
        yield str(part[0].content if streams else part["messages"][-1].content)


async def langchain_events(url: str, history: list[Turn], recovery: Recovery) -> AsyncIterator[str]:
    messages = langchain_messages(history)
    async for event in langchain_agent(url, recovery).astream_events(messages, version="v2"):
        if event["event"] == "on_chat_model_stream":
            yield event["data"]["chunk"].content


async def _pydantic_ai(
    url: str, history: list[Turn], recovery: Recovery, name: str, *, streams: bool
) -> AsyncIterator[str]:
    run = getattr(pydantic_agent(url, recovery), name)
    asked = run(history[-1].text, message_history=pydantic_history(history))
    if not streams:
        yield str((await asked).output)
        return
    async with asked as stream:
        async for text in stream.stream_text(delta=True, debounce_by=None):
            yield text


def _both(sdk: str, way: str, run: Any, names: tuple[str, ...], first: int) -> list[Case]:
    """Return the cases of clients, or of methods, of this name: whole, and then streamed."""
    return [
        Case(sdk, f"{way} {name}{' stream' if streams else ''}", case, streams, first * streams)
        for streams in (False, True)
        for name in names
        for case in [partial(run, name=name, streams=streams)]
    ]


CASES = [
    *_both("openai", "chat", _openai_chat, ("OpenAI", "AsyncOpenAI"), 1),
    *_both("openai", "responses", _openai_responses, ("OpenAI", "AsyncOpenAI"), 1),
    *_both("anthropic", "messages", _anthropic, ("Anthropic", "AsyncAnthropic"), 1),
    *_both("google.genai", "generate", _google, ("client", "aio"), 1),
    *_both("litellm", "completion", _litellm, ("completion", "acompletion"), 2),
    Case("langchain", "invoke", partial(_langchain, name="invoke", streams=False)),
    Case("langchain", "ainvoke", partial(_langchain, name="ainvoke", streams=False)),
    # LangGraph's synchronous stream waits for the whole answer by itself, without any middleware.
    Case("langchain", "stream", partial(_langchain, name="stream", streams=True), streams=True),
    Case("langchain", "astream", partial(_langchain, name="astream", streams=True), True, 2),
    Case("langchain", "events", langchain_events, streams=True),
    Case("pydantic_ai", "run", partial(_pydantic_ai, name="run", streams=False)),
    Case(
        "pydantic_ai", "run stream", partial(_pydantic_ai, name="run_stream", streams=True), True, 2
    ),
]


def marked(cases: list[Case]) -> list[Any]:
    return [
        pytest.param(one, marks=needs(one.sdk), id=f"{one.sdk} {one.way}".replace(" ", "-"))
        for one in cases
    ]


def of_sdk(sdk: str, *, streams: bool = False) -> list[Any]:
    """Return the ways to call an SDK, all or those that stream."""
    return marked([one for one in CASES if one.sdk == sdk and (one.streams or not streams)])
