"""System prompt, tools and output count: none is refused twice, and none if the window is known."""

import itertools
import json
from dataclasses import dataclass, field
from typing import Any

import pytest

from fetchstash.client import Policy, Recovery, Request
from fetchstash.text import tokens
from tests.client.fakes import Kept, conversation, prose

WINDOW = 20_000


class Refused(Exception):
    status_code = 400


@dataclass
class Provider:
    """Refuses what is over its window. One of our tokens is ``scale`` of its own."""

    fixed: str
    scale: float = 1.0
    states_size: bool = True
    refused: list[bool] = field(default_factory=list[bool])

    def __call__(self, messages: Any) -> str:
        texts = [self.fixed, *(message.get("content") or "" for message in messages)]
        texts += [
            json.dumps(message["tool_calls"]) for message in messages if "tool_calls" in message
        ]
        counted = sum(tokens.count(text).tokens for text in texts) + 4 * len(messages)
        size = round(counted * self.scale)
        self.refused.append(size > WINDOW)
        if size > WINDOW:
            stated = f"prompt is too long: {size} tokens > {WINDOW} maximum"
            limit = f"This model's maximum context length is {WINDOW} tokens."
            raise Refused(stated if self.states_size else limit)
        return "Go on."


def run(provider: Provider, recovery: Recovery, fixed: str | None, steps: int = 40) -> None:
    """Run an agent whose tool returns 200 to 2,500 tokens at each step, and that is steered."""
    messages = conversation()
    for number in range(steps):
        exchange = conversation(prose(500 + number * 1_337 % 5_000, f"w{number}x"))[2:]
        exchange[0]["tool_calls"][0]["id"] = exchange[1]["tool_call_id"] = f"call_{number}"
        messages += exchange
        if number % 9 == 8:
            messages.append({"role": "user", "content": f"Now look at part {number}."})
        recovery.call(provider, Request(list(messages), fixed=fixed))


def fixed_part(share: float) -> str:
    text = prose(200_000, "rule")
    return text[: round(len(text) * WINDOW * share / tokens.count(text).tokens)]


@pytest.mark.slow
@pytest.mark.parametrize("scale", [0.9, 1.0, 1.3])
@pytest.mark.parametrize("states_size", [True, False])
@pytest.mark.parametrize("told", [True, False])
@pytest.mark.parametrize("share", [0.3, 0.5, 0.7])
def test_no_request_is_refused_twice(
    share: float, told: bool, states_size: bool, scale: float
) -> None:
    fixed = fixed_part(share / scale)
    provider = Provider(fixed, scale, states_size)
    run(provider, Recovery(Policy(offload=Kept())), fixed if told else None)
    assert provider.refused.count(True)
    assert not any(map(all, itertools.pairwise(provider.refused)))


@pytest.mark.parametrize("share", [0.3, 0.5, 0.7])
def test_no_request_is_refused_at_all_where_the_window_is_known(share: float) -> None:
    fixed = fixed_part(share)
    provider = Provider(fixed)
    run(provider, Recovery(Policy(offload=Kept(), window=WINDOW)), fixed)
    assert not any(provider.refused)
