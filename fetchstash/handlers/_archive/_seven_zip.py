"""7z archives: their directory, and the content of a member (7zFormat.txt of the LZMA SDK)."""

import lzma
import struct
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import BinaryIO

from fetchstash.handlers._archive._seven_zip_coders import Coder, unpacked, unread
from fetchstash.handlers._reasons import Reason

MAGIC = b"7z\xbc\xaf\x27\x1c"
_MAX_HEADER = 32 * 1024 * 1024
_MAX_COUNT = 1_000_000
_MAX_CODERS = 32
_FAR = 1 << 40
_STEP = 64 * 1024
# Attributes of archives made on Unix: the mode is their upper half.
_UNIX, _TYPE, _LINK = 0x8000, 0o170000, 0o120000


class Tag:
    """Property ids (section "Property IDs")."""

    END, HEADER, STREAMS, FILES, PACK_INFO, UNPACK_INFO, SUB_STREAMS = (
        0x00,
        0x01,
        0x04,
        0x05,
        0x06,
        0x07,
        0x08,
    )
    SIZE, CRC, FOLDER, UNPACK_SIZE, COUNT = 0x09, 0x0A, 0x0B, 0x0C, 0x0D
    EMPTY_STREAM, EMPTY_FILE, NAMES, ATTRIBUTES, ENCODED = 0x0E, 0x0F, 0x11, 0x15, 0x17


@dataclass(slots=True)
class Block:
    """Members that were packed together (a "folder" of the format), and how to unpack them."""

    coders: list[Coder]
    packed_streams: int
    outputs: int
    last_output: int
    place: int = 0
    packed: int = 0
    sizes: list[int] = field(default_factory=list[int])
    crc: int | None = None
    streams: int = 1

    @property
    def size(self) -> int:
        """The size of the block when unpacked, in bytes."""
        return self.sizes[self.last_output]


@dataclass(frozen=True, slots=True)
class Stream:
    """The content of a member: ``size`` bytes of a block from ``offset`` on."""

    block: Block
    offset: int
    size: int
    crc: int | None


@dataclass(frozen=True, slots=True)
class SevenZipMember:
    """A member; ``stream`` is None for a folder and for an empty file."""

    name: str
    is_folder: bool
    is_link: bool
    stream: Stream | None

    @property
    def size(self) -> int:
        """The size of the member, in bytes."""
        return self.stream.size if self.stream else 0

    @property
    def unread(self) -> Reason | None:
        """The reason why the content is not read, None if it is."""
        return unread(self.stream.block.coders) if self.stream else None


def members(source: Path) -> list[SevenZipMember]:
    """Return the members. Raises NoText if the archive is damaged or its names are encrypted."""
    try:
        with source.open("rb") as file:
            return _directory(file)
    except (IndexError, struct.error, lzma.LZMAError, EOFError, ValueError):
        raise Reason.DAMAGED_ARCHIVE.error() from None


def content(source: Path, stream: Stream | None, limit: int) -> Iterator[bytes]:
    """Yield the content of a member in pieces.

    The part of its block before it is unpacked and dropped. Raises NoText if more than ``limit``
    bytes would be unpacked, and at the end if the checksum is wrong.
    """
    if stream is None:
        return
    if stream.offset + stream.size > limit:
        raise Reason.DEEP_MEMBER.error(limit=limit)
    crc = 0
    with source.open("rb") as file:
        for piece in _pieces(file, stream):
            crc = zlib.crc32(piece, crc)
            yield piece
    if stream.crc not in {None, crc}:
        raise Reason.DAMAGED_MEMBER.error()


def _pieces(file: BinaryIO, stream: Stream) -> Iterator[bytes]:
    skipped, left = stream.offset, stream.size
    block = stream.block
    for unpacked_piece in unpacked(block.coders, _packed(file, block), stream.offset + stream.size):
        piece = unpacked_piece[skipped : skipped + left]
        skipped -= min(skipped, len(unpacked_piece))
        left -= len(piece)
        if piece:
            yield piece
        if not left:
            return
    if left:
        raise Reason.DAMAGED_ARCHIVE.error()


