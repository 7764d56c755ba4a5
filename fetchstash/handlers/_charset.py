"""Find the charset of a text: by its mark, its label, its own declaration, or detection.

Runs in the worker. Labels are read as browsers read them (WHATWG Encoding, section 4.2), where
"iso-8859-1" means windows-1252.
"""

import codecs
import re
from collections.abc import Iterator
from pathlib import Path

from fetchstash.handlers._latin import latin_charset
from fetchstash.handlers._routing._text_test import BOMS, text_test

SAMPLE_BYTES = 64 * 1024
CHUNK_BYTES = 2**20
FALLBACK = "cp1252"
"""Every byte beyond ASCII is some letter in it, so that nothing is lost."""

# Wider codecs for names under which more is sent than Python's codec has.
_WIDER = {
    "iso8859-1": "cp1252", "latin-1": "cp1252", "ascii": "cp1252", "iso8859-9": "cp1254",
    "iso8859-11": "cp874", "tis-620": "cp874", "gb2312": "gb18030", "gbk": "gb18030",
    "shift_jis": "cp932", "euc_kr": "cp949", "big5": "big5hkscs", "utf-16": "utf-16-le",
    "utf-32": "utf-32-le",
}  # fmt: skip
_ALIASES = {
    "x-sjis": "cp932",
    "ks_c_5601-1987": "cp949",
    "x-gbk": "gb18030",
    "x-euc-jp": "euc_jp",
    "unicode": "utf-16-le",
}
# Codecs of Python's that are no charsets, or that turn plain ASCII into something else.
_NO_CHARSETS = {
    "idna", "punycode", "unicode_escape", "raw_unicode_escape", "undefined", "utf-7", "mbcs", "oem",
}  # fmt: skip

# Charsets of seven bits, and the escapes that they begin with.
_SEVEN_BIT = {"iso2022_kr": b"\x1b$)C", "iso2022_jp": b"\x1b$", "hz": b"~{"}
_NON_ASCII = re.compile(rb"[\x80-\xff]")
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
        return next(
            (c for c in [*candidates, *_SEVEN_BIT] if c in _SEVEN_BIT and _shifts(sample, c)),
            "utf-8",
        )
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
                yield text[:end].replace("\r\n", "\n").replace("\r", "\n")
            data, rest = following, text[end:]


def _shifts(sample: bytes, charset: str) -> bool:
    return _SEVEN_BIT[charset] in sample and _errors(sample, charset) == 0


def _is_utf8(sample: bytes, *, claimed: bool) -> bool:
    """Return whether ``sample`` is UTF-8, some broken characters allowed.

    Other charsets hardly ever look like it by chance, so that four whole characters outweigh a
    broken one; one does if a label or the text itself claims UTF-8.
    """
    text = codecs.getincrementaldecoder("utf-8")("replace").decode(sample)
    broken = len(_BROKEN.findall(text))
    if not broken or _is_valid_utf8(sample):
        return True
    whole = len(text) - len(text.encode("ascii", "ignore")) - text.count("\ufffd")
    return broken < whole if claimed else broken * 4 <= whole


def _is_valid_utf8(sample: bytes) -> bool:
    """Return whether nothing in it is broken: a text may hold U+FFFD itself."""
    try:
        codecs.getincrementaldecoder("utf-8")().decode(sample)
    except UnicodeDecodeError:
        return False
    return True


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
