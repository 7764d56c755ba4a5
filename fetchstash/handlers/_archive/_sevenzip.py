"""7z archives: the list of members, and the content of those that are packed in a usual way.

The layout is that of 7zFormat.txt in the LZMA SDK. What unpacks is Python's own lzma, bz2 and zlib.
"""

import bz2
import lzma
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice, zip_longest
from typing import IO, Any

from fetchstash.handlers._archive import ArchiveReason
from fetchstash.handlers._zip import is_unsafe

MAGIC = b"7z\xbc\xaf\x27\x1c"
_START = struct.Struct("<8xLQQL")  # the checksums are of the rest, and of the header
_MAX_HEADER = 32 * 1024 * 1024
_MAX_COUNT = 200_000  # of members, folders and streams
_MAX_CODERS = 32
_MAX_DICTIONARY = 64 * 1024 * 1024
_STEP = 64 * 1024
# Ids of properties (section "Property IDs").
_END, _HEADER, _EXTRA_STREAMS, _STREAMS, _FILES = 0, 1, 3, 4, 5
_PACKED, _UNPACKED, _PARTS, _SIZES, _CHECKSUMS, _FOLDERS = 6, 7, 8, 9, 10, 11
_FOLDER_SIZES, _PART_COUNTS, _EMPTY_STREAM, _EMPTY_FILE, _NAMES = 12, 13, 14, 15, 17
_ATTRIBUTES, _ENCODED_HEADER = 21, 23
_COPY, _LZMA2, _LZMA, _DELTA = b"\0", b"\x21", b"\3\1\1", b"\3"
_DEFLATE, _BZIP2, _ENCRYPTED = b"\4\1\x08", b"\4\2\2", b"\6\xf1\7\1"
_X86 = (b"\3\3\1\3", b"\4")
# Of a member's attributes: those of Unix are in the upper half.
_IS_UNIX, _IS_FOLDER, _KIND, _LINK = 0x8000, 0x10, 0xF000, 0xA000
_MAX_OFFSET = 2**62
_MAX_PACKED_HEADERS = 3  # within each other; all known programs pack it once


class Damaged(ValueError):
    """The archive is damaged or cut short."""


@dataclass(slots=True)
class _Folder:
    """Streams that are packed together: their coders, and where their bytes are."""

    coders: list[tuple[bytes, bytes]]
    is_chain: bool  # each coder unpacks what the next one gives it
    streams: int
    offset: int = 0
    packed: int = 0
    size: int = 0
    checksum: int | None = None
    parts: list[int] = field(default_factory=list[int])
    checksums: list[int | None] = field(default_factory=list[int | None])  # of the parts

    def members(self) -> Iterator[tuple["_Folder", int, int, int | None]]:
        """Yield where the members begin, their sizes and checksums."""
        start = 0
        known = self.checksums or [self.checksum if len(self.parts) == 1 else None]
        for size, checksum in zip_longest(self.parts, known[: len(self.parts)]):
            yield self, start, size, checksum
            start += size


@dataclass(frozen=True, slots=True)
class Item:
    """A member; ``folder`` is None if it has no content, or none that is read."""

    name: str
    size: int
    refused: ArchiveReason | None
    folder: _Folder | None = None
    start: int = 0  # of its content in the folder
    checksum: int | None = None

    @property
    def end(self) -> int:
        """How many bytes are unpacked to read it."""
        return self.start + self.size


class _Bytes:
    """Reads the numbers and lists of a header."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def take(self, size: int) -> bytes:
        """Return the next bytes. Raises Damaged behind the end."""
        if size > len(self._data) - self._at:
            raise Damaged
        self._at += size
        return self._data[self._at - size : self._at]

    def byte(self) -> int:
        """Return the next byte."""
        return self.take(1)[0]

    def number(self) -> int:
        """Return a number: leading ones of the first byte count the bytes that follow."""
        first = self.byte()
        more = 8 - (first ^ 0xFF).bit_length()
        low = int.from_bytes(self.take(more), "little")
        return low | (first & (0x7F >> more)) << 8 * more if more < 8 else low

    def count(self) -> int:
        """Return a number of things. Raises Damaged if no archive has as many."""
        if (count := self.number()) > _MAX_COUNT:
            raise Damaged
        return count

    def bits(self, count: int) -> list[bool]:
        """Return a vector of bits."""
        data = self.take(-(-count // 8))
        return [bool(data[n // 8] & 0x80 >> n % 8) for n in range(count)]

    def defined(self, count: int) -> list[bool]:
        """Return a vector of bits; a first byte may say that all are set."""
        return [True] * count if self.byte() else self.bits(count)

    def rest(self) -> bytes:
        """Return all that is left."""
        return self.take(len(self._data) - self._at)

    def expect(self, kind: int) -> None:
        """Take a property's id. Raises Damaged if it is another."""
        if self.byte() != kind:
            raise Damaged


