"""Remove invisible and deceptive characters from any text that reaches a model.

A person who looks at a page and a model that reads its text must see the same. Some Unicode
characters are invisible, and whole sentences can be spelled in them: tags, variation selectors,
zero-width characters, fillers. Others change the direction of the text (Unicode Technical Standard
55, section 3), and escape sequences rewrite a terminal. All of these are removed.

Some of them shape emoji, Persian, Sinhala, Khmer, Mongolian or Han text. Those stay, byte for byte,
where the standard gives them that meaning: one after a base that takes it, and never a run of them.
Soft hyphens are removed: they are invisible, and they break a search for the word.

These stay although they look odd: private-use characters (drawn as a glyph or a box: icon fonts,
legacy Han), unusual spaces (they take room), U+FFFC and U+FFFD (drawn), and any number of combining
marks.

CR LF and CR become a line feed. Other line breaks (VT, FF, NEL, LINE and PARAGRAPH SEPARATOR)
become one space, or nothing beside a line end. So only a line feed ends a line, and a text without
CR keeps its number of lines.
"""

# ruff: noqa: E501 - a character class reads better whole

import re
from dataclasses import dataclass
from functools import cache

# Character classes, for use between brackets: those to look at, and _FINE, which is all the rest.
# The tags and their neighbours stand apart, because a class that reaches beyond the Basic
# Multilingual Plane is slow to search for.
#
# These are invisible everywhere: C0 and C1 controls, surrogates, noncharacters, interlinear
# annotation, embeddings, overrides and isolates, and the default-ignorable code points
# (DerivedCoreProperties.txt of Unicode 17).
_NEVER = (
    "\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\u00ad\u17b4\u17b5\u202a-\u202e\u2060-\u206f\u3164\ud800-\udfff\ufdd0-\ufdef\ufeff\uffa0"
    "\ufff0-\ufffb\ufffe\uffff"
)
_NEVER_BEYOND = (
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e00ff\U000e01f0-\U000e0fff"
)
# These have a meaning in some contexts, as tags have in flags.
_MARKS = "\u061c\u200e\u200f"
_IN_CONTEXT = (
    f"\u034f\u115f\u1160\u180b-\u180f\u200b-\u200d{_MARKS}\ufe00-\ufe0f\U000e0100-\U000e01ef"
)
_BREAKS = "\x0b\x0c\x85\u2028\u2029"
_FINE = (
    "\t\n -~\u00a0-\u00ac\u00ae-\u034e\u0350-\u061b\u061d-\u115e\u1161-\u17b3\u17b6-\u180a\u1810-\u200a\u2010-\u2027\u202f-\u205f"
    "\u2070-\u3163\u3165-\ud7ff\ue000-\ufdcf\ufdf0-\ufdff\ufe10-\ufefe\uff00-\uff9f\uffa1-\uffef\ufffc\ufffd"
    "\U00010000-\U0001bc9f\U0001bca4-\U0001d172\U0001d17b-\U000dffff\U000e1000-\U0010ffff"
)

# The blocks of emoji and other pictographs. A selector after any other symbol has no meaning.
_PICTOGRAPHS = (
    "\u00a9\u00ae\u203c\u2049\u2122\u2139\u2190-\u21ff\u2300-\u23ff\u2460-\u24ff\u25a0-\u27bf\u2900-\u297f\u2b00-\u2bff\u3030\u303d\u3297\u3299"
    "\U0001f000-\U0001fbff"
)
# Scripts that put no space between words: Thai to Myanmar and Khmer; kana and Han.
SOUTHEAST = r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
_HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
KANA_AND_HAN = f"\u3040-\u30ff{_HAN}"
HANGUL = "\uac00-\ud7af"
_MONGOLIAN = "\u1800-\u180a\u1810-\u18af"
_RIGHT_TO_LEFT = "\u0590-\u060b\u060d-\u061b\u061d-\u08ff\ufb1d-\ufdcf\ufdf0-\ufdff\ufe70-\ufefc\U00010800-\U00010fff\U0001e800-\U0001efff"
# Cursive and Indic scripts: ZWJ joins and ZWNJ separates their letters (The Unicode Standard,
# section 23.2).
_JOINING = (
    "\u0600-\u061b\u061d-\u0dff\u0f00-\u109f\u1780-\u17b3\u17b6-\u180a\u1810-\u1c4f\ua800-\uaaff\uabc0-\uabff\ufb50-\ufdcf\ufdf0-\ufdff\ufe70-\ufefc"
    "\U00010a00-\U00010aff\U00010d00-\U00011fff\U0001e900-\U0001e95f"
)
# Scripts without spaces, where ZWSP ends a word: Thai, Lao, Myanmar, Khmer, New Tai Lue, Tai Tham,
# Balinese, Javanese.
_SPACELESS = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17b3\u17b6-\u17ff\u1950-\u19df\u1a20-\u1aaf\u1b00-\u1b7f\ua980-\ua9df\uaa60-\uaa7f"
# Bases in StandardizedVariants.txt besides emoji: quotes, mathematical operators, ideographic and
# fullwidth punctuation, Myanmar, Phags-pa, Manichaean, hieroglyphs. The slashed zero is left out:
# its base is a plain digit.
_STANDARDIZED = (
    f"\u2018-\u201f\u2200-\u22ff\u2a00-\u2aff\u3001\u3002\uff01-\uff1f\u1000-\u109f\uaa60-\uaa7f\ua840-\ua877{_HAN}"
    "\U00010ac0-\U00010aff\U00013000-\U0001345f"
)

