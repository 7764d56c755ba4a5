"""Compound files, the container of Outlook messages and of Office before 2007 ([MS-CFB] 12.0)."""

import struct
import sys
from array import array
from collections.abc import Iterator
from dataclasses import dataclass

from fetchstash.handlers._reasons import Reason

_MAGIC = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_END_OF_CHAIN, _NOTHING = 0xFFFFFFFE, 0xFFFFFFFF
_HEADER = struct.Struct(
    "<30xHH14xL8xL4xL"
)  # section 2.2; the 109 first entries of the DIFAT follow at 76
_ENTRY = struct.Struct("<64sHBB3L36xLQ")  # section 2.6.1
_ENTRY_SIZE = 128
_STORAGE, _STREAM, _ROOT = 1, 2, 5
_MINI_CUTOFF = 4096
_MAX_ENTRIES = 100_000
# What the streams of a file may hold together, as a multiple of its size: thousands may share one
# chain of sectors. An honest stream is read once or twice.
_MAX_READ = 4


@dataclass(frozen=True, slots=True)
class Stream:
    """A stream: its path through the storages, its first sector, and its size in bytes."""

    path: tuple[str, ...]
    start: int
    size: int


class CompoundFile:
    """The streams of a compound file, by path. Raises NoText if it is none or is damaged."""

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
        entries = self._chain(directory_at)
        self._mini_stream = b""
        self.streams: dict[tuple[str, ...], Stream] = {}
        for stream, is_root in self._walk(entries):
            if is_root:
                self._mini_stream = self._chain(stream.start)[: stream.size]
            else:
                self.streams.setdefault(stream.path, stream)

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
        sectors = (
            self._mini_stream[n << 6 : (n + 1) << 6]
            for n in _followed(stream.start, self._mini_table)
        )
        return b"".join(sectors)[: stream.size]

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
        return _numbers(b"".join(map(self._sector, own)))

    def _sector(self, number: int) -> bytes:
        place = (number + 1) << self._shift
        return self._data[place : place + (1 << self._shift)]

    def _chain(self, start: int) -> bytes:
        return b"".join(map(self._sector, _followed(start, self._table)))

    def _walk(self, entries: bytes) -> Iterator[tuple[Stream, bool]]:
        """Yield the root and all streams, each once: in a hostile file the tree may be a ring."""
        waiting: list[tuple[int, tuple[str, ...]]] = [(0, ())]
        seen: set[int] = set()
        while waiting and len(seen) < _MAX_ENTRIES:
            number, path = waiting.pop()
            at = number * _ENTRY_SIZE
            if number in seen or at + _ENTRY_SIZE > len(entries):
                continue
            seen.add(number)
            raw_name, length, kind, _, left, right, child, start, size = _ENTRY.unpack_from(
                entries, at
            )
            own = (*path, raw_name[: max(min(length, 64) - 2, 0)].decode("utf-16-le", "replace"))
            waiting += [(left, path), (right, path)]
            if kind == _ROOT:
                waiting.append((child, ()))
                yield Stream((), start, size), True
            elif kind == _STORAGE:
                waiting.append((child, own))
            elif kind == _STREAM:
                yield Stream(own, start, size), False


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
