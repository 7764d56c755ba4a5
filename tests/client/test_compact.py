"""compact: lazy, in stages, sticky; what is critical goes last, and some of it never."""

import json
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from fetchstash.client import (
    Format,
    Policy,
    Recovery,
    Request,
    State,
    Target,
    _sizes,
    compact,
    orphans,
    rewrite,
)
from fetchstash.client._policy import content_hash
from tests.client.conversations import FORMATS, Turn, blocks_of, medium, render, texts_of, turns
from tests.client.fakes import Events, Kept, bytes_of, conversation, prose, tokens_of


def working(*texts: str) -> list[Any]:
    """Return a task, and for each text an exchange whose result it is."""
    messages = conversation()
    for number, text in enumerate(texts):
        messages += conversation(text)[2:]
        messages[-2]["tool_calls"][0]["id"] = messages[-1]["tool_call_id"] = f"call_{number}"
    return messages


def said(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "content": text}


def test_no_compaction_under_budget() -> None:
    history = working(prose(4_000), prose(4_000))
    sent, report = compact(history, "openai_chat", tokens_of(history) * 2, State())
    assert sent == history
    assert (report.tier, report.stage, report.skipped) == ("normal", 0, {"no_pressure": 1})
    legacy = Policy(compaction_mode="legacy")
    assert compact(history, "openai_chat", 10, State(), policy=legacy)[0] == history


def test_tool_traces_go_before_critical_context() -> None:
    history = [
        *working(prose(4_000), prose(4_000)),
        said("assistant", prose(3_000)),
        said("user", prose(3_000)),
    ]
    sent, report = compact(history, "openai_chat", int(tokens_of(history) / 0.8), State())
    assert report.tier == "pressure"
    assert {change.stage for change in report.changes} == {2}
    assert sent[-2:] == history[-2:]


def test_arguments_go_before_results() -> None:
    history = working("ok", prose(3_000), "ok")
    history[2]["tool_calls"][0]["function"]["arguments"] = json.dumps(
        {"path": "a", "content": prose(9_000)}
    )
    _, report = compact(history, "openai_chat", int(tokens_of(history) / 0.8), State())
    assert [(change.stage, change.message) for change in report.changes] == [(1, 2)]


@pytest.mark.parametrize("target", [0.3, 0.6])
def test_it_stops_as_soon_as_it_is_within_the_target_share(target: float) -> None:
    history = working(*[prose(4_000, f"w{n}") for n in range(20)])
    budget = int(tokens_of(history) / 0.8)
    policy = Policy(compaction_target_ratio=target)
    _, report = compact(history, "openai_chat", budget, State(), policy=policy)
    assert (target - 0.1) * budget < report.after <= target * budget


def test_latest_critical_turns_are_preserved_under_pressure() -> None:
    recent = [said("user", prose(900)), said("assistant", prose(900)), said("user", prose(900))]
    history = [*working(*[prose(4_000)] * 6), *recent]
    sent, report = compact(history, "openai_chat", int(tokens_of(history) / 0.85), State())
    assert report.tier == "pressure"
    assert sent[-3:] == recent
    assert sent[:2] == history[:2]


def test_a_todo_reminder_and_the_last_todo_exchange_are_critical() -> None:
    todo = conversation(prose(3_000), name="todo_write")[2:]
    todo[0]["tool_calls"][0]["id"] = todo[1]["tool_call_id"] = "todo"
    history = [*working(prose(4_000)), *todo, *working(prose(4_000), "ok")[2:]]
    sent, report = compact(history, "openai_chat", int(tokens_of(history) / 0.85), State())
    assert report.changes
    assert sent[5] == todo[1]


