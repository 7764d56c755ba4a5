"""The members of archives: zip and 7z by directory, tar as a stream, the one member of a compressed file. All sizes are bounded."""

import io
import lzma
import tarfile
import zlib
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import IO, Any, cast

from fetchstash.errors import NoText, OutOfRange
from fetchstash.handlers._archive import _seven_zip
from fetchstash.handlers._archive._streams import STEP, unpacked
from fetchstash.handlers._shared._reasons import (
    DAMAGED_ARCHIVE,
    FETCH_AGAIN,
    FOLDER,
    KEPT,
    LINK,
    OUTSIDE,
)
from fetchstash.handlers._shared._zip import Entry, Zip, is_unsafe

# What a tar or a compressed file may unpack to while it is listed, and what one member that is read
# may.
MAX_UNPACKED = 512 * 1024 * 1024
MAX_MEMBER = 64 * 1024 * 1024
_BROKEN = (tarfile.TarError, EOFError, OSError, lzma.LZMAError, zlib.error, ValueError)


@dataclass(frozen=True, slots=True)
class Member:
    """A member: ``size`` in bytes unpacked (None: not said), and why it is not read ("" if it is)."""

    name: str
    size: int | None
    refused: str = ""


def members(source: Path) -> Iterator[Member]:
    """Yield the members of an archive. Raises NoText for what is none, is damaged, or unpacks to too much."""
    for member, _ in _walk(source):
        yield member


@contextmanager
def opened(source: Path, name: str) -> Generator[Iterator[bytes]]:
    """Give the content of the member ``name`` in pieces. Raises OutOfRange if there is none, NoText for one that is not read."""
    for member, content in _walk(source):
        if member.name == name:
            if member.refused:
                raise NoText(f"{name} is not read: {member.refused}.", KEPT)
            yield content
            return
    raise OutOfRange(f"There is no member {name!r}.", "The archive's text lists them all.")


