"""stub_oversized: by the window of the model that will read the result."""

import json
import logging
from typing import Any

import pytest

from fetchstash.client import (
    Format,
    Policy,
    Recovery,
    Request,
    ToolCall,
    context_window,
    orphans,
    stub_oversized,
)
from tests.client.conversations import FORMATS, Turn, render, results, stub_of
from tests.client.fakes import Kept, prose, tokens_of

CALL = ToolCall("call_1", "fetch", {"url": "https://a.example/", "body": "x" * 5_000})


@pytest.mark.parametrize(
    ("model", "window"),
    [
        ("claude-sonnet-4-6", 1_000_000),
        ("claude-sonnet-4-5-20250929", 200_000),
        ("claude-opus-4-20250514", 200_000),
        ("gpt-5.4", 1_050_000),
        ("mistral/mistral-large-latest", 262_144),
        ("gpt-4o-2024-08-06", 128_000),
        ("gpt-4", 8_192),
        ("gpt-4-0613", 8_192),
        ("gpt-4x", 120_000),
        ("openrouter/anthropic/claude-sonnet-4.5", 200_000),
        ("us.anthropic.claude-3-5-haiku-20241022-v1:0", 200_000),
        ("models/gemini-2.5-flash", 1_048_576),
        ("o3-mini", 200_000),
        ("moonshotai/kimi-k2.5", 262_144),
    ],
)  # fmt: skip
def test_a_models_window_is_found_whatever_stands_around_its_name(model: str, window: int) -> None:
    assert context_window(model) == window


def test_an_unknown_model_counts_as_120000_tokens_with_one_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING, "fetchstash.client"):
        assert [context_window("nobody-1") for _ in range(3)] == [120_000] * 3
    assert len(caplog.records) == 1


def test_windows_can_be_overridden() -> None:
    assert context_window("gpt-4", {"gpt-4": 32_000}) == 32_000


def tokens_of_text(text: str) -> int:
    """Return the tokens of a text alone: those of a message that says it, less its frame."""
    full, empty = ([{"role": "user", "content": said}] for said in (text, ""))
    return tokens_of(full) - tokens_of(empty)


def test_a_result_becomes_a_stub_only_strictly_above_the_fraction() -> None:
    text = prose(20_000)
    window = round(tokens_of_text(text) / 0.3)
    assert stub_oversized(text, CALL, window + 10) == text
    assert stub_oversized(text, CALL, window - 10)["status"] == "oversized"


def test_the_same_result_passes_one_model_and_not_another() -> None:
    text = prose(100_000)
    assert stub_oversized(text, CALL, "gemini-2.5-flash") == text
    assert stub_oversized(text, CALL, "gpt-4")["toolCallId"] == "call_1"


def test_a_stub_tells_what_it_stands_for_and_where_it_is_kept() -> None:
    kept, events = Kept(), list[tuple[str, dict[str, Any]]]()
    result = {
        "rows": [{"id": number, "text": "some words"} for number in range(5_000)],
        "total": 5_000,
    }
    stub = stub_oversized(
        result,
        CALL,
        8_000,
        policy=Policy(offload=kept),
        on_event=lambda name, told: events.append((name, told)),
    )
    assert set(stub) == {
        "status", "toolCallId", "toolName", "warning", "reason", "toolInfo", "recommendation",
        "artifact_ref",
    }  # fmt: skip
    assert stub["toolInfo"]["structureInfo"] == "object of 2 keys, among them rows, total"
    assert json.loads(kept.texts[stub["artifact_ref"]]) == result
    assert [name for name, _ in events] == ["tool.result.oversized_excluded"]


ODD_RESULTS: list[Any] = [
    dict.fromkeys(range(3000), "x" * 30),
    [{f"key {n}": "x" * 30} for n in range(3_000)],
    [[n, "x" * 30] for n in range(3_000)],
    {"a\ud800\u202e\x1b": "x" * 30_000, "y" * 500: 1, "plain": 2},
    [{"a\ud800\u202e\x1b": "x" * 30_000, "plain": 2}],
    json.dumps({"plain": "x y " * 10_000}),
    "x y " * 10_000,
    b"x y " * 10_000,
]


@pytest.mark.parametrize(
    "result", ODD_RESULTS, ids=lambda result: f"{type(result).__name__} {str(result)[:20]}"
)
def test_a_result_of_any_shape_becomes_a_stub_that_is_short_and_clean(result: Any) -> None:
    stub = stub_oversized(result, ToolCall("1", "f", {1: 2}), 2_000)  # type: ignore[dict-item] # careless
    told = json.dumps(stub, ensure_ascii=False)
    assert told.isprintable()
    assert len(told) < 1_000
    assert stub["status"] == "oversized"


def test_the_arguments_in_a_stub_are_bounded_and_clean_too() -> None:
    args = {"url": "https://a.example/\u202e\x1b[0m", "body": "x" * 5_000} | {
        f"k{n}": "v" * 150 for n in range(50)
    }
    shown = stub_oversized(prose(20_000), ToolCall("1", "f", args), 1_000)["toolInfo"]["toolArgs"]
    assert shown["url"] == "https://a.example/[0m"
    assert shown["body"] == "(5000 characters)"
    assert len(json.dumps(shown)) < 1_500


def with_results(*results: str, fmt: Format = "openai_chat") -> list[Any]:
    calls = tuple(("fetch", "https://a.example/", result) for result in results)
    return render([Turn("user", "the task"), Turn("tools", "", calls)], fmt)


@pytest.mark.parametrize("fmt", FORMATS)
def test_a_recovery_that_knows_the_window_replaces_an_oversized_result_before_it_is_sent(
    fmt: Format,
) -> None:
    kept, events, sent = Kept(), list[str](), list[Any]()
    policy = Policy(window=20_000, offload=kept)
    large, small = prose(40_000, "large"), prose(4_000, "small")
    recovery = Recovery(policy, lambda name, _: events.append(name))
    for _ in range(2):
        recovery.call(sent.append, Request(with_results(small, large, fmt=fmt), fmt))
    before = with_results(small, large, fmt=fmt)
    holder, key = results(before, fmt)[-1]
    after = results(sent[0], fmt)[-1][0][key]
    assert type(after) is type(holder[key])
    holder[key] = after
    assert sent[0] == before
    stub = stub_of(after)
    assert stub["status"] == "oversized"
    assert stub["toolInfo"]["toolArgs"] == {"what": "https://a.example/"}
    assert large in kept.texts[stub["artifact_ref"]]
    assert not orphans(sent[0], fmt)
    assert sent[0] == sent[1]
    assert events.count("tool.result.oversized_excluded") == 1


def test_a_result_up_to_the_share_of_the_window_is_sent_unchanged() -> None:
    text, sent = prose(20_000), list[Any]()
    messages = with_results(text)
    size = tokens_of_text(text)
    Recovery(Policy(window=round(size / 0.3) + 10)).call(sent.append, messages)
    Recovery(Policy(window=round(size / 0.3) + 10, oversized_fraction=0.29)).call(
        sent.append, messages
    )
    assert sent[0] == messages
    assert "oversized" in str(sent[1])


def test_legacy_mode_sends_an_oversized_result_unchanged() -> None:
    messages, sent = with_results(prose(40_000)), list[Any]()
    Recovery(Policy(window=20_000, compaction_mode="legacy")).call(sent.append, messages)
    assert sent == [messages]
