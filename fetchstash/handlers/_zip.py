"""Containers: zip with its members of XML, and the compound files of old Office (MS-CFB).

zipfile builds an object for each entry first, be they half a million, and trusts stated sizes. Here
members are inflated in steps, up to a limit.
"""

import os
import re
import struct
import sys
import zlib
from array import array
from collections.abc import Container, Iterable, Iterator
from contextlib import AbstractContextManager, suppress
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from fetchstash.errors import NoText
from fetchstash.handlers._reasons import Reason
from fetchstash.handlers._xml import Node, Tag, Tags, Tree, XmlReader, walk

MAX_MEMBER = 256 * 1024 * 1024
_MAX_MEMBERS = 20_000
# A limit for metadata, styles and relationships; the text is streamed.
_MAX_SMALL_MEMBER = 32 * 1024 * 1024
# What a document may unpack to: some MiB, and a multiple of its size that no honest one needs. The
# same member counts each time: a part that unpacks well could be named a thousand times.
_FREE_BYTES = 16 * 1024 * 1024
_MAX_RATIO = 100
_STEP = 64 * 1024
_MAX_COMMENT = 65_535

_END = struct.Struct("<4s4H2LH")  # section 4.3.16
_END64_LOCATOR = struct.Struct("<4sLQL")  # 4.3.15
_END64 = struct.Struct("<4sQ2H2L4Q")  # 4.3.14
_ENTRY = struct.Struct("<4s6H3L5H2L")  # 4.3.12
_LOCAL = struct.Struct("<4s5H3L2H")  # 4.3.7
_EXTRA = struct.Struct("<2H")  # 4.5.1

_ENCRYPTED, _UTF8 = 0x0001, 0x0800  # 4.4.4
_STORED, _DEFLATED = 0, 8  # 4.4.5
_LINK = 0o120000  # S_IFLNK, in the upper half of external attributes made on Unix (4.4.15)


class Entry(NamedTuple):
    """An entry of the central directory; ``size`` is the stated size when inflated, in bytes."""

    name: str
    size: int
    packed: int
    crc: int
    method: int
    offset: int
    encrypted: bool
    is_link: bool

    @property
    def is_folder(self) -> bool:
        """Whether this is a folder."""
        return self.name.endswith("/")