def items(file: IO[bytes]) -> Iterator[tuple[Item, Iterator[bytes]]]:
    """Yield the members with their content, which is read before the next member or never.

    Raises Damaged, in the content too.
    """
    header = _header(file)
    if header is None:
        return
    if header.byte() != _HEADER:
        raise Damaged
    folders: list[_Folder] = []
    while (kind := header.byte()) != _END:
        if kind in {_STREAMS, _EXTRA_STREAMS}:
            folders = _folders(header)
        elif kind == _FILES:
            for item in _files(header, folders):
                yield item, _content(file, item)
            return
        else:
            raise Damaged


def _header(file: IO[bytes]) -> _Bytes | None:
    """Return the header, unpacked; None if the archive is empty."""
    start = file.read(_START.size)
    if len(start) < _START.size:
        raise Damaged
    own_checksum, offset, size, checksum = _START.unpack(start)
    if zlib.crc32(start[12:]) != own_checksum or size > _MAX_HEADER or offset > _MAX_OFFSET:
        raise Damaged
    if not size:
        return None
    file.seek(_START.size + offset)
    data = file.read(size)
    if zlib.crc32(data) != checksum:
        raise Damaged
    for _ in range(_MAX_PACKED_HEADERS):
        if data[:1] != bytes([_ENCODED_HEADER]):
            break
        folders = _folders(_Bytes(data[1:]))
        if len(folders) != 1 or folders[0].size > _MAX_HEADER:
            raise Damaged
        if any(coder == _ENCRYPTED for coder, _ in folders[0].coders):
            raise ArchiveReason.ENCRYPTED_NAMES.error()
        data = b"".join(_unpacked(file, folders[0]))
    return _Bytes(data)


def _folders(header: _Bytes) -> list[_Folder]:
    """Read where the packed streams are, how they are packed, and the sizes of their parts."""
    at, packed = 0, list[int]()
    folders: list[_Folder] = []
    while (kind := header.byte()) != _END:
        if kind == _PACKED:
            at = _START.size + header.number()
            count = header.count()
            while (inner := header.byte()) != _END:
                if inner == _SIZES:
                    packed = [header.number() for _ in range(count)]
                else:
                    _checksums(header, inner, count)
        elif kind == _UNPACKED:
            folders = _unpacked_info(header)
        elif kind == _PARTS:
            _read_parts(header, folders)
        else:
            raise Damaged
    streams = iter(packed)
    for folder in folders:
        sizes = [next(streams, 0) for _ in range(folder.streams)]
        folder.offset, folder.packed = at, sum(sizes)
        at += folder.packed
    return folders


def _checksums(header: _Bytes, kind: int, count: int) -> list[int | None]:
    """Return the checksums of some streams, None for those without one."""
    if kind != _CHECKSUMS:
        raise Damaged
    known = header.defined(count)
    return [int.from_bytes(header.take(4), "little") if is_known else None for is_known in known]


def _unpacked_info(header: _Bytes) -> list[_Folder]:
    header.expect(_FOLDERS)
    count = header.count()
    header.expect(0)  # not in another stream
    made = [_folder(header) for _ in range(count)]
    header.expect(_FOLDER_SIZES)
    for folder, outputs, main in made:
        folder.size = [header.number() for _ in range(outputs)][main]
        folder.parts = [folder.size]
    while (kind := header.byte()) != _END:
        for (folder, _, _), checksum in zip(made, _checksums(header, kind, count), strict=True):
            folder.checksum = checksum
    return [folder for folder, _, _ in made]