def test_merge_of_old_context_in_the_critical_tier_keeps_the_latest_instruction() -> None:
    old = [
        said(role, f"{prose(300)} {number}")
        for number in range(20)
        for role in ("user", "assistant")
    ]
    history = [*working(), *old, *working(prose(300))[2:], said("user", "Now write it in Rust.")]
    kept = Kept()
    sent, report = compact(
        history, "openai_chat", int(tokens_of(history) / 2), State(), policy=Policy(offload=kept)
    )
    assert (report.tier, report.stage) == ("critical", 4)
    assert report.merged_messages >= 10
    assert sent[-1] == history[-1]
    assert sent[:2] == history[:2]
    assert not orphans(sent, "openai_chat")
    assert f"{prose(300)} 3" in "".join(kept.texts.values())


def test_the_critical_tier_keeps_system_task_last_user_turn_and_latest_call() -> None:
    history = [
        *working(*[prose(3_000)] * 4),
        said("user", prose(2_000)),
        *working(prose(3_000))[2:],
    ]
    sent, report = compact(history, "openai_chat", 300, State())
    assert report.tier == "critical"
    assert not report.fits
    assert sent[:2] == history[:2]
    assert sent[-3:-1] == history[-3:-1]


def test_critical_turns_shrink_oldest_first_and_only_as_far_as_needed() -> None:
    turns = [
        said(role, prose(4_000, f"{role}{n}")) for n in range(3) for role in ("user", "assistant")
    ]
    history = [*working(), *turns, said("user", "Go on."), *working("ok")[2:]]
    sent, report = compact(history, "openai_chat", int(tokens_of(history) * 0.95), State())
    assert report.tier == "critical"
    changed = [n for n, message in enumerate(history) if message not in sent]
    assert changed == [2]
    sent, report = compact(history, "openai_chat", int(tokens_of(history) * 0.6), State())
    assert [n for n, message in enumerate(history) if message not in sent] == [2, 3, 4]


@pytest.mark.parametrize("recent", [0, 6])
def test_the_latest_answer_and_the_last_user_turn_never_go(recent: int) -> None:
    answer, turn = said("assistant", prose(6_000, "answer")), said("user", prose(6_000, "turn"))
    history = [*working(*[prose(4_000)] * 4), answer, turn, *working("ok")[2:]]
    policy = Policy(preserve_recent_critical_messages=recent)
    sent, report = compact(history, "openai_chat", 200, State(), policy=policy)
    assert report.tier == "critical"
    assert answer in sent
    assert turn in sent


def test_words_that_were_replaced_and_are_said_again_are_sent_as_they_are() -> None:
    again, state = said("user", prose(3_000)), State()
    history = [*working(), again, said("user", prose(3_000, "more")), said("user", "ok")]
    sent, _ = compact(history, "openai_chat", 300, state)
    assert again not in sent
    sent, _ = compact([*history, again], "openai_chat", 300, state)
    assert sent[-1] == again


def test_when_the_oldest_run_is_blocked_later_runs_are_merged() -> None:
    """A run of one short message between two critical ones gains nothing: the next run is tried."""
    todo = conversation("- [ ] first", name="todo_write")[2:]
    old = [said(role, f"{prose(300)} {n}") for n in range(20) for role in ("user", "assistant")]
    history = [
        *working(),
        said("assistant", "Hm."),
        *todo,
        *old,
        *working("ok")[2:],
        said("user", "go"),
    ]
    _, report = compact(history, "openai_chat", int(tokens_of(history) / 2), State())
    assert report.fits
    assert report.stage == 4


def test_a_stub_of_a_rewrite_comes_back_in_every_compaction_even_where_the_size_is_normal() -> None:
    history, state = [*working(prose(9_000), "ok"), said("user", "Go on.")], State()
    rewritten, _ = rewrite(history, "openai_chat", 500, state=state)
    sent, report = compact(history, "openai_chat", 10**6, state)
    assert sent == rewritten
    assert (report.tier, report.reused) == ("normal", 1)