def _packed(file: BinaryIO, block: Block) -> Iterator[bytes]:
    """Yield the packed bytes of a block, whose place counts from the end of the start header."""
    if block.place >= _FAR:
        raise IndexError
    file.seek(32 + block.place)
    left = block.packed
    while left > 0 and (data := file.read(min(_STEP, left))):
        left -= len(data)
        yield data


class _Reader:
    """Reads the numbers of a header. Raises IndexError at its end."""

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
        """Read a number: the high bits set in its first byte count the bytes that follow."""
        first = self.byte()
        value = 0
        for index in range(8):
            mask = 0x80 >> index
            if not first & mask:
                return value | (first & (mask - 1)) << 8 * index
            value |= self.byte() << 8 * index
        return value

    def count(self) -> int:
        """Read a count. Raises IndexError above _MAX_COUNT."""
        count = self.number()
        if count > _MAX_COUNT:
            raise IndexError
        return count

    def bits(self, count: int) -> list[bool]:
        data = self.take((count + 7) // 8)
        return [bool(data[n // 8] & 0x80 >> n % 8) for n in range(count)]

    def defined(self, count: int) -> list[bool]:
        """Read which of ``count`` values are present: all, or those whose bit is set."""
        return [True] * count if self.byte() else self.bits(count)

    def words(self, defined: Sequence[bool]) -> list[int | None]:
        """Read a number of 32 bits for each value that is present."""
        return [struct.unpack("<L", self.take(4))[0] if is_set else None for is_set in defined]

    def checksums(self, count: int) -> list[int | None]:
        return self.words(self.defined(count))


def _directory(file: BinaryIO) -> list[SevenZipMember]:
    offset, size = struct.unpack("<QQ", file.read(32)[12:28])
    if not size:
        return []
    if size > _MAX_HEADER or offset >= _FAR:
        raise IndexError
    file.seek(32 + offset)
    reader = _Reader(file.read(size))
    while (tag := reader.number()) == Tag.ENCODED:
        reader = _Reader(_packed_header(file, _streams(reader)[0]))
    return _members(reader) if tag == Tag.HEADER else []


def _packed_header(file: BinaryIO, header: Stream) -> bytes:
    """Return a header that is itself packed."""
    if reason := unread(header.block.coders):
        raise Reason.UNREAD_DIRECTORY.error(why=reason)
    if header.size > _MAX_HEADER:
        raise IndexError
    return b"".join(_pieces(file, header))


def _members(reader: _Reader) -> list[SevenZipMember]:
    streams: list[Stream] = []
    names: list[str] = []
    empty: list[bool] = []
    empty_files: list[bool] = []
    attributes: list[int | None] = []
    while (tag := reader.number()) != Tag.END:
        if tag == Tag.STREAMS:
            streams = _streams(reader)
        elif tag == Tag.FILES:
            count = reader.count()
            empty, attributes = [False] * count, [None] * count
            while (kind := reader.number()) != Tag.END:
                data = _Reader(reader.take(reader.number()))
                if kind == Tag.EMPTY_STREAM:
                    empty = data.bits(count)
                elif kind == Tag.EMPTY_FILE:
                    empty_files = data.bits(sum(empty))
                elif kind == Tag.NAMES and data.byte() == 0:
                    names = data.rest().decode("utf-16-le", "replace").split("\0")[:-1]
                elif kind == Tag.ATTRIBUTES:
                    is_set = data.defined(count)
                    attributes = data.words(is_set) if data.byte() == 0 else attributes
        else:
            raise IndexError
    # Streams come in the order of the files with content. The others are empty files or folders.
    with_content, without = iter(streams), iter(empty_files)
    return [
        SevenZipMember(
            name,
            is_empty and not next(without, False),
            _is_link(bits),
            None if is_empty else next(with_content, None),
        )
        for name, is_empty, bits in zip(names, empty, attributes, strict=False)
    ]


def _is_link(attributes: int | None) -> bool:
    return attributes is not None and bool(attributes & _UNIX) and attributes >> 16 & _TYPE == _LINK


def _streams(reader: _Reader) -> list[Stream]:
    """Return the contents of all blocks, in order."""
    place, packed = 0, list[int]()
    blocks: list[Block] = []
    streams: list[Stream] | None = None
    while (tag := reader.number()) != Tag.END:
        if tag == Tag.PACK_INFO:
            place, packed = _pack_info(reader)
        elif tag == Tag.UNPACK_INFO:
            blocks = _unpack_info(reader)
        elif tag == Tag.SUB_STREAMS:
            streams = _sub_streams(reader, blocks)
        else:
            raise IndexError
    starts = [place, *accumulate(packed, initial=place)][1:]
    number = 0
    for block in blocks:
        block.place, block.packed = starts[number], packed[number]
        number += block.packed_streams
    return (
        [Stream(block, 0, block.size, block.crc) for block in blocks]
        if streams is None
        else streams
    )


def _pack_info(reader: _Reader) -> tuple[int, list[int]]:
    """Return where the packed streams begin, and their sizes."""
    place, count = reader.number(), reader.count()
    sizes: list[int] = []
    while (tag := reader.number()) != Tag.END:
        if tag == Tag.SIZE:
            sizes = [reader.number() for _ in range(count)]
        elif tag == Tag.CRC:
            reader.checksums(count)
    return place, sizes


def _unpack_info(reader: _Reader) -> list[Block]:
    blocks: list[Block] = []
    while (tag := reader.number()) != Tag.END:
        if tag == Tag.FOLDER:
            count = reader.count()
            if reader.byte():  # external definitions, which no program writes
                raise IndexError
            blocks = [_block(reader) for _ in range(count)]
        elif tag == Tag.UNPACK_SIZE:
            for block in blocks:
                block.sizes = [reader.number() for _ in range(block.outputs)]
        elif tag == Tag.CRC:
            for block, crc in zip(blocks, reader.checksums(len(blocks)), strict=True):
                block.crc = crc
    return blocks


def _block(reader: _Reader) -> Block:
    coders: list[Coder] = []
    inputs = outputs = 0
    count = reader.count()
    if count > _MAX_CODERS:
        raise IndexError
    for _ in range(count):
        flags = reader.byte()
        method = reader.take(flags & 0x0F)
        more = (reader.count(), reader.count()) if flags & 0x10 else (1, 1)
        inputs, outputs = inputs + more[0], outputs + more[1]
        coders.append(Coder(method, reader.take(reader.number()) if flags & 0x20 else b"", *more))
    # Which output feeds each bound input; the packed streams feed the others.
    feeders = {reader.number(): reader.number() for _ in range(outputs - 1)}
    if inputs > len(feeders) + 1:
        for _ in range(inputs - len(feeders)):
            reader.number()
    last = (
        next(output for output in range(outputs) if output not in feeders.values())
        if outputs > len(feeders)
        else 0
    )
    return Block(_in_order(coders, feeders, last), inputs - len(feeders), outputs, last)


def _in_order(coders: list[Coder], feeders: dict[int, int], last: int) -> list[Coder]:
    """Return the coders in the order of unpacking; unchanged if one has several inputs."""
    if any((coder.inputs, coder.outputs) != (1, 1) for coder in coders):
        return coders
    chain = [last]
    while (feeder := feeders.get(chain[-1])) is not None and len(chain) < len(coders):
        chain.append(feeder)
    return [coders[number] for number in reversed(chain)]


def _sub_streams(reader: _Reader, blocks: Sequence[Block]) -> list[Stream]:
    tag = reader.number()
    if tag == Tag.COUNT:
        for block in blocks:
            block.streams = reader.count()
        tag = reader.number()
    sizes: list[list[int]] = []
    for block in blocks:
        stated = [reader.number() for _ in range(block.streams - 1)] if tag == Tag.SIZE else []
        sizes.append([*stated, max(block.size - sum(stated), 0)] if block.streams else [])
    if tag == Tag.SIZE:
        tag = reader.number()
    unknown = [block for block in blocks if block.streams != 1 or block.crc is None]
    checksums: Iterator[int | None] = iter(())
    while tag != Tag.END:
        if tag == Tag.CRC:
            checksums = iter(reader.checksums(sum(block.streams for block in unknown)))
        tag = reader.number()
    return [
        Stream(
            block,
            offset,
            size,
            block.crc if block.streams == 1 and block.crc is not None else next(checksums, None),
        )
        for block, block_sizes in zip(blocks, sizes, strict=True)
        for offset, size in zip(accumulate(block_sizes, initial=0), block_sizes, strict=False)
    ]
