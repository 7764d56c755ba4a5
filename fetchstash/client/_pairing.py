"""Calls and their results: pairs, what stands alone, and exchanges that move as a whole."""

from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass

from fetchstash.client._formats import Format, Message, Part, parts


@dataclass(frozen=True, slots=True)
class Pair:
    """A call and the result that answers it."""

    call: Part
    result: Part


@dataclass(frozen=True, slots=True)
class Pairing:
    """Pairs; calls that were never answered; results that answer no call before them."""

    pairs: tuple[Pair, ...]
    lone_calls: tuple[Part, ...]
    lone_results: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Unit:
    """Messages [start, end) that only make sense together: one text, or an exchange.

    An exchange is a call, all its parallel results, the reasoning bound to it and whatever stands
    between.
    """

    start: int
    end: int
    exchange: bool


def pair(all_parts: Sequence[Part]) -> Pairing:
    """Pair calls with results, in order.

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
    return Pairing(
        tuple(pairs), tuple(sorted(lone_calls, key=lambda call: call.message)), tuple(lone_results)
    )


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
        if part.kind == "reasoning" and part.place[1] == ():
            end = part.message + 1
            while end in spoken:
                end += 1
            reach[part.message] = end
    all_units: list[Unit] = []
    start = 0
    while start < count:
        end, at = reach[start], start
        while at < end:
            end = max(end, reach[at])
            at += 1
        all_units.append(
            Unit(start, end, exchange=any(number in exchanges for number in range(start, end)))
        )
        start = end
    return all_units
