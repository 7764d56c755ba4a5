"""The directory of a 7z archive: names and sizes (7zFormat.txt of the LZMA SDK). Nothing but the directory itself is unpacked."""

import lzma
import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from fetchstash.errors import NoText

MAGIC = b"7z\xbc\xaf\x27\x1c"
_MAX_HEADER = 32 * 1024 * 1024
_MAX_COUNT = 1_000_000
_FAR = 1 << 40
_MAX_DICTIONARY = 64 * 1024 * 1024
_COPY, _LZMA1, _LZMA2, _AES = b"\0", b"\3\1\1", b"\x21", b"\6\xf1\7\1"
_KEPT = "Its bytes are kept."


class Tag:
    """Property ids (section "Property IDs")."""

    END, HEADER, STREAMS, FILES, PACK_INFO, UNPACK_INFO, SUB_STREAMS = 0x00, 0x01, 0x04, 0x05, 0x06, 0x07, 0x08
    SIZE, CRC, FOLDER, UNPACK_SIZE, COUNT, EMPTY_STREAM, EMPTY_FILE, NAMES, ENCODED = (
        0x09,
        0x0A,
        0x0B,
        0x0C,
        0x0D,
        0x0E,
        0x0F,
        0x11,
        0x17,
    )


@dataclass(slots=True)
class _Folder:
    """A run of compressed data: its coders (id and properties), and the sizes of what they give."""

    coders: list[tuple[bytes, bytes]] = field(default_factory=list[tuple[bytes, bytes]])
    outputs: int = 1
    sizes: list[int] = field(default_factory=list[int])
    has_crc: bool = False
    streams: int = 1


@dataclass(slots=True)
class _Streams:
    """Where the compressed data stand, and the sizes of the files in them."""

    place: int = 0
    packed: list[int] = field(default_factory=list[int])
    folders: list[_Folder] = field(default_factory=list[_Folder])
    sizes: list[int] | None = None


