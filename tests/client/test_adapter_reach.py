"""What each adapter reaches in its real SDK: ways to call, objects, options, conversations."""

import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from operator import attrgetter
from typing import Any, cast

import pytest

from fetchstash.client import Policy, Recovery
from tests.client.conversations import render
from tests.client.fakes import conversation, prose, tokens_of
from tests.client.loopback import Loopback
from tests.client.sdks import (
    CASES,
    HISTORY,
    Case,
    adapter,
    chat_openai,
    google,
    langchain_agent,
    marked,
    module,
    needs,
    openai,
)

pytestmark = [pytest.mark.anyio, pytest.mark.filterwarnings("default")]


def cured(provider: Loopback) -> bool:
    """Return whether one request was refused, and a smaller one was sent."""
    return len(provider.sizes) == 2 and provider.sizes[1] < provider.sizes[0]


def chat(client: Any, kind: Callable[[Any], Any] = list, way: str = "create", **more: Any) -> Any:
    """Call Chat Completions of a client in some way."""
    call = attrgetter(way)(client.chat.completions)
    return call(model="m", messages=kind(render(HISTORY, "openai_chat")), **more)


def response(client: Any, way: str) -> Any:
    return getattr(client.responses, way)(model="m", input=render(HISTORY, "openai_responses"))


def streamed(stream: Any, final: str) -> Any:
    with stream as events:
        return getattr(events, final)()


OPENAI: dict[str, Callable[[Any], Any]] = {
    "with_options": lambda client: chat(client.with_options(timeout=9)),
    "copy": lambda client: chat(client.with_options(timeout=9).copy(timeout=8)),
    "raw": lambda client: chat(client, way="with_raw_response.create").parse(),
    "a tuple of messages": lambda client: chat(client, tuple),
    "an iterator of messages": lambda client: chat(client, iter),
    "stream": lambda client: streamed(chat(client, way="stream"), "get_final_completion"),
    "parse": lambda client: response(client, "parse"),
    "stream of responses": lambda client: streamed(
        response(client, "stream"), "get_final_response"
    ),
}


@needs("openai")
@pytest.mark.parametrize("way", OPENAI.values(), ids=OPENAI)
def test_every_way_to_call_openais_client_recovers(way: Callable[[Any], Any]) -> None:
    with Loopback("overflow", "good") as provider:
        answer = way(openai(provider.url))
    text = answer.choices[0].message.content if hasattr(answer, "choices") else answer.output_text
    assert text == "Hello."
    assert cured(provider)


@needs("openai")
def test_openais_parse_of_a_chat_reads_the_answer_to_the_second_request() -> None:
    form = type("A", (module("pydantic").BaseModel,), {})
    with Loopback("overflow", "good") as provider, pytest.raises(Exception, match="JSON"):
        chat(openai(provider.url), way="parse", response_format=form)  # which is no JSON
    assert cured(provider)


@needs("openai")
def test_openais_own_objects_in_a_history_are_seen_as_what_they_are() -> None:
    with Loopback("calls", "overflow", "good") as provider:
        client = openai(provider.url)
        messages: list[Any] = [{"role": "user", "content": "the task"}]
        answer = client.chat.completions.create(model="m", messages=messages).choices[0].message
        messages.append(answer)
        messages += [
            {"role": "tool", "tool_call_id": call.id, "content": prose(9_000)}
            for call in answer.tool_calls
        ]
        messages += render(HISTORY, "openai_chat")[-3:]
        client.chat.completions.create(model="m", messages=messages)
    assert provider.sizes[2] < provider.sizes[1] / 2
    sent = provider.bodies[2]["messages"]
    assert sent[1]["tool_calls"] == provider.bodies[1]["messages"][1]["tool_calls"]
    # The latest exchange was short, and stays.
    assert sent[-2]["content"] == "short"


@needs("openai")
def test_the_items_of_openais_answers_may_be_sent_back_as_they_are() -> None:
    with Loopback("calls", "overflow", "good") as provider:
        client = openai(provider.url)
        items: list[Any] = [{"role": "user", "content": "the task"}]
        items += client.responses.create(model="m", input=items).output
        for item in list(items):
            if getattr(item, "type", "") == "function_call":
                output = {"call_id": item.call_id, "output": prose(9_000)}
                items.append({"type": "function_call_output", **output})
        items += render(HISTORY, "openai_responses")[-3:]
        client.responses.create(model="m", input=items)
    assert provider.sizes[2] < provider.sizes[1] / 2
    kinds = [item.get("type") for item in provider.bodies[2]["input"]]
    assert kinds == [item.get("type") for item in provider.bodies[1]["input"]]


