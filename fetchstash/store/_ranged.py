"""Bytes of a bucket as a source of ranges, read ahead where a scan goes through them."""

from collections.abc import Callable
from concurrent.futures import Executor, Future
from threading import Lock

from fetchstash.errors import StoreError
from fetchstash.store._bucket_cache import Filling
from fetchstash.store._text import NotCached

BLOCK = 64 * 2**10
"""As long as a stride: what an index look-up reads is one block."""

_FEWEST_BLOCKS = 2
"""A part that begins in one block often ends in the next: one request of 128 KiB has both."""

STREAMED_READ = 4 * BLOCK
"""A read of more that goes on where the last one ended is part of a scan."""

_CHUNK = 16
"""Blocks of one request of a scan: 1 MiB."""

_CHUNKS_AHEAD = 4
_KEPT_BLOCKS = 2 * _CHUNK


class RangedSource:
    """A ByteSource over ``fetch``, which returns the bytes [start, end) or raises StoreError.

    ``filling`` gets what is read.
    """

    def __init__(
        self, fetch: Callable[[int, int], bytes], size: int, executor: Executor, filling: Filling
    ) -> None:
        self._fetch = fetch
        self._size = size
        self._executor = executor
        self._filling = filling
        self._blocks: dict[int, bytes] = {}
        self._chunks: dict[int, Future[bytes]] = {}
        self._lock = Lock()
        self._last_stop = 0
        self._is_open = True

    def read(self, start: int, end: int) -> bytes:
        """Return the bytes [start, end), fewer at the end."""
        with self._lock:
            if not self._is_open:
                raise StoreError("The text is closed.", "Open it again.")
            blocks = self._range(start, end)
            goes_on, self._last_stop = blocks.start <= self._last_stop < blocks.stop, blocks.stop
            if goes_on and len(blocks) * BLOCK > STREAMED_READ:
                self._stream(blocks)
            elif missing := [block for block in blocks if block not in self._blocks]:
                self._load(missing[0], max(missing[-1] + 1, missing[0] + _FEWEST_BLOCKS))
            return self._part(blocks, start, end)

    def read_cached(self, start: int, end: int) -> bytes:
        """Return the same if it needs no request. Raises NotCached else."""
        if not self._lock.acquire(blocking=False):
            raise NotCached
        try:
            blocks = self._range(start, end)
            if not self._is_open or any(block not in self._blocks for block in blocks):
                raise NotCached
            self._last_stop = blocks.stop
            return self._part(blocks, start, end)
        finally:
            self._lock.release()

    def close(self) -> None:
        """Give up what is being read ahead. Closing twice is no error."""
        with self._lock:
            self._is_open = False
            for future in self._chunks.values():
                future.cancel()
            self._chunks.clear()
            self._blocks.clear()
            self._filling.close()

    def _range(self, start: int, end: int) -> range:
        end = min(end, self._size)
        return range(start // BLOCK, -(-end // BLOCK)) if start < end else range(0)

    def _part(self, blocks: range, start: int, end: int) -> bytes:
        data = b"".join(self._blocks[block] for block in blocks)
        first = blocks.start * BLOCK
        part = data[start - first : max(end - first, 0)]
        self._forget_but(blocks)
        return part

    def _forget_but(self, blocks: range) -> None:
        """Keep the blocks of the last reads alone: a scan would fill the memory."""
        while len(self._blocks) > _KEPT_BLOCKS + len(blocks):
            oldest = next(block for block in self._blocks if block not in blocks)
            del self._blocks[oldest]

    def _load(self, first: int, stop: int) -> None:
        end = min(stop * BLOCK, self._size)
        self._add(first, self._fetch(first * BLOCK, end))

    def _add(self, first: int, data: bytes) -> None:
        self._filling(first * BLOCK, data)
        for offset in range(0, len(data), BLOCK):
            self._blocks[first + offset // BLOCK] = data[offset : offset + BLOCK]

    def _stream(self, blocks: range) -> None:
        """Read the chunks of these blocks, and have those after them read meanwhile."""
        first, last = blocks.start // _CHUNK, (blocks.stop - 1) // _CHUNK
        for passed in [chunk for chunk in self._chunks if chunk < first]:
            self._chunks.pop(passed).cancel()
        for chunk in range(first, last + 1 + _CHUNKS_AHEAD):
            start = chunk * _CHUNK * BLOCK
            members = range(chunk * _CHUNK, (chunk + 1) * _CHUNK)
            has_all = all(block in self._blocks for block in members if block in blocks)
            if start < self._size and chunk not in self._chunks and not (has_all and chunk <= last):
                end = min(start + _CHUNK * BLOCK, self._size)
                self._chunks[chunk] = self._executor.submit(self._fetch, start, end)
        for chunk in range(first, last + 1):
            if future := self._chunks.pop(chunk, None):
                self._add(chunk * _CHUNK, future.result())