class _Reader:
    """Reads the numbers of a header. Raises IndexError behind its end."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.place = 0

    def byte(self) -> int:
        self.place += 1
        return self._data[self.place - 1]

    def take(self, size: int) -> bytes:
        if self.place + size > len(self._data):
            raise IndexError
        self.place += size
        return self._data[self.place - size : self.place]

    def rest(self) -> bytes:
        return self._data[self.place :]

    def number(self) -> int:
        """Read a number: as many high bits as its first byte has set, so many bytes follow it."""
        first = self.byte()
        value = 0
        for index in range(8):
            mask = 0x80 >> index
            if not first & mask:
                return value | (first & (mask - 1)) << 8 * index
            value |= self.byte() << 8 * index
        return value

    def count(self) -> int:
        """Read a number of things, of which there is a bound."""
        count = self.number()
        if count > _MAX_COUNT:
            raise IndexError
        return count

    def bits(self, count: int) -> list[bool]:
        data = self.take((count + 7) // 8)
        return [bool(data[n // 8] & 0x80 >> n % 8) for n in range(count)]

    def digests(self, count: int) -> list[bool]:
        """Skip checksums; return which of them are there."""
        defined = [True] * count if self.byte() else self.bits(count)
        self.take(4 * sum(defined))
        return defined


def seven_zip(source: Path) -> list[tuple[str, int, bool]]:
    """Return name, size and whether it is a folder of each member. Raises NoText for an archive that is damaged or encrypted."""
    try:
        with source.open("rb") as file:
            return _directory(file)
    except (IndexError, struct.error, lzma.LZMAError, EOFError, ValueError):
        raise NoText("the archive is damaged or cut short", "Fetch it again.") from None


def _directory(file: BinaryIO) -> list[tuple[str, int, bool]]:
    offset, size = struct.unpack("<QQ", file.read(32)[12:28])
    if not size:
        return []
    reader = _Reader(_read_at(file, offset, size))
    while (tag := reader.number()) == Tag.ENCODED:
        reader = _Reader(_unpacked(_streams(reader), file))
    return _members(reader) if tag == Tag.HEADER else []


def _read_at(file: BinaryIO, place: int, length: int) -> bytes:
    """Return bytes of the file; places count from the end of the start header."""
    if length > _MAX_HEADER or place >= _FAR:
        raise IndexError
    file.seek(32 + place)
    return file.read(length)


def _members(reader: _Reader) -> list[tuple[str, int, bool]]:
    sizes: list[int] = []
    names: list[str] = []
    empty: list[bool] = []
    empty_files: list[bool] = []
    while (tag := reader.number()) != Tag.END:
        if tag == Tag.STREAMS:
            sizes = _file_sizes(_streams(reader))
        elif tag == Tag.FILES:
            count = reader.count()
            empty = [False] * count
            while (kind := reader.number()) != Tag.END:
                data = _Reader(reader.take(reader.number()))
                if kind == Tag.EMPTY_STREAM:
                    empty = data.bits(count)
                elif kind == Tag.EMPTY_FILE:
                    empty_files = data.bits(sum(empty))
                elif kind == Tag.NAMES and data.byte() == 0:
                    names = data.rest().decode("utf-16-le", "replace").split("\0")[:-1]
        else:
            raise IndexError
    return _joined(names, empty, empty_files, sizes)


def _joined(names: list[str], empty: list[bool], empty_files: list[bool], sizes: list[int]) -> list[tuple[str, int, bool]]:
    """Give each name its size: those of files with data stand in order; what has none is an empty file or a folder."""
    with_data, without = iter(sizes), iter(empty_files)
    return [
        (name, 0, not next(without, False)) if is_empty else (name, next(with_data, 0), False)
        for name, is_empty in zip(names, empty, strict=False)
    ]


def _streams(reader: _Reader) -> _Streams:
    streams = _Streams()
    while (tag := reader.number()) != Tag.END:
        if tag == Tag.PACK_INFO:
            _pack_info(reader, streams)
        elif tag == Tag.UNPACK_INFO:
            _unpack_info(reader, streams)
        elif tag == Tag.SUB_STREAMS:
            _sub_streams(reader, streams)
        else:
            raise IndexError
    return streams


def _pack_info(reader: _Reader, streams: _Streams) -> None:
    streams.place = reader.number()
    count = reader.count()
    while (tag := reader.number()) != Tag.END:
        if tag == Tag.SIZE:
            streams.packed = [reader.number() for _ in range(count)]
        elif tag == Tag.CRC:
            reader.digests(count)


def _unpack_info(reader: _Reader, streams: _Streams) -> None:
    while (tag := reader.number()) != Tag.END:
        if tag == Tag.FOLDER:
            count = reader.count()
            if reader.byte():  # in another stream, which no program writes
                raise IndexError
            streams.folders = [_folder(reader) for _ in range(count)]
        elif tag == Tag.UNPACK_SIZE:
            for folder in streams.folders:
                folder.sizes = [reader.number() for _ in range(folder.outputs)]
        elif tag == Tag.CRC:
            for folder, has_crc in zip(streams.folders, reader.digests(len(streams.folders)), strict=True):
                folder.has_crc = has_crc


def _folder(reader: _Reader) -> _Folder:
    folder = _Folder(outputs=0)
    inputs = 0
    for _ in range(reader.count()):
        flags = reader.byte()
        codec = reader.take(flags & 0x0F)
        more = (reader.count(), reader.count()) if flags & 0x10 else (1, 1)
        inputs, folder.outputs = inputs + more[0], folder.outputs + more[1]
        folder.coders.append((codec, reader.take(reader.number()) if flags & 0x20 else b""))
    bound = folder.outputs - 1
    for _ in range(2 * bound):
        reader.number()
    if inputs - bound > 1:
        for _ in range(inputs - bound):
            reader.number()
    return folder


def _sub_streams(reader: _Reader, streams: _Streams) -> None:
    tag = reader.number()
    if tag == Tag.COUNT:
        for folder in streams.folders:
            folder.streams = reader.count()
        tag = reader.number()
    streams.sizes = []
    for folder in streams.folders:
        total = folder.sizes[-1]
        own = [reader.number() for _ in range(folder.streams - 1)] if tag == Tag.SIZE else []
        streams.sizes += [*own, total - sum(own)] if folder.streams else []
    if tag == Tag.SIZE:
        tag = reader.number()
    while tag != Tag.END:
        if tag == Tag.CRC:
            reader.digests(sum(folder.streams for folder in streams.folders if folder.streams != 1 or not folder.has_crc))
        tag = reader.number()


def _file_sizes(streams: _Streams) -> list[int]:
    return [folder.sizes[-1] for folder in streams.folders] if streams.sizes is None else streams.sizes


def _unpacked(streams: _Streams, file: BinaryIO) -> bytes:
    """Return a header that was compressed as a whole."""
    folder = streams.folders[0]
    codec, properties = folder.coders[0]
    size = folder.sizes[-1]
    if codec == _AES or len(folder.coders) > 1:
        raise NoText("the names of its members are encrypted", _KEPT)
    if size > _MAX_HEADER:
        raise IndexError
    packed = _read_at(file, streams.place, streams.packed[0])
    if codec == _COPY:
        return packed[:size]
    if codec == _LZMA1:
        number, dictionary = struct.unpack("<BL", properties)
        filters = {"id": lzma.FILTER_LZMA1, "lc": number % 9, "lp": number // 9 % 5, "pb": number // 45}
    elif codec == _LZMA2:
        dictionary = (2 | properties[0] & 1) << properties[0] // 2 + 11
        filters = {"id": lzma.FILTER_LZMA2}
    else:
        raise IndexError
    filters["dict_size"] = max(min(dictionary, _MAX_DICTIONARY), 4096)
    return lzma.LZMADecompressor(lzma.FORMAT_RAW, filters=[filters]).decompress(packed, size)
