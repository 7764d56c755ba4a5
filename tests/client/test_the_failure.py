"""The failure that began this project: a run fetches PDFs as text until the provider refuses."""

import itertools
import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import pytest

from fetchstash.cli.demo._tour import ask, started
from fetchstash.cli.demo.site import Document, Site, make_pdf
from fetchstash.client import Policy, Recovery, Request, ToolCall, stub_oversized
from fetchstash.text import tokens
from tests.client.fakes import Kept, bytes_of, conversation, prose

MAX_BYTES, MAX_TOKENS = 4_194_304, 262_144


class Refused(Exception):
    status_code = 400


def pdf(seed: int) -> str:
    """600 KB of a PDF as a careless tool returns them: decoded as if they were text."""
    return b"%PDF-1.7\n".decode() + random.Random(seed).randbytes(600_000).decode(
        "utf-8", "replace"
    )


class Provider:
    """Refuses more than 4 MB, and more than 262,144 tokens, one of them for eight characters."""

    def __init__(self) -> None:
        self.refusals: list[str] = []

    def __call__(self, messages: Any) -> str:
        size = bytes_of(messages)
        tokens = sum(len(str(message.get("content"))) for message in messages) // 8
        if size > MAX_BYTES:
            self.refuse(f"Invalid request: total message size {size} exceeds limit {MAX_BYTES}")
        if tokens > MAX_TOKENS:
            self.refuse(
                f"Invalid request: Your request exceeded model token limit: {MAX_TOKENS} "
                f"(requested: {tokens})"
            )
        return "Go on."

    def refuse(self, words: str) -> None:
        self.refusals.append(words)
        raise Refused(words)


def run(ask: Callable[[Any], Any], tool: Callable[[str, int], Any]) -> None:
    """An agent that reads three PDFs, then four long pages."""
    messages = conversation()
    for number in range(7):
        exchange = conversation(
            tool(pdf(number) if number < 3 else prose(300_000, f"page{number}x"), number)
        )[2:]
        exchange[0]["tool_calls"][0]["id"] = exchange[1]["tool_call_id"] = f"call_{number}"
        messages += exchange
        ask(messages)


def test_the_client_survives_both_refusals_and_the_run_ends_well() -> None:
    provider, kept = Provider(), Kept()
    with pytest.raises(Refused, match="total message size"):
        run(Provider(), lambda text, _: text)
    recovery = Recovery(Policy(offload=kept))
    run(lambda messages: recovery.call(provider, messages), lambda text, _: text)
    assert [words.partition(" size")[0] for words in provider.refusals] == [
        "Invalid request: total message"
    ], "the bytes that were refused bound the next requests, and so their tokens"
    assert pdf(0) in kept.texts.values()


def test_a_run_with_oversized_results_stubbed_never_overflows() -> None:
    provider, policy = Provider(), Policy(offload=Kept())
    run(
        provider,
        lambda text, number: str(
            stub_oversized(text, ToolCall(f"call_{number}", "fetch"), 131_072, policy=policy)
        ),
    )
    assert not provider.refusals


def real_pdf(seed: int) -> bytes:
    """A PDF of some 600 KB with text that hardly compresses."""
    words = random.Random(seed)
    letters = "abcdefghijklmnopqrstuvwxyz0123456789     "
    pages = ["".join(words.choices(letters, k=3_400)) for _ in range(300)]
    return make_pdf(pages, title=f"Report {seed}")


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.anyio
async def test_the_server_in_front_keeps_the_run_from_an_overflow() -> None:
    page = prose(300_000, "page").encode()
    pages = {f"/{n}": Document("text/html", real_pdf(n) if n < 3 else page) for n in range(7)}
    assert all(len(pages[f"/{n}"].body) > 600_000 for n in range(3))
    async with Site(pages) as site, started(site) as client:
        results = [(await ask(client, "fetch_content", url=site.url(path))).text for path in pages]
    assert all(result.startswith("[Fetched PDF artifact: ") for result in results[:3])
    provider = Provider()
    run(provider, lambda _text, number: results[number])
    assert not provider.refusals


# --- System prompt, tools and output count: none is refused twice, and none if the window is known.

WINDOW = 20_000


@cache
def count(text: str) -> int:
    """Return the tokens of a text; each request repeats the texts of the last."""
    return tokens.count(text).tokens


@dataclass
class FixedPart:
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
        counted = sum(map(count, texts)) + 4 * len(messages)
        size = round(counted * self.scale)
        self.refused.append(size > WINDOW)
        if size > WINDOW:
            stated = f"prompt is too long: {size} tokens > {WINDOW} maximum"
            limit = f"This model's maximum context length is {WINDOW} tokens."
            raise Refused(stated if self.states_size else limit)
        return "Go on."


def sent_with(provider: FixedPart, recovery: Recovery, fixed: str | None, steps: int = 40) -> None:
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
    return text[: round(len(text) * WINDOW * share / count(text))]


@pytest.mark.slow
@pytest.mark.parametrize("scale", [0.9, 1.0, 1.3])
@pytest.mark.parametrize("states_size", [True, False])
@pytest.mark.parametrize("told", [True, False])
@pytest.mark.parametrize("share", [0.3, 0.5, 0.7])
def test_no_request_is_refused_twice(
    share: float, told: bool, states_size: bool, scale: float
) -> None:
    fixed = fixed_part(share / scale)
    provider = FixedPart(fixed, scale, states_size)
    sent_with(provider, Recovery(Policy(offload=Kept())), fixed if told else None)
    assert provider.refused.count(True)
    assert not any(map(all, itertools.pairwise(provider.refused)))


@pytest.mark.parametrize("share", [0.3, 0.5, 0.7])
def test_no_request_is_refused_at_all_where_the_window_is_known(share: float) -> None:
    fixed = fixed_part(share)
    provider = FixedPart(fixed)
    sent_with(provider, Recovery(Policy(offload=Kept(), window=WINDOW)), fixed)
    assert not any(provider.refused)
