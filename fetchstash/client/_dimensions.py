"""How large a picture is and how many pages a PDF has, read from their bytes without a library."""

import re
import zlib

BYTES_PER_PAGE = 50_000
"""Of a document in which no page can be counted."""

MAX_PAGES, MAX_INFLATED = 10_000, 8 * 2**20
"""Bounds on what a hostile PDF can claim, and on what its streams may inflate to."""

_PAGE = re.compile(rb"/Type\s*/Page(?![A-Za-z])")
_COUNT = re.compile(rb"/Count\s+(\d{1,6})")
_OBJECT_STREAM = re.compile(rb"/Type\s*/ObjStm\b.{0,400}?stream\r?\n", re.DOTALL)


def picture_size(data: bytes) -> tuple[int, int] | None:
    """Return width and height of a PNG, GIF, JPEG or WebP; None for all else, and if one is 0."""
    size = None
    if data[:8] == b"\x89PNG\r\n\x1a\n":  # PNG, 5.2 and 11.2.2
        size = _big(data[16:20]), _big(data[20:24])
    elif data[:4] == b"GIF8":  # GIF89a, 18
        size = _little(data[6:8]), _little(data[8:10])
    elif data[:2] == b"\xff\xd8":
        size = _jpeg_size(data)
    elif data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        size = _webp_size(data)
    return size if size and all(size) else None


def _jpeg_size(data: bytes) -> tuple[int, int] | None:
    """Follow the segments up to the frame header (ITU-T T.81, B.1.1 and B.2.2)."""
    at = 2
    while at + 9 <= len(data) and data[at] == 0xFF:
        marker = data[at + 1]
        if 0xC0 <= marker <= 0xCF and marker not in {0xC4, 0xC8, 0xCC}:
            return _big(data[at + 7 : at + 9]), _big(data[at + 5 : at + 7])
        at += 1 if marker == 0xFF else 2 + _big(data[at + 2 : at + 4])
    return None


def _webp_size(data: bytes) -> tuple[int, int] | None:
    """Read the first chunk of a WebP (RFC 9649, section 2)."""
    chunk = data[12:16]
    if chunk == b"VP8X":
        return 1 + _little(data[24:27]), 1 + _little(data[27:30])
    if chunk == b"VP8L":
        bits = _little(data[21:25])
        return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    if chunk == b"VP8 ":
        return _little(data[26:28]) & 0x3FFF, _little(data[28:30]) & 0x3FFF
    return None


def _big(data: bytes) -> int:
    return int.from_bytes(data, "big")


def _little(data: bytes) -> int:
    return int.from_bytes(data, "little")


def pdf_pages(data: bytes) -> int:
    """Return about how many pages a PDF has, at least 1. Other data counts by its size."""
    if not data.startswith(b"%PDF-"):
        return min(max(len(data) // BYTES_PER_PAGE, 1), MAX_PAGES)
    pages = len(_PAGE.findall(data))
    if not pages:
        inflated = _object_streams(data)
        counts = [int(count) for count in _COUNT.findall(data) + _COUNT.findall(inflated)]
        pages = len(_PAGE.findall(inflated)) or max(counts, default=0)
    return min(max(pages or len(data) // BYTES_PER_PAGE, 1), MAX_PAGES)


def _object_streams(data: bytes) -> bytes:
    """Return a PDF's object streams, inflated: pages may stand in them (ISO 32000-2, 7.5.7)."""
    inflated = bytearray()
    for stream in _OBJECT_STREAM.finditer(data):
        room = MAX_INFLATED - len(inflated)
        if room <= 0:
            break
        try:
            inflated += zlib.decompressobj().decompress(data[stream.end() :], room)
        except zlib.error:
            continue
    return bytes(inflated)
