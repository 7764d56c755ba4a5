"""stub_oversized: by the window of the model that will read the result."""

import json
import logging
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fetchstash import open_stash_sync
from fetchstash.client import (
    Format,
    Policy,
    Recovery,
    Request,
    ToolCall,
    context_window,
    orphans,
    rewrite,
    stub_oversized,
)
from fetchstash.client.offload import StoreOffload
from fetchstash.store import StoreLimits, open_store
from tests.client.conversations import FORMATS, Turn, render, results, stub_of
from tests.client.fakes import Kept, Overflow, conversation, prose, tokens_of

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
)
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
        "status",
        "toolCallId",
        "toolName",
        "warning",
        "reason",
        "toolInfo",
        "recommendation",
        "artifact_ref",
    }
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
    assert shown["body"] == "(5,000 characters)"
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


# --- StoreOffload: what leaves the context is found again with the server's own store.


@pytest.mark.anyio
async def test_a_content_left_out_of_a_request_is_an_artifact(tmp_path: Path) -> None:
    text = prose(9_000)
    policy = Policy(offload=StoreOffload(tmp_path / "store"))
    sent, _ = rewrite(conversation(text, "short"), "openai_chat", 100, policy)
    ref = json.loads(sent[3]["content"])["artifact_ref"]
    store = await open_store(StoreLimits(folder=tmp_path / "store"))
    try:
        reader = await store.open_text(ref)
        assert await reader.read_chars(0, 10_000) == text
        assert (await store.list()).facts[0].name == "fetch_content"
        await reader.aclose()
    finally:
        await store.aclose()


def test_a_closed_offload_opens_again(tmp_path: Path) -> None:
    with StoreOffload(str(tmp_path / "store")) as offload:
        first = offload.keep("one", "a.txt")
    second = offload.keep("two", "b.txt")
    offload.close()
    offload.close()
    with open_stash_sync(
        {"store.folder": str(tmp_path / "store"), "store.run": "default"}
    ) as stash:
        assert [stash.get(ref).preview for ref in (first, second)] == ["one", "two"]


def test_a_conversation_that_goes_on_elsewhere_sends_the_same_bytes(tmp_path: Path) -> None:
    """Another process has another State and another store object, and the folder: nothing else."""
    history = conversation(prose(9_000, "alpha"), prose(9_000, "beta"), "short")
    sent = list[Any]()
    for _ in range(2):
        with StoreOffload(tmp_path / "store", "ours") as offload:
            sent.append(rewrite(history, "openai_chat", 100, Policy(offload=offload))[0])
    assert sent[0] == sent[1]
    with StoreOffload(tmp_path / "store", "ours") as offload:
        kept, other = offload.keep("one", "a"), offload.keep("two", "a")
        assert offload.keep("one", "b") == kept != other
    folder = str(tmp_path / "store")
    with open_stash_sync({"store.folder": folder, "store.run": "ours"}) as stash:
        stash.delete(kept)
    with StoreOffload(folder, "ours") as offload:
        again = offload.keep("one", "a")
    assert again != kept
    with open_stash_sync({"store.folder": folder, "store.run": "ours"}) as stash:
        assert stash.get(again).preview == "one"


@pytest.mark.slow
def test_a_program_that_never_closes_its_offload_ends(tmp_path: Path) -> None:
    program = (
        "import sys; from fetchstash.client.offload import StoreOffload; "
        "print(StoreOffload(sys.argv[1]).keep('kept', 'a.txt'))"
    )
    folder = str(tmp_path / "store")
    command = [sys.executable, "-P", "-c", program, folder]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert not done.stderr
    with open_stash_sync({"store.folder": folder}) as stash:
        assert stash.get(done.stdout.strip()).preview == "kept"


# --- Windows: which of the caller, a profile, the table and a refusal wins.

MODEL = Request((), model="some-model", endpoint="https://provider.example/v1")
REFUSAL = "prompt is too long: 6000 tokens > 5000 maximum"


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
