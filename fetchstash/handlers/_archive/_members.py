"""Archives: the list of members, and any member as a document, within bounds.

A file may hold several streams in a row (RFC 1952, section 2.2). An empty stream takes 14 to 32
bytes, so a file with more streams than it can have content for is refused.

A zip is read by its directory, a tar as a stream; a compressed file has one member.
"""

import bz2
import io
import lzma
import re
import sys
import tarfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import IO, Any, cast
from urllib.parse import urlsplit

from fetchstash.errors import NoText
from fetchstash.handlers._archive import ArchiveReason, _sevenzip
from fetchstash.handlers._contract import Hints, Part, PartRequest
from fetchstash.handlers._parts import MemberParts, Reading, Streamed
from fetchstash.handlers._zip import Entry, Zip, is_unsafe
from fetchstash.text import counted

STEP = 64 * 1024
_STREAMS_AT_LEAST, _BYTES_A_STREAM = 1_000, 200
_LONGEST_MAGIC = 6
# RFC 8878, section 3.1.2: frames without data have magic numbers of their own.
_SKIPPABLE = tuple(bytes((low, 0x2A, 0x4D, 0x18)) for low in range(0x50, 0x60))


class _Gunzip:
    """Unpacks one stream of gzip, with the interface that bz2, lzma and zstd share."""

    def __init__(self) -> None:
        self._stream = zlib.decompressobj(16 + zlib.MAX_WBITS)
        self.needs_input = True

    @property
    def eof(self) -> bool:
        return self._stream.eof

    @property
    def unused_data(self) -> bytes:
        return self._stream.unused_data

    def decompress(self, data: bytes, max_length: int) -> bytes:
        piece = self._stream.decompress(self._stream.unconsumed_tail + data, max_length)
        self.needs_input = len(piece) < max_length and not self._stream.unconsumed_tail
        return piece


