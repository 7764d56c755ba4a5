"""Recognise text whose font has no usable mapping to characters. Pure functions.

A font may number its glyphs as it likes and leave out the table that maps them back (ISO 32000-1,
section 9.10). What is then read looks like text, "7KHZDUGHQVRSHQ", and is none. Statistics show it:
Latin letters without the pairs that every language of theirs is made of, or control and private
characters.
"""

import re

NO_MAPPING = "(what follows is no text: its font has no usable mapping to characters)"
"""The line that opens the text of such a page."""
_MIN_CHARS = 40
_MIN_PAIRS = 60
_LONG_WORD = re.compile(r"[A-Za-z]{4,}")
# Control, private and replacement characters; pdfium marks a broken word by U+0002.
_STRANGE = re.compile("[\x01\x03-\x08\x0b\x0e-\x1f\x7f\ue000-\uf8ff\ufffd]")
_MAX_STRANGE = 0.25
# So many of the characters of a page in a Latin script are plain vowels, at the least.
_MIN_VOWELS = 0.22
# Half of the pairs of letters in the languages of Western Europe are these, in others a third; of
# the pairs of any other order of the alphabet a sixth.
_PAIRS = (
    "thheineranrendonenatouedhatooritishiesngstartesementealetirariioicnedecoroelallalichieeiun"
    "bedadigemanonsompepoprqusisotatrurusvevowawewieessllcaceasamemilolniosadidskkaakkinajazaow"
    "czször"
)
_COMMON = frozenset(_PAIRS[at : at + 2] for at in range(0, len(_PAIRS), 2))
_MIN_COMMON = 0.24


def is_garbage(text: str) -> bool:
    """Return whether the text of a page is no text. Most pages cost five counts of a letter."""
    lower = text.lower()
    if sum(map(lower.count, "aeiou")) >= _MIN_VOWELS * len(lower):
        return False
    chars = len("".join(text.split()))
    if chars < _MIN_CHARS:
        return False
    strange = len(_STRANGE.findall(text))
    if strange >= _MAX_STRANGE * chars:
        return True
    words = _LONG_WORD.findall(_STRANGE.sub("", text).lower())
    if sum(map(len, words)) < chars / 3:  # another script, or numbers
        return False
    pairs = [word[at : at + 2] for word in words for at in range(len(word) - 1)]
    return len(pairs) >= _MIN_PAIRS and sum(map(_COMMON.__contains__, pairs)) < _MIN_COMMON * len(
        pairs
    )