def test_a_rewrite_begins_with_the_stubs_that_are_known() -> None:
    history, state = [*working(prose(9_000), prose(9_000), "ok")], State()
    compacted, _ = compact(history, "openai_chat", int(tokens_of(history) / 1.2), state)
    sent, report = rewrite(history, "openai_chat", tokens_of(compacted), state=state)
    assert sent == compacted
    assert not report.changes


def test_near_the_time_limit_non_essential_compaction_is_skipped() -> None:
    history = working(*[prose(4_000)] * 6)
    sent, report = compact(
        history, "openai_chat", int(tokens_of(history) / 0.8), State(), remaining_seconds=2
    )
    assert sent == history
    assert report.tier == "pressure"
    sent, report = compact(
        history, "openai_chat", int(tokens_of(history) / 2), State(), remaining_seconds=2
    )
    assert report.fits
    assert report.stage == 2


def test_no_truncation_marker_is_inserted_by_any_stage() -> None:
    old = [
        said(role, prose(2_000, f"w{number}"))
        for number in range(12)
        for role in ("user", "assistant")
    ]
    history = [*working(*[prose(4_000)] * 4), *old, said("user", "go")]
    sent, _ = compact(history, "openai_chat", 1_000, State(), policy=Policy(offload=Kept()))
    added = json.dumps([message for message in sent if message not in history], ensure_ascii=False)
    assert added != "[]"
    assert "…" not in added
    assert "..." not in added
    assert "truncat" not in added.lower()


def test_stubs_are_sticky_and_the_beginning_of_the_request_stays_the_same() -> None:
    history, state = working(*[prose(4_000, f"w{n}") for n in range(8)]), State()
    budget = int(tokens_of(history) / 0.8)
    first, _ = compact(history, "openai_chat", budget, state)
    longer = [*history, *conversation("ok")[2:]]
    longer[-2]["tool_calls"][0]["id"] = longer[-1]["tool_call_id"] = "last"
    second, report = compact(longer, "openai_chat", budget, state)
    assert second[: len(first)] == first
    assert not report.changes
    assert report.skipped["cache_hit"] == report.reused > 0


def test_no_content_is_rewritten_twice_for_the_same_target_and_label() -> None:
    history, state, seen = (
        working(*[prose(4_000, f"w{n % 5}") for n in range(10)]),
        State(),
        list[Any](),
    )
    for end in range(3, len(history) + 1):
        _, report = compact(history[:end], "openai_chat", 3_000, state)
        seen += [(change.content_hash, change.target, change.label) for change in report.changes]
    assert seen
    assert len(seen) == len(set(seen))


def test_a_content_whose_stub_is_no_gain_is_not_tried_again() -> None:
    history, state = working(*["é" * 1_200] * 3, *[prose(4_000)] * 2), State()
    history[2]["tool_calls"][0]["function"]["arguments"] = json.dumps(
        {"numbers": list(range(60)), "x": "y" * 150}
    )
    _, first = compact(history, "openai_chat", 600, state)
    tried = len(state.memo)
    _, second = compact(history, "openai_chat", 600, state)
    assert len(state.memo) == tried
    assert not second.changes
    assert first.changes


def test_a_content_without_gain_for_a_compaction_has_none_for_a_rewrite_and_vice_versa() -> None:
    history, state = working(*[prose(4_000)] * 2, "ok"), State()
    history[2]["tool_calls"][0]["function"]["arguments"] = json.dumps(
        {f"key{n}": n for n in range(120)}
    )
    compact(history, "openai_chat", 600, state)
    tried = len(state.memo)
    rewrite(history, "openai_chat", 1, state=state)
    assert len(state.memo) == tried
    fresh = State()
    rewrite(history, "openai_chat", 1, state=fresh)
    _, report = compact(history, "openai_chat", 600, fresh)
    assert report.after < report.before
    assert not [change for change in report.changes if change.after >= change.before]


