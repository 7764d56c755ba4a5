"""HistoryCompactor and the prompts of memory extractors."""

import json
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from fetchstash.client import (
    EXTRACTION_MARK,
    CompactionConfig,
    CompactionResult,
    Format,
    HistoryCompactor,
    Policy,
    Recovery,
    State,
    compact,
    extractor_prompt,
    orphans,
    rewrite,
)
from fetchstash.client._sizes import text_tokens
from tests.client.conversations import FORMATS, Turn, render, turns
from tests.client.fakes import Events, Kept, Overflow, conversation, prose, tokens_of
from tests.client.test_compact import said, working

SMALL = CompactionConfig(max_tokens=3_000, target_tokens=2_000, summarizer_max_tokens=1_500)


def test_a_history_needs_compaction_above_its_bound() -> None:
    compactor = HistoryCompactor(SMALL)
    assert not compactor.needs_compaction(conversation("short"))
    assert compactor.needs_compaction(working(*[prose(6_000)] * 3))
    assert compactor.count_tokens(conversation("short")) < 100


@pytest.mark.anyio
async def test_contents_become_stubs_if_there_is_no_summarizer() -> None:
    history = working(*[prose(1_000, f"w{number}") for number in range(20)])
    config = CompactionConfig(max_tokens=6_000, target_tokens=5_000)
    result = await HistoryCompactor(config).compact(history)
    assert result.original_messages == history
    assert 4_500 < result.compacted_tokens <= 5_000 < result.original_tokens
    assert result.summary is None
    assert not orphans(result.compacted_messages, "openai_chat")


@pytest.mark.anyio
@pytest.mark.parametrize("is_async", [True, False])
async def test_the_summary_of_a_summarizer_replaces_the_old_messages(is_async: bool) -> None:
    handed: list[str] = []
    told: list[CompactionResult[Any]] = []

    def summarize(text: str) -> str:
        handed.append(text)
        return "They read five pages."

    async def asummarize(text: str) -> str:
        return summarize(text)

    async def on_compaction(result: CompactionResult[Any]) -> None:
        told.append(result)

    history = [*working(*[prose(4_000)] * 5), said("user", "Go on."), *working("ok")[2:]]
    compactor = (
        HistoryCompactor(SMALL, asummarize, on_compaction)
        if is_async
        else HistoryCompactor(SMALL, summarize, told.append)
    )
    result = await compactor.compact(history)
    assert result.summary == "They read five pages."
    assert result.compacted_messages[:2] == history[:2]
    assert "They read five pages." in result.compacted_messages[2]["content"]
    assert result.compacted_messages[-3:] == history[-3:]
    assert result.compacted_tokens < result.original_tokens
    assert told == [result]
    assert compactor.count_tokens([said("user", handed[0])]) <= 1_500
    assert not orphans(result.compacted_messages, "openai_chat")


@pytest.mark.anyio
async def test_quotes_of_an_extractors_prompt_are_not_summed_up() -> None:
    prompt, _ = extractor_prompt(working(prose(4_000), "ok"), "openai_chat", 10_000, State())
    history = [
        said("system", "Extract."),
        said("user", str(prompt)),
        *working("ok")[2:],
        *working("ok")[2:],
    ]
    result = await HistoryCompactor(SMALL, lambda _: "summary").compact(history)
    assert result.compacted_messages[:2] == history[:2]


@pytest.mark.anyio
@settings(max_examples=40)
@given(turns, st.sampled_from(FORMATS), st.booleans(), st.booleans())
async def test_every_format_keeps_pairs_and_the_latest_message(
    history: list[Turn], fmt: Format, repeat_ids: bool, summed_up: bool
) -> None:
    messages = render([*history, Turn("user", "Go on.")], fmt, repeat_ids=repeat_ids)
    compactor = HistoryCompactor(SMALL, (lambda _: "summary") if summed_up else None, format=fmt)
    result = await compactor.compact(messages)
    assert not orphans(result.compacted_messages, fmt)
    assert result.compacted_messages[-1] == messages[-1]
    assert result.compacted_messages[0] == messages[0]
    assert result.original_messages == messages


@pytest.mark.anyio
async def test_a_summarizer_that_fails_changes_nothing() -> None:
    def summarize(_text: str) -> str:
        raise RuntimeError("no model today")

    history = working(*[prose(4_000)] * 5)
    with pytest.raises(RuntimeError):
        await HistoryCompactor(SMALL, summarize).compact(history)
    assert history == working(*[prose(4_000)] * 5)