def unpacked(file: IO[bytes], head: bytes, size: int) -> Iterator[bytes] | None:
    """Return the content of a compressed file in pieces, None if it is not compressed.

    ``head`` are its first bytes, ``size`` is its length. Reading raises EOFError if a stream is
    damaged or cut short, NoText if there are too many streams.
    """
    for magic, unpacker in _FORMATS:
        if head.startswith(magic):
            return _streams(file, magic, unpacker, _STREAMS_AT_LEAST + size // _BYTES_A_STREAM)
    return None


def _streams(
    file: IO[bytes], magic: tuple[bytes, ...], unpacker: Callable[[], Any], limit: int
) -> Iterator[bytes]:
    data = file.read(STEP)
    count = 0
    while data.startswith(magic):  # other data behind a stream are ignored
        count += 1
        if count > limit:
            raise ArchiveReason.MANY_STREAMS.error(limit=limit)
        stream = unpacker()
        while not stream.eof:
            if stream.needs_input and not data and not (data := file.read(STEP)):
                raise EOFError
            try:
                piece = stream.decompress(data if stream.needs_input else b"", STEP)
            except MemoryError:
                raise
            except Exception as error:  # each library raises its own class
                raise EOFError from error
            data = b""
            if piece:
                yield piece
        data = stream.unused_data
        if len(data) < _LONGEST_MAGIC:
            data += file.read(STEP)


def _zstd() -> Any:
    if sys.version_info >= (3, 14):
        from compression import zstd  # noqa: PLC0415 - few need it
    else:
        from backports import zstd  # noqa: PLC0415
    return zstd.ZstdDecompressor()


_FORMATS: tuple[tuple[tuple[bytes, ...], Callable[[], Any]], ...] = (
    ((b"\x1f\x8b",), _Gunzip),
    ((b"BZh",), bz2.BZ2Decompressor),
    ((b"\xfd7zXZ\0",), lzma.LZMADecompressor),
    ((b"\x28\xb5\x2f\xfd", *_SKIPPABLE), _zstd),
)


# Bytes that a tar or a compressed file may unpack to while it is listed, and one member when it is
# read.
MAX_UNPACKED = 512 * 1024 * 1024
MAX_MEMBER = 64 * 1024 * 1024
_PACKED = re.compile(r"\.(?:gz|bz2|xz|zst)$", re.IGNORECASE)
_BROKEN = (tarfile.TarError, EOFError, OSError, lzma.LZMAError, zlib.error, ValueError)


@dataclass(frozen=True, slots=True)
class Member:
    """A member.

    ``size`` is in bytes when unpacked, None if unknown. ``refused`` is why the content is not read,
    None if it is.
    """

    name: str
    size: int | None
    refused: ArchiveReason | None = None


def _walk(source: Path, hints: Hints) -> Iterator[tuple[Member, Iterator[bytes]]]:
    """Yield each member with its content, which must be read before the next member."""
    with source.open("rb") as file:
        head = file.read(512)
        if head.startswith((b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08")) or _is_zip_at_end(file):
            yield from _zip_members(source)
            return
        size = file.seek(0, io.SEEK_END)
        file.seek(0)
        if head.startswith(_sevenzip.MAGIC):
            yield from _sevenzip_members(file)
            return
        content = unpacked(file, head, size)
        if content is None and not _is_tar(head):
            raise ArchiveReason.UNLISTED_ARCHIVE.error()
        stream = _Capped(content or iter(lambda: file.read(STEP), b""))
        with ArchiveReason.DAMAGED_ARCHIVE.instead_of(*_BROKEN):
            if _is_tar(stream.peek(512)):
                yield from _tar_members(stream, None if content else size)
            else:
                yield Member(_inner_name(head, hints), None), _pieces(stream)


def _sevenzip_members(file: IO[bytes]) -> Iterator[tuple[Member, Iterator[bytes]]]:
    with ArchiveReason.DAMAGED_ARCHIVE.instead_of(*_BROKEN):
        for item, content in _sevenzip.items(file):
            yield Member(item.name, item.size, item.refused), _checked(item.end, content)


def _checked(end: int, content: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the content of a member that ends at a place in what is packed with it."""
    if end > MAX_MEMBER:
        raise ArchiveReason.LARGE_MEMBER.error(limit=MAX_MEMBER)
    with ArchiveReason.DAMAGED_ARCHIVE.instead_of(*_BROKEN):
        yield from content


def _zip_members(source: Path) -> Iterator[tuple[Member, Iterator[bytes]]]:
    with Zip(source) as container:
        if _overlap(container.entries()):
            raise ArchiveReason.OVERLAP.error()
        for entry in container.entries():
            content = container.chunks(entry, MAX_MEMBER)
            yield Member(entry.name, entry.size, _refusal(entry)), content


def _refusal(entry: Entry) -> ArchiveReason | None:
    if is_unsafe(entry.name):
        return ArchiveReason.LEADS_OUT
    if entry.is_link:
        return ArchiveReason.IS_LINK
    if entry.encrypted:
        return ArchiveReason.IS_ENCRYPTED
    return ArchiveReason.IS_FOLDER if entry.is_folder else None


def _overlap(entries: Iterable[Entry]) -> bool:
    """Return whether two members share bytes: so a small file could unpack to petabytes."""
    spans = sorted(
        (entry.offset, entry.offset + entry.packed) for entry in entries if not entry.is_folder
    )
    return any(end > start for (_, end), (start, _) in pairwise(spans))


def _tar_members(stream: "_Capped", size: int | None) -> Iterator[tuple[Member, Iterator[bytes]]]:
    """Yield the members of a tar of ``size`` bytes (None: it is compressed).

    tarfile reads as far as a header says, so each size is checked before the next header.
    """
    end = MAX_UNPACKED if size is None else size + tarfile.RECORDSIZE
    with tarfile.open(fileobj=cast("IO[bytes]", stream), mode="r|") as archive:
        while (info := archive.next()) is not None:
            # tarfile keeps every member, and a stream is read once.
            cast("Any", archive).members.clear()
            if info.size < 0:
                raise ArchiveReason.DAMAGED_ARCHIVE.error()
            content = archive.extractfile(info) if info.isfile() else None
            yield (
                Member(info.name + "/" * info.isdir(), info.size, _refusal_in_tar(info)),
                _pieces(content or io.BytesIO()),
            )
            if not info.offset_data <= archive.offset <= end:
                large = ArchiveReason.LARGE_ARCHIVE.error(limit=MAX_UNPACKED)
                raise large if size is None else ArchiveReason.DAMAGED_ARCHIVE.error()
    stream.peek(1)  # raises if the stream is cut short behind the last member


def _refusal_in_tar(info: tarfile.TarInfo) -> ArchiveReason | None:
    if is_unsafe(info.name):
        return ArchiveReason.LEADS_OUT
    if info.issym() or info.islnk():
        return ArchiveReason.IS_LINK  # the target is not shown: it is text of the document
    if info.isdir():
        return ArchiveReason.IS_FOLDER
    return None if info.isfile() else ArchiveReason.IS_DEVICE


def _is_tar(head: bytes) -> bool:
    """Return whether a block is a tar header.

    It has a magic (POSIX ustar) or, in older archives, a checksum alone.
    """
    if len(head) < 512:
        return False
    if head[257:262] == b"ustar":
        return True
    digits = head[148:156].strip(b" \0")
    is_octal = bool(digits) and all(digit in b"01234567" for digit in digits)
    return is_octal and int(digits, 8) == sum(head[:148]) + sum(head[156:512]) + 8 * ord(" ")


def _is_zip_at_end(file: IO[bytes]) -> bool:
    """Return whether the file ends with a zip's end record, as a self-extracting archive does."""
    size = file.seek(0, io.SEEK_END)
    file.seek(max(size - 66_000, 0))
    return b"PK\x05\x06" in file.read()


def _inner_name(head: bytes, hints: Hints) -> str:
    """Return the name in a gzip header (RFC 1952, section 2.3.1), else the file's without .gz.

    A URL without a last segment gives its host as the name of the file, which is none here.
    """
    names = [_PACKED.sub("", hints.name), "content"]
    if hints.name == urlsplit(hints.url).hostname:
        names.pop(0)
    if head.startswith(b"\x1f\x8b") and head[3:4] == b"\x08":
        names.insert(0, head[10 : head.find(b"\0", 10)].decode("latin-1"))
    return next(name for name in names if name and not is_unsafe(name))


def _pieces(stream: "IO[bytes] | _Capped") -> Iterator[bytes]:
    """Yield the content of a member. Raises NoText behind MAX_MEMBER bytes."""
    left = MAX_MEMBER
    with ArchiveReason.DAMAGED_ARCHIVE.instead_of(*_BROKEN):
        while piece := stream.read(STEP):
            left -= len(piece)
            if left < 0:
                raise ArchiveReason.LARGE_MEMBER.error(limit=MAX_MEMBER)
            yield piece


class _Capped:
    """A file made of pieces. Raises NoText behind MAX_UNPACKED bytes."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._left = MAX_UNPACKED
        self._buffer = b""
        self._at = 0

    def peek(self, size: int) -> bytes:
        """Return the next ``size`` bytes (fewer at the end) and stay in place."""
        while len(self._buffer) - self._at < size and (piece := next(self._pieces, b"")):
            self._left -= len(piece)
            if self._left < 0:
                raise ArchiveReason.LARGE_ARCHIVE.error(limit=MAX_UNPACKED)
            self._buffer = self._buffer[self._at :] + piece
            self._at = 0
        return self._buffer[self._at : self._at + size]

    def read(self, size: int) -> bytes:
        """Read at most ``size`` bytes."""
        data = self.peek(size)
        self._at += len(data)
        return data


_LINES_A_PART = 1_000


class ArchiveHandler(Streamed, MemberParts):
    """Reads zip (jar, whl, apk), 7z, tar (plain, gz, bz2, xz, zst) and single compressed files."""

    name = "archive"

    def read(self, source: Path, extracted: Reading) -> Iterator[Part]:
        """Yield a table of members, one a row: size and name.

        Raises NoText for a file that cannot be read, behind the members that could be.
        """
        count = size = 0
        lines: list[str] = []
        yield Part("Size\tName\n", table="", columns=2)
        try:
            for member, _ in _walk(source, extracted.hints):
                count += 1
                size += member.size or 0
                lines.append(_line(member))
                if len(lines) == _LINES_A_PART:
                    yield Part("".join(lines), rows=len(lines))
                    lines.clear()
        except NoText:
            if lines:
                yield Part("".join(lines), rows=len(lines))
            raise
        finally:
            info = f"{counted(count, 'member')}, {counted(size, 'byte')} unpacked"
            extracted.learn(members=count, rows=count, columns=2, structure_info=info)
        if lines:
            yield Part("".join(lines), rows=len(lines))

    def member(self, request: PartRequest, name: str) -> Iterator[bytes]:
        """Yield the content of a member in pieces.

        Raises OutOfRange if there is no such member, NoText if it is not read.
        """
        for member, content in _walk(request.source, request.hints):
            if member.name == name:
                if member.refused:
                    raise ArchiveReason.UNREAD_MEMBER.error(name=name, why=member.refused)
                yield from content
                return
        raise ArchiveReason.NO_MEMBER.error(name=name)


def _line(member: Member) -> str:
    name = " ".join(member.name.split())
    is_file = not member.name.endswith("/")
    refusal = f" ({member.refused.what})" if member.refused and is_file else ""
    return f"{'?' if member.size is None else member.size}\t{name}{refusal}\n"
