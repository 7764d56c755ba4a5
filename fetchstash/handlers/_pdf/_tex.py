"""Characters of TeX's fonts as Unicode: codes without a meaning, and accents over their letters.

Where a PDF does not say what codes mean, pdfium gives the codes: the bitmap fonts of TeX (Type 3)
have neither names nor a table, and the names of large signs (CMEX) are in no list. The tables are
those of TeX's encodings OT1, T1, TS1, OML and OMX (LaTeX Project, "LaTeX font encodings", 2016).
"""

# ruff: noqa: RUF001, RUF002 - the characters of these fonts

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from ctypes import byref, c_int, c_void_p, cast, create_string_buffer
from itertools import pairwise
from typing import TYPE_CHECKING

from fetchstash.handlers._pdf import without_ligatures
from fetchstash.handlers._pdf._words import Glyphs, Word, unchecked

if TYPE_CHECKING:
    from pypdfium2 import PdfTextPage

_OT1 = dict(enumerate("ΓΔΘΛΞΠΣΥΦΨΩﬀﬁﬂﬃﬄıȷ`´ˇ˘¯˚¸ßæœøÆŒØ")) | {
    ord(code): char for code, char in zip('"<>\\^_`{|}~\x7f', "”¡¿“ˆ˙‘–—˝˜¨", strict=True)
}
_T1 = (
    dict(enumerate("`´ˆ˜¨˝˚ˇ˘¯˙¸˛‚‹›“”„«»–—\u200b\u2080ıȷﬀﬁﬂﬃﬄ"))
    | dict(
        enumerate(
            "ĂĄĆČĎĚĘĞĹĽŁŃŇŊŐŔŘŚŠŞŤŢŰŮŸŹŽŻĲİđ§ăąćčďěęğĺľłńňŋőŕřśšşťţűůÿźžżĳ¡¿£",
            start=0x80,
        )
    )
    | {0x60: "‘", 0x7F: "-", 0xD7: "Œ", 0xDF: "ẞ", 0xF7: "œ", 0xFF: "ß"}
)
_TS1 = {0x88: "•"}
_OML = dict(enumerate("ΓΔΘΛΞΠΣΥΦΨΩαβγδϵζηθικλμνξπρστυφχψωεϑϖϱςϕ")) | {
    ord(code): char for code, char in zip(":;<=>", ".,</>", strict=True)
}
_OMX = dict(
    enumerate(
        "()[]⌊⌋⌈⌉{}⟨⟩∣∥/\\()()[]⌊⌋⌈⌉{}⟨⟩/\\()[]⌊⌋⌈⌉{}⟨⟩/\\/\\"
        "⎛⎞⎡⎤⎣⎦⎢⎥⎧⎫⎩⎭⎨⎬⎪⏐⎝⎠⎜⎟⟨⟩⨆⨆∮∮⨀⨀⨁⨁⨂⨂∑∏∫⋃⋂⨄⋀⋁∑∏∫⋃⋂⨄⋀⋁"
        "∐∐ˆˆˆ˜˜˜[]⌊⌋⌈⌉{}√√√√√"
    )
) | {0x78: "↑", 0x79: "↓", 0x7E: "⇑", 0x7F: "⇓"}
_BULLET = {0x0F: "•"}
_UNKNOWN: Mapping[int, str] = {0: "\0"}
_NAMED = (
    (re.compile(r"^(CM|LM|MT)[A-Z]*EX"), _OMX),
    (re.compile(r"^(CM|LM)SY"), _BULLET),
    (re.compile(r"^(CM(R|BX|TI|SL|SS|CSC|B)|CMS[A-Z]*)\d"), _OT1),
    (re.compile(r"^(EC|SF)[A-Z]{2}\d"), _T1),
)
# Accents that stand by themselves, and how they are written behind their letter.
_ACCENTS = {
    "`": "\u0300",
    "´": "\u0301",
    "ˆ": "\u0302",
    "˜": "\u0303",
    "¨": "\u0308",
    "˝": "\u030b",
    "˚": "\u030a",
    "ˇ": "\u030c",
    "˘": "\u0306",
    "¯": "\u0304",
    "˙": "\u0307",
    "¸": "\u0327",
}
_ACCENT = re.compile(f"[{''.join(_ACCENTS)}]")
_DOTLESS = {"ı": "i", "ȷ": "j"}
# A raised accent stands in the file at most so many words from the word of its letter.
_NEAR, _MAX_RAISED = 12, 200
# Codes that no text has. pdfium writes its line ends as two, and U+0002 for a broken word.
_CODES = re.compile(r"[\x01\x03-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]|\r(?!\n)|(?<!\r)\n")
# The letters whose codes CMEX gives to sums, products and integrals stand alone in front.
_LARGE = re.compile(r"(?<!\w)[P-Z]")
_MAX_LOOKS = 20_000
_MIN_TEXT = 0.5


