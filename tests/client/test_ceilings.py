"""What an account or a server takes is learned by endpoint and key, in every adapter.

A provider on loopback refuses bodies of more than some bytes, or more than some tokens a minute.
"""

import json
from collections.abc import Callable
from hashlib import blake2b
from typing import Any

import pytest

from fetchstash.client import Recovery
from tests.client import sdks
from tests.client.conversations import Turn, render
from tests.client.fakes import prose
from tests.client.loopback import Loopback, tokens
from tests.client.sdks import adapter, module, needs

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]

MOST_BYTES, MOST_TOKENS = 8_000, 2_000


def openai(url: str, recovery: Recovery, key: str, history: list[Turn]) -> None:
    messages = render(history, "openai_chat")
    create = sdks.openai(url, recovery, key=key).chat.completions.create
    create(model="m", messages=messages)


def openai_function_of_keys(url: str, recovery: Recovery, key: str, history: list[Turn]) -> None:
    """The key is the result of a function, as Azure's tokens are."""
    client = module("openai").OpenAI(base_url=f"{url}/v1", api_key=KEYS[key], max_retries=0)
    made = adapter("openai").recovering(client, recovery)
    made.chat.completions.create(model="m", messages=render(history, "openai_chat"))


KEYS: dict[str, Callable[[], str]] = {
    "first key": lambda: "first key",
    "second key": lambda: "second key",
}


def openai_header(url: str, recovery: Recovery, key: str, history: list[Turn]) -> None:
    """One client, and a key for each call."""
    sdks.openai(url, recovery).chat.completions.create(
        model="m",
        messages=render(history, "openai_chat"),
        extra_headers={"Authorization": f"Bearer {key}"},
    )


def anthropic(url: str, recovery: Recovery, key: str, history: list[Turn]) -> None:
    messages = render(history, "anthropic")
    sdks.anthropic(url, recovery, key=key).messages.create(
        model="m", max_tokens=9, messages=messages
    )


def google(url: str, recovery: Recovery, key: str, history: list[Turn]) -> None:
    models = sdks.google(url, recovery, key).models
    models.generate_content(model="m", contents=render(history, "gemini"))


def litellm(url: str, recovery: Recovery, key: str, history: list[Turn]) -> None:
    adapter("litellm").completion(recovery)(
        model="openai/m",
        messages=render(history, "openai_chat"),
        api_base=f"{url}/v1",
        api_key=key,
        max_retries=0,
    )


def langchain(url: str, recovery: Recovery, key: str, history: list[Turn]) -> None:
    agent = sdks.langchain_agent(url, recovery, model=sdks.chat_openai(url, key=key))
    agent.invoke(sdks.langchain_messages(history))


def langchain_anthropic(url: str, recovery: Recovery, key: str, history: list[Turn]) -> None:
    chat = module("langchain_anthropic").ChatAnthropic
    model = chat(model="m", base_url=url, api_key=key, max_retries=0, max_tokens=9)
    agent = sdks.langchain_agent(url, recovery, model=model)
    agent.invoke(sdks.langchain_messages(history))


def pydantic_ai(url: str, recovery: Recovery, key: str, history: list[Turn]) -> None:
    agent = sdks.pydantic_agent(url, recovery, key)
    agent.run_sync(history[-1].text, message_history=sdks.pydantic_history(history))


@pytest.fixture(
    params=[
        pytest.param(call, marks=needs(sdk), id=call.__name__)
        for call, sdk in (
            (openai, "openai"),
            (openai_function_of_keys, "openai"),
            (openai_header, "openai"),
            (anthropic, "anthropic"),
            (google, "google.genai"),
            (litellm, "litellm"),
            (langchain, "langchain"),
            (langchain_anthropic, "langchain"),
            (pydantic_ai, "pydantic_ai"),
        )
    ]
)
def call(request: pytest.FixtureRequest) -> Callable[..., None]:
    made: Callable[..., None] = request.param
    return made


def too_many_bytes(body: Any) -> str:
    size = len(json.dumps(body))
    words = f"Request body too large: {size} bytes, at most {MOST_BYTES} bytes"
    return words if size > MOST_BYTES else ""


def too_many_a_minute(body: Any) -> str:
    asked = tokens(body)
    words = f"Request too large on tokens per minute (TPM): Limit {MOST_TOKENS}, Requested {asked}"
    return words if asked > MOST_TOKENS else ""


def conversation(task: str) -> list[Turn]:
    """Return one of its own, so that no stub of another's is in it."""
    calls = (("fetch", "a", prose(12_000)),)
    return [Turn("user", task), Turn("tools", "", calls), Turn("user", "Go on.")]


@pytest.mark.parametrize("refuse", [too_many_bytes, too_many_a_minute])
def test_a_ceiling_holds_for_the_key_that_met_it_and_for_no_other(
    call: Callable[..., None], refuse: Callable[[Any], str]
) -> None:
    recovery = Recovery()
    with Loopback("good") as provider:
        provider.refuse, provider.refuse_status = refuse, 413
        call(provider.url, recovery, "first key", conversation("one"))
        assert (provider.refused, len(provider.bodies)) == (1, 2)
        call(provider.url, recovery, "first key", conversation("two"))
        assert (provider.refused, len(provider.bodies)) == (1, 3)
        call(provider.url, recovery, "second key", conversation("three"))
        assert (provider.refused, len(provider.bodies)) == (2, 5)
    inside: Any = recovery
    remembered = inside._ceilings._ceilings
    assert "key" not in repr(remembered)
    assert {len(account) for _, account, *_ in remembered} == {32}


def test_the_hash_of_a_key_tells_accounts_apart_and_is_no_plain_hash() -> None:
    account_of = module("fetchstash.client.adapters").account_of
    assert account_of("a") == account_of("a") != account_of("b")
    assert account_of("a", "organization") != account_of("a")
    assert account_of(None, "", object()) == ""
    assert account_of("a") != blake2b(b"a", digest_size=16).hexdigest()
