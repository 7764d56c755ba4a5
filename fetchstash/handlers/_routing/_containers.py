"""Formats by their first bytes, and by what a container holds.

zipfile reads all of 500,000 entries before the first name is known; this reads the first of the
central directory (APPNOTE.TXT, sections 4.3.12 and 4.3.16), and OLE directories ([MS-CFB], 2.6).
"""

import re
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path

from fetchstash.handlers._contract import Head, Sniffed
from fetchstash.handlers._registry import Formats


def find_signature(head: Head, formats: Formats) -> Sniffed | None:
    """Return the binary format that a file begins as, None if none; containers are not opened.

    Of a text only its sniffers count: any text may begin with a signature of printable characters.
    """
    for sniff in formats.binary_sniffers:
        if sniffed := sniff(head):
            return sniffed
    if head.is_text:
        return None
    for at, magic, media_type in formats.signatures:
        if head.data.startswith(magic, at):
            place = f" at {at}" if at else ""
            return Sniffed(media_type, f"signature {printable(magic)}{place}")
    return None


def printable(magic: bytes) -> str:
    """Return the ASCII letters of a signature, or hexadecimal where there are fewer than two."""
    letters = bytes(b for b in magic if 0x20 < b < 0x7F).decode("ascii")
    return letters if len(letters) >= 2 else magic.hex()


ZIP_MAGICS = (b"PK\3\4", b"PK\5\6", b"PK\7\x08PK\3\4")
OLE_MAGIC = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"

MAX_MEMBERS = 2_000  # looked at; what a container is shows among its first
MAX_DIRECTORY_BYTES = 2**20
_END_REACH = 22 + 65_535  # the end record and the longest comment
OLE_STORAGE = "application/x-ole-storage"

# A name in an OLE directory: printable UTF-16 with a NUL behind.
_OLE_NAME = re.compile(rb"(?:[\x20-\x7e]\0){3,31}(?=\0\0)")

# Types of EPUB (OCF, section 4.3) and OpenDocument (part 2, section 3.3): the first member, stored
# as it is, holds the media type.
_MIMETYPE = re.compile(
    rb"PK\x03\x04.{22}\x08\0\0\0mimetype([a-z]+/[a-zA-Z0-9.+-]{3,100})(?=PK|\s|$)", re.DOTALL
)


def is_container(head: bytes) -> bool:
    """Return whether a file that begins with ``head`` is a ZIP or an OLE container."""
    return head.startswith((*ZIP_MAGICS, OLE_MAGIC))


def members_in_head(head: bytes) -> tuple[str, ...]:
    """Return the names of members that the first bytes of a container show."""
    if head.startswith(OLE_MAGIC):
        return tuple(name.decode("utf-16-le") for name in _OLE_NAME.findall(head))
    return tuple(_local_names(head))


def members_of_file(path: Path) -> tuple[str, ...]:
    """Return the names of a container's first members, none if it is damaged. Blocking."""
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(0)
        head = file.read(512)
        if head.startswith(OLE_MAGIC):
            # The first sector of the directory names the streams of the root.
            shift, first = struct.unpack_from("<H16xI", head.ljust(512), 30)
            file.seek((first + 1) << shift if shift in {9, 12} else size)
            return members_in_head(head + file.read(4_096))
        reach = min(size, _END_REACH)
        file.seek(size - reach)
        tail = file.read(reach)
        end = tail.rfind(b"PK\5\6")
        if end < 0 or len(tail) < end + 22:
            return ()
        length, offset = struct.unpack_from("<II", tail, end + 12)
        # Behind a self-extractor the offsets are short by its length.
        start = max(size - reach + end - length, 0) if length != 0xFFFFFFFF else offset
        file.seek(start)
        return tuple(_central_names(file.read(min(length, MAX_DIRECTORY_BYTES))))


def identify(head: bytes, members: Sequence[str], formats: Formats) -> Sniffed:
    """Return what a container is by the names of its members."""
    if head.startswith(OLE_MAGIC):
        for name, media_type in formats.ole_members:
            if name in members:
                return Sniffed(media_type, f"OLE member {name}")
        return Sniffed(OLE_STORAGE, "signature of OLE")
    member = _MIMETYPE.match(head[:256])
    media_type = member[1].decode("ascii") if member else ""
    if formats.by_media_type(media_type):
        return Sniffed(media_type, "ZIP member mimetype")
    for required, media_type in formats.zip_members:
        if all(any(member.startswith(name) for member in members) for name in required):
            return Sniffed(media_type, f"ZIP member {required[-1]}")
    return Sniffed("application/zip", "signature PK")


def _local_names(head: bytes) -> Iterator[str]:
    """Walk the local file headers as far as sizes are known (APPNOTE.TXT, section 4.3.7)."""
    at = 0
    for _ in range(MAX_MEMBERS):
        if head[at : at + 4] != b"PK\3\4" or len(head) < at + 30:
            # A streamed member hides its size: the next header is found by its mark.
            at = head.find(b"PK\3\4", at)
            if at < 0 or len(head) < at + 30:
                return
        size, name_length, extra_length = struct.unpack_from("<I4xHH", head, at + 18)
        yield head[at + 30 : at + 30 + name_length].decode("utf-8", "replace")
        at += 30 + name_length + extra_length + (size if size != 0xFFFFFFFF else 0)


def _central_names(directory: bytes) -> Iterator[str]:
    at = 0
    for _ in range(MAX_MEMBERS):
        if directory[at : at + 4] != b"PK\1\2" or len(directory) < at + 46:
            return
        name_length, extra_length, comment_length = struct.unpack_from("<HHH", directory, at + 28)
        yield directory[at + 46 : at + 46 + name_length].decode("utf-8", "replace")
        at += 46 + name_length + extra_length + comment_length
