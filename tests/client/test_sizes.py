"""Sizes: close to the exact count, and counted once."""

import json
import random
from typing import Any

import pytest

from fetchstash.client import Format, State, ToolCall, compact, count_tokens, stub_oversized
from fetchstash.client._stubs import facts_of
from fetchstash.text import tokens
from tests.client.conversations import FORMATS, Turn, render
from tests.client.fakes import prose

HISTORY = [
    Turn("user", "the task"),
    *(Turn("tools", "", (("read", f"{n}", prose(9_000, f"w{n}x")),)) for n in range(12)),
]


def json_tokens(value: Any) -> int:
    """Return the size of a result; none is so small that it fits into a window of 0."""
    sizes = [0]
    call = ToolCall("1", "f")
    stub_oversized(value, call, 0, on_event=lambda _, facts: sizes.append(facts["tokens"]))
    return sizes[-1]


def counted(content: Any) -> int:
    """Return the size of a message."""
    return count_tokens([{"role": "user", "content": content}], "anthropic", State())


@pytest.mark.parametrize(
    "text",
    [
        prose(60_000),
        json.dumps([{"id": n, "name": f"item {n}", "tags": ["a", "b"]} for n in range(3_000)]),
        prose(200_000) + "漢字かな交じり文。" * 20_000,
        random.Random(1).randbytes(60_000).hex(),
        "\n".join(
            f"2026-11-22T04:{n % 60:02}:00Z INFO request {n} took {n % 997} ms"
            for n in range(3_000)
        ),
    ],
    ids=["prose", "json", "prose and Japanese", "hex", "log"],
)
def test_the_estimate_of_a_long_text_is_close_to_its_count(text: str) -> None:
    estimate = counted(text) - counted("")
    assert estimate == pytest.approx(tokens.count(text).tokens, rel=0.06)


@pytest.mark.parametrize("fmt", FORMATS)
@pytest.mark.parametrize("copied", [False, True], ids=["same objects", "equal copies"])
def test_counted_texts_are_not_counted_again(
    fmt: Format, copied: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted: list[int] = []

    def count(text: str) -> tokens.TokenCount:
        counted.append(len(text))
        return tokens.TokenCount(len(text) // 4, exact=True)

    monkeypatch.setattr("fetchstash.text.tokens.count", count)
    messages, state = render(HISTORY, fmt), State()
    compact(messages, fmt, 10**6, state)
    first = sum(counted)
    counted.clear()
    again: list[Any] = json.loads(json.dumps(messages)) if copied else messages
    compact(again, fmt, 10**6, state)
    assert first > 10_000
    assert max(counted) < 300
    assert sum(counted) < first / 4


def test_a_state_forgets_the_texts_that_are_gone() -> None:
    state = State()
    count_tokens(render(HISTORY, "openai_chat"), "openai_chat", state)
    held = len(state.digests)
    count_tokens(render(HISTORY[:3], "openai_chat"), "openai_chat", state)
    assert len(state.digests) < held / 2


def test_plain_data_is_counted_with_its_media_by_their_rules() -> None:
    assert json_tokens(None) == 0
    tools = [{"name": "fetch", "description": prose(400)}]
    assert json_tokens(tools) > 100
    picture = {"type": "image", "source": {"type": "base64", "data": "A" * 90_000}}
    assert 1_600 <= json_tokens([picture]) < 1_700


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("\x00\x01 ELF \x02\x03" * 50, "unknown_binary"),
        ("a\tb\r\n\x0c" * 50, ""),
        ("Grüße\n" * 50, ""),
    ],
    ids=["control characters", "white space", "other letters"],
)
def test_a_text_is_binary_where_it_has_many_control_characters(text: str, kind: str) -> None:
    assert facts_of(text).content_kind == kind