@pytest.mark.anyio
async def test_a_summarizer_whose_own_prompt_is_too_long_is_asked_once_more_with_less() -> None:
    handed: list[int] = []

    async def summarize(text: str) -> str:
        handed.append(text_tokens(text))
        if handed[-1] > 400:
            raise Overflow(f"prompt is too long: {handed[-1]} tokens > 400 maximum")
        return "They read five pages."

    history = working(*[prose(1_000, f"w{number}") for number in range(20)])
    compacted = (await HistoryCompactor(SMALL, summarize).compact(history)).compacted_messages
    assert "They read five pages." in json.dumps(compacted)
    assert len(handed) == 2
    assert handed[1] <= 250

    async def refuse(text: str) -> str:
        handed.append(len(text))
        raise Overflow

    handed.clear()
    with pytest.raises(Overflow):
        await HistoryCompactor(SMALL, refuse).compact(history)
    assert len(handed) == 2
    assert handed[1] < handed[0]


@pytest.mark.anyio
async def test_a_summary_longer_than_what_it_sums_up_is_left_out_and_stubs_take_its_place() -> None:
    history = working(*[prose(1_000, f"w{number}") for number in range(20)])
    result = await HistoryCompactor(SMALL, lambda _: prose(60_000, "talk")).compact(history)
    assert result.summary is None
    assert "talk" not in json.dumps(result.compacted_messages)
    assert result.compacted_tokens <= 2_000


def with_a_document() -> list[Any]:
    history = working("ok", "ok")
    history[2]["tool_calls"][0]["function"]["arguments"] = json.dumps(
        {"path": "a.md", "content": prose(9_000)}
    )
    return history


def test_an_extraction_prompt_compacts_large_tool_arguments_even_where_all_would_fit() -> None:
    kept, events = Kept(), dict[str, dict[str, Any]]()
    prompt, report = extractor_prompt(
        with_a_document(),
        "openai_chat",
        100_000,
        State(),
        policy=Policy(offload=kept),
        on_event=events.__setitem__,
    )
    assert prompt is not None
    assert report is not None
    assert report.tier == "normal"
    assert prose(300) not in prompt
    assert '"path":"a.md"' in prompt
    assert "(9,000 characters, kept as art_" in prompt
    assert events["extractor.prompt"]["extractor_compacted_fields"] == 1
    assert events["extractor.prompt"]["extractor_prompt_chars"] == len(prompt)


@pytest.mark.parametrize(
    "arguments",
    [
        json.dumps([f"line {n}" for n in range(500)]),
        json.dumps({"path": "a.md", "lines": [f"line {n}" for n in range(500)]}),
        json.dumps({f"line{n}": f"line {n}" for n in range(500)}),
        json.dumps({"files": {f"file{n}.md": f"line {n}" for n in range(500)}}),
        "line 1\n" * 500,
    ],
    ids=["list", "list inside", "many values", "many values inside", "no JSON"],
)
def test_no_document_is_raw_in_an_extraction_prompt_whatever_its_shape_is_as_an_argument(
    arguments: str,
) -> None:
    history = working("ok", "ok")
    history[2]["tool_calls"][0]["function"]["arguments"] = arguments
    prompt, _ = extractor_prompt(history, "openai_chat", 100_000, State())
    assert prompt is not None
    assert "line 1" not in prompt
    assert len(prompt) < 600


def test_the_protected_parts_of_a_request_are_bounded_in_an_extraction_prompt() -> None:
    history = [
        said("system", "Be good."),
        said("user", prose(30_000, "task")),
        *working(prose(60_000, "page"))[2:],
    ]
    prompt, report = extractor_prompt(
        history, "openai_chat", 2_000, State(), policy=Policy(offload=Kept())
    )
    assert prompt is not None
    assert report is not None
    assert HistoryCompactor().count_tokens([said("user", prompt)]) < 2_000
    assert "task1 task2" not in prompt
    assert "page1 page2" not in prompt
    assert "[user]\n(Earlier user message of 30,000 characters, kept as art_" in prompt


@pytest.mark.anyio
async def test_a_summarizer_is_never_handed_more_than_its_bound_whatever_it_is_that_is_long() -> (
    None
):
    handed: list[str] = []
    history = [
        *working(prose(60_000, "page")),
        said("user", prose(30_000, "words")),
        said("assistant", prose(30_000, "answer")),
        said("user", "Go on."),
        *working("ok")[2:],
    ]

    def summarize(text: str) -> str:
        handed.append(text)
        return "summary"

    await HistoryCompactor(SMALL, summarize).compact(history)
    assert HistoryCompactor().count_tokens([said("user", handed[0])]) <= 1_500
    assert "[tool]" in handed[0]
    assert not handed[0].startswith("[background")


def test_near_the_time_limit_extraction_is_put_off() -> None:
    events = dict[str, dict[str, Any]]()
    told = extractor_prompt(
        with_a_document(),
        "openai_chat",
        100_000,
        State(),
        remaining_seconds=2,
        on_event=events.__setitem__,
    )
    assert told == (None, None)
    assert events == {"extraction.deferred": {"remaining_seconds": 2}}


# --- Prompts of a memory extractor: known by their mark, bounded by the stages of a conversation.

