"""Repair of PDF files that were cut short. Pure functions.

The end of a PDF has the table of objects and the root (ISO 32000-1, section 7.5); without it no
library finds the pages. Here objects are found by their headers, and a page tree, a root and a
trailer are appended. Objects in compressed streams (section 7.5.7) are written out.
"""

import re
import zlib
from collections.abc import Iterator
from itertools import pairwise

_OBJECT = re.compile(rb"(?<!\d)(\d{1,10})[ \t\r\n]{1,4}\d{1,5}[ \t\r\n]{1,4}obj\b")
_PAGE = re.compile(rb"/Type[ \t\r\n]{0,4}/Page(?![A-Za-z])")
_OBJECT_STREAM = re.compile(rb"/Type[ \t\r\n]{0,4}/ObjStm(?![A-Za-z])")
_STREAM = re.compile(rb"stream\r?\n")
_FIRST, _COUNT = re.compile(rb"/First\s{1,4}(\d{1,10})"), re.compile(rb"/N\s{1,4}(\d{1,10})")
_LINEARIZED = re.compile(rb"/Linearized\b.{0,200}?/N\s{1,4}(\d{1,7})", re.DOTALL)
_MAX_DICTIONARY = 16 * 1024
_MAX_UNPACKED = 64 * 2**20
_MAX_PAGES = 100_000
_LETTER = b"[0 0 612 792]"


def repaired(data: bytes) -> tuple[bytes, int]:
    """Return a PDF of the complete pages in ``data``, and their number."""
    objects = list(_OBJECT.finditer(data))
    ends = [*(start.start() for start in objects[1:]), len(data)]
    pages: dict[int, None] = {}
    unpacked: list[bytes] = []
    room = _MAX_UNPACKED
    highest = 0
    for start, end in zip(objects, ends, strict=False):
        number = int(start[1])
        highest = max(highest, number)
        head = data[start.end() : min(end, start.end() + _MAX_DICTIONARY)]
        dictionary, stream, _ = head.partition(b"stream")
        if not stream and _PAGE.search(dictionary) and b"endobj" in head:
            pages[number] = None
        elif stream and _OBJECT_STREAM.search(dictionary):
            for inner, content in _within(data[start.end() : end], dictionary, room):
                highest = max(highest, inner)
                room -= len(content)
                unpacked.append(b"%d 0 obj\n%s\nendobj\n" % (inner, content))
                if _PAGE.search(content):
                    pages[inner] = None
    kids = list(pages)[:_MAX_PAGES]
    root, tree = highest + 1, highest + 2
    ending = b"".join(
        (
            b"\n", *unpacked,
            b"%d 0 obj\n<< /Type /Catalog /Pages %d 0 R >>\nendobj\n" % (root, tree),
            b"%d 0 obj\n<< /Type /Pages /MediaBox %s " % (tree, _LETTER),
            b"/Count %d /Kids [" % len(kids),
            b" ".join(b"%d 0 R" % kid for kid in kids),
            b"] >>\nendobj\ntrailer\n<< /Root %d 0 R /Size %d >>\n" % (root, tree + 1),
            b"startxref\n0\n%%EOF\n",
        )
    )  # fmt: skip
    # An object that was cut would swallow the objects behind it.
    return data[: data.rfind(b"endobj") + len(b"endobj")] + ending, len(kids)


def pages_stated(data: bytes) -> int:
    """Return the number of pages that a linearized file states, else 0 (annex F.3.3)."""
    header = _LINEARIZED.search(data, 0, 2_048)
    return int(header[1]) if header else 0


def _within(content: bytes, dictionary: bytes, room: int) -> Iterator[tuple[int, bytes]]:
    """Yield the objects of an object stream, whose head lists numbers and places."""
    begin, first, count = (
        _STREAM.search(content),
        _FIRST.search(dictionary),
        _COUNT.search(dictionary),
    )
    if not begin or not first or not count or b"/FlateDecode" not in dictionary:
        return
    try:
        inner = zlib.decompressobj().decompress(content[begin.end() :], max(room, 1))
        numbers = [int(word) for word in inner[: int(first[1])].split()[: 2 * int(count[1])]]
    except (zlib.error, ValueError):
        return
    places = [int(first[1]) + place for place in numbers[1::2]]
    for number, (start, end) in zip(numbers[::2], pairwise([*places, len(inner)]), strict=False):
        yield number, inner[start:end]
