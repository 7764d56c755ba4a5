"""Words of a text or a query, and their stems in the language of the text.

Stems are Snowball's (https://snowballstem.org). Scripts without spaces between words give pairs of
characters. Text is matched in lower case.
"""

import re
from collections import Counter
from collections.abc import Iterable
from functools import cache
from threading import Lock

# Scripts that put no space between words: Thai to Myanmar, Khmer, kana, Han, Hangul.
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


@cache
def _word() -> re.Pattern[str]:
    """Return the pattern of a word, compiled for the first search: that takes 4 ms."""
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
                found += [word[i : i + 2] for i in range(max(len(word) - 1, 1))]
            else:
                found.append(word)
    if _INNER_CAPITAL.search(text):
        for name in _CAPITALIZED.findall(text):
            found += [hump.lower() for hump in _HUMPS.findall(name)]
    return found


def offsets(text: str) -> Iterable[tuple[int, list[str]]]:
    """Return where each word of a text begins, and what ``words`` makes of it."""
    return ((word.start(), words(word[0])) for word in _word().finditer(text))


def language_of(text: str) -> str:
    """Return the language of a text by its most usual words: English if it is none of ours."""
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