class Zip(AbstractContextManager["Zip"]):
    """An open zip file. Any method raises NoText if it is none or is damaged.

    The members of a document are bounded all together, those of an archive one by one.
    """

    def __init__(self, source: Path, *, is_document: bool = False) -> None:
        self._file = source.open("rb")
        try:
            self._length = os.fstat(self._file.fileno()).st_size
            self._limit = _FREE_BYTES + _MAX_RATIO * self._length if is_document else sys.maxsize
            self._left = self._limit
            self.count, self._directory, self._shift = self._find_directory()
        except BaseException:
            self._file.close()
            raise

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def entries(self) -> Iterator[Entry]:
        """Yield all entries in the order of the central directory."""
        place, end = self._directory
        for _ in range(self.count):
            head = self._at(place, _ENTRY.size)
            place += _ENTRY.size
            if place > end or head[:4] != b"PK\x01\x02":
                raise Reason.ZIP_DIRECTORY_CUT.error()
            (
                _,
                _,
                _,
                flags,
                method,
                _,
                _,
                crc,
                packed,
                size,
                name_size,
                extra_size,
                comment_size,
                _,
                _,
                attributes,
                offset,
            ) = _ENTRY.unpack(head)
            tail = self._at(place, name_size + extra_size)
            size, packed, offset = _zip64(tail[name_size:], [size, packed, offset])
            name = tail[:name_size].decode("utf-8" if flags & _UTF8 else "cp437", "replace")
            is_encrypted, is_link = bool(flags & _ENCRYPTED), attributes >> 16 & 0o170000 == _LINK
            start = offset + self._shift
            yield Entry(name, size, packed, crc, method, start, is_encrypted, is_link)
            place += name_size + extra_size + comment_size

    def find(self, names: Iterable[str]) -> dict[str, Entry]:
        """Return the first entry of each of these names."""
        wanted, first = set(names), dict[str, Entry]()
        for entry in self.entries():
            if entry.name in wanted:
                first.setdefault(entry.name, entry)
        return first

    def chunks(self, entry: Entry, limit: int = MAX_MEMBER) -> Iterator[bytes]:
        """Yield the content of a member in pieces of at most 64 KiB.

        Raises NoText after ``limit`` bytes, and at the end if the checksum (section 4.4.7) is
        wrong.
        """
        if entry.encrypted:
            raise Reason.ZIP_MEMBER_ENCRYPTED.error()
        if entry.method not in {_STORED, _DEFLATED}:
            raise Reason.ZIP_METHOD.error(method=entry.method)
        packed = self._packed(entry)
        size = crc = 0
        self._spend(0)
        with Reason.ZIP_MEMBER_DAMAGED.instead_of(zlib.error):
            for piece in packed if entry.method == _STORED else inflated(packed):
                size += len(piece)
                self._spend(len(piece))
                crc = zlib.crc32(piece, crc)
                if size > limit:
                    raise Reason.ZIP_MEMBER_LARGE.error(limit=limit)
                yield piece
        if crc != entry.crc:
            raise Reason.ZIP_CHECKSUM.error()

    def _spend(self, size: int) -> None:
        self._left -= size
        if self._left < 0:
            raise Reason.ZIP_LARGE.error(limit=self._limit)

    def read(self, entry: Entry, limit: int) -> bytes:
        """Return the content of a member. Raises NoText if it is larger than ``limit`` bytes."""
        return b"".join(self.chunks(entry, limit))

    def _packed(self, entry: Entry) -> Iterator[bytes]:
        local = self._at(entry.offset, _LOCAL.size)
        if local[:4] != b"PK\x03\x04":
            raise Reason.ZIP_MEMBER_LOST.error()
        name_size, extra_size = _LOCAL.unpack(local)[9:11]
        place = entry.offset + _LOCAL.size + name_size + extra_size
        left = entry.packed
        while left:
            piece = self._at(place, min(left, _STEP))
            place += len(piece)
            left -= len(piece)
            yield piece

    def _at(self, place: int, size: int) -> bytes:
        if place < 0 or place + size > self._length:
            raise Reason.ZIP_CUT.error()
        self._file.seek(place)
        return self._file.read(size)

    def _find_directory(self) -> tuple[int, tuple[int, int], int]:
        """Return the count of the directory, its start and end, and the shift of all offsets.

        Offsets do not count the bytes before the archive, as in a self-extracting one (4.1.9).
        """
        tail_size = min(self._length, _END.size + _MAX_COMMENT)
        tail = self._at(self._length - tail_size, tail_size)
        mark = tail.rfind(b"PK\x05\x06")
        if mark < 0 or len(tail) - mark < _END.size:
            raise Reason.ZIP_NO_DIRECTORY.error()
        count, size, at = _END.unpack_from(tail, mark)[4:7]
        ends = self._length - tail_size + mark
        locator_at = ends - _END64_LOCATOR.size
        locator = self._at(locator_at, _END64_LOCATOR.size) if locator_at >= 0 else b""
        if locator[:4] == b"PK\x06\x07":
            end64_at = _END64_LOCATOR.unpack(locator)[2]
            end64 = _END64.unpack(self._at(end64_at, _END64.size))
            if end64[0] == b"PK\x06\x06":
                (count, size, at), ends = end64[7:10], end64_at
        shift = max(ends - size - at, 0)
        return count, (at + shift, at + shift + size), shift


def is_unsafe(name: str) -> bool:
    """Return whether ``name`` is absolute, leads upward, names a drive or holds controls."""
    parts = name.replace("\\", "/").split("/")
    return (
        name.startswith(("/", "\\"))
        or ".." in parts
        or bool(re.match(r"[A-Za-z]:|.*[\0-\x1f\x7f]", name, re.DOTALL))
    )


