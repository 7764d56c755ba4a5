"""What the client may do, and for how long it remembers what it did."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Literal, Protocol


class Offload(Protocol):
    """Keeps what leaves the context, so that the agent can still reach it."""

    def keep(self, text: str, name: str) -> str:
        """Keep ``text`` and return a reference to it. ``name`` says in a word or two what it is."""
        ...


@dataclass(frozen=True, slots=True)
class Policy:
    """How the client behaves: the settings ``client.*``, with their defaults.

    ``offload`` keeps what is replaced by a stub; without it a stub only says what was there.
    ``window`` is the model's context window in tokens: with it a request is compacted before it is
    sent, without it only after the provider refused it.
    """

    overflow_fallback: bool = True
    compaction_mode: Literal["tiered", "legacy"] = "tiered"
    preserve_recent_critical_messages: int = 6
    compaction_pressure_ratio_soft: float = 0.70
    compaction_pressure_ratio_hard: float = 0.90
    oversized_fraction: float = 0.30
    churn_warning: int = 3
    offload: Offload | None = None
    window: int | None = None


StubKey = tuple[str, int, str]
"""The hash of a content, the target in tokens, and the label that says what kind of stub it is."""


@dataclass(slots=True)
class Merge:
    """Messages that became one: the hashes of all of them, in order, and the text that stands for them."""

    hashes: tuple[str, ...]
    text: str


@dataclass(slots=True)
class State:
    """What was decided in one conversation, so that the same decision is made again: stubs stay, and prompt caches stay warm.

    ``memo`` has the stub of each content that was ever tried, None where none was smaller;
    ``stubs`` are those in force, by call id, content hash and target; ``critical`` are the ones
    that only hold in the critical tier.
    """

    memo: dict[StubKey, Any] = field(default_factory=dict[StubKey, Any])
    stubs: dict[tuple[str, str, int], str] = field(default_factory=dict[tuple[str, str, int], str])
    critical: set[tuple[str, str, int]] = field(default_factory=set[tuple[str, str, int]])
    merges: list[Merge] = field(default_factory=list[Merge])
    token_counts: dict[str, int] = field(default_factory=dict[str, int])
    calls: Counter[str] = field(default_factory=Counter[str])

    def remembered(self, key: StubKey, make: Callable[[], Any]) -> tuple[Any, bool]:
        """Return the stub of ``key`` and whether it was made only now."""
        fresh = key not in self.memo
        if fresh:
            self.memo[key] = make()
        return self.memo[key], fresh


def content_hash(text: str) -> str:
    """Return what stands for a content in all keys: 128 bits of BLAKE2b."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
