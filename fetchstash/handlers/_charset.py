"""Whether bytes are text, and which characters they are.

No binary may pass as text, and no text may be lost because its charset is uncommon: hence several
tests, the surest first, cheap enough for the server.

The same byte is "à" in windows-1252, "ŕ" in windows-1250 and "ą" in windows-1257. A text is in the
charset under which its letters are those of one language.

Labels are read as browsers read them (WHATWG Encoding, section 4.2), where
"iso-8859-1" means windows-1252.
"""

import codecs
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeGuard

_NON_ASCII = re.compile(rb"[\x80-\xff]")
# C0 controls that no text has a use for. Tab, line feed, form feed, carriage return, backspace (man
# pages), bell, escape (terminal logs, ISO 2022, which shifts with 0x0E and 0x0F), 0x1E (RFC 7464)
# and ^Z (the end of a DOS file) do occur; NUL is judged apart.
_CONTROLS = bytes(b for b in range(32) if b not in b"\t\n\f\r\b\a\x0e\x0f\x1a\x1b\x1e\0")
_NUL_RUN = re.compile(rb"\0{8,}")
_MULTI_BYTE = ("cp932", "euc_jp", "gb18030", "big5", "cp949")

# Small letters, capitals and digits of code page 037 and its relatives.
_EBCDIC_LETTERS = bytes(
    (
        *range(0x81, 0x8A),
        *range(0x91, 0x9A),
        *range(0xA2, 0xAA),
        *range(0xC1, 0xCA),
        *range(0xD1, 0xDA),
        *range(0xE2, 0xEA),
        *range(0xF0, 0xFA),
    )
)

BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16, whose mark begins it
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


@dataclass(frozen=True, slots=True)
class TextTest:
    """The bytes are text. ``charset`` is "" if it may be any 8-bit or multi-byte charset."""

    charset: str
    evidence: str


def text_test(head: bytes) -> TextTest | None:
    """Return how the first bytes of a file are text, None if they are not."""
    return _by_bom(head) or _utf8(head) or _utf16_or_32(head) or _eight_bit(head) or _ebcdic(head)


def decode_head(head: bytes, charset: str) -> str:
    """Decode the first bytes of a file, without a character that the end cuts."""
    for bom, _ in BOMS:
        head = head.removeprefix(bom)
    return codecs.getincrementaldecoder(charset or "latin-1")("replace").decode(head)


def _by_bom(head: bytes) -> TextTest | None:
    for bom, charset in BOMS:
        if head.startswith(bom) and _reads_well(_decode(head[len(bom) :], charset)):
            return TextTest(charset, f"byte order mark of {charset}")
    return None


