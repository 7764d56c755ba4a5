"""Print matches and passages as text, within a limit."""

from collections.abc import Iterable, Sequence

from fetchstash.store import Line, Passage
from fetchstash.text import Measure, largest, prefix_length, window


def grep_body(
    groups: Iterable[Sequence[Line]],
    limit: int | None,
    measure: Measure = len,
    *,
    at_least_one: bool = True,
) -> tuple[str, int]:
    """Print groups of neighbouring lines as grep does; return the text and its count of matches.

    ``12:text`` is a match, ``13-text`` is context, ``--`` separates groups. As many whole lines as
    fit are printed, all of them if ``limit`` is None. With ``at_least_one`` the first match is
    printed whatever the limit, without its context where that leaves no room for it.
    """
    printed: list[str] = []
    room, shown = limit, 0
    for group in groups:
        lines = [f"{line.number}{':' if line.match else '-'}{line.text}" for line in group]
        separators = 1 if printed else 0
        lines = ["--"] * separators + lines
        count, taken = _fitting(lines, room, measure, joined=bool(printed))
        matches = sum(line.match for line in group[: max(count - separators, 0)])
        if not matches and not shown and at_least_one and limit is not None:
            first = next(line for line in group if line.match)
            text = f"{first.number}:{first.text}"
            return text[: prefix_length(text, limit, measure)], 1
        if not matches:
            break
        printed += lines[:count]
        shown += matches
        if count < len(lines):
            break
        if room is not None:
            room -= taken
    return "\n".join(printed), shown


def _fitting(
    lines: Sequence[str], room: int | None, measure: Measure, *, joined: bool
) -> tuple[int, int]:
    """Return how many lines fit ``room`` and what they take; ``joined``: a line end comes first."""
    taken = 0
    for position, line in enumerate(lines):
        length = measure(line) + (1 if joined or position else 0)
        if room is not None and taken + length > room:
            return position, taken
        taken += length
    return len(lines), taken


def passages_body(
    passages: Iterable[Passage],
    limit: int | None,
    measure: Measure = len,
    *,
    with_ref: bool = False,
) -> tuple[str, int]:
    """Print the passages that fit, each under a line that locates it; return the text and a count.

    The lines of a passage carry their numbers, so that none can look like that line. The first
    passage is always printed, cut around its hit where it has to be. A ``limit`` of None prints
    them all.
    """
    body, shown = "", 0
    for passage in passages:
        ref = f"{passage.artifact_ref}, " if with_ref else ""
        lines = passage.text.rstrip("\n").split("\n")
        piece = _numbered(ref, lines, passage.first_line)
        joined = f"{body}\n{piece}" if body else piece
        if limit is not None and measure(joined) > limit:
            if not body:
                return _around_hit(ref, passage, lines, limit, measure), 1
            break
        body, shown = joined, shown + 1
    return body, shown


def _numbered(ref: str, lines: Sequence[str], first: int) -> str:
    """Print lines with their numbers, under the line that locates them."""
    last = first + len(lines) - 1
    where = f"lines {first} to {last}" if last > first else f"line {first}"
    numbered = (f"{number}:{line}" for number, line in enumerate(lines, start=first))
    return "\n".join((f"-- {ref}{where}", *numbered))


def _around_hit(
    ref: str, passage: Passage, lines: Sequence[str], limit: int, measure: Measure
) -> str:
    """Print the line of the hit with as many lines around it as fit, or a window of that line."""
    before = passage.text[: passage.hit]
    hit = min(before.count("\n"), len(lines) - 1)
    column = len(before) - before.rfind("\n") - 1

    def around(first: int, last: int) -> str:
        return _numbered(ref, lines[first : last + 1], passage.first_line + first)

    def cut(width: int) -> str:
        line = window(lines[hit], column, column + 1, width)
        return _numbered(ref, [line], passage.first_line + hit)

    first = last = hit
    if measure(around(first, last)) > limit:
        text = cut(largest(len(lines[hit]), lambda width: measure(cut(width)) <= limit))
        return text[: prefix_length(text, limit, measure)]
    while True:
        if last + 1 < len(lines) and measure(around(first, last + 1)) <= limit:
            last += 1
        elif first and measure(around(first - 1, last)) <= limit:
            first -= 1
        else:
            return around(first, last)
