"""Other spellings of a pattern that finds nothing, or that RE2 does not take.

Models write patterns for other programs, and phrases as they remember them. What is returned here
is only a candidate: ``_find`` tries each, and offers the first that matches.
"""

import html
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import permutations
from urllib.parse import unquote

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
_COMMENT = re.compile(r"\(\?#[^)]*\)")
_CODE_POINT = re.compile(r"\\u\{?([0-9a-fA-F]{2,6})\}?")
_IN_RE2 = {
    "(?>": "(?:",
    r"\Z": r"\z",
    r"\h": r"[ \t]",
    r"\R": r"$",
    r"\K": "",
    r"(?<": r"(?P<",
    r"(?x)": "",
}
"""What other engines write, as RE2 does or without it; look-arounds are gone before."""
_NOT_IN_WORDS = re.compile(
    r"\[\[?:?\^?(?:[^\]]*)\]?\]|\\[pP]\{[^}]*\}|\\.|\(\?[^:)]*[:)]|\{[\d,]*\}"
)
"""Classes, escapes, flags and counts of a pattern, which are no words of a text."""


@dataclass(frozen=True, slots=True)
class Spelling:
    """A query to try in place of another, and how it differs, as the end of a sentence."""

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
        if r"\<" in pattern or r"\>" in pattern:
            bounds = pattern.replace(r"\<", r"\b").replace(r"\>", r"\b")
            yield from _either_case(
                replace(query, pattern=bounds), r"with \b in place of \< and \>"
            )
        if re.search(r"\s(?:AND|OR|&&|\|\|)\s", pattern):
            yield from _joined(query)
        yield from _glob(query)
    if _META.search(pattern):
        other = "as a pattern" if query.literal else "as plain text"
        yield Spelling(replace(query, literal=not query.literal), other)
    for decoded in dict.fromkeys((html.unescape(pattern), unquote(pattern))):
        if decoded != pattern:
            literal = replace(query, pattern=decoded, literal=True)
            yield from _either_case(literal, "with its characters decoded")
    yield from _of_words(query)
    if not _META.search(pattern.replace(".", "")):
        loose = replace(query, pattern=_accented(pattern), literal=False, ignore_case=True)
        yield Spelling(loose, "with or without accents")


def _either_case(query: GrepQuery, how: str) -> Iterator[Spelling]:
    yield Spelling(query, how)
    if not query.ignore_case:
        yield Spelling(replace(query, ignore_case=True), f"{how}, ignoring case")


def _joined(query: GrepQuery) -> Iterator[Spelling]:
    """Read the words between phrases that searches know, and RE2 does not."""
    loose = replace(query, ignore_case=True)
    if re.search(r"\s(?:OR|\|\|)\s", query.pattern):
        either = re.sub(r"\s+(?:OR|\|\|)\s+", "|", query.pattern)
        yield Spelling(replace(loose, pattern=either), "with | in place of OR")
        return
    parts = re.split(r"\s+(?:AND|&&)\s+", query.pattern)
    if len(parts) <= _MOST_WORDS:
        orders = "|".join(".*".join(order) for order in permutations(parts))
        yield Spelling(replace(loose, pattern=orders), "with all of them in any order")


def _accented(phrase: str) -> str:
    """Return a pattern of which each letter matches with any accent, and with none."""
    bases = (unicodedata.normalize("NFD", char)[0] for char in phrase)
    written = "".join(_ACCENTED.get(base, re.escape(base)) for base in bases)
    return written.replace(2 * _ACCENTED["s"], f"(?:{2 * _ACCENTED['s']}|\u00df)")


def _with_accents() -> dict[str, str]:
    """Return each letter's class of itself and its accented forms (Latin-1 and Extended-A)."""
    classes: dict[str, str] = {}
    for char in map(chr, range(0xC0, 0x180)):
        base = unicodedata.normalize("NFD", char)[0]
        if base != char:
            classes[base] = classes.get(base, base) + char
    return {base: f"[{chars}]" for base, chars in classes.items()}


_ACCENTED = _with_accents()


def _glob(query: GrepQuery) -> Iterator[Spelling]:
    r"""Read ``*`` and ``?`` as a shell does, where that is not what RE2 does: ``report*2024``."""
    pattern = query.pattern
    if "*" in pattern and not re.search(r"[\\()\[\]|^$+]|\.\*", pattern):
        parts = re.split(r"([*?]+)", pattern)
        written = "".join(
            re.escape(part) if place % 2 == 0 else ".*" if "*" in part else "." * len(part)
            for place, part in enumerate(parts)
        )
        yield from _either_case(replace(query, pattern=written), "with .* in place of *")


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
    elif words:
        if words[0] != pattern:
            yield Spelling(replace(loose, pattern=words[0]), "without the signs around the word")
        if len(words[0]) > 5:
            stem = words[0][: -3 if words[0].endswith("ies") else -2]
            yield Spelling(replace(loose, pattern=stem), "with another ending")


def repaired(query: GrepQuery) -> Iterator[Spelling]:
    """Return an RE2 pattern in place of one that RE2 rejects."""
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
    plain = _POSSESSIVE.sub(r"\1", _COMMENT.sub("", _without_look_around(pattern)))
    plain = _CODE_POINT.sub(r"\\x{\1}", plain)
    for other, ours in _IN_RE2.items():
        plain = plain.replace(other, ours)
    if plain != pattern:
        yield from _either_case(replace(query, pattern=plain), "in RE2's terms")
    yield from _glob(query)
    yield from _either_case(replace(query, pattern=pattern, literal=True), "as plain text")


def words_of(pattern: str) -> list[str]:
    """Return the words of a pattern that a text may have, each of two letters or more."""
    return re.findall(r"[^\W_]{2,}", _NOT_IN_WORDS.sub(" ", pattern))


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