@needs("openai")
@pytest.mark.parametrize("name", ["previous_response_id", "conversation"])
def test_a_conversation_that_the_provider_keeps_is_refused_in_one_clear_line(name: str) -> None:
    items = [{"role": "user", "content": "Go on."}]
    with (
        Loopback("overflow", "good") as provider,
        pytest.raises(Exception, match=r"refused|context") as caught,
    ):
        openai(provider.url).responses.create(model="m", input=items, **{name: "r1"})
    assert len(provider.bodies) == 1
    notes = caught.value.__notes__
    assert any(f"The provider keeps the earlier conversation ({name})" in note for note in notes)


@needs("google.genai")
@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
async def test_googles_automatic_function_calling_recovers_in_each_of_its_rounds(
    asynchronous: bool,
) -> None:
    def fetch(page: int) -> str:
        """Fetch a page."""
        return prose(9_000, f"page{page}")

    script = ["call", "call", "overflow", "calls", "good"]
    with Loopback(*script) as provider:
        client = google(provider.url)
        request = {"model": "m", "contents": "the task", "config": {"tools": [fetch]}}
        answer = (
            await client.aio.models.generate_content(**request)
            if asynchronous
            else client.models.generate_content(**request)
        )
    assert answer.text == "Hello."
    assert len(provider.bodies) == len(script)
    assert provider.sizes[3] < provider.sizes[2]


@needs("google.genai")
@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
async def test_googles_chats_recover(asynchronous: bool) -> None:
    types = module("google.genai.types")
    history = [types.Content(**content) for content in render(HISTORY, "gemini")[:-1]]
    with Loopback("overflow", "good") as provider:
        client = google(provider.url)
        chats = client.aio.chats if asynchronous else client.chats
        answer = chats.create(model="m", history=history).send_message("Go on.")
        answer = await answer if asynchronous else answer
    assert answer.text == "Hello."
    assert cured(provider)


@needs("langchain")
async def test_langchains_responses_blocks_shrink_with_the_calls_that_they_repeat() -> None:
    """LangChain sends the arguments of a call as its content block has them."""
    m = module("langchain_core.messages")
    document = json.dumps({"body": prose(9_000)})
    block = {"type": "function_call", "call_id": "c", "id": "fc_1", "name": "write"}
    call = m.AIMessage(
        [{"type": "text", "text": "I write."}, block | {"arguments": document}],
        tool_calls=[{"id": "c", "name": "write", "args": json.loads(document)}],
    )
    history = [
        m.HumanMessage("the task"),
        call,
        m.ToolMessage("done", tool_call_id="c"),
        m.AIMessage("", tool_calls=[{"id": "d", "name": "read", "args": {}}]),
        m.ToolMessage("short", tool_call_id="d"),
        m.HumanMessage("Go on."),
    ]
    with Loopback("overflow", "good") as provider:
        options: Any = {"use_responses_api": True, "output_version": "responses/v1"}
        agent = langchain_agent("", model=chat_openai(provider.url, **options))
        answer = agent.invoke({"messages": history})["messages"][-1]
    assert answer.text == "Hello."
    assert cured(provider)
    assert provider.sizes[1] < provider.sizes[0] - 6_000
    sent = [item for item in provider.bodies[1]["input"] if item.get("type") == "function_call"]
    assert isinstance(sent[0]["arguments"], str)
    assert "characters" in sent[0]["arguments"]


def completions(name: str, url: str, options: dict[str, Any]) -> Callable[[Any], Any]:
    """Return what sends messages by this SDK's adapter, which was given only these options."""
    if name == "openai":
        client = openai(url, **options)
        return lambda messages: client.chat.completions.create(model="m", messages=messages)
    complete = adapter("litellm").completion(**options)
    provider = {"api_base": f"{url}/v1", "api_key": "k", "model": "openai/m"}
    return lambda messages: complete(messages=messages, **provider)


OPTIONS = [
    pytest.param("openai", marks=needs("openai")),
    pytest.param("litellm", marks=needs("litellm")),
]


