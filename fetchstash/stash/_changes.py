"""The difference between two texts, by passage, with the line numbers of both.

A passage is a line of a stored text: a paragraph, a row of a table, a record. Lines that stand once
in each text are matched first, as patience diff does, so that time grows with n log n whatever the
texts hold; only short gaps between matches are compared line by line. Blank lines do not count.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from itertools import pairwise
from typing import TypeVar

import anyio.to_thread

from fetchstash.errors import ExpiredRef, NoText, UnknownRef
from fetchstash.stash._read import beginning
from fetchstash.store import ArtifactStore, Facts
from fetchstash.text import window

T = TypeVar("T")

CHANGES = "changes"
"""The path of what changed since the last time, which no handler answers."""
_COUNTED_CHARS = 1_000_000
"""Changes in a longer text are counted when they are asked for."""
MOST_CHARS = 4_000_000
"""Characters of each text that are compared."""
MOST_LINES = 50_000
_GAP_PAIRS, _ALL_PAIRS = 20_000, 2_000_000
"""Pairs of lines that are compared one by one, in one gap and in all. difflib is quadratic."""
_LINE_CHARS = 500

Line = tuple[int, str]
"""A line with its number, from 1."""


@dataclass(frozen=True, slots=True)
class Hunk:
    """A passage that differs: lines of the earlier text, and those of the later in their place.

    ``moved``: both are the same lines, at another place among the others.
    """

    old: tuple[Line, ...]
    new: tuple[Line, ...]
    moved: bool = False

    def __str__(self) -> str:
        old, new = (_range(lines) for lines in (self.old, self.new))
        if self.moved:
            return f"-- {old} moved to {new}: {self.new[0][1][:80]}\n"
        title = f"{old} became {new}" if old and new else f"{old} gone" if old else f"{new} new"
        title = f"{old} changed" if old == new else title
        lines = [
            f"-- {title}",
            *_printed(self.old, self.new, "-"),
            *_printed(self.new, self.old, "+"),
        ]
        return "\n".join(lines) + "\n"


def changes(earlier: str, later: str) -> tuple[Hunk, ...]:
    """Return how two texts differ, in the order of the later one."""
    old, new = _lines(earlier), _lines(later)
    a, b = [line for _, line in old], [line for _, line in new]
    same, moved = _matched(a, b)
    blocks = list(_blocks(moved))
    gone, come = {i for i, _ in moved}, {j for _, j in moved}
    hunks: list[tuple[int, Hunk]] = []
    for (i, j), (i_end, j_end) in pairwise([(-1, -1), *same, (len(a), len(b))]):
        before = tuple(old[n] for n in range(i + 1, i_end) if n not in gone)
        after = tuple(new[n] for n in range(j + 1, j_end) if n not in come)
        if before or after:
            hunks.append((j + 1, Hunk(before, after)))
    for i, j, count in blocks:
        hunks.append((j, Hunk(tuple(old[i : i + count]), tuple(new[j : j + count]), moved=True)))
    return tuple(hunk for _, hunk in sorted(hunks, key=lambda item: item[0]))


async def compared(
    store: ArtifactStore, earlier: Facts, later: Facts, compare: Callable[[str, str], T]
) -> T:
    """Compare the texts of two artifacts, or their beginnings. Raises NoText where one has none."""
    refs = earlier.artifact_ref, later.artifact_ref
    first, second = [await beginning(store, ref, MOST_CHARS) for ref in refs]
    return await anyio.to_thread.run_sync(compare, first, second)


async def with_earlier(store: ArtifactStore, facts: Facts, earlier: Facts | None) -> Facts:
    """Add the URL's earlier artifact to the facts, and the number of changed passages."""
    if earlier is None or earlier.artifact_ref == facts.artifact_ref:
        return facts
    with suppress(UnknownRef, ExpiredRef, NoText):
        earlier, count = await store.get(earlier.artifact_ref), None
        if max(earlier.extracted_chars or 0, facts.extracted_chars or 0) <= _COUNTED_CHARS:
            count = len(await compared(store, earlier, facts, changes))
        renewed = replace(
            facts,
            earlier_ref=earlier.artifact_ref,
            earlier_at=earlier.validated_at or earlier.created_at,
            changed_passages=count,
            paths=(*facts.paths, CHANGES),
        )
        return await store.touch(facts.artifact_ref, renewed)
    return facts