@pytest.mark.parametrize(
    ("size", "tier"), [(70, "normal"), (71, "pressure"), (90, "pressure"), (91, "critical")]
)
def test_tiers_end_at_their_thresholds(size: int, tier: str) -> None:
    histories = ([said("user", "a " * words)] for words in range(size))
    history = next(history for history in histories if tokens_of(history) == size)
    assert compact(history, "openai_chat", 100, State())[1].tier == tier


def test_each_compaction_tells_of_itself_and_warns_of_churn(
    caplog: pytest.LogCaptureFixture,
) -> None:
    history, state, events = working(*[prose(4_000)] * 4), State(), Events()
    budget = int(tokens_of(history) / 0.8)
    for _ in range(5):
        compact(history, "openai_chat", budget, state, on_event=events)
    names = [name for name, _ in events]
    assert names == ["compaction"] * 4 + ["compaction.churn", "compaction", "compaction.churn"]
    assert [record.levelname for record in caplog.records] == ["WARNING", "WARNING"]
    assert events[0][1]["compaction_tier"] == "pressure"
    assert events[0][1]["compaction_stage"] == 2
    assert events[1][1]["compaction_skipped_reason"] == "cache_hit"
    for changed in ([*history, said("user", "go on")], history):
        compact(changed, "openai_chat", 10**6, state, on_event=events)
        assert events[-1][1]["compactor_calls"] == 1


EMPTY: dict[str, list[Any]] = {
    "openai_chat": [
        {"role": "assistant", "content": None},
        {"role": "user", "content": ""},
        {"role": "user", "content": []},
    ],
    "openai_responses": [
        {"type": "message", "role": "user", "content": ""},
        {"type": "message", "role": "assistant", "content": []},
    ],
    "anthropic": [{"role": "assistant", "content": []}, {"role": "user", "content": ""}],
    "gemini": [{"role": "model", "parts": []}, {"role": "user"}],
}


@pytest.mark.parametrize("share", [0.05, 0.6, 1.2])
@pytest.mark.parametrize("fmt", FORMATS)
def test_parallel_calls_reasoning_pictures_and_empty_contents_stay_what_the_format_wants(
    fmt: Format, share: float
) -> None:
    calls = tuple(("fetch", prose(900, f"a{n}x"), prose(3_000, f"r{n}x")) for n in range(3))
    seen = {
        **render([Turn("user", "")], fmt)[-1],
        "parts" if fmt == "gemini" else "content": [medium(fmt, "image/png", "A" * 40_000)],
    }
    history = [
        *render([Turn("user", "the task"), Turn("tools", "", calls, reasoning=True)], fmt),
        seen,
        *EMPTY[fmt],
        *render(
            [
                Turn("tools", "", calls, reasoning=True),
                Turn("user", "Go on."),
                Turn("tools", "", (("now", "", "noon"),)),
            ],
            fmt,
        )[fmt.startswith("openai") :],
    ]
    size = compact(history, fmt, 10**6, State())[1].before
    sent, report = compact(history, fmt, int(size * share), State(), policy=Policy(offload=Kept()))
    assert report.changes
    assert not orphans(sent, fmt)
    reasoning = [
        [
            block
            for message in messages
            for block in (message, *blocks_of(message, fmt))
            if block.get("type") in {"reasoning", "thinking"}
        ]
        for messages in (history, sent)
    ]
    if report.merged_messages:
        assert all(value in reasoning[0] for value in reasoning[1])
        return
    assert reasoning[0] == reasoning[1]
    assert len(sent) == len(history)
    assert all(message in sent for message in (seen, *EMPTY[fmt]))


def test_a_picture_that_a_tool_returned_costs_what_a_picture_costs() -> None:
    messages: list[Any] = [
        {"role": "user", "content": "Look."},
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "1", "name": "screenshot", "input": {}}],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "1",
                    "content": [medium("anthropic", "image/png", "A" * 40_000)],
                }
            ],
        },
    ]
    assert 1_600 < tokens_of(messages, "anthropic") < 2_000
    assert 1_600 < compact(messages, "anthropic", 10**6, State())[1].before < 2_000
    assert bytes_of(messages) > 40_000


