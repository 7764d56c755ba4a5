"""The newest results: when nothing else can shrink they keep a preview, and share what is left."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from fetchstash.client import Format, Policy, Report, State, Target, compact, orphans, rewrite
from tests.client.conversations import FORMATS, Turn, render, results
from tests.client.fakes import Kept, bytes_of, conversation, prose, tokens_of

Shrink = Callable[[list[Any], int, Policy, State], tuple[list[Any], Report]]


def by_rewrite(
    messages: list[Any], size: int, policy: Policy, state: State
) -> tuple[list[Any], Report]:
    return rewrite(messages, "openai_chat", size, policy, state)


def by_compaction(
    messages: list[Any], size: int, policy: Policy, state: State
) -> tuple[list[Any], Report]:
    return compact(messages, "openai_chat", round(size / 0.9), state, policy=policy)


both = pytest.mark.parametrize("shrink", [by_rewrite, by_compaction])


def parallel(*results: str) -> list[Any]:
    """Return a history whose one exchange has these parallel results."""
    history = conversation(*results)
    calls = [message["tool_calls"][0] for message in history[2::2]]
    return [*history[:2], {"role": "assistant", "tool_calls": calls}, *history[3::2]]


@both
def test_the_newest_result_keeps_a_preview_and_all_of_it_is_kept(shrink: Shrink) -> None:
    kept, text = Kept(), prose(300_000)
    sent, report = shrink(conversation(text), 10_000, Policy(offload=kept), State())
    stub = json.loads(sent[3]["content"])
    assert report.fits or tokens_of(sent) <= 10_000
    assert kept.texts[stub["artifact_ref"]] == text
    assert text.startswith(stub["preview"])
    assert stub["preview_chars"] == len(stub["preview"]) > 5_000


@both
def test_older_results_go_first(shrink: Shrink) -> None:
    history = conversation(prose(9_000, "old"), prose(9_000, "new"))
    sent, _ = shrink(history, tokens_of(history) * 2 // 3, Policy(), State())
    assert sent[5] == history[5]
    assert sent[3] != history[3]


@both
def test_the_largest_of_parallel_results_goes_and_the_others_stay(shrink: Shrink) -> None:
    history = parallel(prose(6_000, "a"), prose(60_000, "b"), prose(6_000, "c"))
    sent, _ = shrink(history, tokens_of(history) // 2, Policy(offload=Kept()), State())
    assert [n for n in range(6) if sent[n] != history[n]] == [4]


@both
def test_parallel_results_that_are_all_too_large_share_what_is_left(shrink: Shrink) -> None:
    history = parallel(*[prose(40_000, f"w{n}") for n in range(4)])
    sent, _ = shrink(history, 6_000, Policy(offload=Kept()), State())
    previews = [json.loads(message["content"])["preview_chars"] for message in sent[3:]]
    assert tokens_of(sent) <= 6_000
    assert min(previews) > 1_000
    assert max(previews) < 2 * min(previews)
    assert not orphans(sent, "openai_chat")


@both
def test_a_preview_stays_the_same_in_the_next_request_and_goes_when_it_is_old(
    shrink: Shrink,
) -> None:
    policy, state = Policy(offload=Kept()), State()
    first = conversation(prose(80_000))
    sent, _ = shrink(first, 6_000, policy, state)
    longer = [*first, *conversation("ok")[2:]]
    longer[-2]["tool_calls"][0]["id"] = longer[-1]["tool_call_id"] = "next"
    again, _ = compact(longer, "openai_chat", 10**6, state, policy=policy)
    assert again[:4] == sent
    small, _ = shrink(longer, 1_000, policy, state)
    assert "preview" not in small[3]["content"]
    assert tokens_of(small) <= 1_000


def test_a_preview_that_is_still_too_large_becomes_a_smaller_one() -> None:
    history, policy, state = conversation(prose(80_000)), Policy(offload=Kept()), State()
    rewrite(history, "openai_chat", 6_000, policy, state)
    sent, report = rewrite(history, "openai_chat", 2_000, policy, state)
    assert report.fits
    assert json.loads(sent[3]["content"])["preview_chars"] > 1_000


def test_a_rewrite_in_bytes_makes_previews_that_fit_in_bytes() -> None:
    text = "\ufffd\x02x" * 300_000
    sent, report = rewrite(conversation(text), "openai_chat", Target(100_000, "bytes"))
    assert report.fits
    assert bytes_of(sent) <= 100_000


def test_a_preview_closes_the_fence_that_it_opens() -> None:
    body = prose(90_000)
    page = f'<untrusted-ab12 source="https://a.example/">\n{body}</untrusted-ab12>\n'
    sent, _ = rewrite(conversation(page), "openai_chat", 3_000)
    assert json.loads(sent[3]["content"])["preview"].endswith("</untrusted-ab12>")


def test_the_prefix_stays_unchanged() -> None:
    history = conversation(prose(80_000))
    sent, report = rewrite(history, "openai_chat", 1_000, prefix=4)
    assert sent == history
    assert not report.smaller


@settings(max_examples=40)
@given(
    st.lists(st.integers(0, 9_000), min_size=1, max_size=4),
    st.sampled_from(FORMATS),
    st.integers(700, 4_000),
)
def test_the_latest_exchange_fits_and_stays_paired_in_every_format(
    chars: list[int], fmt: Format, size: int
) -> None:
    calls = tuple(("read", f"{n}", prose(count, f"w{n}x")) for n, count in enumerate(chars))
    messages = render([Turn("user", "the task"), Turn("tools", "", calls)], fmt)
    sent, report = rewrite(messages, fmt, size + 300 * len(calls), Policy(offload=Kept()))
    assert report.fits
    assert not orphans(sent, fmt)
    shapes = [
        [isinstance(holder[key], str) for holder, key in results(m, fmt)] for m in (messages, sent)
    ]
    assert shapes[0] == shapes[1]
    assert len(shapes[0]) == len(calls)
