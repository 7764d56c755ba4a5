"""The report of a rewrite or a compaction."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from fetchstash.client._sizes import SizeUnit

Tier = Literal["", "normal", "pressure", "critical"]


@dataclass(frozen=True, slots=True)
class Change:
    """One content that was replaced by a stub made just now.

    ``target`` and ``label`` are those of its memo key; ``before`` and ``after`` are in the report's
    unit.
    """

    message: int
    stage: int
    content_hash: str
    target: int
    label: str
    before: int
    after: int


@dataclass(frozen=True, slots=True)
class Report:
    """Sizes in ``unit``: ``before``, ``after``, and the ``target`` that was aimed at.

    ``changes`` are new; ``reused`` counts stubs that were in force already. ``skipped`` counts what
    was left as it was, by reason: cache_hit, policy_preserve, no_pressure, no_gain. ``stage`` is
    the last one that was needed (0: none). ``unshrinkable`` has the size of what the provider takes
    only as it is, by type: pictures, encrypted results, calls of its own tools.
    """

    unit: SizeUnit
    before: int
    after: int
    target: int
    changes: tuple[Change, ...] = ()
    reused: int = 0
    skipped: Mapping[str, int] = field(default_factory=dict[str, int])
    tier: Tier = ""
    stage: int = 0
    merged_messages: int = 0
    unshrinkable: Mapping[str, int] = field(default_factory=dict[str, int])

    @property
    def fits(self) -> bool:
        """Whether the request is within the target."""
        return self.after <= self.target

    @property
    def smaller(self) -> bool:
        """Whether anything was gained."""
        return self.after < self.before

    def sentence(self) -> str:
        """Return in one sentence what came out."""
        what = f"{self.before} {self.unit} became {self.after}, the target being {self.target}"
        if self.fits:
            return f"The request was made smaller and sent once more: {what}."
        rest = "the rest is the system prompt, the task, the last user turn and the latest exchange"
        as_is = ""
        if self.unshrinkable:
            size = f"{sum(self.unshrinkable.values())} {self.unit}"
            names = ", ".join(sorted(self.unshrinkable))
            as_is = f" {size} are in blocks of {names}, which the provider takes only as they are."
        return f"Nothing more can be shrunk: {what}; {rest}.{as_is}"