ROLES = ("assistant", "user")


def last_words(messages: list[Any], fmt: Format) -> list[str]:
    """Return the latest answer and the user's last words."""
    return [text for role in ROLES for text in texts_of(messages, fmt, role)[-1:]]


@pytest.mark.slow
@settings(max_examples=100)
@given(
    turns,
    st.sampled_from(FORMATS),
    st.booleans(),
    st.integers(20, 3_000),
    st.lists(st.sampled_from(["compact", "tokens", "bytes"]), min_size=1, max_size=14),
)
def test_compactions_and_rewrites_of_one_growing_conversation_in_any_order_agree(
    history: list[Turn], fmt: Format, repeat_ids: bool, budget: int, means: list[Any]
) -> None:
    state, policy, seen = State(), Policy(offload=Kept()), list[Any]()
    for end in range(1, len(history) + 1):
        unit = means[end % len(means)]
        messages, same = (render(history[:end], fmt, repeat_ids=repeat_ids) for _ in range(2))
        if unit == "compact":
            sent, report = compact(messages, fmt, budget, state, policy=policy)
            seen += [
                (change.content_hash, change.target, change.label) for change in report.changes
            ]
        else:
            sent, report = rewrite(messages, fmt, Target(budget, unit), policy, state)
            assert state.merges or len(sent) == len(messages)
        assert messages == same
        assert not orphans(sent, fmt)
        assert report.after <= report.before
        kept = {text for role in ROLES for text in texts_of(sent, fmt, role)}
        assert kept.issuperset(last_words(messages, fmt))
    assert len(seen) == len(set(seen))


def test_results_of_one_turn_that_are_too_large_together_share_the_room_evenly() -> None:
    """As many tokens of each: none stays whole while others go, and a small one stays."""
    calls = [
        {"id": f"c{n}", "type": "function", "function": {"name": "fetch", "arguments": "{}"}}
        for n in range(4)
    ]
    texts = [prose(60_000, "alpha"), prose(60_000, "beta"), prose(40_000, "gamma"), "short"]
    results = [
        {"role": "tool", "tool_call_id": f"c{n}", "content": text} for n, text in enumerate(texts)
    ]
    task = {"role": "user", "content": "Compare them."}
    history = [task, {"role": "assistant", "content": None, "tool_calls": calls}, *results]
    budget = tokens_of(history) // 2
    compacted, _ = compact(history, "openai_chat", budget, State())
    sizes = [tokens_of([message]) for message in compacted[2:]]
    assert compacted[-1] == results[-1]
    assert max(sizes[:3]) < min(sizes[:3]) * 1.2
    assert budget * 0.7 < sum(sizes) < budget


def test_a_long_text_is_hashed_once_in_a_conversation_though_what_is_sent_is_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Hashing every text anew in each step took half of its CPU in a history of 24 MB."""
    hashed = Counter[str]()

    def counting(content: str | bytes) -> str:
        hashed[str(content[:12])] += len(content) > 1_000
        return content_hash(content)

    monkeypatch.setattr(_sizes, "content_hash", counting)
    recovery = Recovery(Policy(window=8_000))
    texts = [f"text {number:>4}. " + "word " * 4_000 for number in range(4)]

    def answer(_: Any, **__: Any) -> dict[str, Any]:
        return {"usage": {"prompt_tokens": 10}}

    messages: list[Any] = [{"role": "user", "content": "Sum up."}]
    for number, text in enumerate(texts):
        function = {"name": "fetch", "arguments": "{}"}
        call = {"id": f"c{number}", "type": "function", "function": function}
        messages += [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{number}", "content": text},
        ]
        recovery.call(answer, Request(messages, "openai_chat"))
    assert {str(text[:12]): hashed[text[:12]] for text in texts} == {t[:12]: 1 for t in texts}
