"""Sources of the bytes of a text: grep, ranking and slices read any ByteSource."""

import os
import sys
from threading import Lock
from typing import Protocol, TypeGuard

from fetchstash.errors import StoreError

_NO_WAIT = getattr(os, "RWF_NOWAIT", 0)
MAX_CACHED_READ = 512 * 2**10
"""In bytes: copying and decoding that much takes a fraction of a millisecond."""


class ByteSource(Protocol):
    """Immutable bytes that can be read in ranges, from any thread."""

    def read(self, start: int, end: int) -> bytes:
        """Return the bytes [start, end), fewer at the end of the source. May block."""
        ...

    def close(self) -> None:
        """Release the source. A read that runs meanwhile in another thread ends first."""
        ...


class BytesSource:
    """A ByteSource over bytes in memory."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def read(self, start: int, end: int) -> bytes:
        """Return the bytes [start, end), fewer at the end."""
        return self._data[start:end]

    def close(self) -> None:
        """Do nothing: no file is open."""


class NotCached(Exception):
    """The bytes cannot be had without waiting for a disk or a network."""


class MayWait(ByteSource, Protocol):
    """A ByteSource whose reads may wait for a disk or a network, and that knows which do."""

    def read_cached(self, start: int, end: int) -> bytes:
        """Return the bytes [start, end) without waiting. Raises NotCached."""
        ...


def may_wait(source: ByteSource) -> TypeGuard[MayWait]:
    """Return whether a source knows which reads wait."""
    return hasattr(source, "read_cached")  # isinstance takes ten times as long


class FileSource:
    """A ByteSource over an open file, which stays readable when somebody unlinks it."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._lock = Lock()  # a read must not meet the number of another file, opened after close

    def read(self, start: int, end: int) -> bytes:
        """Return the bytes [start, end), fewer at the end of the file."""
        with self._lock:
            self._check_open()
            data = self._read_at(start, end - start)
            while 0 < len(data) < end - start:
                more = self._read_at(start + len(data), end - start - len(data))
                if not more:
                    break
                data += more
        return data

    def read_cached(self, start: int, end: int) -> bytes:
        """Return the same if the page cache has it. Raises NotCached else, and for large ranges.

        Only Linux can tell (RWF_NOWAIT, preadv2(2)), and not on every file system.
        """
        if sys.platform != "linux" or not _NO_WAIT or end - start > MAX_CACHED_READ:
            raise NotCached
        data = bytearray(max(end - start, 0))
        if not self._lock.acquire(blocking=False):
            raise NotCached
        try:
            self._check_open()
            count = os.preadv(self._fd, [data], start, _NO_WAIT)
        except OSError as error:
            raise NotCached from error
        finally:
            self._lock.release()
        if count < len(data):
            raise NotCached
        return bytes(data)

    def close(self) -> None:
        """Close the file. Closing twice is no error."""
        with self._lock:
            if self._fd >= 0:
                os.close(self._fd)
            self._fd = -1

    def _check_open(self) -> None:
        if self._fd < 0:
            raise StoreError("The text is closed.", "Open it again.")

    def _read_at(self, start: int, count: int) -> bytes:
        if sys.platform != "win32":
            return os.pread(self._fd, max(count, 0), start)
        os.lseek(self._fd, start, os.SEEK_SET)
        return os.read(self._fd, max(count, 0))


class CachedSource:
    """A source as far as its bytes are at hand: a read returns at once or raises NotCached."""

    def __init__(self, source: MayWait) -> None:
        self._source = source

    def read(self, start: int, end: int) -> bytes:
        """Return the bytes [start, end). Raises NotCached."""
        return self._source.read_cached(start, end)

    def close(self) -> None:
        """Do nothing: the source is another's."""
