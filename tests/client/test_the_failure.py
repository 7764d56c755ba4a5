"""The failure that began this project: a run fetches PDFs as text until the provider refuses."""

import random
from collections.abc import Callable
from typing import Any

import pytest

from fetchstash.cli.demo._tour import ask, started
from fetchstash.cli.demo.site import Document, Site, make_pdf
from fetchstash.client import Policy, Recovery, ToolCall, stub_oversized
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
    assert any("total message size" in words for words in provider.refusals)
    assert any("exceeded model token limit" in words for words in provider.refusals)
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
