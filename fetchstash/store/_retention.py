"""Which artifacts go, and why. Pure: candidates and limits in, a plan out."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from fetchstash.store._limits import StoreLimits

Reason = Literal["age", "count", "bytes"]


@dataclass(frozen=True, slots=True)
class Candidate:
    """An artifact that nobody pinned: its row, its size in bytes, and when it may go."""

    id: int
    ref: str
    bytes: int
    expires_at: float


@dataclass(frozen=True, slots=True)
class Total:
    """How many artifacts the store keeps, and their bytes. Pinned ones do not count."""

    artifacts: int
    bytes: int

    def is_within(self, limits: StoreLimits) -> bool:
        """Return whether nothing must go for their sake."""
        return self.artifacts <= limits.max_artifacts and self.bytes <= limits.max_total_bytes


def plan(
    overdue: Iterable[Candidate],
    least_used: Iterable[Candidate],
    total: Total,
    limits: StoreLimits,
) -> Iterator[tuple[Candidate, Reason]]:
    """Go through what goes: first the overdue, then the least recently used until limits hold.

    ``least_used`` are all candidates, least recently used first. No more is read of it than is
    needed.
    """
    artifacts, size = total.artifacts, total.bytes
    gone = set[int]()
    for candidate in overdue:
        gone.add(candidate.id)
        artifacts, size = artifacts - 1, size - candidate.bytes
        yield candidate, "age"
    for candidate in least_used:
        if artifacts <= limits.max_artifacts and size <= limits.max_total_bytes:
            return
        if candidate.id in gone:
            continue
        reason: Reason = "count" if artifacts > limits.max_artifacts else "bytes"
        artifacts, size = artifacts - 1, size - candidate.bytes
        yield candidate, reason
