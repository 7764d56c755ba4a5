"""Passages of texts, and which of them answers a query best; without a model.

BM25 over two fields, the passage and the headings above it (Robertson and Zaragoza 2009, The
Probabilistic Relevance Framework), then the share of the query's words that occur, and how close.
"""

import json
import math
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Self

from fetchstash.store._text import CONTINUATION_BYTES, StoredText
from fetchstash.store._words import COMMON, ENGLISH, offsets, stems, words

READ = 2**20
PASSAGE_BYTES, PARAGRAPH_BYTES = 700, 300
"""The most of a passage, and the least that ends at a blank line: four fit into a preview."""

MAX_TERMS = 32
MAX_SECONDS = 2.0
PATIENCE = 4
K1, B = 1.2, 0.75
HEADING_WEIGHT = 2.0
"""Of a word in a heading above a passage, over one in the passage."""

COVERAGE, CLOSENESS = 0.5, 0.5
_NEAR = 8
_ALIKE = 0.9


class Deadline:
    """Called, it says whether a search must stop: after so many seconds, or if it was cancelled.

    It belongs to the thread that makes it, whose CPU time counts: on a busy machine no work would
    be done in a time by the clock. ``PATIENCE`` times as long by the clock is the end all the same,
    for a thread that waits for a network. ``seconds`` is MAX_SECONDS if it is not given.
    """

    def __init__(self, cancelled: Callable[[], bool], seconds: float | None = None) -> None:
        seconds = MAX_SECONDS if seconds is None else seconds
        self._end = time.thread_time() + seconds
        self._latest = time.monotonic() + PATIENCE * seconds
        self._cancelled = cancelled

    def __call__(self) -> bool:
        late = time.thread_time() > self._end or time.monotonic() > self._latest
        return late or self._cancelled()


class Heading(NamedTuple):
    """A heading of a text: its level, its first byte, and its size in bytes."""

    level: int
    start: int
    size: int


@dataclass(frozen=True, slots=True)
class Section:
    """Where in a text a passage stands: the headings above it, and whether it is in a code block.

    The comments of code are no headings.
    """

    headings: tuple[Heading, ...] = ()
    fenced: bool = False

    def after(self, line: bytes, start: int) -> "Section":
        """Return the section after a line that begins with a ``#`` or a fence."""
        if line.startswith((b"```", b"~~~")):
            return Section(self.headings, not self.fenced)
        if self.fenced or not (heading := _HEADING.match(line)):
            return self
        level = len(heading[1])
        above = tuple(h for h in self.headings if h.level < level)
        return Section((*above, Heading(level, start, len(line))))

    def dump(self) -> str:
        """Return it as a string."""
        return json.dumps([self.fenced, *self.headings])

    @classmethod
    def load(cls, dumped: str) -> Self:
        """Read what ``dump`` returned."""
        fenced, *headings = json.loads(dumped)
        return cls(tuple(Heading(*heading) for heading in headings), fenced)


_HEADING = re.compile(rb"(#{1,6})[ \t]")
_MARKS = b"#`~"
_BLANK = re.compile(rb"\s+")


@dataclass(frozen=True, slots=True)
class Piece:
    """A passage of a text: its lines (both included), its first byte, its bytes and sections.

    ``section`` is that of its first line, if this is no heading, and ``left`` that after its last.
    """

    first_line: int
    last_line: int
    start: int
    data: bytes
    section: Section
    left: Section


def passages(
    text: StoredText, start: int = 0, line: int = 1, section: Section | None = None
) -> Iterator[Piece]:
    """Cut a text into passages: at headings and paragraphs, inside a line only if it is long.

    ``start`` is the byte at which a passage begins, ``line`` its line, in ``section``.
    """
    gathered: list[bytes] = []
    size, first_line, last_line = 0, line, line
    section = left = section or Section()
    for number, fragment in _fragments(text, start, line):
        blank = fragment.isspace()
        after = left.after(fragment, start) if fragment[0] in _MARKS else left
        full = size + len(fragment) > PASSAGE_BYTES
        if gathered and (
            full or after.headings != left.headings or (blank and size >= PARAGRAPH_BYTES)
        ):
            data = b"".join(gathered)
            yield Piece(first_line, last_line, start - size, data, section, left)
            gathered, size = [], 0
        if gathered or not blank:
            if not gathered:
                first_line, section = number, after
            gathered.append(fragment)
            size += len(fragment)
            last_line = number
        left = after
        start += len(fragment)
    if gathered:
        yield Piece(first_line, last_line, start - size, b"".join(gathered), section, left)


def _fragments(text: StoredText, start: int, line: int) -> Iterator[tuple[int, bytes]]:
    """Go through the lines of a text with their numbers; a line longer than a passage is cut.

    Blank lines that are more than a passage holds come at once, with the number of the last.
    """
    data, base = b"", start
    while (read := base + len(data)) < text.index.size:
        data += text.read(read, read + READ)
        ended = base + len(data) >= text.index.size
        position = 0
        while position < len(data):
            feed = data.find(b"\n", position, position + PASSAGE_BYTES)
            if feed <= position + 1 and (lines := _blank_lines(data, position)):
                line += lines.count(b"\n")
                yield line - 1, lines
                position += len(lines)
                continue
            if feed >= 0:
                end = feed + 1
            elif len(data) - position > PASSAGE_BYTES:
                end = position + PASSAGE_BYTES
                while data[end] in CONTINUATION_BYTES:
                    end -= 1
            elif ended:
                end = len(data)
            else:
                break
            yield line, data[position:end]
            line += feed >= 0
            position = end
        data, base = data[position:], base + position


