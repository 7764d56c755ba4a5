"""Split texts and queries into words, and rank passages for a query; without a model.

BM25 over two fields, the passage and the headings above it (Robertson and Zaragoza 2009, The
Probabilistic Relevance Framework), then the share of the query's words that occur, and how close.

Stems are Snowball's (https://snowballstem.org). Scripts without spaces between words give pairs of
characters. Text is matched in lower case.
"""

import math
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from threading import Lock

from fetchstash.text.hygiene import HANGUL, KANA_AND_HAN, SOUTHEAST

_UNSPACED = f"{SOUTHEAST}{KANA_AND_HAN}{HANGUL}"
# Characters that separate words: white space; ASCII, Latin-1, general, CJK and full-width
# punctuation; arrows and drawings. Letters, digits and the marks of every script are left.
_SEPARATORS = (
    r"\s\x00-/:-@\[-`{-\xbf\u2000-\u206f\u2190-\u2bff\u3000-\u303f\uff00-\uff0f\uff1a-\uff20"
    r"\uff3b-\uff40\uff5b-\uff65"
)
_ASCII_SEPARATORS = {code: " " for code in range(128) if not chr(code).isalnum()}
_INNER_CAPITAL = re.compile("[a-z][A-Z]")
_CAPITALIZED = re.compile("[a-zA-Z]*[a-z][A-Z][a-zA-Z]*")
_HUMPS = re.compile("[A-Z]?[a-z]+|[A-Z]+(?![a-z])")

ENGLISH = "english"

# The words by which a language is recognized. In a query they say little about what is asked.
_COMMON = {
    ENGLISH: """a about an and any are as at be been by can could did do does for from had has have
        how i if in into is it its me my of on or our should so than that the their there these they
        this those to was we were what when where which who whom whose why will with would you your
        """,
    "german": """aber als am an auch auf aus bei beim bin bis da damit das dass dem den der des die
        dies diese dieser durch ein eine einem einen einer eines es für hat ich im in ist kann man
        mein mit nach nicht oder sich sie sind so und vom von vor wann warum was welche welcher
        welches wenn wer werden wie wird wo worden zu zum zur über""",
    "french": """au aux avec ce ces cette comment dans de des du elle en est et il je la le les leur
        lors mais mon ne nous on ou où par pas peut pour pourquoi quand que quel quelle quelles
        quels qui sa se ses son sont sur un une vous à être""",
    "spanish": """al como con cuando cuál cuáles cómo de del donde dónde el en es esta este la las
        lo los más no o para pero por porque que quién qué se ser si sin su sus son un una y""",
    "italian": """al alla che chi come con cosa da dal dei del della delle di dove e gli i il in la
        le lo ma nel nella non o per perché più quale quali quando se si sono su un una è""",
    "portuguese": """ao aos as com como da das de do dos e em mais mas na nas no nos não o os ou
        para pela pelo por qual quais quando que quem se sem ser seu sua são um uma é""",
    "dutch": """aan als bij dat de deze die dit door een en er het hoe in is je kan maar met naar
        niet of om ook op te tot uit van voor waar waarom wanneer wat welke wie wordt worden zijn
        """,
    "swedish": """att av de den det där en ett från för har hur i inte kan med men man när och om på
        som till var varför vad vem vilka vilken är""",
    "danish": """af at de den der det en er et for fra har hvad hvilke hvilken hvor hvordan hvorfor
        hvornår ikke i kan med men når og om på som til være""",
    "norwegian": """av at de den der det en er et for fra har hva hvilke hvilken hvor hvordan
        hvorfor ikke i kan med men når og om på som til være""",
    "finnish": """ei että hän ja jos joka kanssa kuin kun miksi milloin mikä missä miten mitä mutta
        myös on ovat se sen tai voi""",
    "russian": """для из или как когда который на не но от по почему при такое то чем что это""",
}
COMMON = {language: frozenset(listed.split()) for language, listed in _COMMON.items()}

SAMPLE_BYTES = 32 * 2**10
"""The language of a text is that of its beginning."""

_MOST_STEMS = 2**17
_LONGEST = 64
"""Longer words are no words of a language, and stay as they are."""
_SHORT = 2
"""Digits of a number that says nothing by itself: any text has a 3 or a 12."""


@cache
def _word() -> re.Pattern[str]:
    """Return the pattern of a word, compiled at the first search because that takes 4 ms."""
    return re.compile(f"[{_UNSPACED}]+|[^{_SEPARATORS}{_UNSPACED}]+")


_RUN = re.compile(f"[{_UNSPACED}]")


def words(text: str) -> list[str]:
    """Return the words of a text, then the parts of its words with inner capitals."""
    if text.isascii():
        found = text.lower().translate(_ASCII_SEPARATORS).split()
    else:
        found = list[str]()
        for word in _word().findall(text.casefold()):
            if _RUN.match(word):
                # These scripts put no space between words, so pairs of characters stand for them.
                found += [word[i : i + 2] for i in range(max(len(word) - 1, 1))]
            else:
                found.append(word)
    if _INNER_CAPITAL.search(text):
        for name in _CAPITALIZED.findall(text):
            found += [hump.lower() for hump in _HUMPS.findall(name)]
    return found


def offsets(text: str) -> Iterable[tuple[int, list[str]]]:
    """Return the offset of each word of a text, and its forms as ``words`` gives them."""
    return ((word.start(), words(word[0])) for word in _word().finditer(text))


def language_of(text: str) -> str:
    """Return a text's language by its most frequent words; English if none of ours fits."""
    counts = Counter(words(text))
    known = {name: sum(counts[word] for word in listed) for name, listed in COMMON.items()}
    return max(known, key=lambda name: known[name])


