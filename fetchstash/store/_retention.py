"""Which artifacts go, and why. Pure: candidates and limits in, a plan out."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from fetchstash.store._contract import StoreLimits

Reason = Literal["age", "count", "bytes"]


@dataclass(frozen=True, slots=True)
class Candidate:
    """An artifact that nobody pinned: its row, its size in bytes, and when it may go (seconds since 1970)."""

    id: int
    ref: str
    bytes: int
    expires_at: float


def plan(
    candidates: Iterable[Candidate], limits: StoreLimits, now: float
) -> list[tuple[Candidate, Reason]]:
    """Return what goes: whatever is too old, then the least recently used until count, then until bytes are within the limits.

    ``candidates`` are those of one run, least recently used first.
    """
    gone: list[tuple[Candidate, Reason]] = []
    kept: list[Candidate] = []
    for candidate in candidates:
        if candidate.expires_at <= now:
            gone.append((candidate, "age"))
        else:
            kept.append(candidate)
    surplus = max(len(kept) - limits.max_artifacts, 0)
    gone.extend((candidate, "count") for candidate in kept[:surplus])
    total = sum(candidate.bytes for candidate in kept[surplus:])
    for candidate in kept[surplus:]:
        if total <= limits.max_total_bytes:
            break
        total -= candidate.bytes
        gone.append((candidate, "bytes"))
    return gone
