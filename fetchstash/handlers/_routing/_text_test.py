"""Test whether bytes are text, before anything is decoded.

No binary may pass as text, and no text may be lost because its charset is uncommon: hence several
tests, the surest first. Pure functions on the first bytes of a file, cheap enough for the server.
"""

import codecs
import re
import unicodedata
from dataclasses import dataclass
from typing import TypeGuard

# C0 controls that no text has a use for. Tab, line feed, form feed, carriage return, backspace (man
# pages), bell, escape (terminal logs, ISO 2022, which shifts with 0x0E and 0x0F), 0x1E (RFC 7464)
# and ^Z (the end of a DOS file) do occur; NUL is judged apart.
_CONTROLS = bytes(b for b in range(32) if b not in b"\t\n\f\r\b\a\x0e\x0f\x1a\x1b\x1e\0")
_NUL_RUN = re.compile(rb"\0{8,}")
_NON_ASCII = re.compile(rb"[\x80-\xff]")
_MULTI_BYTE = ("cp932", "euc_jp", "gb18030", "big5", "cp949")

# Small letters, capitals and digits of code page 037 and its relatives.
_EBCDIC_LETTERS = bytes((
    *range(0x81, 0x8A), *range(0x91, 0x9A), *range(0xA2, 0xAA),
    *range(0xC1, 0xCA), *range(0xD1, 0xDA), *range(0xE2, 0xEA), *range(0xF0, 0xFA),
))  # fmt: skip

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
    """Test for EBCDIC: blanks are 0x40, and letters and digits fill three quarters."""
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
    """Return whether bytes are decoded, and to at most 1 % controls, unassigned or private ones.

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