def _walk(source: Path) -> Iterator[tuple[Member, Iterator[bytes]]]:
    """Yield each member with its content, which is to be read before the next one."""
    with source.open("rb") as file:
        head = file.read(512)
        if head.startswith((b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08")) or _is_zip_at_end(file):
            yield from _zip_members(source)
            return
        if head.startswith(_seven_zip.MAGIC):
            yield from _seven_zip_members(source)
            return
        size = file.seek(0, io.SEEK_END)
        file.seek(0)
        content = unpacked(file, head, size)
        if content is None and not _is_tar(head):
            raise NoText("the members of this kind of archive are not listed here", KEPT)
        stream = _Capped(content or iter(lambda: file.read(STEP), b""))
        try:
            if _is_tar(stream.peek(512)):
                yield from _tar_members(stream, None if content else size)
            else:
                yield Member(_inner_name(head), None), _pieces(stream)
        except _BROKEN:
            raise NoText(DAMAGED_ARCHIVE, FETCH_AGAIN) from None


def _zip_members(source: Path) -> Iterator[tuple[Member, Iterator[bytes]]]:
    with Zip(source) as container:
        if _overlap(list(container.entries())):
            raise NoText("its members overlap, as in a zip bomb: none of them is read", KEPT)
        for entry in container.entries():
            yield (
                Member(entry.name, entry.size, _refusal(entry)),
                container.chunks(entry, MAX_MEMBER),
            )


def _refusal(entry: Entry) -> str:
    if is_unsafe(entry.name):
        return OUTSIDE
    if entry.is_link:
        return LINK
    if entry.encrypted:
        return "it is encrypted"
    return FOLDER if entry.is_folder else ""


def _seven_zip_members(source: Path) -> Iterator[tuple[Member, Iterator[bytes]]]:
    for member in _seven_zip.members(source):
        name = member.name + "/" * member.is_folder
        content = _seven_zip.content(source, member.stream, MAX_UNPACKED)
        yield Member(name, member.size, _refusal_in_seven_zip(member)), _bounded(content)


def _refusal_in_seven_zip(member: _seven_zip.SevenZipMember) -> str:
    if is_unsafe(member.name):
        return OUTSIDE
    if member.is_link:
        return LINK
    return FOLDER if member.is_folder else member.unread


def _overlap(entries: list[Entry]) -> bool:
    """Return whether two members share bytes, by which a small file unpacks to petabytes."""
    spans = sorted(
        (entry.offset, entry.offset + entry.packed) for entry in entries if not entry.is_folder
    )
    return any(end > start for (_, end), (start, _) in pairwise(spans))


def _tar_members(stream: "_Capped", size: int | None) -> Iterator[tuple[Member, Iterator[bytes]]]:
    """Yield the members of a tar of ``size`` bytes, None where it is compressed.

    tarfile would read for as long as a header says, so that each size is checked before it goes on.
    """
    end = MAX_UNPACKED if size is None else size + tarfile.RECORDSIZE
    with tarfile.open(fileobj=cast("IO[bytes]", stream), mode="r|") as archive:
        while (info := archive.next()) is not None:
            # A stream is read once: what lies behind is not needed.
            cast("Any", archive).members.clear()
            if info.size < 0:
                raise NoText(DAMAGED_ARCHIVE, FETCH_AGAIN)
            content = archive.extractfile(info) if info.isfile() else None
            yield (
                Member(info.name + "/" * info.isdir(), info.size, _refusal_in_tar(info)),
                _pieces(content or io.BytesIO()),
            )
            if not info.offset_data <= archive.offset <= end:
                raise _too_much() if size is None else NoText(DAMAGED_ARCHIVE, FETCH_AGAIN)
    stream.peek(1)  # a stream that is cut short behind the last member shows it


def _refusal_in_tar(info: tarfile.TarInfo) -> str:
    if is_unsafe(info.name):
        return OUTSIDE
    if info.issym() or info.islnk():
        return LINK  # where to is somebody's text, and this stands in an error
    if info.isdir():
        return FOLDER
    return "" if info.isfile() else "it is a device"


def _is_tar(head: bytes) -> bool:
    """Return whether a block is a tar header: by its magic, or by its checksum in archives older than that (POSIX ustar)."""
    if len(head) < 512:
        return False
    if head[257:262] == b"ustar":
        return True
    digits = head[148:156].strip(b" \0")
    is_octal = bool(digits) and all(digit in b"01234567" for digit in digits)
    return is_octal and int(digits, 8) == sum(head[:148]) + sum(head[156:512]) + 8 * ord(" ")


def _is_zip_at_end(file: IO[bytes]) -> bool:
    """Return whether a zip's end record stands in the last bytes, as in a self-extracting archive."""
    size = file.seek(0, io.SEEK_END)
    file.seek(max(size - 66_000, 0))
    return b"PK\x05\x06" in file.read()


def _inner_name(head: bytes) -> str:
    """Return the name that gzip kept (RFC 1952, section 2.3.1), else "content": the file's own name says nothing of it here."""
    if head.startswith(b"\x1f\x8b") and head[3:4] == b"\x08":
        name = head[10 : head.find(b"\0", 10)].decode("latin-1")
        if name and not is_unsafe(name):
            return name
    return "content"


def _pieces(stream: "IO[bytes] | _Capped") -> Iterator[bytes]:
    return _bounded(iter(lambda: stream.read(STEP), b""))


def _bounded(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Pass on the content of a member, which must not be too large."""
    left = MAX_MEMBER
    try:
        for piece in pieces:
            left -= len(piece)
            if left < 0:
                raise NoText(f"the member is larger than {MAX_MEMBER:,} bytes", KEPT)
            yield piece
    except _BROKEN:
        raise NoText(DAMAGED_ARCHIVE, FETCH_AGAIN) from None


def _too_much() -> NoText:
    what = f"the archive unpacks to more than {MAX_UNPACKED:,} bytes: what follows is not listed"
    return NoText(what, KEPT)


class _Capped:
    """Reads from pieces as from a file, and ends with NoText when an archive unpacks to too much."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._left = MAX_UNPACKED
        self._buffer = b""
        self._at = 0

    def peek(self, size: int) -> bytes:
        """Return the next ``size`` bytes, fewer at the end, without taking them."""
        while len(self._buffer) - self._at < size and (piece := next(self._pieces, b"")):
            self._left -= len(piece)
            if self._left < 0:
                raise _too_much()
            self._buffer = self._buffer[self._at :] + piece
            self._at = 0
        return self._buffer[self._at : self._at + size]

    def read(self, size: int) -> bytes:
        """Read at most ``size`` bytes."""
        data = self.peek(size)
        self._at += len(data)
        return data
