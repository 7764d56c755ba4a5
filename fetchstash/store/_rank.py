"""Ranking of passages by BM25, without a model.

Robertson and Zaragoza 2009, The Probabilistic Relevance Framework. A text is cut into passages of a
few lines. The length of a passage counts in characters, so that a passage without a word of the
query need not be split into words.
"""

import contextlib
import heapq
import math
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache

from fetchstash.store._contract import Passage, SearchResult
from fetchstash.store._text import CONTINUATION_BYTES, StoredText

READ = 2**20
PASSAGE_BYTES = 1_200
PARAGRAPH_BYTES = 400
MAX_TERMS = 32
MAX_HITS = 20_000
MAX_SECONDS = 2.0
PATIENCE = 4
K1, B = 1.2, 0.75


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


# Scripts that put no space between words: Thai to Myanmar, Khmer, kana, Han, Hangul. Their words
# are pairs of characters.
_UNSPACED = (
    r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
    r"\uf900-\ufaff\U00020000-\U0003ffff"
)
# Characters that separate words: white space; ASCII, Latin-1, general, CJK and full-width
# punctuation; arrows and drawings. Letters, digits and the marks of every script are left.
_SEPARATORS = (
    r"\s\x00-/:-@\[-`{-\xbf\u2000-\u206f\u2190-\u2bff\u3000-\u303f\uff00-\uff0f\uff1a-\uff20"
    r"\uff3b-\uff40\uff5b-\uff65"
)


@cache
def _word() -> re.Pattern[str]:
    """Return the pattern of a word, compiled for the first search: that takes 4 ms."""
    return re.compile(f"[{_UNSPACED}]+|[^{_SEPARATORS}{_UNSPACED}]+")


_BLANK = re.compile(rb"\s+")
_RUN = re.compile(f"[{_UNSPACED}]")


def words(text: str) -> list[str]:
    """Return the words of a text: case folded, English plurals cut, unspaced scripts as pairs."""
    terms: list[str] = []
    for word in _word().findall(text.casefold()):
        if _RUN.match(word):
            terms += [word[i : i + 2] for i in range(max(len(word) - 1, 1))]
        else:
            terms.append(_stem(word))
    return terms


def hit_offset(query: str, text: str) -> int:
    """Return the offset of the first word of the query on the line of ``text`` that has most."""
    terms = set(words(query))
    most, offset, start = 0, 0, 0
    for line in text.split("\n"):
        offsets = [word.start() for word in _word().finditer(line) if terms & set(words(word[0]))]
        matched = len(terms.intersection(words(line)))
        if matched > most and offsets:
            most, offset = matched, start + offsets[0]
        start += len(line) + 1
    return offset


@lru_cache(maxsize=2**16)
def _stem(word: str) -> str:
    """Cut the ending of an English plural (S stemmer; Harman 1991, How Effective Is Suffixing?)."""
    if len(word) <= 3 or not word.endswith("s"):
        return word
    if word.endswith("ies") and not word.endswith(("eies", "aies")):
        return word[:-3] + "y"
    if word.endswith("es") and not word.endswith(("aes", "ees", "oes")):
        return word[:-1]
    return word if word.endswith(("us", "ss")) else word[:-1]


def _forms(term: str) -> tuple[str, ...]:
    """Return the words of which ``term`` is the stem."""
    return tuple(form for form in (term, f"{term}s", f"{term[:-1]}ies") if _stem(form) == term)


@dataclass(frozen=True, slots=True)
class Piece:
    """A passage of a text: its lines (both included), its first byte, and its bytes."""

    first_line: int
    last_line: int
    start: int
    data: bytes


def passages(text: StoredText, start: int = 0, line: int = 1) -> Iterator[Piece]:
    """Cut a text into passages: at headings and paragraphs, inside a line only if it is long.

    ``start`` is the byte at which a passage begins, ``line`` its line.
    """
    gathered: list[Piece] = []
    size = 0
    for fragment in _fragments(text, start, line):
        blank = fragment.data.isspace()
        full = size + len(fragment.data) > PASSAGE_BYTES
        if gathered and (
            full or fragment.data.startswith(b"#") or (blank and size >= PARAGRAPH_BYTES)
        ):
            yield _joined(gathered)
            gathered, size = [], 0
        if gathered or not blank:
            gathered.append(fragment)
            size += len(fragment.data)
    if gathered:
        yield _joined(gathered)


def _joined(fragments: list[Piece]) -> Piece:
    first, last = fragments[0], fragments[-1]
    return Piece(
        first.first_line,
        last.last_line,
        first.start,
        b"".join(fragment.data for fragment in fragments),
    )


