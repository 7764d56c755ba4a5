"""Which messages stay byte for byte, whatever happens."""

from collections.abc import Sequence

from fetchstash.client._formats import Part
from fetchstash.client._pairing import Unit


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
    kept.update(range(all_units[-1].start, all_units[-1].end) if all_units else ())
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