def _zip64(extra: bytes, values: list[int]) -> list[int]:
    """Return sizes and offset, those of all ones from extra field 1 (section 4.5.3)."""
    place = 0
    while place + _EXTRA.size <= len(extra):
        kind, length = _EXTRA.unpack_from(extra, place)
        place += _EXTRA.size
        if kind == 1:
            wide = struct.iter_unpack("<Q", extra[place : place + length // 8 * 8])
            values = [next(wide, (v,))[0] if v == 0xFFFFFFFF else v for v in values]
        place += length
    return values


def inflated(packed: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the content of a raw stream of DEFLATE in pieces of at most 64 KiB."""
    engine = zlib.decompressobj(-zlib.MAX_WBITS)
    for data in packed:
        piece = engine.decompress(data, _STEP)
        while piece:
            yield piece
            piece = engine.decompress(engine.unconsumed_tail, _STEP)


class Members:
    """The members of an open zip container, by name. A missing one is empty."""

    def __init__(self, container: Zip) -> None:
        self.container = container
        self.entries = {entry.name: entry for entry in islice(container.entries(), _MAX_MEMBERS)}

    def __contains__(self, name: str) -> bool:
        return name in self.entries

    def chunks(self, name: str, limit: int = MAX_MEMBER) -> Iterator[bytes]:
        """Yield the content of a member of at most ``limit`` bytes. Raises NoText if damaged."""
        return self.container.chunks(self.entries[name], limit) if name in self else iter(())

    def tags(self, name: str, wanted: Container[str] | None = None) -> Iterator[Tag]:
        """Yield the start tags of a member, up to the first damage; those of some names alone."""
        reader = Tags(wanted)
        with suppress(NoText):
            for _ in walk(self.chunks(name, _MAX_SMALL_MEMBER), reader) if name in self else ():
                yield from reader.tags
                reader.tags.clear()
        yield from reader.tags

    def read(self, name: str, reader: XmlReader, limit: int = 4 * 2**20) -> None:
        """Pass a member of at most ``limit`` bytes to ``reader``. Raises NoText if damaged."""
        for _ in walk(self.chunks(name, limit), reader) if name in self else ():
            pass

    def read_small(self, name: str, reader: XmlReader) -> None:
        """Pass a member to ``reader``, up to the first damage."""
        with suppress(NoText):
            self.read(name, reader, _MAX_SMALL_MEMBER)

    def tree(self, name: str, limit: int = _MAX_SMALL_MEMBER) -> Node:
        """Return the document node of a member, with what stands before the first damage."""
        tree = Tree()
        with suppress(NoText):
            self.read(name, tree, limit)
        return tree.root

    def whole_tree(self, name: str) -> Node:
        """Return the document node of a member. Raises NoText if it is damaged."""
        tree = Tree()
        self.read(name, tree)
        return tree.root


_MAGIC = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_END_OF_CHAIN, _FREE = 0xFFFFFFFE, 0xFFFFFFFF
# Section 2.2; the 109 first entries of the DIFAT follow at 76.
_HEADER = struct.Struct("<30xHH14xL8xL4xL")
_DIRECTORY_ENTRY = struct.Struct("<64sHBB3L36xLQ")  # section 2.6.1
_ENTRY_SIZE = 128
_STORAGE, _STREAM, _ROOT = 1, 2, 5
_MINI_CUTOFF = 4096
_MAX_ENTRIES = 100_000
# What the streams of a file may hold together, as a multiple of its size: thousands may share one
# chain of sectors. An honest stream is read once or twice.
_MAX_READ = 4


class Stream(NamedTuple):
    """A stream: its path through the storages, its first sector, and its size in bytes."""

    path: tuple[str, ...]
    start: int
    size: int


class CompoundFile:
    """The streams of a compound file, by path. Raises NoText if it is none or is damaged.

    ``is_cut``: the file ends before the last sector that its table names.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._left = _MAX_READ * len(data)
        if not data.startswith(_MAGIC) or len(data) < 512:
            raise Reason.NO_COMPOUND_FILE.error()
        shift, mini_shift, directory_at, mini_table_at, more_at = _HEADER.unpack_from(data)
        if shift not in {9, 12} or mini_shift != 6:
            raise Reason.COMPOUND_SECTORS.error()
        self._shift = shift
        self._table = self._read_table(more_at)
        self._mini_table = _numbers(self._chain(mini_table_at))
        self._mini_stream = b""
        self.streams: dict[tuple[str, ...], Stream] = {}
        for stream in self._walk(self._chain(directory_at)):
            if stream.path:
                self.streams.setdefault(stream.path, stream)
            else:
                self._mini_stream = self._chain(stream.start)[: stream.size]

    def read(self, *path: str) -> bytes:
        """Return the content of a stream, b"" if there is none.

        Raises NoText after four times the bytes of the file.
        """
        stream = self.streams.get(path)
        if stream is None:
            return b""
        self._left -= min(stream.size, len(self._data))
        if self._left < 0:
            raise Reason.COMPOUND_SHARED.error()
        if stream.size >= _MINI_CUTOFF:
            return self._chain(stream.start)[: stream.size]
        numbers = _followed(stream.start, self._mini_table)
        return b"".join(self._mini_stream[n << 6 : (n + 1) << 6] for n in numbers)[: stream.size]

    def _read_table(self, more_at: int) -> "array[int]":
        """Return the FAT, whose sectors are listed in the header and the DIFAT (section 2.5)."""
        listed = _numbers(self._data[76:512])
        seen = 0
        while more_at < _END_OF_CHAIN and seen <= len(self._data) >> self._shift:
            numbers = _numbers(self._sector(more_at))
            if not numbers:
                break
            more_at = numbers.pop()
            listed += numbers
            seen += 1
        own = dict.fromkeys(number for number in listed if number < _END_OF_CHAIN)
        table = _numbers(b"".join(map(self._sector, own)))
        last = next((n for n in range(len(table) - 1, -1, -1) if table[n] != _FREE), 0)
        self.is_cut = (max(last, *own, 0) + 1) << self._shift >= len(self._data)
        return table

    def _sector(self, number: int) -> bytes:
        place = (number + 1) << self._shift
        return self._data[place : place + (1 << self._shift)]

    def _chain(self, start: int) -> bytes:
        return b"".join(map(self._sector, _followed(start, self._table)))

    def _walk(self, entries: bytes) -> Iterator[Stream]:
        """Yield the root (path ()) and all streams, each once: a hostile tree may be a ring."""
        waiting: list[tuple[int, tuple[str, ...]]] = [(0, ())]
        seen: set[int] = set()
        while waiting and len(seen) < _MAX_ENTRIES:
            number, path = waiting.pop()
            at = number * _ENTRY_SIZE
            if number in seen or at + _ENTRY_SIZE > len(entries):
                continue
            seen.add(number)
            fields = _DIRECTORY_ENTRY.unpack_from(entries, at)
            raw_name, length, kind, _, left, right, child, start, size = fields
            own = (*path, raw_name[: max(min(length, 64) - 2, 0)].decode("utf-16-le", "replace"))
            waiting += [(left, path), (right, path)]
            if kind == _ROOT:
                waiting.append((child, ()))
                yield Stream((), start, size)
            elif kind == _STORAGE:
                waiting.append((child, own))
            elif kind == _STREAM:
                yield Stream(own, start, size)


def _followed(start: int, table: "array[int]") -> Iterator[int]:
    """Yield the sectors of a chain; a chain with more sectors than the file is a ring."""
    for _ in range(len(table)):
        if start >= len(table):
            return
        yield start
        start = table[start]


def _numbers(data: bytes) -> "array[int]":
    numbers = array("I", data[: len(data) // 4 * 4])
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers
