"""Count what the event loop does in one turn, so that a test sees what holds it on any machine.

A callback of the loop runs to its end before a ping can be answered. How long that takes depends on
the machine; how many functions it calls does not.
"""

import sys
from asyncio import Handle
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

_CALLBACK = Handle._run.__code__


@dataclass
class Turns:
    """The calls of functions in the longest turn of the loop, and which they were."""

    count: int = 0
    most: int = 0
    calls: Counter[Any] = field(default_factory=Counter[Any])
    longest: Counter[Any] = field(default_factory=Counter[Any])

    def see(self, frame: FrameType, event: str, value: Any) -> None:
        """Take note of one event of ``sys.setprofile``."""
        if event == "call":
            if frame.f_code is _CALLBACK:
                self.end_turn()
            self.calls[frame.f_code] += 1
        elif event == "c_call":
            self.calls[value] += 1

    def end_turn(self) -> None:
        """Compare the turn that ends with the longest one."""
        total = self.calls.total()
        self.count += 1
        if total > self.most:
            self.most, self.longest = total, self.calls
        self.calls = Counter()

    def __str__(self) -> str:
        named = Counter[str]()
        for called, count in self.longest.items():
            named[getattr(called, "co_qualname", getattr(called, "__qualname__", "?"))] += count
        most = ", ".join(f"{name} {count:,}" for name, count in named.most_common(9))
        return f"{self.most:,} calls in one of {self.count:,} turns: {most}"


@contextmanager
def counted_turns() -> Generator[Turns]:
    """Count the turns of the loop that runs in this thread while the context is open."""
    turns, before = Turns(), sys.getprofile()
    sys.setprofile(turns.see)
    try:
        yield turns
    finally:
        sys.setprofile(before)
        turns.end_turn()