def _fragments(text: StoredText, start: int, line: int) -> Iterator[Piece]:
    """Go through the lines of a text; a line longer than a passage is cut."""
    data, base = b"", start
    while (read := base + len(data)) < text.index.size:
        data += text.read(read, read + READ)
        ended = base + len(data) >= text.index.size
        position = 0
        while position < len(data):
            if lines := _blank_lines(data, position):
                yield Piece(line, line + lines.count(b"\n") - 1, base + position, lines)
                line += lines.count(b"\n")
                position += len(lines)
                continue
            feed = data.find(b"\n", position, position + PASSAGE_BYTES)
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
            yield Piece(line, line, base + position, data[position:end])
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


class Ranking:
    """Ranks the passages of texts. Holds about MAX_HITS passages at most."""

    def __init__(self, query: str) -> None:
        self._query = query
        terms = list(dict.fromkeys(words(query)))[:MAX_TERMS]
        self._pairs = [term for term in terms if _RUN.match(term)]
        self._forms = [_forms(term) for term in terms if not _RUN.match(term)]
        self._keys = [
            *self._pairs,
            *(min(forms, key=len).removesuffix("y") for forms in self._forms),
        ]
        self._passages = self._chars = 0
        self._holding = [0] * len(terms)  # in how many passages each term occurs
        self._hits: list[tuple[int, tuple[int, ...], int, str, Piece]] = []

    def add(self, ref: str, text: StoredText, expired: Callable[[], bool]) -> bool:
        """Rank the passages of one text too. Return whether it was read to its end."""
        for piece in passages(text):
            if expired():
                return False
            folded = piece.data.decode("utf-8", "replace").casefold()
            self._passages += 1
            self._chars += len(folded)
            if any(key in folded for key in self._keys):
                self._count(ref, piece, folded)
        return True

    def best(self, limit: int) -> list[Passage]:
        """Return the best passages, best first; of equal ones the earlier first."""
        best: list[Passage] = []
        for score, (_, _, _, ref, piece) in self._scored(limit):
            text = piece.data.decode("utf-8", "replace").rstrip("\n")
            hit = hit_offset(self._query, text)
            best.append(Passage(ref, piece.first_line, piece.last_line, text, score, hit))
        return best

    def _count(self, ref: str, piece: Piece, folded: str) -> None:
        occurring = Counter(_word().findall(folded))
        counts = (
            *map(folded.count, self._pairs),
            *(sum(occurring[form] for form in forms) for forms in self._forms),
        )
        if not any(counts):
            return
        self._holding = [
            holding + (n > 0) for holding, n in zip(self._holding, counts, strict=True)
        ]
        self._hits.append((self._passages, counts, len(folded), ref, piece))
        if len(self._hits) >= 2 * MAX_HITS:  # the scores so far tell which are never the best
            self._hits = [hit for _, hit in self._scored(MAX_HITS)]

    def _scored(
        self, limit: int
    ) -> list[tuple[float, tuple[int, tuple[int, ...], int, str, Piece]]]:
        average = self._chars / max(self._passages, 1)
        weights = [
            math.log(1 + (self._passages - holding + 0.5) / (holding + 0.5))
            for holding in self._holding
        ]

        def score(counts: tuple[int, ...], chars: int) -> float:
            norm = K1 * (1 - B + B * chars / average)
            return sum(
                weight * n * (K1 + 1) / (n + norm)
                for weight, n in zip(weights, counts, strict=True)
            )

        scored = (
            (score(counts, chars), (order, counts, chars, ref, piece))
            for order, counts, chars, ref, piece in self._hits
        )
        return heapq.nsmallest(limit, scored, key=lambda item: (-item[0], item[1][0]))


def rank_texts(
    query: str,
    refs: Sequence[str],
    open_text: Callable[[str], StoredText | None],
    max_results: int,
    cancelled: Callable[[], bool],
) -> SearchResult:
    """Rank passages by reading the texts of ``refs``, for MAX_SECONDS at most.

    ``cancelled`` may be a Deadline of its own.

    ``open_text`` returns None for a text that need not be searched.
    """
    ranking = Ranking(query)
    expired = cancelled if isinstance(cancelled, Deadline) else Deadline(cancelled)
    pending = 0
    for number, ref in enumerate(refs):
        text = open_text(ref)
        if text is None:
            continue
        with contextlib.closing(text):
            if not ranking.add(ref, text, expired):
                pending = len(refs) - number
                break
    return SearchResult(tuple(ranking.best(max_results)), pending)