# A character that its direct neighbours give a meaning: at most the first of a run, or a selector
# and its joiner. Each alternative looks back over the character itself.
_MEANT = "|".join(
    [
        rf"(?<=[{_PICTOGRAPHS}][\ufe0e\ufe0f])",  # text and emoji presentation (UTS 51, ED-8 and ED-9)
        rf"(?:(?<=[{_PICTOGRAPHS}]\u200d)|(?<=[{_PICTOGRAPHS}]\ufe0f\u200d))(?=[{_PICTOGRAPHS}])",  # emoji ZWJ sequences (ED-16)
        r"(?<=[0-9#*]\ufe0f)(?=\u20e3)",  # keycaps (ED-14c)
        rf"(?<=[{_JOINING}][\u200c\u200d])|(?<=[{_MONGOLIAN}][\u180b-\u180d\u180f]\u200d)",
        rf"(?<=[{_MONGOLIAN}][\u180b-\u180f])",  # free variation selectors and the vowel separator
        rf"(?<=[{_STANDARDIZED}][\ufe00-\ufe06])",
        rf"(?<=[{_HAN}][\U000e0100-\U000e01ef])",  # ideographic variation sequences (UTS 37)
        rf"(?<=[{_SPACELESS}]\u200b)",
        r"(?<=[\u0591-\u05f4]\u034f)",  # keeps two Hebrew points in their order (The Unicode Standard, section 23.2)
        # An Old Hangul syllable without its first or its second letter.
        r"(?<=\u115f)(?=[\u1161-\u11a7\ud7b0-\ud7c6])|(?<=[\u1100-\u115e\ua960-\ua97c]\u1160)",
        # One direction mark beside right-to-left text, at most a word or two away on the same line.
        rf"(?<=[{_MARKS}])(?<![{_IN_CONTEXT}][{_MARKS}])(?:(?=.{{0,15}}[{_RIGHT_TO_LEFT}])|"
        + "|".join(rf"(?<=[{_RIGHT_TO_LEFT}].{{{distance}}})" for distance in range(1, 17))
        + ")",
    ]
)


@cache
def _meaningless() -> re.Pattern[str]:
    """Return the pattern of marks without effect where they stand; compiled once, in 6 ms."""
    return re.compile(f"[{_IN_CONTEXT}](?!{_MEANT})")


# A flag spells its region in tags (UTS 51, ED-14a). England, Scotland and Wales are recommended for
# interchange; any other is drawn as a plain black flag, and its tail is invisible text.
_FLAGS = [
    "".join(chr(0xE0000 + ord(letter)) for letter in region)
    for region in ("gbeng\x7f", "gbsct\x7f", "gbwls\x7f")
]
_UNFLAGGED = re.compile(
    f"[{_NEVER_BEYOND}]+(?![{_NEVER_BEYOND}])"
    + "".join(f"(?<!\U0001f3f4{flag})" for flag in _FLAGS)
)

