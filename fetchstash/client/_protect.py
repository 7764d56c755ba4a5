"""Which messages stay byte for byte, whatever happens."""

from collections.abc import Sequence

from fetchstash.client._formats import Part
from fetchstash.client._pairing import Unit


def untouchable(
    count: int, found: Sequence[Part], cut: Sequence[Unit], prefix: int = 0
) -> frozenset[int]:
    """Return the numbers of the messages that are never changed.

    These are the first ``prefix`` messages, the system prompt (system messages before anybody
    spoke), the first task, the last user turn, and the latest exchange with all that came after it;
    but no prompt of a background extractor, which nobody said.
    """
    kept = set[int]()
    spoken = [part for part in found if part.role in {"user", "assistant", "tool"}]
    first_spoken = spoken[0].message if spoken else count
    kept.update(
        part.message for part in found if part.role == "system" and part.message < first_spoken
    )
    users = user_messages(found)
    kept.update(users[:1] + users[-1:])
    latest = next((unit for unit in reversed(cut) if unit.exchange), None)
    if latest:
        kept.update(range(latest.start, latest.end))
    kept.update(range(cut[-1].start, cut[-1].end) if cut else ())
    return frozenset(kept - _background(found) | set(range(min(prefix, count))))


def background_task(found: Sequence[Part]) -> frozenset[int]:
    """Return the numbers of the prompts that are the only task there is, in an extractor's own conversation.

    They may be bounded, but neither be merged with what follows nor summed up.
    """
    return frozenset() if user_messages(found) else _background(found)


def user_messages(found: Sequence[Part]) -> list[int]:
    """Return the numbers of the messages in which the user speaks, in order; a message that only carries tool results is none."""
    said = (
        part
        for part in found
        if part.role == "user" and part.kind in {"text", "opaque"} and not part.background
    )
    return sorted({part.message for part in said})


def _background(found: Sequence[Part]) -> frozenset[int]:
    """Return the numbers of the messages that are nothing but the prompt of a background extractor."""
    return frozenset(part.message for part in found if part.background) - {
        part.message for part in found if not part.background
    }
