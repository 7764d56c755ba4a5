"""Prompts of a memory extractor: known by their mark, bounded by the stages of a conversation."""

import json
from typing import Any

import pytest

from fetchstash.client import (
    EXTRACTION_MARK,
    Format,
    Policy,
    Recovery,
    State,
    compact,
    extractor_prompt,
    rewrite,
)
from tests.client.conversations import FORMATS, Turn, render
from tests.client.fakes import Events, Kept, Overflow, conversation, prose, tokens_of
from tests.client.test_compact import said, working

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