WORK = conversation(*[prose(9_000, f"w{number}") for number in range(3)], "short", ask="task")
SIZE = tokens_of(WORK)


@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize(
    ("options", "compacted"),
    [
        ({"window": int(SIZE / 0.75)}, True),
        ({"window": int(SIZE / 0.75), "compaction_mode": "legacy"}, False),
        ({"window": int(SIZE / 0.65)}, False),
        ({"window": int(SIZE / 0.65), "max_output": SIZE}, True),
        ({"window": int(SIZE / 0.75), "remaining_seconds": lambda: 1.0}, False),
        ({}, False),
    ],
    ids=["window", "legacy", "larger window", "output", "short on time", "nothing known"],
)
def test_the_options_of_an_adapter_are_those_of_its_policy(
    name: str, options: dict[str, Any], compacted: bool
) -> None:
    with Loopback("good") as provider:
        completions(name, provider.url, options)(WORK)
    sent = len(json.dumps(provider.bodies[0]["messages"]))
    assert (sent < len(json.dumps(WORK)) - 5_000) is compacted


@needs("pydantic_ai")
def test_pydantic_ais_capability_takes_the_options() -> None:
    capability = adapter("pydantic_ai").RecoveryCapability(window=5_000, compaction_mode="legacy")
    policy = cast("Recovery", vars(capability)["_recovery"]).policy
    assert (policy.window, policy.compaction_mode) == (5_000, "legacy")


@needs("openai")
def test_one_wrapped_client_serves_many_conversations_at_once() -> None:
    """Each is refused once, and in its next request its own stubs stand where they stood."""
    with Loopback("good", limit=2_000) as provider:
        client = openai(provider.url, Recovery(Policy(compaction_mode="tiered")))
        start = threading.Barrier(4)

        def converse(number: int) -> list[str]:
            messages = render(HISTORY, "openai_chat")
            messages[1]["content"] = f"task {number}"
            start.wait()
            answers: list[str] = []
            for _ in range(3):
                answer = client.chat.completions.create(model="m", messages=messages)
                answers.append(answer.choices[0].message.content)
                messages.append({"role": "assistant", "content": answers[-1]})
                messages.append({"role": "user", "content": "And then?"})
            return answers

        with ThreadPoolExecutor(4) as pool:
            assert list(pool.map(converse, range(4))) == [["Hello."] * 3] * 4
    assert provider.refused <= 4
    tasks = {body["messages"][1]["content"] for body in provider.bodies}
    assert len(tasks) == 4


@pytest.mark.parametrize("case", marked([case for case in CASES if case.first]))
async def test_the_first_event_is_passed_on_before_the_next_has_arrived(case: Case) -> None:
    """The provider sends so many events, and the next only when the first one was read here."""
    with Loopback("good") as provider:
        provider.hold_after = case.first
        pieces = case.pieces(provider.url, HISTORY, Recovery())
        try:
            await anext(pieces)
        finally:
            provider.released.set()
            async for _ in pieces:
                pass
    assert provider.released_in_time


@needs("openai")
def test_openais_sdk_sends_what_it_would_have_sent_and_walks_through_no_message(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its transform takes 7 ms for a megabyte, and leaves plain data as they are."""
    transform = module("openai._utils._transform")
    whole, walked = transform._transform_typeddict, list[Any]()

    def transformed(data: Any, kind: Any) -> Any:
        walked.append(data)
        return whole(data, kind)

    monkeypatch.setattr(transform, "_transform_typeddict", transformed)
    with Loopback("call", "good") as provider:
        plain = module("openai").OpenAI(base_url=f"{provider.url}/v1", api_key="k", max_retries=0)
        asked: dict[str, Any] = {"role": "user", "content": [{"type": "text", "text": "Hm."}]}
        said = plain.chat.completions.create(model="m", messages=[asked]).choices[0].message
        result = {"role": "tool", "tool_call_id": said.tool_calls[0].id, "content": "x"}
        responded = plain.responses.create(model="m", input=[asked]).output
        for client in (plain, adapter("openai").recovering(plain)):
            walked.clear()
            client.chat.completions.create(model="m", messages=iter((asked, said, result)))
            client.responses.create(model="m", input=[asked, *responded])
            assert (asked in walked) is (client is plain)
    assert provider.bodies[2:4] == provider.bodies[4:]