def _utf8(head: bytes) -> TextTest | None:
    if _decode(head, "utf-8") is None:
        return None
    solid = head
    if b"\0" in head:
        # A crash leaves logs with holes of NULs; they are still lines of text around them.
        solid = _NUL_RUN.sub(b"", head)
        if b"\n" not in solid or solid.count(b"\0") * 100 > len(solid):
            return None
    controls = len(solid) - len(solid.translate(None, _CONTROLS))
    if controls > max(1, len(solid) // 20):
        return None
    return TextTest("utf-8", "valid UTF-8" if _NON_ASCII.search(head) else "ASCII")


def _utf16_or_32(head: bytes) -> TextTest | None:
    """Test for UTF-16 and UTF-32 without a mark, by where their NULs are."""
    if len(head) < 4 or b"\0" not in head:
        return None
    nuls = [head[i::4].count(0) * 4 / len(head) for i in range(4)]
    if min(nuls[2:]) > 0.9:
        charset = "utf-32-le"
    elif min(nuls[:2]) > 0.9:
        charset = "utf-32-be"
    elif nuls[0] + nuls[2] < (nuls[1] + nuls[3]) / 10:
        charset = "utf-16-le"
    elif nuls[1] + nuls[3] < (nuls[0] + nuls[2]) / 10:
        charset = "utf-16-be"
    else:
        return None
    text = _decode(head, charset)
    if not _reads_well(text) or not any(c in text for c in " \n"):
        return None
    return TextTest(charset, f"{charset} by its NULs")


def _eight_bit(head: bytes) -> TextTest | None:
    """Test for 8-bit and multi-byte charsets: letters above 0x7F, and hardly any controls."""
    controls = len(head) - len(head.translate(None, _CONTROLS + b"\0"))
    if not head or controls * 200 > len(head):
        return None
    printable_ascii = len(head) - len(head.translate(None, bytes(range(0x20, 0x7F)) + b"\t\r\n"))
    blanks = sum(head.count(c) for c in (b" ", b"\n", b"\t"))
    # Words between blanks, mostly ASCII, or strictly valid in one of the charsets of East Asia,
    # which need no blanks.
    is_text = (
        printable_ascii * 2 > len(head)
        or blanks * 25 > len(head)
        or any(_reads_well(_decode(head, charset)) for charset in _MULTI_BYTE)
    )
    return TextTest("", "8-bit text") if is_text else None


def _ebcdic(head: bytes) -> TextTest | None:
    """Test for EBCDIC: blanks are 0x40, and letters and digits fill three fifths."""
    if not head:
        return None
    blanks = head.count(0x40) / len(head)
    letters = (len(head) - len(head.translate(None, _EBCDIC_LETTERS))) / len(head)
    if not 0.05 < blanks < 0.5 or letters < 0.6 or b"\0" in head:
        return None
    return TextTest("cp037", "EBCDIC by its letters and blanks")


def _decode(data: bytes, charset: str) -> str | None:
    """Decode strictly, without a character that the end cuts; None if that fails."""
    try:
        return codecs.getincrementaldecoder(charset)().decode(data)
    except UnicodeDecodeError:
        return None


def _reads_well(text: str | None) -> TypeGuard[str]:
    """Return whether bytes decode, with at most 1 % controls, unassigned or private characters.

    Of random 16-bit units about 15 % are.
    """
    if text is None:
        return False
    sample = text[:2_000]
    odd = sum(
        unicodedata.category(c) in {"Cc", "Cn", "Co", "Cs"} and c not in "\t\n\r\f\x1b\0"
        for c in sample
    )
    return odd * 100 <= len(sample)


_WEST = (
    "àâæçèéêëîïôœùûüÿ",
    "äöüß",
    "áéíñóúü",
    "àèéìíîòóùú",
    "áâãàçéêíóôõúü",
    "åäöé",
    "æøåéäö",
    "áéëïíóöüèê",
    "áðéíóúýþæö",
    "àèéíïòóúüç",
)
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
    """Return the share of letters that the best fitting language uses.

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


def long_lines(text: str, width: int) -> Iterator[int]:
    """Yield the length of each line that is longer than ``width``.

    Goes from the last line end within that width to the next: of most lines nothing is looked at.
    """
    start = 0
    while len(text) - start > width:
        end = text.rfind("\n", start, start + width + 1)
        if end < 0:
            end = text.find("\n", start + width)
            end = len(text) if end < 0 else end
            yield end - start
        start = end + 1


SAMPLE_BYTES = 64 * 1024
CHUNK_BYTES = 2**20
FALLBACK = "cp1252"  # every byte beyond ASCII is some letter in it, so that nothing is lost

# Wider codecs for names under which more is sent than Python's codec has.
_WIDER = {
    "iso8859-1": "cp1252",
    "latin-1": "cp1252",
    "ascii": "cp1252",
    "iso8859-9": "cp1254",
    "iso8859-11": "cp874",
    "tis-620": "cp874",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
    "big5": "big5hkscs",
    "utf-16": "utf-16-le",
    "utf-32": "utf-32-le",
}
_ALIASES = {
    "x-sjis": "cp932",
    "ks_c_5601-1987": "cp949",
    "x-gbk": "gb18030",
    "x-euc-jp": "euc_jp",
    "unicode": "utf-16-le",
}
# Codecs of Python's that are no charsets, or that turn plain ASCII into something else.
_NO_CHARSETS = {
    "idna",
    "punycode",
    "unicode_escape",
    "raw_unicode_escape",
    "undefined",
    "utf-7",
    "mbcs",
    "oem",
}

# Charsets of seven bits, and the escapes that they begin with.
_SEVEN_BIT = {"iso2022_kr": b"\x1b$)C", "iso2022_jp": b"\x1b$", "hz": b"~{"}
_MAC_CAPITALS = re.compile(rb"[\x80-\x9f]")
_BROKEN = re.compile("\ufffd+")
_FEW = 8

_DECLARED = re.compile(
    rb"""<meta[^>]{0,200}?charset\s*=\s*["']?([\w.:+-]{1,40})"""  # HTML, section 4.2.5.4
    rb"""|<\?xml[^>]{0,200}?encoding\s*=\s*["']([\w.:+-]{1,40})"""  # XML 1.0, section 4.3.3
    rb"""|^@charset\s+"([\w.:+-]{1,40})"""  # CSS Syntax, section 3.2
    # PEP 263, and what Emacs reads
    rb"""|^[ \t\f]*(?:\#|//|;).{0,100}?coding[:=][ \t]*([\w.:+-]{1,40})""",
    re.IGNORECASE | re.MULTILINE,
)
_DECLARED_REACH = 2_048


def charset_named(name: str) -> str:
    """Return the codec that a label names, "" if none."""
    name = name.strip().lower()
    try:
        codec = codecs.lookup(_ALIASES.get(name, name)).name
        b"four".decode(codec, "replace")  # raises for a codec that makes no text, such as uu
    except (LookupError, ValueError):
        return ""
    return "" if codec in _NO_CHARSETS else _WIDER.get(codec, codec)


def declared_charset(head: bytes) -> str:
    """Return the charset that a text declares, as it spells it.

    A meta element, an XML declaration and a coding line declare one.
    """
    match = _DECLARED.search(head[:_DECLARED_REACH])
    return next((group.decode("ascii") for group in match.groups() if group), "") if match else ""


def choose_charset(sample: bytes, label: str = "", declared: str = "") -> str:
    """Return the codec to decode a text with.

    ``sample`` holds bytes beyond ASCII if the text has any. ``label`` comes from the Content-Type,
    ``declared`` from the text itself; each is used only if the bytes are valid in it.
    """
    test = text_test(sample)
    if test and test.charset not in {"", "utf-8"}:
        return test.charset
    candidates = [charset_named(label), charset_named(declared)]
    if sample.isascii():
        # ISO 2022 and HZ use ASCII bytes alone; their escapes show them.
        for charset in (c for c in [*candidates, *_SEVEN_BIT] if c in _SEVEN_BIT):
            if _SEVEN_BIT[charset] in sample and _errors(sample, charset) == 0:
                return charset
        return "utf-8"
    if _is_utf8(sample, claimed="utf-8" in candidates):
        return "utf-8"
    named = [charset for charset in candidates if charset not in {"", "utf-8"}]
    bound = len(sample) + 1_000
    fits = (charset for charset in named if _errors(sample, charset) * 1_000 <= bound)
    return next(fits, "") or _detected(sample)


def decode(data: bytes, label: str = "", declared: str = "") -> str:
    """Decode a whole text; bytes that are no character become U+FFFD."""
    charset = choose_charset(_sample(data), label, declared or declared_charset(data))
    return _without_mark(data).decode(charset, "replace")


def read_text(source: Path, label: str = "") -> Iterator[str]:
    """Yield a file of any size as chunks of whole lines, each ended by a line feed.

    A line longer than a megabyte is yielded in pieces.
    """
    charset = charset_of_file(source, label)
    decoder = codecs.getincrementaldecoder(charset)("replace")
    rest = ""
    with source.open("rb") as file:
        data = _without_mark(file.read(CHUNK_BYTES))
        while data:
            following = file.read(CHUNK_BYTES)
            text = rest + decoder.decode(data, final=not following)
            end = max(text.rfind("\n"), text.rfind("\r", 0, len(text) - 1)) + 1
            if not following or (not end and len(text) > CHUNK_BYTES):
                end = len(text)
            if end:
                part = text[:end]
                has_cr = "\r" in part  # found ten times as fast as CR LF is replaced
                yield part.replace("\r\n", "\n").replace("\r", "\n") if has_cr else part
            data, rest = following, text[end:]


def _is_utf8(sample: bytes, *, claimed: bool) -> bool:
    """Return whether ``sample`` is UTF-8, some broken characters allowed.

    Other charsets hardly ever look like it by chance, so that four whole characters outweigh a
    broken one; one does if a label or the text itself claims UTF-8.
    """
    decoder = codecs.getincrementaldecoder("utf-8")
    with suppress(UnicodeDecodeError):  # a text may hold U+FFFD itself
        decoder().decode(sample)
        return True
    text = decoder("replace").decode(sample)
    broken = len(_BROKEN.findall(text))
    whole = len(text) - len(text.encode("ascii", "ignore")) - text.count("\ufffd")
    return broken < whole if claimed else broken * 4 <= whole


def _errors(sample: bytes, charset: str) -> int:
    return codecs.getincrementaldecoder(charset)("replace").decode(sample).count("\ufffd")


def _detected(sample: bytes) -> str:
    letters = _NON_ASCII.findall(sample)
    if len(letters) < _FEW and len(letters) * 4 < len(sample):
        return FALLBACK  # an accent or a dash in a line of ASCII is too little to detect by
    if latin := latin_charset(sample):
        return latin
    from charset_normalizer import from_bytes  # noqa: PLC0415 - heavy, and only this needs it

    best = from_bytes(sample, preemptive_behaviour=False).best()
    if best and best.encoding == "mac_cyrillic" and not _MAC_CAPITALS.search(sample):
        return "cp1251"  # the small letters are the same in both
    return (best and charset_named(best.encoding)) or FALLBACK


def _sample(data: bytes) -> bytes:
    """Return the first bytes; if they are ASCII, the lines from the first that is not."""
    match = None if data.isascii() else _NON_ASCII.search(data)
    if not match or match.start() < SAMPLE_BYTES // 2:
        return data[:SAMPLE_BYTES]
    start = data.rfind(b"\n", 0, match.start()) + 1
    return data[start : start + SAMPLE_BYTES]


def charset_of_file(source: Path, label: str = "") -> str:
    """Return the codec to decode a file of text with; ``label`` is the Content-Type's charset."""
    with source.open("rb") as file:
        head = file.read(SAMPLE_BYTES)
        sample = head
        while sample and sample.isascii() and b"\0" not in head:
            sample = _sample(file.read(CHUNK_BYTES))
    return choose_charset(sample or head, label, declared_charset(head))


def _without_mark(data: bytes) -> bytes:
    for mark, _ in BOMS:
        if data.startswith(mark):
            return data[len(mark) :]
    return data
