"""Where sentences came from: the passage that supports each, and the calls that showed it.

No model takes part. Words are compared by their stems; a number, a name, a negation or an
opposite that the passage lacks refutes whatever else agrees. Who did what to whom is not seen.
"""

import math
import re
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import anyio
import anyio.to_thread

from fetchstash.config import Settings
from fetchstash.errors import ExpiredRef, NoText, OutOfRange, TooLarge, UnknownRef
from fetchstash.stash._documents import Documents
from fetchstash.store import (
    COMMON,
    Facts,
    Passage,
    TextReader,
    language_of,
    stems,
    store_folder,
    words,
)
from fetchstash.system.linelog import LineLog

LOG_BYTES = 8 * 2**20
MAX_CHARS = 100_000
MAX_SENTENCES = 300
CANDIDATES = 12
"""Passages that are compared with a sentence, the best by BM25."""
MAX_QUERY = 1_000
"""Characters of a sentence that passages are looked for with."""
WINDOW = 3
"""Sentences of a passage that support one sentence together at most."""
ENOUGH = 0.7
"""The weighted share of a sentence's words that a passage must have (tests/stash/test_trace.py)."""
WAIT_SECONDS = 20
"""So long texts are waited for that are not indexed yet."""


@dataclass(frozen=True, slots=True)
class ShownBy:
    """A call in calls.jsonl whose result showed a passage to a model."""

    time: str
    server: str
    tool: str
    asked: Mapping[str, Any]
    how: str


