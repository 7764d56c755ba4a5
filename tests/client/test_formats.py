"""Formats and pairing: the four formats read as one, and exchanges that only move as a whole."""

from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from fetchstash.client import (
    EXTRACTION_MARK,
    Format,
    Policy,
    State,
    compact,
    extractor_prompt,
    orphans,
)
from fetchstash.client._formats import parts, replace_values
from fetchstash.client._protect import class_of, critical_messages, pair, units
from tests.client.conversations import FORMATS, Turn, render, turns
from tests.client.fakes import Kept
from tests.client.test_compact import said
from tests.client.test_history import ARGUMENTS, PROMPT, turn


def calling(name: str) -> dict[str, Any]:
    call = {"id": "1", "function": {"name": name, "arguments": "{}"}}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


HISTORY = [
    Turn("user", "task"),
    Turn("tools", "", (("fetch", "a", "result a"), ("fetch", "b", "result b")), reasoning=True),
    Turn("assistant", "done"),
]


@pytest.mark.parametrize("fmt", FORMATS)
def test_parallel_calls_are_paired_with_their_own_results(fmt: Format) -> None:
    pairing = pair(parts(render(HISTORY, fmt), fmt))
    assert [('"a"' in p.call.text, "result a" in p.result.text) for p in pairing.pairs] == [
        (True, True),
        (False, False),
    ]
    assert not pairing.lone_calls
    assert not pairing.lone_results


@pytest.mark.parametrize("fmt", FORMATS)
def test_an_exchange_is_the_call_its_results_and_the_reasoning_bound_to_it(fmt: Format) -> None:
    messages = render(HISTORY, fmt)
    found = parts(messages, fmt)
    cut = units(len(messages), found, pair(found))
    exchange = next(unit for unit in cut if unit.exchange)
    kinds = [part.kind for part in found if exchange.start <= part.message < exchange.end]
    assert kinds.count("call") == kinds.count("result") == 2
    assert kinds.count("reasoning") == (1 if fmt in {"openai_responses", "anthropic"} else 0)
    assert [unit.end for unit in cut[:-1]] == [unit.start for unit in cut[1:]]


def test_a_user_message_between_a_call_and_its_result_belongs_to_the_exchange() -> None:
    messages: list[Any] = [
        calling("f"),
        {"role": "user", "content": "the task"},
        {"role": "tool", "tool_call_id": "1", "content": "x"},
        {"role": "assistant", "content": "done"},
    ]
    found = parts(messages, "openai_chat")
    assert [(u.start, u.end, u.exchange) for u in units(4, found, pair(found))] == [
        (0, 3, True),
        (3, 4, False),
    ]


def test_a_call_without_a_result_and_a_result_without_a_call_are_named() -> None:
    messages: list[Any] = [calling("f"), {"role": "tool", "tool_call_id": "2", "content": "x"}]
    assert orphans(messages, "openai_chat") == [
        "Message 0: call 1 has no result.",
        "Message 1: result 2 has no call.",
    ]


def test_a_call_that_is_made_again_under_its_id_is_the_one_that_is_answered() -> None:
    messages: list[Any] = [calling("given_up"), calling("again")]
    messages.append({"role": "tool", "tool_call_id": "1", "content": "x"})
    pairing = pair(parts(messages, "openai_chat"))
    assert [(p.call.name, p.result.text) for p in pairing.pairs] == [("again", "x")]
    assert orphans(messages, "openai_chat") == ["Message 0: call 1 has no result."]


def test_calls_of_the_last_message_are_still_to_be_answered() -> None:
    messages: list[Any] = [calling("f")]
    assert not orphans(messages, "openai_chat")


def test_an_item_of_an_unknown_type_is_paired_by_its_call_id() -> None:
    call = {"type": "new_call", "call_id": "1"}
    assert not orphans([call, {"type": "new_call_output", "call_id": "1"}], "openai_responses")
    assert orphans([call, said("user", "Go on.")], "openai_responses")


