"""Which parts belong together, which may not be changed, and the class of each."""

import re
from collections import defaultdict, deque
from collections.abc import Sequence
from typing import Literal, NamedTuple

from fetchstash.client._formats import Part, parts
from fetchstash.client._policy import Format, Message
from fetchstash.errors import type_checked


class Pair(NamedTuple):
    """A call and the result that answers it."""

    call: Part
    result: Part


class Pairing(NamedTuple):
    """Pairs; calls that were never answered; results that answer no call before them."""

    pairs: list[Pair]
    lone_calls: list[Part]
    lone_results: list[Part]


class Unit(NamedTuple):
    """Messages [start, end) that only make sense together: one text, or an exchange.

    An exchange is a call, all its parallel results, the reasoning bound to it and whatever stands
    between.
    """

    start: int
    end: int
    exchange: bool


def pair(all_parts: Sequence[Part]) -> Pairing:
    """Return the pairs of calls and results, and the calls and results without one.

    Ids repeat in real transcripts: a call that is made again under its id was given up before.
    Calls without an id (Gemini) are known by their name; several in one message are answered in
    their order.
    """
    waiting: defaultdict[str, deque[Part]] = defaultdict(deque)
    pairs: list[Pair] = []
    lone_calls: list[Part] = []
    lone_results: list[Part] = []
    for part in all_parts:
        if part.background:
            continue
        queue = waiting[part.call_id or f"name:{part.name}"]
        if part.kind == "call":
            # Parallel calls of one message may share a name (Gemini), so only a later message gives
            # them up.
            if queue and queue[0].message != part.message:
                lone_calls.extend(queue)
                queue.clear()
            queue.append(part)
        elif part.kind == "result":
            if queue:
                pairs.append(Pair(queue.popleft(), part))
            else:
                lone_results.append(part)
    lone_calls.extend(call for queue in waiting.values() for call in queue)
    return Pairing(pairs, sorted(lone_calls, key=lambda call: call.message), lone_results)


@type_checked
def orphans(messages: Sequence[Message], format: Format) -> list[str]:
    """Return a sentence for each call without a result and each result without a call.

    Every provider refuses a request with either. Calls of the last message are no orphans: their
    results are still to come.
    """
    pairing = pair(parts(messages, format))
    last = len(messages) - 1
    calls = [
        f"Message {c.message}: call {c.call_id or c.name} has no result."
        for c in pairing.lone_calls
        if c.message != last
    ]
    results = [
        f"Message {r.message}: result {r.call_id or r.name} has no call."
        for r in pairing.lone_results
    ]
    return calls + results


def units(count: int, all_parts: Sequence[Part], pairing: Pairing) -> list[Unit]:
    """Cut ``count`` messages into units, in order and without gaps.

    Reasoning that is an item of its own (OpenAI's Responses) is bound to all that the model said
    with it: alone the API refuses it.
    """
    reach = list(range(1, count + 1))
    exchanges: set[int] = set()
    for answered in pairing.pairs:
        first, last = sorted((answered.call.message, answered.result.message))
        reach[first] = max(reach[first], last + 1)
        exchanges.add(first)
    spoken = {part.message for part in all_parts if part.role == "assistant"}
    for part in all_parts:
        # Thinking blocks of Anthropic stand in the message of their call, and stay with it anyway.
        if part.kind == "reasoning" and part.place[1] == ():
            end = part.message + 1
            while end in spoken:
                end += 1
            reach[part.message] = end
    all_units: list[Unit] = []
    start = 0
    while start < count:
        end, at = reach[start], start
        # What lies within may reach further itself: results of parallel calls come in several
        # messages.
        while at < end:
            end = max(end, reach[at])
            at += 1
        all_units.append(Unit(start, end, not exchanges.isdisjoint(range(start, end))))
        start = end
    return all_units


def untouchable(
    count: int, all_parts: Sequence[Part], all_units: Sequence[Unit], prefix: int = 0
) -> frozenset[int]:
    """Return the numbers of the messages that are never changed.

    These are the first ``prefix`` messages, the system prompt (system messages before anybody
    spoke), the first task, the last user turn, and the latest exchange with all that came after it;
    but no prompt of a background extractor, which nobody said.
    """
    kept = set[int]()
    spoken = [part for part in all_parts if part.role in {"user", "assistant", "tool"}]
    first_spoken = spoken[0].message if spoken else count
    kept.update(
        part.message for part in all_parts if part.role == "system" and part.message < first_spoken
    )
    users = user_messages(all_parts)
    # A picture may be the last turn, or the first: a screenshot is no steering.
    words = user_messages([part for part in all_parts if part.kind == "text"])
    kept.update(users[:1] + users[-1:] + words[:1] + words[-1:])
    latest = next((unit for unit in reversed(all_units) if unit.exchange), None)
    if latest:
        kept.update(range(latest.start, latest.end))
    # Its calls may wait for their results, so that it is no exchange yet.
    kept.update(range(all_units[-1].start, all_units[-1].end) if all_units else ())
    # The caller's prefix goes last: it holds, whatever stands in it.
    return frozenset(kept - _background(all_parts) | set(range(min(prefix, count))))


def background_task(all_parts: Sequence[Part]) -> frozenset[int]:
    """Return the numbers of the prompts that are the only task of an extractor's conversation.

    They may be bounded, but neither be merged with what follows nor summed up.
    """
    return frozenset() if user_messages(all_parts) else _background(all_parts)


def user_messages(all_parts: Sequence[Part]) -> list[int]:
    """Return the numbers of the messages in which the user speaks, in order.

    A message that only carries tool results is none.
    """
    said = (
        part
        for part in all_parts
        if part.role == "user" and part.kind in {"text", "opaque"} and not part.background
    )
    return sorted({part.message for part in said})


def _background(all_parts: Sequence[Part]) -> frozenset[int]:
    """Return the numbers of the messages that are only the prompt of a background extractor."""
    return frozenset(part.message for part in all_parts if part.background) - {
        part.message for part in all_parts if not part.background
    }


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
    answers = answers_of(conversation)
    instructions = [part.message for part in texts if part.role == "system"]
    reminders = [
        part.message
        for part in texts
        if part.role != "assistant" and _TODO_TEXT.search(part.text[:2_000])
    ]
    spoken = sorted({*answers, *user_messages(conversation), *reminders})
    todo = [answered for answered in pairing.pairs if _TODO_TOOL.search(answered.call.name)]
    recently = spoken[max(len(spoken) - recent, 0) :]
    # The latest of each kind, however old: without its last answer, or its list of what is to do, a
    # model does the work again.
    critical = {*recently, *answers[-1:], *instructions[-1:], *reminders[-1:]}
    if todo:
        critical |= {todo[-1].call.message, todo[-1].result.message}
    return frozenset(critical)


def answers_of(all_parts: Sequence[Part]) -> list[int]:
    """Return the numbers of the messages in which the assistant answers and calls no tool."""
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