def _folder(header: _Bytes) -> tuple[_Folder, int, int]:
    """Read a folder; return it with the number of its outputs and the last one's place."""
    coders: list[tuple[bytes, bytes]] = []
    inputs = outputs = 0
    is_chain = True
    count = header.count()
    if not 0 < count <= _MAX_CODERS:
        raise Damaged
    for _ in range(count):
        flags = header.byte()
        name = header.take(flags & 0xF)
        ins, outs = (header.count(), header.count()) if flags & 0x10 else (1, 1)
        coders.append((name, header.take(header.count()) if flags & 0x20 else b""))
        is_chain = is_chain and ins == outs == 1
        inputs, outputs = inputs + ins, outputs + outs
    if not 0 < outputs <= _MAX_CODERS or inputs > _MAX_CODERS or inputs < outputs - 1:
        raise Damaged
    pairs = [(header.count(), header.count()) for _ in range(outputs - 1)]
    streams = inputs - len(pairs)
    if streams > 1:
        for _ in range(streams):
            header.count()
    bound = {output for _, output in pairs}
    main = next((n for n in range(outputs) if n not in bound), 0)
    # In a chain the input of each coder is the output of another one: the last to unpack is first.
    sources, order = dict(pairs), [main]
    while is_chain and order[-1] in sources and len(order) < count:
        order.append(sources[order[-1]])
    if is_chain and sorted(order) == list(range(count)):
        coders = [coders[place] for place in order]
        return _Folder(coders, True, streams), outputs, main
    return _Folder(coders, False, streams), outputs, main


def _read_parts(header: _Bytes, folders: list[_Folder]) -> None:
    """Read the sizes of the members that are packed together; the last size is what is left."""
    counts = [1] * len(folders)
    if (kind := header.byte()) == _PART_COUNTS:
        counts = [header.count() for _ in folders]
        kind = header.byte()
    if sum(counts) > _MAX_COUNT:
        raise Damaged
    for folder, count in zip(folders, counts, strict=True):
        sizes = [header.number() for _ in range(count - 1)] if kind == _SIZES else []
        sizes += [folder.size - sum(sizes)] if count else []
        if len(sizes) != count or min(sizes, default=0) < 0:
            raise Damaged
        folder.parts = sizes
    if kind == _SIZES:
        kind = header.byte()
    while kind != _END:
        # A folder that is one member has its checksum itself.
        unknown = [f for f in folders if len(f.parts) != 1 or f.checksum is None]
        values = iter(_checksums(header, kind, sum(len(folder.parts) for folder in unknown)))
        for folder in unknown:
            folder.checksums = list(islice(values, len(folder.parts)))
        kind = header.byte()


def _files(header: _Bytes, folders: list[_Folder]) -> Iterator[Item]:
    """Yield the members."""
    count = header.count()
    names, attributes = list[str](), list[int]()
    is_empty, is_file = [False] * count, list[bool]()
    while (kind := header.byte()) != _END:
        data = _Bytes(header.take(header.number()))
        if kind == _EMPTY_STREAM:
            is_empty = data.bits(count)
        elif kind == _EMPTY_FILE:
            is_file = data.bits(sum(is_empty))
        elif kind == _NAMES:
            data.expect(0)  # not in another stream
            names = data.rest().decode("utf-16-le", "replace").split("\0")
        elif kind == _ATTRIBUTES:
            defined = data.defined(count)
            data.expect(0)
            attributes = [int.from_bytes(data.take(4), "little") if d else 0 for d in defined]
    if len(names) < count:
        raise Damaged
    attributes = attributes or [0] * count
    parts = (part for folder in folders for part in folder.members())
    empty_files = iter(is_file)
    for name, flags, empty in zip(names, attributes, is_empty, strict=False):
        if empty:
            shown = name if next(empty_files, False) else f"{name.rstrip('/')}/"
            yield Item(shown, 0, _refused(shown, flags, None))
        elif part := next(parts, None):
            folder, start, size, checksum = part
            yield Item(name, size, _refused(name, flags, folder), folder, start, checksum)
        else:
            raise Damaged