ARGUMENTS = json.dumps({"path": "a.md", "content": prose(6_000, "argument")})
PROMPT = f"""{EXTRACTION_MARK}
Note what is worth remembering.

[user]
Write the report.

[assistant calls write]
{ARGUMENTS}

[tool]
{prose(3_000, "result")}

[assistant]
{prose(3_000, "answer")}

[user]
Thanks."""


def turn(text: str, fmt: Format) -> Any:
    return render([Turn("user", text)], fmt)[-1]


def text_of(message: Any, fmt: Format) -> str:
    """Return a message's text as it is sent, sections and all."""
    content = message["parts"] if fmt == "gemini" else message["content"]
    return str(content if isinstance(content, str) else content[0]["text"])


@pytest.mark.parametrize("fmt", FORMATS)
@pytest.mark.parametrize(
    ("share", "stage", "gone"),
    [
        (1.38, 1, {"argument"}),
        (1.0, 2, {"argument", "result"}),
        (0.4, 3, {"argument", "result", "answer"}),
    ],
)
def test_an_extractors_request_is_bounded_by_arguments_then_results_then_texts_and_its_task_stays(
    fmt: Format, share: float, stage: int, gone: set[str]
) -> None:
    request = [turn(PROMPT, fmt)]
    size = compact(request, fmt, 10**6, State())[1].before
    policy = Policy(offload=Kept(), compaction_target_ratio=0.45)
    sent, report = compact(request, fmt, round(size * share), State(), policy=policy)
    text = text_of(sent[0], fmt)
    assert report.stage == stage
    assert {
        name for name in ("argument", "result", "answer") if f"{name}1 {name}2" not in text
    } == gone
    assert text.startswith(f"{PROMPT[: PROMPT.index('{')]}{{")
    assert text.endswith("[user]\nThanks.")
    assert '"path"' in text
    assert "…" not in text


def test_a_prompt_among_other_messages_is_neither_the_users_steering_nor_a_task() -> None:
    history = [*working("short"), said("user", PROMPT), *working("ok")[2:], said("user", "Go on.")]
    sent, report = compact(history, "openai_chat", int(tokens_of(history) / 0.8), State())
    assert {change.message for change in report.changes} == {4}
    assert sent[:4] == history[:4]
    assert sent[5:] == history[5:]


def test_a_prompt_within_the_prefix_stays_byte_for_byte() -> None:
    history = [said("user", PROMPT), said("user", "Go on.")]
    assert compact(history, "openai_chat", 100, State(), prefix=1)[0][0] == history[0]
    assert rewrite(history, "openai_chat", 100, prefix=1)[0][0] == history[0]


def test_an_extractors_task_is_neither_merged_nor_lost_when_its_conversation_grows() -> None:
    history = [said("system", "You extract memories."), said("user", PROMPT)]
    for number in range(6):
        history += [said("assistant", prose(2_000, f"thought{number}x"))]
    sent, report = compact(history, "openai_chat", 700, State(), policy=Policy(offload=Kept()))
    assert report.tier == "critical"
    assert sent[1]["content"].startswith(f"{EXTRACTION_MARK}\nNote what is worth remembering.")


def test_an_extractors_request_that_is_refused_is_sent_once_more_and_smaller() -> None:
    requests: list[Any] = []

    def provider(messages: Any) -> str:
        requests.append(messages)
        if len(requests) == 1:
            raise Overflow
        return "[]"

    messages = [said("system", "Extract."), said("user", PROMPT)]
    assert Recovery(Policy(offload=Kept())).call(provider, messages) == "[]"
    assert len(requests[1][1]["content"]) < len(PROMPT) / 2


def test_a_prompt_of_extractor_prompt_is_recognised_and_reported() -> None:
    history = conversation(prose(3_000, "one"), prose(3_000, "two"), "ok")
    prompt, _ = extractor_prompt(history, "openai_chat", 100_000, State())
    assert prompt is not None
    events, state = Events(), State()
    request = [said("system", "Extract."), said("user", prompt)]
    sent, report = compact(request, "openai_chat", 1_000, state, on_event=events)
    assert report.fits
    figures = dict(events)["extractor.prompt"]
    assert figures["extractor_compacted_fields"] == len(report.changes) == 2
    assert 0 < figures["extractor_prompt_est_tokens"] <= report.after
    assert figures["extractor_prompt_chars"] < len(sent[1]["content"])
    again, second = compact([*request, said("assistant", "hm")], "openai_chat", 1_000, state)
    assert again[:2] == sent
    assert not second.changes


@pytest.mark.parametrize(
    "text", [EXTRACTION_MARK, f"{EXTRACTION_MARK}\n\n", f"{EXTRACTION_MARK}\nNote what matters."]
)
def test_a_prompt_that_quotes_nothing_stays_as_it_is(text: str) -> None:
    messages = [{"role": "user", "content": "the task"}, {"role": "user", "content": text}]
    compacted, _ = compact(messages, "openai_chat", 1, State())
    assert compacted == messages