def printed(named: str, earlier: str, later: str) -> str:
    """Return the changes since the text ``named`` as lines, or that there are none.

    Texts as long as MOST_CHARS are the beginnings of longer ones.
    """
    hunks = changes(earlier, later)
    most = max(map(len, (earlier, later))), max(text.count("\n") for text in (earlier, later))
    cut = most[0] >= MOST_CHARS or most[1] > MOST_LINES
    end = (
        f" Compared were the first {MOST_CHARS:,} characters and {MOST_LINES:,} lines."
        if cut
        else ""
    )
    if not hunks:
        return f"Nothing changed since {named}.{end}\n"
    count = f"{len(hunks)} passages differ" if len(hunks) > 1 else "1 passage differs"
    return f"{count} from {named}: its lines are marked -, those of this text +.{end}\n" + "".join(
        map(str, hunks)
    )


def _lines(text: str) -> list[Line]:
    """Return the lines that hold something, with their numbers."""
    numbered = enumerate(text.split("\n", MOST_LINES)[:MOST_LINES], start=1)
    return [(number, line.rstrip()) for number, line in numbered if line and not line.isspace()]


Pair = tuple[int, int]


def _matched(a: Sequence[str], b: Sequence[str]) -> tuple[list[Pair], list[Pair]]:
    """Return the pairs of equal lines that stand in the same order, and those that moved."""
    in_order, moved = _in_order(_unique_in_both(a, b))
    same: list[Pair] = []
    left = _ALL_PAIRS
    for (i, j), (i_end, j_end) in pairwise([(-1, -1), *in_order, (len(a), len(b))]):
        i, j = i + 1, j + 1  # noqa: PLW2901 - behind the pair
        while i < i_end and j < j_end and a[i] == b[j]:
            same.append((i, j))
            i, j = i + 1, j + 1  # noqa: PLW2901 - as above
        tail: list[Pair] = []
        x, y = i_end, j_end
        while x > i and y > j and a[x - 1] == b[y - 1]:
            x, y = x - 1, y - 1
            tail.append((x, y))
        pairs = (x - i) * (y - j)
        if 0 < pairs <= min(_GAP_PAIRS, left):
            left -= pairs
            matcher = SequenceMatcher(None, a[i:x], b[j:y], autojunk=False)
            for at, to, count in matcher.get_matching_blocks():
                same += [(i + at + n, j + to + n) for n in range(count)]
        same += reversed(tail)
        if i_end < len(a):
            same.append((i_end, j_end))
    return same, moved


def _unique_in_both(a: Sequence[str], b: Sequence[str]) -> list[Pair]:
    """Return the positions of each line that occurs once in ``a`` and once in ``b``."""
    places = [dict[str, int](), dict[str, int]()]
    for found, lines in zip(places, (a, b), strict=True):
        for number, line in enumerate(lines):
            found[line] = -1 if line in found else number
    there = places[1]
    return [
        (i, there[line]) for line, i in places[0].items() if i >= 0 and there.get(line, -1) >= 0
    ]


def _in_order(pairs: Sequence[Pair]) -> tuple[list[Pair], list[Pair]]:
    """Return the longest run of pairs with rising second numbers, and the other pairs."""
    ends: list[int] = []  # the least second number that ends a run of each length
    at: list[int] = []
    before: list[int] = []
    for n, (_, j) in enumerate(pairs):
        length = bisect_left(ends, j)
        before.append(at[length - 1] if length else -1)
        ends[length : length + 1] = [j]
        at[length : length + 1] = [n]
    chosen: set[int] = set()
    n = at[-1] if at else -1
    while n >= 0:
        chosen.add(n)
        n = before[n]
    run = [pair for n, pair in enumerate(pairs) if n in chosen]
    return run, [pair for n, pair in enumerate(pairs) if n not in chosen]


def _blocks(moved: Iterable[Pair]) -> Iterator[tuple[int, int, int]]:
    """Join lines that moved together: yield where they begin in both texts, and their count."""
    begin: Pair | None = None
    count = 0
    for i, j in moved:
        if begin and (i, j) == (begin[0] + count, begin[1] + count):
            count += 1
            continue
        if begin:
            yield *begin, count
        begin, count = (i, j), 1
    if begin:
        yield *begin, count


def _range(lines: Sequence[Line]) -> str:
    if not lines:
        return ""
    first, last = lines[0][0], lines[-1][0]
    return f"line {first}" if first == last else f"lines {first} to {last}"


def _printed(lines: Sequence[Line], others: Sequence[Line], mark: str) -> Iterator[str]:
    """Yield lines with mark and number; long lines are reduced to their difference."""
    for n, (number, line) in enumerate(lines):
        other = others[n][1] if len(others) == len(lines) else ""
        first = _common(line, other)
        shown = line if len(line) <= _LINE_CHARS else window(line, first, first + 1, _LINE_CHARS)
        yield f"{mark}{number}:{shown}"


def _common(one: str, other: str) -> int:
    """Return how many characters both begin with."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[:middle] == other[:middle] else (low, middle - 1)
    return low
