"""Other spellings of a pattern that finds nothing, or that RE2 does not take.

Models write patterns for other programs, and phrases as they remember them. What is returned here
is only a candidate: ``_find`` tries each, and offers the first that matches.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import permutations

from fetchstash.store import GrepQuery

_MOST_CHARS = 300
"""A longer pattern is no phrase that somebody remembers."""
_MOST_WORDS = 4
"""In any order: 24 orders are a small program for RE2."""
_SIGN = r"[^\p{L}\p{N}]+"
_META = re.compile(r"[\\^$.|?*+()\[\]{}]")
_SLASHES = re.compile(r"/(.+)/([gimsux]*)", re.DOTALL)
_BASIC = re.compile(r"\\([|(){}+?])")
"""What the basic expressions of grep and sed escape, and RE2 does not (POSIX, 9.3)."""
_WORD = re.compile(r"[^\W_]+")
_LOOK = re.compile(r"\(\?(<?)([=!])")
_POSSESSIVE = re.compile(r"(?<!\\)([*+?}])\+")


@dataclass(frozen=True, slots=True)
class Spelling:
    """A query to try in place of one, and how it differs from that, as the end of a sentence."""

    query: GrepQuery
    how: str


def other_spellings(query: GrepQuery) -> Iterator[Spelling]:
    """Return patterns that a query without matches may have meant, the nearest first."""
    pattern = query.pattern
    if len(pattern) > _MOST_CHARS:
        return
    if not query.ignore_case:
        yield Spelling(replace(query, ignore_case=True), "ignoring case")
    if slashes := _SLASHES.fullmatch(pattern):
        bare = replace(query, pattern=slashes[1], ignore_case="i" in slashes[2])
        yield Spelling(bare, "without the slashes")
        yield Spelling(replace(bare, ignore_case=True), "without the slashes, ignoring case")
    if not query.literal:
        if r"\|" in pattern:
            basic = _BASIC.sub(r"\1", pattern)
            yield Spelling(replace(query, pattern=basic), r"with | in place of \|")
        if "\\\\" in pattern:
            single = pattern.replace("\\\\", "\\")
            yield Spelling(replace(query, pattern=single), "with single backslashes")
        yield from _glob(query)
    if _META.search(pattern):
        other = "as a pattern" if query.literal else "as plain text"
        yield Spelling(replace(query, literal=not query.literal), other)
    yield from _of_words(query)


def _glob(query: GrepQuery) -> Iterator[Spelling]:
    r"""Read ``*`` and ``?`` as a shell does, where that is not what RE2 does: ``report*2024``."""
    pattern = query.pattern
    if "*" in pattern and not re.search(r"[\\()\[\]|^$+]|\.\*", pattern):
        parts = re.split(r"([*?]+)", pattern)
        written = "".join(
            re.escape(part) if place % 2 == 0 else ".*" if "*" in part else "." * len(part)
            for place, part in enumerate(parts)
        )
        yield Spelling(replace(query, pattern=written), "with .* in place of *")


def _of_words(query: GrepQuery) -> Iterator[Spelling]:
    """Return a phrase's words with any signs between them, then in any order, then a stem."""
    pattern = query.pattern
    if not query.literal and re.search(r"[\\^$|?*+()\[\]{}]", pattern):
        return
    words = _WORD.findall(pattern)
    loose = replace(query, literal=False, ignore_case=True)
    if len(words) > 1:
        joined = _SIGN.join(words)
        yield Spelling(replace(loose, pattern=joined), "with any signs between the words")
        if len(words) <= _MOST_WORDS:
            orders = "|".join(".*".join(order) for order in permutations(words))
            yield Spelling(replace(loose, pattern=orders), "with the words in any order")
    elif words and len(words[0]) > 5:
        yield Spelling(replace(loose, pattern=words[0][:-2]), "with another ending")


def repaired(query: GrepQuery) -> Iterator[Spelling]:
    """Return a pattern of RE2 in place of one that RE2 rejects."""
    pattern = query.pattern[: 2 * _MOST_CHARS]
    if "\n" in pattern:
        for line in sorted((line.strip() for line in pattern.split("\n")), key=len, reverse=True):
            if line:
                yield Spelling(replace(query, pattern=line), "on one line")
        return
    if query.literal:
        return
    if slashes := _SLASHES.fullmatch(pattern):
        yield Spelling(replace(query, pattern=slashes[1]), "without the slashes")
    plain = _POSSESSIVE.sub(r"\1", _without_look_around(pattern))
    plain = plain.replace("(?>", "(?:").replace(r"\Z", r"\z").replace(r"\h", r"[ \t]")
    if plain != pattern:
        yield Spelling(replace(query, pattern=plain), "in RE2's terms")
    yield from _glob(query)
    yield Spelling(replace(query, pattern=pattern, literal=True), "as plain text")


def _without_look_around(pattern: str) -> str:
    """Return a pattern that requires what a look-around requires, and forbids nothing."""
    while look := _LOOK.search(pattern):
        start, inside = look.span()
        depth, at = 1, inside
        while at < len(pattern) and depth:
            sign = pattern[at]
            at += 1 + (sign == "\\")
            depth += (sign == "(") - (sign == ")")
        kept = f"(?:{pattern[inside:at]}" if look[2] == "=" else ""
        pattern = f"{pattern[:start]}{kept}{pattern[at:]}"
    return pattern
