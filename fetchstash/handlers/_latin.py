"""Tell the Latin charsets of one byte apart by the letters that a language writes with.

The same byte is "à" in windows-1252, "ŕ" in windows-1250 and "ą" in windows-1257. A text is in the
charset under which its letters are those of one language.
"""

import re
from collections import Counter

_WEST = (
    "àâæçèéêëîïôœùûüÿ", "äöüß", "áéíñóúü", "àèéìíîòóùú", "áâãàçéêíóôõúü", "åäöé", "æøåéäö",
    "áéëïíóöüèê", "áðéíóúýþæö", "àèéíïòóúüç",
)  # fmt: skip
"""French, German, Spanish, Italian, Portuguese, Swedish, Danish, Dutch, Icelandic, Catalan."""
_EAST = ("ąćęłńóśźż", "áčďéěíňóřšťúůýž", "áäčďéíĺľňóôŕšťúýž", "áéíóöőúüű", "ăâîşţ", "čćđšž")
"""Polish, Czech, Slovak, Hungarian, Romanian, Croatian."""
_BALTIC = ("ąčęėįšųūž", "āčēģīķļņšūž", "äõöüšž")
_LANGUAGES = {
    "cp1252": (0.0, _WEST),
    "cp1250": (0.15, _EAST),
    "iso8859_2": (0.15, _EAST),
    "cp1254": (0.15, ("çğıöşüâî",)),
    "cp1257": (0.15, _BALTIC),
    "iso8859_3": (0.15, ("ĉĝĥĵŝŭ", "ċġħżàèìòù")),
    "mac_roman": (0.3, _WEST),
    "cp850": (0.3, _WEST),
}
"""The charsets, how much rarer each is, and the letters beyond ASCII of its languages."""

_SIGNS = frozenset("“”‘’„‚–—…•«»‹›©®™€£§°·¿¡´\xa0\xad")  # noqa: RUF001 - the signs themselves
_SIGNS_OF_NUMBERS = frozenset("×÷±½¼¾µ")
"""Signs that any language writes; they speak for no charset, but for those of numbers in words."""

_RUN = re.compile(rb"[\x80-\xff]+")
_PAIR = re.compile(rb"(?=([\x00-\xff][\x80-\xff]))")
_LEAST_SHORT = 0.6
"""Share of bytes beyond ASCII that stand alone or in pairs in a Latin text, at the least."""
_LEAST_FIT = 0.4


def latin_charset(sample: bytes) -> str:
    """Return the charset of a text in a Latin script, "" if it seems to be in another script."""
    runs = _RUN.findall(sample)
    short = sum(len(run) for run in runs if len(run) <= 2)
    if short < _LEAST_SHORT * sum(map(len, runs)):
        return ""
    pairs = Counter(_PAIR.findall(b" " + sample))
    fits = {
        charset: _fit(pairs, charset, languages) - rarity
        for charset, (rarity, languages) in _LANGUAGES.items()
    }
    best = max(fits, key=lambda charset: fits[charset])
    return best if fits[best] >= _LEAST_FIT else ""


def _fit(pairs: Counter[bytes], charset: str, languages: tuple[str, ...]) -> float:
    """Return the share of letters that the language which fits best writes with.

    A capital behind a small letter is none.
    """
    letters: Counter[str] = Counter()
    others = 0
    for pair, count in pairs.items():
        before, char = pair[:1].decode("latin-1"), pair[1:].decode(charset, "replace")
        if char.isalpha() and not (char.isupper() and before.islower()):
            letters[char.lower()] += count
        elif char not in (_SIGNS if before.islower() else _SIGNS | _SIGNS_OF_NUMBERS):
            others += count
    total = letters.total() + others
    if not total:
        return 1.0
    return max(sum(letters[letter] for letter in language) for language in languages) / total