@pytest.mark.parametrize(
    "odd",
    [
        None,
        "text",
        7,
        {},
        {"role": None, "content": 3},
        {"role": "user", "content": [1, {"x": 1}]},
        {"parts": [{"functionCall": 1}]},
    ],
)
@pytest.mark.parametrize("fmt", FORMATS)
def test_a_message_of_no_known_shape_is_left_as_it_is(fmt: Format, odd: Any) -> None:
    assert not orphans([odd], fmt)
    assert replace_values([odd], {}) == [odd]


@pytest.mark.parametrize("fmt", FORMATS)
def test_replacing_a_value_leaves_the_original_untouched(fmt: Format) -> None:
    messages, same = render(HISTORY, fmt), render(HISTORY, fmt)
    part = next(part for part in parts(messages, fmt) if part.kind == "result")
    stub = {"summary": "s"} if isinstance(part.value, dict) else '{"summary": "s"}'
    changed = replace_values(messages, {part.place: stub})
    assert messages == same
    assert "summary" in next(p.text for p in parts(changed, fmt) if p.place == part.place)
    assert not orphans(changed, fmt)


@pytest.mark.slow
@given(turns, st.sampled_from(FORMATS), st.booleans())
def test_every_conversation_is_wholly_paired_and_cut_into_units_without_gaps(
    history: list[Turn], fmt: Format, repeat_ids: bool
) -> None:
    messages = render(history, fmt, repeat_ids=repeat_ids)
    found = parts(messages, fmt)
    cut = units(len(messages), found, pair(found))
    assert not orphans(messages, fmt)
    assert [n for unit in cut for n in range(unit.start, unit.end)] == list(range(len(messages)))
    assert sum(unit.exchange for unit in cut) == sum(turn.kind == "tools" for turn in history)


@pytest.mark.parametrize("fmt", FORMATS)
def test_quotes_of_a_prompt_have_the_class_background_extraction(fmt: Format) -> None:
    found = parts([turn("the task", fmt), turn(PROMPT, fmt)], fmt)
    critical = critical_messages(found, pair(found), 6)
    assert [(part.kind, part.name, class_of(part, critical)) for part in found] == [
        ("text", "", "critical"),
        ("opaque", "", "background_extraction"),
        ("text", "", "background_extraction"),
        ("call", "write", "background_extraction"),
        ("result", "", "background_extraction"),
        ("text", "", "background_extraction"),
        ("text", "", "background_extraction"),
    ]
    assert found[3].value == ARGUMENTS
    assert not orphans([turn("the task", fmt), turn(PROMPT, fmt), turn("Go on.", fmt)], fmt)


@pytest.mark.parametrize(
    "text", [f" {PROMPT}", f"Look:\n{PROMPT}", f"{EXTRACTION_MARK}s are odd", "[user]\nhello"]
)
def test_a_text_that_only_mentions_the_mark_is_a_users(text: str) -> None:
    assert [part.background for part in parts([said("user", text)], "openai_chat")] == [False]


@pytest.mark.long
@given(turns, st.sampled_from(FORMATS))
@settings(max_examples=60)
def test_a_prompt_of_any_conversation_is_read_without_loss_and_bounded_without_orphans(
    history: list[Turn], fmt: Format
) -> None:
    quoted, _ = extractor_prompt(render(history, fmt), fmt, 10**6, State())
    assert quoted is not None
    messages = [*render(history, fmt), turn(quoted, fmt), turn("Go on.", fmt)]
    found = [part for part in parts(messages, fmt) if part.background and part.kind != "opaque"]
    for part in found:
        assert replace_values(messages, {part.place: part.value}) == messages
    sent, report = compact(messages, fmt, 60, State(), policy=Policy(offload=Kept()))
    assert not orphans(sent, fmt)
    assert report.after <= report.before