@dataclass(frozen=True, slots=True)
class Origin:
    """A sentence, its first character in the text, and the passage that comes nearest to it.

    ``passage`` is as narrow as its sentences, with its lines; ``facts`` are its artifact's, with
    address and time. ``support`` is the share of the sentence's weight that the passage has, 0 to
    1; ``missing`` says what it lacks. Where ``is_supported`` is False, nothing kept supports it.
    """

    sentence: str
    start: int
    is_supported: bool = False
    support: float = 0
    missing: tuple[str, ...] = ()
    passage: Passage | None = None
    facts: Facts | None = field(default=None, repr=False)
    shown: tuple[ShownBy, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON data; ``passage`` is null where there is none."""
        data = {name: getattr(self, name) for name in ("sentence", "start", "is_supported")}
        data |= {"support": round(self.support, 3), "missing": list(self.missing), "passage": None}
        if self.passage and self.facts:
            facts = self.facts
            data["passage"] = {
                "artifact_ref": facts.artifact_ref,
                "url": facts.final_url,
                "title": facts.title or facts.name or facts.final_url,
                "fetched_at": facts.to_json()["created_at"],
                "first_line": self.passage.first_line,
                "last_line": self.passage.last_line,
                "text": self.passage.text,
            }
        names = ("time", "server", "tool", "asked", "how")
        data["shown"] = [{name: getattr(call, name) for name in names} for call in self.shown]
        return data


@dataclass(frozen=True, slots=True)
class Trace:
    """The sentences of a text in order. Iterating gives each Origin.

    ``searched`` texts were looked through; ``pending`` are not indexed yet. ``is_logged`` says
    whether a log of calls is kept, without which nobody knows what a model was shown.
    """

    origins: tuple[Origin, ...]
    searched: int
    pending: int
    is_logged: bool

    def __iter__(self) -> Iterator[Origin]:
        return iter(self.origins)


# --- the log of calls -----------------------------------------------------------------------------


def log_of(settings: Settings) -> LineLog | None:
    """Return the log of a store, None for a store without a folder.

    A tenant that is deleted while a call runs gets no folder again.
    """
    folder = store_folder(settings.store)
    return None if folder is None else LineLog(folder / "calls.jsonl", LOG_BYTES, needs_folder=True)


def logged_calls(settings: Settings) -> Generator[dict[str, Any]]:
    """Return the calls of all runs, oldest first."""
    log = log_of(settings)
    if log is not None:
        yield from log.records()


async def lines_of(reader: TextReader, span: list[Any]) -> tuple[int, int] | None:
    """Return a span of the log of calls in lines; None for one that is not in the text any more."""
    match span:
        case ["chars", int(first), int(last)]:
            try:
                end = max(first, min(last, reader.chars) - 1)
                return await reader.line_of_char(first), await reader.line_of_char(end)
            except OutOfRange:
                return None
        case ["lines", int(first), int(last)]:
            return first, last
        case _:
            return None


async def _covers(reader: TextReader, span: list[Any], passage: Passage) -> bool:
    """Return whether a span of the log holds the whole passage."""
    lines = await lines_of(reader, span)
    if not lines or lines[0] > passage.first_line or lines[1] < passage.last_line:
        return False
    if span[0] == "lines":
        return True
    begin = await reader.char_of_line(passage.first_line)
    end = await reader.char_of_line(passage.last_line + 1)
    # A part of a long line is in the text that was shown, or it is not.
    first, last = max(span[1], begin), min(span[2], end)
    return passage.text in await reader.read_chars(first, max(first, last))


# --- sentences and words --------------------------------------------------------------------------

_BLOCK = re.compile(r"[^\n]+(?:\n(?![ \t]*(?:[-*+•#>|]|\d+[.)] |$))[^\n]+)*")
_MARKUP = re.compile(r"^[ \t]*(?:[-*+•>]+|#{1,6}|\d+[.)])[ \t]+")
# A full stop, what closes a quotation, white space, and what no lower-case letter begins; or the
# full-width marks of Chinese and Japanese.
_CLOSING, _OPENING = "\"')\\]*_\u2019\u201d", "\"'(\\[*_\u2018\u201c"
_END = re.compile(
    rf"(?<=[.!?\u2026])[{_CLOSING}]*(?:\[\d+\])*\s+(?=[{_OPENING}]*[^\Wa-z_])|(?<=[\u3002\uff01\uff1f])"
)
_ABBREVIATION = re.compile(
    r"(?:\b(?:Dr|Mr|Mrs|Ms|Prof|St|No|Nos|Fig|vs|etc|e\.g|i\.e|ca|approx|al|p|pp|vol)"
    r"|\b[A-Z])\.$"
)


def sentences(text: str) -> Iterator[tuple[int, str]]:
    """Yield the sentences of prose or Markdown, each with its first character."""
    for block in _BLOCK.finditer(text):
        start = block.start()
        if markup := _MARKUP.match(block[0]):
            start += markup.end()
        begin = start
        ends = _END.finditer(text, start, block.end())
        for cut, following in [*((m.start(), m.end()) for m in ends), (block.end(), block.end())]:
            if cut < block.end() and _ABBREVIATION.search(text, max(begin, cut - 9), cut):
                continue
            if sentence := text[begin:following].strip():
                yield begin + text[begin:following].index(sentence), sentence
            begin = following


_STOP_WORDS = (
    "a an the and or but nor if then than that this these those there here it its itself he she"
    " they them their his her him we us our you your i me my who whom whose which what when where"
    " why how is are was were be been being am do does did done doing has have had having will"
    " would shall should can could may might must of in on at to for from by with without about"
    " into onto over under between during through as so such also too very just only not no never"
    " any some all each both more most other another own same up down out off again once while"
    " because until since per via"
)
_NOT = "not no never none nor neither without cannot nobody nothing lacks"
_OPPOSED = (
    "increas/decreas rise/fall rose/fell grow/shrink grew/shrank more/less more/fewer"
    " most/least higher/lower high/low highest/lowest larger/smaller largest/smallest"
    " longer/shorter faster/slower before/after first/last early/late earlier/later"
    " open/clos opened/closed north/south east/west northern/southern eastern/western"
    " maximum/minimum always/never above/below allow/forbid allowed/forbidden accept/reject"
    " accepted/rejected enabl/disabl public/private begin/end began/ended start/stop"
    " win/lose won/lost import/export buy/sell bought/sold oldest/newest warm/cold hot/cold"
    " hotter/colder warmer/colder succeed/fail succeeded/failed safe/unsafe inside/outside"
    " summer/winter left/right true/false positive/negative gain/loss profit/loss"
)
_COUNTS = "one two three four five six seven eight nine ten eleven twelve"
_STOP, _NEGATIONS = frozenset(_STOP_WORDS.split()), frozenset(_NOT.split())
_OPPOSITES = [frozenset(pair.split("/")) for pair in _OPPOSED.split()]
_NUMBER_WORDS = {word: str(number) for number, word in enumerate(_COUNTS.split(), start=1)}
_REACH = 3
"""Words of content that a negation denies, up to the next comma."""
_SCALES = {"thousand": 1e3, "million": 1e6, "billion": 1e9}
_TOKEN = re.compile(
    r"(?P<number>\d+(?:[.,]\d+)*)(?:\s+(?P<scale>thousand|million|billion)\b)?"
    r"|(?P<end>[,;:.!?])"
    r"|(?P<word>[^\W\d_][^\W_]*(?:'[^\W\d_]+)?)"
)
_LINK = re.compile(r"\[([^\]\n]*)\]\([^)\s]*\)")


@dataclass(frozen=True, slots=True)
class _Words:
    """The content of a sentence: weights by word, and words that a passage must have."""

    weights: Mapping[str, float]
    numbers: frozenset[str]
    names: frozenset[str]
    plain: frozenset[str]
    negated: frozenset[str]


def _number(digits: str, scale: str | None) -> str:
    """Return a number in one form: 1,200 and 1.2 thousand are 1200."""
    if re.fullmatch(r"\d{1,3}(,\d{3})+(\.\d+)?", digits):
        digits = digits.replace(",", "")
    try:
        return f"{float(digits) * _SCALES.get(scale or '', 1):.10g}"
    except ValueError:  # a version, a date
        return digits


def _words_of(sentence: str, language: str) -> _Words:
    weights: dict[str, float] = {}
    numbers, names, plain, negated = set[str](), set[str](), set[str](), set[str]()
    straight = _LINK.sub(r"\1", sentence).replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")
    reach = 0
    for count, token in enumerate(_TOKEN.finditer(straight)):
        if token["end"]:
            reach = 0
            continue
        word = (token["word"] or "").casefold().removesuffix("'s")
        plain.add(word)
        if number := token["number"] or _NUMBER_WORDS.get(word):
            number = _number(number, token["scale"])
            weights[number] = 1.5
            if token["number"]:
                numbers.add(number)
            continue
        if word in _NEGATIONS or word.endswith("n't"):
            reach = _REACH
        if word in _STOP or word in COMMON[language] or "'" in word:
            continue
        is_name = token["word"][0].isupper() and count > 0
        for term in map(stems(language).__getitem__, words(word)):
            weights[term] = 1.5 if is_name else 1.0
            if is_name:
                names.add(term)
            if reach:
                negated.add(term)
        reach -= reach > 0
    kept = map(frozenset, (numbers, names, plain, negated))
    return _Words(weights, *kept)


def _like(term: str, other: str) -> bool:
    """Return whether two words share a prefix of most of the longer one."""
    least = max(4, math.ceil(0.6 * max(len(term), len(other))))
    return len(term) >= least and term[:least] == other[:least]


def _share_of(term: str, terms: Iterable[str]) -> float:
    if term in terms:
        return 1.0
    if term[0].isdigit():
        return 0.0
    return 0.9 if any(_like(term, other) for other in terms) else 0.0


def _opposite(one: _Words, other: _Words) -> str:
    """Return a word of a sentence whose opposite stands in its place in another, or ""."""

    def stands(stem: str, plain: frozenset[str]) -> str:
        return next((w for w in plain if w == stem or (len(stem) > 4 and w.startswith(stem))), "")

    for pair in _OPPOSITES:
        for stem in pair:
            (against,) = pair - {stem}
            word = stands(stem, one.plain)
            if word and not stands(stem, other.plain) and stands(against, other.plain):
                return word
    return ""


def _judged(
    asked: _Words, parts: Sequence[_Words], around: Mapping[str, float]
) -> tuple[float, list[str]]:
    """Return the share of a sentence that several others cover together, and its missing words."""
    shares = [{t: _share_of(t, part.weights) for t in asked.weights} for part in parts]
    best = {term: max(share[term] for share in shares) for term in asked.weights}
    support = sum(best[t] * w for t, w in asked.weights.items()) / sum(asked.weights.values())
    lacking = [n for n in sorted(asked.numbers) if not best[n]]
    lacking += [n for n in sorted(asked.names) if not best[n] and not _share_of(n, around)]
    for term in asked.weights:
        holding = [p for p, share in zip(parts, shares, strict=True) if share[term]]
        denied = bool(holding) and all(_share_of(term, part.negated) for part in holding)
        if holding and denied != (term in asked.negated):
            lacking.append(term if denied else f"not {term}")
    nearest = max(zip(shares, parts, strict=True), key=lambda pair: sum(pair[0].values()))[1]
    if opposite := _opposite(asked, nearest):
        lacking.append(opposite)
    if support < ENOUGH:
        lacking += [term for term in asked.weights if not best[term] and term not in lacking]
    return support, lacking


def _add_to_each_other(asked: _Words, parts: Sequence[_Words]) -> bool:
    """Return whether each sentence covers two words that no other covers.

    A single word of the next sentence is chance: its number would stand for another's.
    """
    held = [{t for t in asked.weights if _share_of(t, part.weights)} for part in parts]
    return all(
        len(own.difference(*held[:place], *held[place + 1 :])) > 1 for place, own in enumerate(held)
    )


def _compared(
    asked: _Words, language: str, passage: Passage, title: str
) -> tuple[float, list[str], Passage]:
    """Return how much of a sentence a passage covers, the missing words, and the covering part."""
    whole = [(start, text, _words_of(text, language)) for start, text in sentences(passage.text)]
    around = _words_of(f"x {title} {passage.text}", language).weights
    best: tuple[tuple[bool, float], float, list[str], int, int] | None = None
    for first in range(len(whole)):
        for last in range(first, min(first + WINDOW, len(whole))):
            parts = [part for _, _, part in whole[first : last + 1]]
            if len(parts) > 1 and not _add_to_each_other(asked, parts):
                continue
            support, lacking = _judged(asked, parts, around)
            rank = (support >= ENOUGH and not lacking, support)
            if best is None or rank > best[0]:
                end = whole[last][0] + len(whole[last][1])
                best = rank, support, lacking, whole[first][0], end
    if best is None:
        return 0.0, [], passage
    _, support, lacking, start, end = best
    line = passage.first_line + passage.text.count("\n", 0, start)
    until = passage.first_line + passage.text.count("\n", 0, end)
    narrow = replace(passage, first_line=line, last_line=until, text=passage.text[start:end], hit=0)
    return support, lacking, narrow


# --- the trace ------------------------------------------------------------------------------------


async def trace(documents: Documents, text: str) -> Trace:
    """Return the origins of the sentences; see Stash."""
    language = language_of(text)
    every = ((at, sentence, _words_of(sentence, language)) for at, sentence in sentences(text))
    found = [item for item in every if len(item[2].weights) > 1]
    if len(text) > MAX_CHARS or len(found) > MAX_SENTENCES:
        what = f"A trace takes {MAX_CHARS:,} characters and {MAX_SENTENCES} sentences at most."
        raise TooLarge(what, "Give the text in parts.")
    settings, store = documents.settings, documents.store
    calls = await anyio.to_thread.run_sync(lambda: list(logged_calls(settings)))
    origins: list[Origin] = []
    pending, give_up = 0, anyio.current_time() + WAIT_SECONDS
    for start, sentence, asked in found:
        query = sentence[:MAX_QUERY]
        result = await store.search(query, [], CANDIDATES)
        while result.pending and anyio.current_time() < give_up:
            await anyio.sleep(0.05)  # a thread indexes meanwhile
            result = await store.search(query, [], CANDIDATES)
        pending = max(pending, result.pending)
        origins.append(
            await _origin(documents, start, sentence, asked, language, result.passages, calls)
        )
    searched = (await store.list(limit=1)).total
    logs = settings.telemetry.call_log and not settings.store.ephemeral
    return Trace(tuple(origins), searched, pending, logs and log_of(settings) is not None)


async def _origin(
    documents: Documents,
    start: int,
    sentence: str,
    asked: _Words,
    language: str,
    candidates: tuple[Passage, ...],
    calls: list[dict[str, Any]],
) -> Origin:
    """Return the best of the candidates; of equal ones the one that a model was shown."""
    best = Origin(sentence, start)
    for candidate in candidates:
        try:
            facts = await documents.store.get(candidate.artifact_ref)
            support, missing, passage = await anyio.to_thread.run_sync(
                _compared, asked, language, candidate, facts.title
            )
            ranked = (support >= ENOUGH and not missing, support)
            if ranked < (best.is_supported, best.support):
                continue
            shown = await _shown(documents, passage, calls)
        except (UnknownRef, ExpiredRef, NoText):  # it went meanwhile
            continue
        if (*ranked, bool(shown)) > (best.is_supported, best.support, bool(best.shown)):
            lacks = tuple(missing)
            best = Origin(sentence, start, *ranked, lacks, passage, facts, shown)
    return best


async def _shown(
    documents: Documents, passage: Passage, calls: list[dict[str, Any]]
) -> tuple[ShownBy, ...]:
    ref = passage.artifact_ref
    shown = [(c, s) for c in calls for s in c.get("shown", ()) if s.get("ref") == ref]
    if not shown:
        return ()
    async with documents.text(ref) as reader:
        return tuple(
            [
                ShownBy(
                    str(call["time"]),
                    str(call.get("server", "")),
                    str(call["tool"]),
                    call.get("asked", {}),
                    str(item.get("how", "")),
                )
                for call, item in shown
                if any([await _covers(reader, span, passage) for span in item["spans"]])
            ]
        )