def with_tex(text_page: "PdfTextPage", chars: str) -> str:
    """Return the characters of a page, with those for codes of TeX's fonts in their places."""
    has_no_mapping = unchecked("FPDFText_HasUnicodeMapError")
    handle = text_page.raw
    if not _CODES.search(chars) and not any(
        has_no_mapping(handle, match.start()) == 1 for match in _LARGE.finditer(chars)
    ):
        return chars
    fonts: dict[tuple[int, str], list[int]] = {}
    object_of, font_of = unchecked("FPDFText_GetTextObject"), unchecked("FPDFTextObj_GetFont")
    name_of = unchecked("FPDFText_GetFontInfo")
    buffer, flags = create_string_buffer(128), c_int()
    for index in range(min(len(chars), _MAX_LOOKS)):
        if chars[index] != "\0" and has_no_mapping(handle, index) != 1:
            continue
        item = object_of(handle, index)
        length = name_of(handle, index, buffer, 128, byref(flags))
        name = buffer.raw[: min(length, 128)].decode("utf-8", "replace").strip("\0")
        address = cast(font_of(item), c_void_p).value or 0 if item else 0
        fonts.setdefault((address, name.rpartition("+")[2]), []).append(index)
    out = list(chars)
    for (_, name), indexes in fonts.items():
        encoding = _encoding(name, chars, indexes)
        for index in indexes:
            out[index] = encoding.get(ord(chars[index]), chars[index])
    return "".join(out)


def _encoding(name: str, chars: str, indexes: Sequence[int]) -> Mapping[int, str]:
    """Return what the codes of a font mean; of a font without a name by the codes that it has."""
    if name:
        return next((table for pattern, table in _NAMED if pattern.search(name)), _UNKNOWN)
    codes = Counter(chars[index] for index in indexes)
    letters = sum(count for code, count in codes.items() if code.isascii() and code.isalpha())
    if set(codes) <= {"\x88", "\x0f"}:
        return _TS1 | _BULLET
    if letters < _MIN_TEXT * len(indexes):  # signs of a formula, by a table that nothing names
        return _UNKNOWN
    if 3 * _pairs(chars, indexes) < letters:  # variables, which stand alone
        return _OML
    ligatures = sum(count for code, count in codes.items() if "\x0b" <= code <= "\x0f")
    others = sum(
        count for code, count in codes.items() if "\x1b" <= code <= "\x1f" or code >= "\x80"
    )
    if others > ligatures:
        return _T1
    return _OT1 if ligatures else _UNKNOWN


def _pairs(chars: str, indexes: Sequence[int]) -> int:
    """Return how often one letter of a font follows another."""
    return sum(
        after == before + 1 and chars[before].isalpha() and chars[after].isalpha()
        for before, after in pairwise(indexes)
    )


def compose_accents(words: list[Word], glyphs: Glyphs) -> list[Word]:
    """Return words with accents joined to the letters that they are drawn over: é for "´e".

    Over a capital letter TeX raises an accent, which pdfium takes for a word of its own.
    """
    if not _ACCENT.search(glyphs.chars):
        return words
    for word in words:
        if len(word.text) > 1 and _ACCENT.search(word.text):
            _compose(word, glyphs)
    raised = [place for place, word in enumerate(words) if word.text in _ACCENTS]
    gone: set[int] = set()
    for place in raised[:_MAX_RAISED]:
        accent = words[place]
        for word in words[max(place - _NEAR, 0) : place + _NEAR]:
            if abs(word.base - accent.base) > accent.size or word is accent:
                continue
            at = next((n for n in _indexes(word) if _is_over(glyphs, accent.first, n)), None)
            if at is not None and glyphs.chars[at] in word.text:
                letter = glyphs.chars[at]
                word.text = word.text.replace(letter, _joined(letter, accent.text), 1)
                gone.add(place)
                break
    return [word for place, word in enumerate(words) if place not in gone] if gone else words


def _indexes(word: Word) -> range:
    return range(word.first, word.last + 1)


def _compose(word: Word, glyphs: Glyphs) -> None:
    """Join the accents within a word with their letters."""
    text, before = "", -1
    for index in _indexes(word):
        char = glyphs.chars[index]
        if before >= 0 and _is_over(glyphs, before, index):
            char = _joined(char, text[-1])
            text = text[:-1]
            if not text:  # the word begins with its letter, and not with what is raised
                word.base = glyphs.origin(index)[1]
                word.middle = word.base + word.size / 4
        before = index if char in _ACCENTS else -1
        text += char
    word.text = without_ligatures(text)


def _joined(letter: str, accent: str) -> str:
    return unicodedata.normalize("NFC", _DOTLESS.get(letter, letter) + _ACCENTS[accent])


def _is_over(glyphs: Glyphs, accent: int, index: int) -> bool:
    """Return whether the character at ``index`` is a letter with an accent over its middle."""
    if not glyphs.chars[index].isalpha():
        return False
    sign, letter = glyphs.box(accent), glyphs.box(index)
    if not sign or not letter:
        return False
    middle, wide = (sign[0] + sign[2]) / 2, letter[2] - letter[0]
    return letter[0] + 0.1 * wide <= middle <= letter[2]
