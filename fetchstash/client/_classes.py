"""The class of each part of a conversation: it decides when compaction may touch it."""

import re
from collections.abc import Sequence
from typing import Literal

from fetchstash.client._formats import Part
from fetchstash.client._pairing import Pairing
from fetchstash.client._protect import user_messages

Class = Literal["critical", "tool_trace", "historical_context", "background_extraction"]

# A list of things to do, as agents keep it: a tool of that name, or a reminder in the text.
_TODO_TOOL = re.compile(r"(?i)todo|update_plan|task_list")
_TODO_TEXT = re.compile(
    r"(?i)\btodos?\b[^\n]{0,60}\n\s*(?:[-*\d]|\[[ x~]\])|<system-reminder>|^\s*[-*] \[[ x]\] ",
    re.MULTILINE,
)


def critical_messages(all_parts: Sequence[Part], pairing: Pairing, recent: int) -> frozenset[int]:
    """Return the numbers of the messages that only the critical tier may touch.

    These are the last ``recent`` of what users said and of what the assistant said without calling
    a tool (steering, answers, what was completed), the latest answer in any case, the last system
    instruction, the last reminder of what is to do, and the last exchange with a tool that keeps
    it. Quotes in the prompt of a background extractor do not count.
    """
    conversation = [part for part in all_parts if not part.background]
    texts = [part for part in conversation if part.kind == "text"]
    answers = _answers(conversation)
    instructions = [part.message for part in texts if part.role == "system"]
    reminders = [
        part.message
        for part in texts
        if part.role != "assistant" and _TODO_TEXT.search(part.text[:2_000])
    ]
    spoken = sorted({*answers, *user_messages(conversation), *reminders})
    todo = [answered for answered in pairing.pairs if _TODO_TOOL.search(answered.call.name)]
    recently = spoken[max(len(spoken) - recent, 0) :]
    critical = {*recently, *answers[-1:], *instructions[-1:], *reminders[-1:]}
    if todo:
        critical |= {todo[-1].call.message, todo[-1].result.message}
    return frozenset(critical)


def latest_answer(all_parts: Sequence[Part]) -> int | None:
    """Return the number of the latest message in which the assistant answers and calls no tool."""
    return next(iter(_answers(all_parts)[-1:]), None)


def _answers(all_parts: Sequence[Part]) -> list[int]:
    conversation = [part for part in all_parts if not part.background]
    calling = {part.message for part in conversation if part.kind == "call"}
    texts = [part for part in conversation if part.kind == "text" and part.role == "assistant"]
    return sorted({part.message for part in texts} - calling)


def class_of(part: Part, critical: frozenset[int]) -> Class:
    """Return the class of one part."""
    if part.background:
        return "background_extraction"
    if part.message in critical:
        return "critical"
    return "tool_trace" if part.kind in {"call", "result"} else "historical_context"