def _refused(name: str, flags: int, folder: _Folder | None) -> ArchiveReason | None:
    """Return the reason for which a member's content is not read, None if it is."""
    if is_unsafe(name):
        return ArchiveReason.LEADS_OUT
    if name.endswith("/") or flags & _IS_FOLDER:
        return ArchiveReason.IS_FOLDER
    if flags & _IS_UNIX and flags >> 16 & _KIND == _LINK:
        return ArchiveReason.IS_LINK
    if folder and any(coder == _ENCRYPTED for coder, _ in folder.coders):
        return ArchiveReason.IS_ENCRYPTED
    return ArchiveReason.OTHER_PACKING if folder and _unpacker(folder) is None else None


def _content(file: IO[bytes], item: Item) -> Iterator[bytes]:
    """Yield the content of a member; what stands before it in its folder is unpacked, too.

    Raises Damaged behind content of another checksum.
    """
    start, left, checksum = item.start, item.size, 0
    for piece in _unpacked(file, item.folder) if item.folder and left else ():
        wanted = piece[start : start + left]
        start = max(start - len(piece), 0)
        left -= len(wanted)
        if wanted:
            checksum = zlib.crc32(wanted, checksum)
            yield wanted
        if not left:
            break
    if item.checksum is not None and checksum != item.checksum:
        raise Damaged


class _Copy:
    """Unpacks what is not packed, with the interface that bz2 and lzma share."""

    needs_input = True

    def decompress(self, data: bytes, max_length: int) -> bytes:
        """Return the data."""
        return data[:max_length]


class _Inflate:
    """Unpacks raw deflate."""

    def __init__(self) -> None:
        self._stream = zlib.decompressobj(-zlib.MAX_WBITS)
        self.needs_input = True

    def decompress(self, data: bytes, max_length: int) -> bytes:
        """Return at most ``max_length`` bytes."""
        piece = self._stream.decompress(self._stream.unconsumed_tail + data, max_length)
        self.needs_input = len(piece) < max_length and not self._stream.unconsumed_tail
        return piece


def _unpacker(folder: _Folder) -> Callable[[], Any] | None:
    """Return the function that makes a folder's unpacker, None if it is packed in another way."""
    names = [name for name, _ in folder.coders]
    if not folder.is_chain:
        return None
    if len(names) == 1 and names[0] in _ALONE:
        return _ALONE[names[0]]
    filters: list[dict[str, Any]] = []
    for name, settings in folder.coders:
        if name == _LZMA and len(settings) == 5:
            rest, lc = divmod(settings[0], 9)
            size = int.from_bytes(settings[1:], "little")
            filters.append({"id": lzma.FILTER_LZMA1, "lc": lc, "lp": rest % 5, "pb": rest // 5})
        elif name == _LZMA2 and len(settings) == 1 and settings[0] < 40:
            size = (2 | settings[0] & 1) << settings[0] // 2 + 11
            filters.append({"id": lzma.FILTER_LZMA2})
        elif name == _DELTA and len(settings) == 1:
            filters.append({"id": lzma.FILTER_DELTA, "dist": settings[0] + 1})
            continue
        elif name in _X86 and names[1:] == [_LZMA2]:  # with LZMA the last bytes would be kept back
            filters.append({"id": lzma.FILTER_X86})
            continue
        else:
            return None
        # No dictionary is larger than what is unpacked.
        filters[-1]["dict_size"] = max(min(size, folder.size), 4_096)
        if filters[-1]["dict_size"] > _MAX_DICTIONARY:
            return None
    return lambda: lzma.LZMADecompressor(lzma.FORMAT_RAW, filters=filters)


_ALONE: Mapping[bytes, Callable[[], Any]] = {
    _COPY: _Copy,
    _DEFLATE: _Inflate,
    _BZIP2: bz2.BZ2Decompressor,
}


def _unpacked(file: IO[bytes], folder: _Folder) -> Iterator[bytes]:
    """Yield the content of a folder. Raises Damaged if it is cut short or packed otherwise."""
    make = _unpacker(folder)
    if make is None or folder.offset > _MAX_OFFSET:
        raise Damaged
    stream = make()
    file.seek(folder.offset)
    packed, left = folder.packed, folder.size
    while left > 0:
        data = file.read(min(_STEP, packed, left)) if stream.needs_input else b""
        packed -= len(data)
        if stream.needs_input and not data:
            raise Damaged
        piece = stream.decompress(data, min(_STEP, left))
        left -= len(piece)
        yield piece