def _blank_lines(data: bytes, position: int) -> bytes:
    """Return the blank lines from a position on if they are more than a passage holds, else b"".

    One by one they would take seconds in which nobody looks at the time: they make no passage.
    """
    if not data[position : position + PASSAGE_BYTES + 1].isspace():
        return b""
    blank = _BLANK.match(data, position)
    lines = blank[0][: blank[0].rfind(b"\n") + 1] if blank else b""
    return lines if len(lines) > PASSAGE_BYTES else b""


class Query:
    """The words that are asked for, in their order, without those that say nothing."""

    def __init__(self, text: str) -> None:
        asked = list(dict.fromkeys(words(text.encode("utf-8", "replace").decode())))
        self._languages = {ENGLISH, *_languages(asked)}
        common = frozenset[str]().union(*(COMMON[name] for name in self._languages))
        self.words = ([word for word in asked if word not in common] or asked)[:MAX_TERMS]

    def terms(self, language: str) -> list[str]:
        """Return the stem of each word."""
        return [stems(language)[word] for word in self.words]

    def prefixes(self) -> Iterator[tuple[str, str]]:
        """Return each word, with what its other forms begin with."""
        for word in self.words:
            stem = min((stems(name)[word] for name in self._languages), key=len)
            yield word, stem.rstrip("iy") if len(stem) > 4 else stem

    def hit_offset(self, passage: "Candidate") -> int:
        """Return the offset of the first word asked for, on the line of a passage with most."""
        terms, stem = set(self.terms(passage.language)), stems(passage.language)
        most, hit, start = 0, 0, 0
        for line in passage.text.split("\n"):
            found = [(at, terms & set(map(stem.__getitem__, parts))) for at, parts in offsets(line)]
            matched = len(set[str]().union(*(which for _, which in found)))
            if matched > most:
                most, hit = matched, start + next(at for at, which in found if which)
            start += len(line) + 1
        return hit


def _languages(asked: Sequence[str]) -> list[str]:
    """Return the languages that these words may be of."""
    counts = {name: sum(word in listed for word in asked) for name, listed in COMMON.items()}
    most = max(counts.values())
    return [name for name, count in counts.items() if most and count == most]


@dataclass(frozen=True, slots=True)
class Statistics:
    """Of the passages among which is searched: their count, and in how many each word occurs."""

    passages: int
    holding: Sequence[int]

    @property
    def weights(self) -> list[float]:
        """How much each word says, by its rareness."""
        total = max(self.passages, *self.holding)
        return [math.log(1 + (total - n + 0.5) / (n + 0.5)) for n in self.holding]


@dataclass(frozen=True)
class Candidate:
    """A passage that may be among the best. ``headings`` is the text of those above it."""

    ref: str
    first_line: int
    last_line: int
    text: str
    headings: str
    language: str
    order: int

    @cached_property
    def terms(self) -> list[str]:
        """The stems of its words."""
        return list(map(stems(self.language).__getitem__, words(self.text)))

    def score(self, query: Query, weights: Sequence[float], average: float) -> float:
        """Return how well it answers a query. ``average``: the words of a passage."""
        asked, stem = query.terms(self.language), stems(self.language)
        counts = Counter(self.terms)
        above = Counter(map(stem.__getitem__, words(self.headings)))
        norm = K1 * (1 - B + B * len(self.terms) / average)
        score = held = 0.0
        for term, weight in zip(asked, weights, strict=True):
            if n := counts[term] + HEADING_WEIGHT * min(above[term], 1):
                score += weight * n * (K1 + 1) / (n + norm)
                held += weight
        if not held:
            return 0.0
        score *= 1 + COVERAGE * held / sum(weights)
        return score + CLOSENESS * self._closeness(asked, weights)

    def _closeness(self, asked: Sequence[str], weights: Sequence[float]) -> float:
        """Return the weight of neighbouring words of the query that stand close together here."""
        numbers = {term: number for number, term in enumerate(asked)}
        last: dict[int, int] = {}
        nearest = [_NEAR] * len(asked)  # of each word and the one after it
        for at, term in enumerate(self.terms):
            if (number := numbers.get(term)) is None:
                continue
            if (before := last.get(number - 1)) is not None:
                nearest[number - 1] = min(nearest[number - 1], at - before)
            if (after := last.get(number + 1)) is not None:
                nearest[number] = min(nearest[number], at - after + 1)
            last[number] = at
        return sum(
            min(weights[number : number + 2]) / apart
            for number, apart in enumerate(nearest)
            if apart < _NEAR
        )


def best_of(
    candidates: Sequence[Candidate], query: Query, statistics: Statistics, limit: int
) -> list[tuple[float, Candidate]]:
    """Return the best passages with their scores; of those that say the same the first alone."""
    average = max(sum(len(c.terms) for c in candidates) / max(len(candidates), 1), 1.0)
    weights = statistics.weights
    scored = [(candidate.score(query, weights, average), candidate) for candidate in candidates]
    scored.sort(key=lambda item: (-item[0], item[1].order))
    best: list[tuple[float, Candidate]] = []
    for score, candidate in scored:
        if len(best) == limit:
            break
        if not any(_are_alike(candidate, other) for known, other in best if known < score * 1.2):
            best.append((score, candidate))
    return best


def _are_alike(one: Candidate, other: Candidate) -> bool:
    """Return whether two passages have nearly the same words."""
    first, second = set(one.terms), set(other.terms)
    return len(first & second) >= _ALIKE * len(first | second)
