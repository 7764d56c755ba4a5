"""Print grep groups as grep does."""

from collections.abc import Iterable, Sequence
from typing import Protocol

from fetchstash.text import Measure, prefix_length


class NumberedLine(Protocol):
    """A line that a grep found: its number from 1, its text, and whether it is a match or context."""

    @property
    def number(self) -> int: ...
    @property
    def text(self) -> str: ...
    @property
    def match(self) -> bool: ...


def grep_lines(
    groups: Iterable[Sequence[NumberedLine]],
    limit: int,
    measure: Measure = len,
    *,
    at_least_one: bool = True,
) -> tuple[str, int]:
    """Print groups of neighbouring lines as grep does, as many whole lines as fit; return the text and the matches in it.

    ``12:text`` is a match, ``13-text`` context, ``--`` stands between groups. With ``at_least_one``
    the first match gets in whatever the limit, without its context where that leaves no room for
    it.
    """
    printed: list[str] = []
    room, shown = limit, 0
    for group in groups:
        lines = [f"{line.number}{':' if line.match else '-'}{line.text}" for line in group]
        if printed:
            lines.insert(0, "--")
        kept = 0  # up to here the group is printed: through its last match that fits, and the context behind it
        taken = 0
        for position, line in enumerate(lines):
            taken += measure(line) + (1 if printed or position else 0)
            if taken > room:
                break
            kept = position + 1
        offset = len(lines) - len(group)
        matches = sum(line.match for line in group[: max(kept - offset, 0)])
        if not matches and not shown and at_least_one:
            first = next(line for line in group if line.match)
            text = f"{first.number}:{first.text}"
            return text[: prefix_length(text, limit, measure)], 1
        if not matches:
            break
        printed += lines[:kept]
        shown += matches
        if kept < len(lines):
            break
        room -= taken
    return "\n".join(printed), shown
