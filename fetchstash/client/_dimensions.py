"""How many pages a PDF has, read from its bytes without a library."""

import re
import zlib

BYTES_PER_PAGE = 50_000
"""Of a document in which no page can be counted."""

MAX_PAGES, MAX_INFLATED = 10_000, 8 * 2**20
"""Bounds on what a hostile PDF can claim, and on what its streams may inflate to."""

_PAGE = re.compile(rb"/Type\s*/Page(?![A-Za-z])")
_COUNT = re.compile(rb"/Count\s+(\d{1,6})")
_OBJECT_STREAM = re.compile(rb"/Type\s*/ObjStm\b.{0,400}?stream\r?\n", re.DOTALL)


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
