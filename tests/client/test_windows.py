"""Windows: which of the caller, a profile, the table and a refusal wins."""

from dataclasses import replace
from typing import Any

import pytest

from fetchstash.client import Policy, Recovery, Request, learned_windows
from tests.client.fakes import Overflow, conversation, prose

MODEL = Request((), model="some-model", endpoint="https://provider.example/v1")
REFUSAL = "prompt is too long: 6000 tokens > 5000 maximum"


@pytest.fixture(autouse=True)
def forget() -> None:
    learned_windows.clear()


def sent(
    recovery: Recovery, messages: list[Any], request: Request, *, limit: int, words: str = REFUSAL
) -> list[int]:
    """Send one request to a provider with this limit in characters; return the sizes it saw."""
    sizes: list[int] = []

    def send(messages: Any) -> str:
        sizes.append(len(str(messages)))
        if sizes[-1] > limit:
            raise Overflow(words)
        return "ok"

    recovery.call(send, replace(request, messages=messages))
    return sizes


@pytest.mark.parametrize("configured", [None, 1_000_000])
def test_a_stated_limit_bounds_the_requests_of_other_conversations_with_that_model(
    configured: int | None,
) -> None:
    messages = conversation(*[prose(9_000, f"w{number}") for number in range(4)])
    assert len(sent(Recovery(), messages, MODEL, limit=24_000)) == 2
    other = conversation(*[prose(9_000, f"v{number}") for number in range(4)], ask="another task")
    assert len(sent(Recovery(Policy(window=configured)), other, MODEL, limit=24_000)) == 1


def test_a_stated_limit_is_of_one_model_at_one_endpoint() -> None:
    messages = conversation(*[prose(9_000, f"w{number}") for number in range(4)])
    sent(Recovery(), messages, MODEL, limit=24_000)
    for request in (
        replace(MODEL, model="other-model"),
        replace(MODEL, endpoint="https://other.example"),
        Request(()),
    ):
        assert sent(Recovery(), messages, request, limit=10**6) == [len(str(messages))]


def test_a_recovery_remembers_the_limit_of_a_model_without_a_name_for_itself() -> None:
    messages = conversation(*[prose(9_000, f"w{number}") for number in range(4)])
    recovery = Recovery()
    assert len(sent(recovery, messages, Request(()), limit=24_000)) == 2
    other = conversation(*[prose(9_000, f"v{number}") for number in range(4)], ask="another task")
    assert len(sent(recovery, other, Request(()), limit=24_000)) == 1
    assert sent(Recovery(), other, Request(()), limit=10**6) == [len(str(other))]


@pytest.mark.parametrize(
    ("policy", "request_info", "compacted"),
    [
        (Policy(), Request((), model="gpt-4"), True),
        (Policy(window=1_000_000), Request((), model="gpt-4"), False),
        (Policy(), Request((), model="gpt-4", window=1_000_000), False),
        (Policy(), Request((), model="gpt-5", window=8_000), True),
        (Policy(), Request((), model="nobody-1"), False),
        (Policy(compaction_mode="legacy"), Request((), model="gpt-4"), False),
    ],
    ids=["table", "configured", "profile", "profile over table", "unknown", "legacy"],
)
def test_the_configured_window_goes_before_the_profile_and_the_profile_before_the_table(
    policy: Policy, request_info: Request, compacted: bool
) -> None:
    messages = conversation(*[prose(9_000, f"w{number}") for number in range(4)])
    sizes = sent(Recovery(policy), messages, request_info, limit=10**6)
    assert (sizes[0] < len(str(messages))) is compacted


def test_one_recovery_keeps_the_stubs_of_many_conversations_apart() -> None:
    recovery, results = Recovery(), [prose(9_000, f"w{number}") for number in range(4)]
    first, other = conversation(*results), conversation(*results, ask="another task")
    assert len(sent(recovery, first, MODEL, limit=24_000, words="prompt is too long")) == 2
    assert sent(recovery, other, MODEL, limit=10**6) == [len(str(other))]
    assert sent(recovery, first, MODEL, limit=10**6)[0] < 24_000