class Stems(dict[str, str]):
    """Stems of words in a language; ``stems[word]``."""

    def __init__(self, language: str) -> None:
        import Stemmer  # noqa: PLC0415 - for searches alone

        self._stemmer = Stemmer.Stemmer(language, 0)
        self._lock = Lock()  # a stemmer is one thread's at a time

    def __missing__(self, word: str) -> str:
        # All at once: an order of use would cost a step with each look-up.
        if len(self) > _MOST_STEMS:
            self.clear()
        with self._lock:
            stem: str = self._stemmer.stemWord(word) if len(word) < _LONGEST else word
        self[word] = stem
        return stem


@cache
def stems(language: str) -> Stems:
    """Return the stems of a language, for all of this process."""
    return Stems(language)


MAX_TERMS = 32
MAX_SECONDS = 2.0
PATIENCE = 4
# The usual constants of BM25 (Robertson and Zaragoza, The Probabilistic Relevance Framework, 2009),
# which FTS5 has, too: candidates and ranks follow one formula.
K1, B = 1.2, 0.75
HEADING_WEIGHT = 2.0
"""Of a word in a heading above a passage, over one in the passage."""

COVERAGE, CLOSENESS = 0.5, 0.5
_WEAK = 0.25
_NEAR = 8
_ALIKE = 0.9


class Deadline:
    """A function that says whether a search must stop: its time is over, or it was cancelled.

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


class Query:
    """The words of a query in their order, without words that carry no meaning."""

    def __init__(self, text: str) -> None:
        asked = list(dict.fromkeys(words(text.encode("utf-8", "replace").decode())))
        self._languages = {ENGLISH, *_languages(asked)}
        common = frozenset[str]().union(*(COMMON[name] for name in self._languages))
        self.words = ([word for word in asked if word not in common] or asked)[:MAX_TERMS]

    def terms(self, language: str) -> list[str]:
        """Return the stem of each word."""
        return [stems(language)[word] for word in self.words]

    def prefixes(self) -> Iterator[tuple[str, str]]:
        """Return each word, with the prefix that its other forms share."""
        for word in self.words:
            stem = min((stems(name)[word] for name in self._languages), key=len)
            # Snowball makes "studi" of "study" and "studies": what both words begin with is "stud".
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
    """Counts over the searched passages: how many there are, and how many have each word."""

    passages: int
    holding: Sequence[int]

    @property
    def weights(self) -> list[float]:
        """The weight of each word, by its rareness."""
        total = max(self.passages, *self.holding)
        # With 1 added, so that a word of more than half of the passages does not count against
        # them.
        return [math.log(1 + (total - n + 0.5) / (n + 0.5)) for n in self.holding]


@dataclass(frozen=True)
class Candidate:
    """A passage that may be among the best. ``headings`` are the lines of those above it.

    The last of them may be the first line of the passage itself.
    """

    ref: str
    first_line: int
    last_line: int
    text: str
    headings: str
    language: str
    order: int

    @property
    def heading(self) -> str:
        """The nearest heading above the passage, "" if the passage begins with it."""
        nearest = self.headings.rstrip("\n").rpartition("\n")[2]
        return "" if self.text.startswith(nearest) else nearest.strip("# \t\r")

    @cached_property
    def terms(self) -> list[str]:
        """The stems of the passage's words, in order."""
        return list(map(stems(self.language).__getitem__, words(self.text)))

    def score(self, query: Query, weights: Sequence[float], average: float) -> float:
        """Return its score for a query. ``average`` is the mean number of words in a passage."""
        asked, stem = query.terms(self.language), stems(self.language)
        counts = Counter(self.terms)
        above = Counter(map(stem.__getitem__, words(self.headings)))
        norm = K1 * (1 - B + B * len(self.terms) / average)
        score = held = 0.0
        for term, weight in zip(asked, weights, strict=True):
            # Once, however often headings say it: chapter and section repeat each other.
            if n := counts[term] + HEADING_WEIGHT * min(above[term], 1):
                score += weight * n * (K1 + 1) / (n + norm)
                held += weight
        if not held:
            return 0.0
        score *= 1 + COVERAGE * held / sum(weights)
        return score + CLOSENESS * self._closeness(asked, weights)

    def shares_only_a_number(self, query: Query) -> bool:
        """Return whether it has of the query only a number of one or two digits."""
        asked = set(query.terms(self.language))
        numbers = {term for term in asked if len(term) <= _SHORT and term.isdecimal()}
        if not numbers or numbers == asked:
            return False
        above = map(stems(self.language).__getitem__, words(self.headings))
        held = asked.intersection([*self.terms, *above])
        return bool(held) and held <= numbers

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
    """Return the best passages with their scores, only the first of those with the same words.

    What scores much less than the best shares only a word or two that say little. What shares only
    a "3" is left out, also where nothing else is found.
    """
    candidates = [found for found in candidates if not found.shares_only_a_number(query)]
    average = max(sum(len(c.terms) for c in candidates) / max(len(candidates), 1), 1.0)
    weights = statistics.weights
    scored = [(candidate.score(query, weights, average), candidate) for candidate in candidates]
    scored.sort(key=lambda item: (-item[0], item[1].order))
    best: list[tuple[float, Candidate]] = []
    for score, candidate in scored:
        if len(best) == limit or score < _WEAK * scored[0][0]:
            break
        # Copies score alike, so that only neighbours are compared: all with all takes the square.
        if not any(_are_alike(candidate, other) for known, other in best if known < score * 1.2):
            best.append((score, candidate))
    return best


def _are_alike(one: Candidate, other: Candidate) -> bool:
    """Return whether two passages have nearly the same words."""
    first, second = set(one.terms), set(other.terms)
    return len(first & second) >= _ALIKE * len(first | second)
