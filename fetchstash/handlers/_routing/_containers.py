"""What is inside ZIP and OLE containers, by the names of their members alone: nothing is decompressed.

An own walk over the central directory (APPNOTE.TXT, sections 4.3.12 and 4.3.16), because zipfile
reads all of 500,000 entries before the first name is known. OLE directories as in [MS-CFB], section
2.6.
"""

import re
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path

from fetchstash.handlers._contract import ContentKind
from fetchstash.handlers._routing._signatures import Signature

ZIP_MAGICS = (b"PK\3\4", b"PK\5\6", b"PK\7\x08PK\3\4")
OLE_MAGIC = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"

MAX_MEMBERS = 2_000  # looked at; what a container is shows among its first
MAX_DIRECTORY_BYTES = 2**20
_END_REACH = 22 + 65_535  # the end record and the longest comment
_OFFICE = "application/vnd.openxmlformats-officedocument."

# The first of these that a member begins with says what an Office Open XML package is (ECMA-376,
# part 2).
_OFFICE_PARTS: tuple[tuple[str, ContentKind, str], ...] = (
    ("word/vbaProject.bin", "office_doc", "application/vnd.ms-word.document.macroenabled.12"),
    (
        "ppt/vbaProject.bin",
        "office_doc",
        "application/vnd.ms-powerpoint.presentation.macroenabled.12",
    ),
    ("xl/workbook.bin", "spreadsheet", "application/vnd.ms-excel.sheet.binary.macroenabled.12"),
    ("xl/vbaProject.bin", "spreadsheet", "application/vnd.ms-excel.sheet.macroenabled.12"),
    ("word/", "office_doc", f"{_OFFICE}wordprocessingml.document"),
    ("ppt/", "office_doc", f"{_OFFICE}presentationml.presentation"),
    ("xl/", "spreadsheet", f"{_OFFICE}spreadsheetml.sheet"),
)

_ZIP_MEMBERS: tuple[tuple[str, str], ...] = (
    ("AndroidManifest.xml", "application/vnd.android.package-archive"),
    ("META-INF/MANIFEST.MF", "application/java-archive"),
    ("doc.kml", "application/vnd.google-earth.kmz"),
)

_OLE_MEMBERS: tuple[tuple[str, ContentKind, str], ...] = (
    ("WordDocument", "office_doc", "application/msword"),
    ("PowerPoint Document", "office_doc", "application/vnd.ms-powerpoint"),
    ("Workbook", "spreadsheet", "application/vnd.ms-excel"),
    ("Book", "spreadsheet", "application/vnd.ms-excel"),
    ("__properties_version1.0", "email", "application/vnd.ms-outlook"),
    ("__nameid_version1.0", "email", "application/vnd.ms-outlook"),
)

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
        return tuple(name for name, _, _ in _OLE_MEMBERS if name.encode("utf-16-le") in head)
    return tuple(_local_names(head))


def members_of_file(path: Path) -> tuple[str, ...]:
    """Return the names of the first members of a container on disk; none where it is damaged. Blocking."""
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(0)
        head = file.read(512)
        if head.startswith(OLE_MAGIC):
            return members_in_head(head + _ole_directory(head, path))
        reach = min(size, _END_REACH)
        file.seek(size - reach)
        tail = file.read(reach)
        end = tail.rfind(b"PK\5\6")
        if end < 0 or len(tail) < end + 22:
            return ()
        length, offset = struct.unpack_from("<II", tail, end + 12)
        # Where something stands before the archive (a self-extractor), offsets are short by its
        # length.
        start = max(size - reach + end - length, 0) if length != 0xFFFFFFFF else offset
        file.seek(start)
        return tuple(_central_names(file.read(min(length, MAX_DIRECTORY_BYTES))))


def identify(head: bytes, members: Sequence[str]) -> Signature:
    """Return what a container is by the names of its members."""
    if head.startswith(OLE_MAGIC):
        for name, kind, media_type in _OLE_MEMBERS:
            if name in members:
                return Signature(kind, media_type, f"OLE member {name}")
        return Signature("unknown_binary", "application/x-ole-storage", "signature of OLE")
    return (
        _by_mimetype(head)
        or _by_names(members)
        or Signature("archive", "application/zip", "signature PK")
    )


def _by_mimetype(head: bytes) -> Signature | None:
    found = _MIMETYPE.match(head[:256])
    media_type = found[1].decode("ascii") if found else ""
    if media_type == "application/epub+zip":
        return Signature("office_doc", media_type, "ZIP member mimetype")
    if media_type.startswith("application/vnd.oasis.opendocument."):
        return Signature(
            "spreadsheet" if ".spreadsheet" in media_type else "office_doc",
            media_type,
            "ZIP member mimetype",
        )
    return None


def _by_names(members: Sequence[str]) -> Signature | None:
    if "[Content_Types].xml" in members:
        for prefix, kind, media_type in _OFFICE_PARTS:
            found = next((m for m in members if m.startswith(prefix)), None)
            if found:
                return Signature(kind, media_type, f"ZIP member {found[:60]}")
    for name, media_type in _ZIP_MEMBERS:
        if name in members:
            return Signature("archive", media_type, f"ZIP member {name}")
    return None


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


def _ole_directory(header: bytes, path: Path) -> bytes:
    """Return the first sector of the directory, which names the streams of the root."""
    shift, first = struct.unpack_from("<H16xI", header, 30)
    if shift not in {9, 12}:
        return b""
    with path.open("rb") as file:
        file.seek((first + 1) << shift)
        return file.read(4_096)
