"""HistoryCompactor with PydanticAI's messages. scripts/ci adapters runs this with the SDK."""

import importlib
import importlib.util
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from fetchstash.client import CompactionConfig, HistoryCompactor
from tests.client.conversations import Turn, turns
from tests.client.fakes import prose

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(
        importlib.util.find_spec("pydantic_ai") is None,
        reason="pydantic_ai is not installed here: scripts/ci adapters runs this where it is",
    ),
]
SMALL = CompactionConfig(max_tokens=600, target_tokens=400, summarizer_max_tokens=1_500)


TIGHT = CompactionConfig(max_tokens=600, target_tokens=540)


def calls_of(messages: list[Any]) -> list[str]:
    """Return the ids of all calls of tools."""
    parts = [part for message in messages for part in message.parts]
    return [part.tool_call_id for part in parts if part.part_kind == "tool-call"]


def results_of(messages: list[Any]) -> list[str]:
    """Return the ids of the calls that have results."""
    parts = [part for message in messages for part in message.parts]
    return [part.tool_call_id for part in parts if part.part_kind == "tool-return"]


def sdk() -> Any:
    return importlib.import_module("pydantic_ai.messages")


def history_of(history: list[Turn]) -> list[Any]:
    """Write a history in PydanticAI's messages, a system prompt before the task."""
    ai = sdk()
    messages: list[Any] = []
    for number, turn in enumerate(history):
        if turn.kind == "user":
            prompt = [ai.UserPromptPart(turn.text)]
            system = [] if messages else [ai.SystemPromptPart("Be good.")]
            messages.append(ai.ModelRequest(parts=[*system, *prompt]))
        elif turn.kind == "assistant":
            messages.append(ai.ModelResponse(parts=[ai.TextPart(turn.text)]))
        else:
            thinking = [ai.ThinkingPart("hm")] if turn.reasoning else []
            calls = [
                ai.ToolCallPart(name, {"what": argument}, f"call_{number}_{index}")
                for index, (name, argument, _) in enumerate(turn.calls)
            ]
            results = [
                ai.ToolReturnPart(name, result, f"call_{number}_{index}")
                for index, (name, _, result) in enumerate(turn.calls)
            ]
            messages += [
                ai.ModelResponse(parts=[*thinking, *calls]),
                ai.ModelRequest(parts=results),
            ]
    return messages


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(turns)
async def test_messages_of_pydantic_ai_come_back_as_such_smaller_and_paired(
    history: list[Turn],
) -> None:
    messages = history_of([*history, Turn("user", "Go on.")])
    compactor = HistoryCompactor(SMALL)
    before = list(messages)
    result = await compactor.compact(messages)
    ai = sdk()
    assert messages == before == result.original_messages
    assert len(result.compacted_messages) <= len(messages)
    assert all(isinstance(m, ai.ModelRequest | ai.ModelResponse) for m in result.compacted_messages)
    assert result.compacted_messages[0] == messages[0]
    assert result.compacted_messages[-1] == messages[-1]
    assert result.compacted_tokens <= result.original_tokens
    assert result.compacted_tokens == compactor.count_tokens(result.compacted_messages)
    assert calls_of(result.compacted_messages) == results_of(result.compacted_messages)
    adapter = ai.ModelMessagesTypeAdapter
    assert adapter.validate_json(adapter.dump_json(result.compacted_messages))


async def test_a_summary_becomes_a_request_of_the_users() -> None:
    old = [Turn(kind, prose(900, f"w{n}")) for n in range(6) for kind in ("user", "assistant")]
    messages = history_of([Turn("user", "the task"), *old, Turn("user", "Go on.")])
    result = await HistoryCompactor(SMALL, lambda _: "They talked.").compact(messages)
    ai = sdk()
    summary = result.compacted_messages[1]
    assert isinstance(summary, ai.ModelRequest)
    assert "They talked." in summary.parts[0].content


async def test_pictures_and_documents_are_counted_by_pixels_and_pages() -> None:
    ai = sdk()
    png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x04\0\0\0\x04\0" + bytes(300_000)
    pdf = b"%PDF-1.7\n" + b"<< /Type /Page >>\n" * 3 + bytes(300_000)
    seen = [ai.BinaryContent(png, media_type="image/png")]
    read = ["It says:", ai.BinaryContent(pdf, media_type="application/pdf")]
    messages = [
        ai.ModelRequest(parts=[ai.UserPromptPart(["Look.", *seen])]),
        ai.ModelResponse(parts=[ai.ToolCallPart("read", {}, "1")]),
        ai.ModelRequest(parts=[ai.ToolReturnPart("read", read, "1")]),
    ]
    compactor = HistoryCompactor()
    assert 10_000 < compactor.count_tokens(messages) < 12_500
    assert not compactor.needs_compaction(messages)


async def test_the_history_processor_leaves_a_short_history_alone() -> None:
    messages = history_of([Turn("user", "the task"), Turn("assistant", "done")])
    assert await HistoryCompactor(SMALL).create_history_processor()(messages) is messages


async def test_a_result_with_a_file_that_became_a_stub_is_a_text() -> None:
    ai = sdk()
    png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x04\0\0\0\x04\0" + bytes(3_000)
    content = [prose(4_000), ai.BinaryContent(png, media_type="image/png")]
    later = [Turn("tools", "", (("now", "", "noon"),)), Turn("user", "Go on.")]
    messages = [
        ai.ModelRequest(parts=[ai.UserPromptPart("the task")]),
        ai.ModelResponse(parts=[ai.ToolCallPart("look", {}, "1")]),
        ai.ModelRequest(parts=[ai.ToolReturnPart("look", content, "1")]),
        *history_of([Turn("user", "Next."), *later])[1:],
    ]
    result = await HistoryCompactor(TIGHT).compact(messages)
    restored = result.compacted_messages
    assert result.compacted_tokens < result.original_tokens
    assert isinstance(restored[2].parts[0].content, str)
    assert restored[2].parts[0].tool_call_id == "1"