# ECMA-48: control strings with their contents (OSC, DCS, SOS, PM, APC, which must end on their
# line), control sequences, and the other escape sequences.
_ESCAPE = re.compile(
    r"[\x1b\x90\x98\x9b\x9d-\x9f](?:"
    r"(?:(?<=\x1b)[PX\]^_]|(?<=[\x90\x98\x9d-\x9f]))[^\x00-\x1f\x7f-\x9f]*(?:\x07|\x1b\\|\x9c)"
    r"|(?:(?<=\x1b)\[|(?<=\x9b))[0-?]*[ -/]*[@-~]"
    r"|(?<=\x1b)[ -/]*[0-Z\\^-~])"
)
_UNSEEN = re.compile(f"[{_NEVER}]+")
_BREAK = re.compile(f"[{_BREAKS}]+")
_CLEAN = re.compile(f"[{_FINE}]*")
# The same by the bytes of UTF-8, five times as fast: bytes that no such character begins with, and
# for the first bytes that are common nevertheless what else they must be followed by. The exact
# answer of any other text is _CLEAN's.
_FINE_BYTES = bytes(
    (
        *b"\t\n",
        *range(0x20, 0x7F),
        *range(0x80, 0xC2),
        *range(0xC3, 0xCD),
        *range(0xCE, 0xD8),
        *range(0xD9, 0xE1),
        *range(0xE4, 0xED),
        0xEE,
        *range(0xF1, 0xF3),
        *range(0xF4, 0x100),
    )
)
_COMMON = {
    0xC2: re.compile(rb"\xc2[\x80-\x9f\xad]"),
    0xE2: re.compile(rb"\xe2(?:\x80[\x8b-\x8f\xa8-\xae]|\x81[\xa0-\xaf])"),
    0xE3: re.compile(rb"\xe3\x85\xa4"),
    0xEF: re.compile(rb"\xef(?:\xb7|\xb8[\x80-\x8f]|\xbb\xbf|\xbe\xa0|\xbf[\xb0-\xbf])"),
}
# A dirty stretch is cleaned in blocks of so many characters, rounded up to whole lines.
_BLOCK = 8_192


@dataclass(frozen=True, slots=True)
class Cleaned:
    """A text that may be shown, and how many characters were removed from it.

    Replaced line ends do not count.
    """

    text: str
    removed: int


def clean(text: str) -> Cleaned:
    """Remove invisible and direction-changing characters, escape sequences and controls.

    Line feeds and tabs stay. The result has no lone surrogates and encodes to UTF-8; cleaning it
    again changes nothing. Pieces of a document that end with a line feed can be cleaned one by one;
    at any other cut a joiner or a selector may be lost.
    """
    return clean_encoded(text)[0]


def clean_encoded(text: str) -> tuple[Cleaned, bytes]:
    """Return a text cleaned as ``clean`` does it, and its UTF-8."""
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    data = text.encode("utf-8", "surrogatepass")
    if _is_clean(data):
        return Cleaned(text, 0), data
    pieces: list[str] = []
    removed = at = 0
    while (dirty := _clean_until(text, at)) < len(text):
        start = text.rfind("\n", at, dirty) + 1 or at
        end = text.find("\n", dirty + _BLOCK) + 1 or len(text)
        cleaned = _clean_lines(text[start:end])
        pieces += (text[at:start], cleaned.text)
        removed += cleaned.removed
        at = end
    if not pieces:
        return Cleaned(text, 0), data
    text = "".join([*pieces, text[at:]])
    return Cleaned(text, removed), text.encode()


def clean_line(text: str) -> str:
    """Return ``text`` clean and on one line: a title, a file name, a header value or a message."""
    return " ".join(clean(text).text.split())


def _is_clean(data: bytes) -> bool:
    """Return True if nothing has to be removed from a text in UTF-8; a quick test, enough for most.

    The bytes of a lone surrogate begin as no character does.
    """
    begun = set(data.translate(None, _FINE_BYTES))
    return begun <= _COMMON.keys() and not any(_COMMON[byte].search(data) for byte in begun)


def _clean_until(text: str, start: int) -> int:
    """Return the offset of the first character from ``start`` on that may have to be removed."""
    clean_part = _CLEAN.match(text, start)
    return clean_part.end() if clean_part else start


def _clean_lines(text: str) -> Cleaned:
    """Clean whole lines. No pattern matches across a line feed."""
    text = _BREAK.sub(_space_between, text)
    size = len(text)
    for pattern in (_ESCAPE, _UNSEEN, _UNFLAGGED, _meaningless()):
        text = pattern.sub("", text)
    return Cleaned(text, size - len(text))


def _space_between(breaks: re.Match[str]) -> str:
    """Return the replacement of a run of breaks: a space, or nothing at the edge of a line."""
    text = breaks.string
    inside = breaks.start() > 0 and breaks.end() < len(text)
    return " " if inside and text[breaks.start() - 1] != "\n" and text[breaks.end()] != "\n" else ""
