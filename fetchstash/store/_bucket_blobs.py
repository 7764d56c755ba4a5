"""Blobs in a bucket, read ahead, cached on disk."""

import contextlib
import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, Future
from dataclasses import replace
from pathlib import Path
from threading import Lock

from fetchstash.errors import StoreError
from fetchstash.store._blobs import Blob, Kind
from fetchstash.store._bucket import PART, Bucket, CannotCopy
from fetchstash.store._bucket_cache import QUICKLY_HASHED, BlobCache, Filling
from fetchstash.store._bucket_index import Entry
from fetchstash.store._bucket_record import Record, StoredBlob
from fetchstash.store._text import (
    ByteSource,
    BytesSource,
    FileSource,
    NotCached,
    StoredText,
    StrideIndex,
)

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


SMALL = 64 * 2**10
"""In bytes: writing so much again costs no more than asking whether it is there."""

WHOLE_TEXT = 2**20
"""A search reads a text of so many bytes at once."""

_DOWNLOAD = 2**20
_MOST_CONFIRMED = 100_000


class BucketBlobs:
    """The blobs of one prefix. ``ref`` is the artifact for whose copy a pinned blob is looked."""

    def __init__(self, bucket: Bucket, cache: BlobCache, executor: Executor) -> None:
        self._bucket = bucket
        self._cache = cache
        self._executor = executor
        self._confirmed: set[str] = set()
        self._lock = Lock()

    def start_uploads(
        self, files: Mapping[Kind, Path], measured: Sequence[Blob], week: str
    ) -> list[Future[StoredBlob]]:
        """Write files under a week. A result is there when the bucket has confirmed its bytes."""
        return [
            self._executor.submit(
                self._upload, path, StoredBlob(blob.sha256, blob.size, week, blob.index)
            )
            for path, blob in zip(files.values(), measured, strict=True)
        ]

    def _upload(self, path: Path, blob: StoredBlob) -> StoredBlob:
        if not self._is_there(blob):
            self._bucket.write(blob.key, path.read_bytes() if blob.size <= PART else path)
            self._confirm(blob.key)
        return blob

    def _is_there(self, blob: StoredBlob) -> bool:
        """Return whether these bytes were written this week, as far as it is worth to ask."""
        if blob.key in self._confirmed:
            return True
        if blob.size <= SMALL or not self._has(blob.key, blob.size):
            return False
        self._confirm(blob.key)
        return True

    def _has(self, key: str, size: int) -> bool:
        item = self._bucket.look_up(key)
        return item is not None and item.size == size

    def _confirm(self, key: str) -> None:
        with self._lock:
            if len(self._confirmed) >= _MOST_CONFIRMED:
                self._confirmed.clear()
            self._confirmed.add(key)

    def are_there(self, record: Record) -> bool:
        """Return whether the bytes of an artifact are in the bucket."""
        return all(
            blob.key in self._confirmed
            or any(self._has(key, blob.size) for key in _keys(blob, record.ref, record.pinned))
            for blob in record.blobs
        )

    def renew(self, blob: StoredBlob, week: str, ref: str, *, pinned: bool) -> StoredBlob:
        """Copy a blob to a week and return it as it is there. Raises StoreError if it is lost."""
        if blob.week == week:
            return blob
        renewed = replace(blob, week=week)
        if not self._is_there(renewed):
            self._copy(blob, renewed.key, ref, pinned=pinned)
            self._confirm(renewed.key)
        return renewed

    def copy_to_pinned(self, blob: StoredBlob, ref: str) -> None:
        """Copy a blob to where no lifecycle rule removes it. Raises StoreError if it is lost."""
        key = blob.pinned_key(ref)
        if not self._has(key, blob.size):
            self._copy(blob, key, ref, pinned=False)

    def _copy(self, blob: StoredBlob, target: str, ref: str, *, pinned: bool) -> None:
        """Copy within the bucket, and look whether it is there: a copy of Azure may be pending."""
        try:
            for source in _keys(blob, ref, pinned):
                if source == target:
                    continue
                if self._bucket.copy(source, target) and self._has(target, blob.size):
                    return
        except CannotCopy:
            path = self.file("raw", blob, ref, pinned=pinned)
            try:
                self._bucket.write(target, path)
            finally:
                path.unlink()
        else:
            raise _lost(ref)

    def open(self, kind: Kind, blob: StoredBlob, ref: str, *, pinned: bool) -> ByteSource:
        """Return the bytes of a text: the copy of this machine, or ranges of the object."""
        fd = self._cache.open(kind, blob.sha256, most=QUICKLY_HASHED)
        if fd is not None:
            return FileSource(fd)
        filling = self._cache.filling(kind, blob.sha256, blob.size)
        fetch = self._fetcher(blob, ref, pinned)
        return RangedSource(fetch, blob.size, self._executor, filling)

    def file(self, kind: Kind, blob: StoredBlob, ref: str, *, pinned: bool) -> Path:
        """Return a file of the spool with the bytes. Raises StoreError if they are lost."""
        path = self._cache.link(kind, blob.sha256)
        if path:
            return path
        path = self._cache.new_file()
        filling = self._cache.filling(kind, blob.sha256, 0)
        source = RangedSource(self._fetcher(blob, ref, pinned), blob.size, self._executor, filling)
        digest = hashlib.sha256()
        try:
            fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with contextlib.closing(source), os.fdopen(fd, "wb") as file:
                for start in range(0, blob.size, _DOWNLOAD):
                    data = source.read(start, start + _DOWNLOAD)
                    digest.update(data)
                    file.write(data)
            _check(digest.hexdigest(), blob, ref)
        except BaseException:
            path.unlink(missing_ok=True)
            raise
        self._cache.keep_copy(path, kind, blob.sha256, blob.size)
        return path

    def start_reading(self, entries: Sequence[Entry]) -> dict[str, Future[StoredText]]:
        """Read the texts of these artifacts that are small, many at a time."""
        return {
            entry.ref: self._executor.submit(self._small_text, entry, entry.text)
            for entry in entries
            if entry.text and entry.text.size <= WHOLE_TEXT
        }

    def _small_text(self, entry: Entry, blob: StoredBlob) -> StoredText:
        """Read a text with one request at the most."""
        fd = self._cache.open("text", blob.sha256)
        if fd is None:
            data = self._fetcher(blob, entry.ref, entry.pinned)(0, blob.size)
            _check(hashlib.sha256(data).hexdigest(), blob, entry.ref)
            self._cache.filling("text", blob.sha256, blob.size)(0, data)
        else:
            with os.fdopen(fd, "rb") as file:
                data = file.read()
        return StoredText(BytesSource(data), StrideIndex.of(data))

    def _fetcher(self, blob: StoredBlob, ref: str, pinned: bool) -> Callable[[int, int], bytes]:
        """Return what reads a range of a blob, of either copy that a pinned artifact has."""

        def fetch(start: int, end: int) -> bytes:
            if start >= end:
                return b""
            for key in _keys(blob, ref, pinned):
                data = self._bucket.read_range(key, start, end)
                if data is not None and len(data) != end - start:
                    raise _altered(ref)
                if data is not None:
                    return data
            self._confirmed.discard(blob.key)  # so that the next put writes it again
            raise _lost(ref)

        return fetch


def _keys(blob: StoredBlob, ref: str, pinned: bool) -> list[str]:
    """Return where a blob may be, the likelier place first."""
    keys = [blob.key, blob.pinned_key(ref)]
    return keys[::-1] if pinned else keys


def _lost(ref: str) -> StoreError:
    return StoreError(f"The bytes of the artifact {ref} are lost.", "Fetch its document again.")


def _check(sha256: str, blob: StoredBlob, ref: str) -> None:
    if sha256 != blob.sha256:
        raise _altered(ref)


def _altered(ref: str) -> StoreError:
    what = f"The bytes of the artifact {ref} were altered after they were stored."
    return StoreError(what, "Fetch its document again.")
