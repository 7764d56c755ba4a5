"""The bytes of a team's artifacts in a bucket, and searches over them wherever they are.

``KIND/SHA256`` is the name of a blob. Which of them are there, and which may go, is the catalogue's
to say (_team.py).
"""

import contextlib
import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

from fetchstash.errors import StoreError
from fetchstash.store._blobs import KINDS, Blob, Blobs, Kind, copied, lost
from fetchstash.store._bucket import PART, Bucket, open_bucket
from fetchstash.store._bucket_cache import QUICKLY_HASHED, BlobCache, Filling
from fetchstash.store._contract import SearchResult
from fetchstash.store._limits import StoreLimits, bucket_url, store_folder
from fetchstash.store._search import RunTexts, SearchIndex
from fetchstash.store._text import (
    ByteSource,
    BytesSource,
    FileSource,
    NotCached,
    StoredText,
    StrideIndex,
    text_by_bytes,
)

WHOLE_TEXT = 2**20
"""A search reads a text of so many bytes at once."""

_REQUESTS_AT_ONCE = 16


class BucketBytes:
    """What Blobs are, in a bucket, with a bounded cache on this machine."""

    def __init__(self, bucket: Bucket, cache: BlobCache, executor: Executor) -> None:
        self._bucket = bucket
        self.cache = cache
        self._executor = executor
        self.index = SearchIndex()

    def write(self, files: Mapping[Path, Blob]) -> None:
        """Write files side by side. The bucket has confirmed them when this returns."""
        uploads = [self._executor.submit(self._upload, *item) for item in files.items()]
        wait(uploads)
        for upload in uploads:
            upload.result()
        for path, blob in files.items():
            self.cache.keep_copy(path, blob.kind, blob.sha256, blob.size)

    def _upload(self, path: Path, blob: Blob) -> None:
        self._bucket.write(_key(blob), path.read_bytes() if blob.size <= PART else path)

    def are_there(self, blobs: Sequence[Blob]) -> bool:
        return all(self._bucket.size(_key(blob)) == blob.size for blob in blobs)

    def open(self, blob: Blob, ref: str) -> ByteSource:
        """Return the copy of this machine, or ranges of the object."""
        fd = self.cache.cached(blob.kind, blob.sha256, most=QUICKLY_HASHED)
        if fd is not None:
            return FileSource(fd)
        filling = self.cache.filling(blob.kind, blob.sha256, blob.size)
        return RangedSource(self._fetcher(blob, ref), blob.size, self._executor, filling)

    def lend(self, blob: Blob, ref: str) -> Path:
        path = self.cache.link(blob.kind, blob.sha256)
        if path:
            return path
        path = self.cache.new_file()
        filling = self.cache.filling(blob.kind, blob.sha256, 0)
        source = RangedSource(self._fetcher(blob, ref), blob.size, self._executor, filling)
        try:
            path.touch(0o600, exist_ok=False)
            with contextlib.closing(source):
                _check(copied(source, blob, path), blob, ref)
        except BaseException:
            path.unlink(missing_ok=True)
            raise
        self.cache.keep_copy(path, blob.kind, blob.sha256, blob.size)
        return path

    def start_reading(self, texts: Mapping[str, Blob]) -> Mapping[str, Callable[[], StoredText]]:
        """Read the texts of these artifacts that are small, many at a time."""
        return {
            ref: self._executor.submit(self._small_text, ref, blob).result
            for ref, blob in texts.items()
            if blob.size <= WHOLE_TEXT
        }

    def _small_text(self, ref: str, blob: Blob) -> StoredText:
        """Read a text with one request at the most."""
        fd = self.cache.cached("text", blob.sha256)
        if fd is None:
            data = self._fetcher(blob, ref)(0, blob.size)
            _check(hashlib.sha256(data).hexdigest(), blob, ref)
            self.cache.filling("text", blob.sha256, blob.size)(0, data)
        else:
            with os.fdopen(fd, "rb") as file:
                data = file.read()
        return StoredText(BytesSource(data), StrideIndex.of(data))

    def _fetcher(self, blob: Blob, ref: str) -> Callable[[int, int], bytes]:
        """Return what reads a range of a blob."""

        def fetch(start: int, end: int) -> bytes:
            if start >= end:
                return b""
            data = self._bucket.read_range(_key(blob), start, end)
            if data is None:
                raise lost(ref)
            if len(data) != end - start:
                raise _altered(ref)
            return data

        return fetch

    def remove(self, kind: Kind, sha256: str) -> None:
        """Remove a blob, and the copy of this machine."""
        self._bucket.delete(f"{kind}/{sha256}")
        self.cache.remove(kind, sha256)

    def sizes(self) -> dict[tuple[Kind, str], int]:
        return {
            (kind, key.removeprefix(f"{kind}/")): size
            for kind in KINDS
            for key, size in self._bucket.sizes(kind)
        }

    def probe(self) -> None:
        self._bucket.probe()

    def close(self) -> None:
        """Give up what is being read ahead."""
        self._executor.shutdown(wait=False, cancel_futures=True)


Bytes = Blobs | BucketBytes


def _key(blob: Blob) -> str:
    return f"{blob.kind}/{blob.sha256}"


def _check(sha256: str, blob: Blob, ref: str) -> None:
    if sha256 != blob.sha256:
        raise _altered(ref)


def _altered(ref: str) -> StoreError:
    what = f"The bytes of the artifact {ref} were altered after they were stored."
    return StoreError(what, "Fetch its document again.")


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


@dataclass(frozen=True, slots=True)
class BytesSearch:
    """A search over texts in a bucket or folder. One that is lost is left out unless named."""

    limits: StoreLimits
    texts: Mapping[str, Blob]
    query: str
    max_results: int
    are_named: bool

    @property
    def key(self) -> tuple[str, Path]:
        return self.limits.url, self.limits.folder

    def open(self) -> Bytes:
        """Open the bytes; the database is not asked."""
        if bucket_url(self.limits.url):
            return bucket_bytes(self.limits, open_bucket(self.limits))
        return Blobs.at(store_folder(self.limits) or self.limits.folder)

    def run(self, opened: Bytes, cancelled: Callable[[], bool]) -> SearchResult:
        texts = {blob.sha256: ref for ref, blob in self.texts.items()}
        missing = set(opened.index.missing(texts))
        wanted = {ref: blob for ref, blob in self.texts.items() if blob.sha256 in missing}
        reading = opened.start_reading(wanted)

        def text(ref: str) -> StoredText:
            if ref in reading:
                return reading[ref]()
            blob = self.texts[ref]
            return text_by_bytes(opened.open(blob, ref), blob.size)

        known = RunTexts(texts, sum(blob.size for blob in self.texts.values()))
        return opened.index.search(
            self.query, known, text, self.max_results, cancelled, named=self.are_named
        )


def bucket_bytes(limits: StoreLimits, bucket: Bucket) -> Bytes:
    """Return the bytes of a bucket, with a cache on this machine."""
    name = hashlib.sha256(f"{limits.endpoint} {limits.url}".encode()).hexdigest()[:16]
    cache = BlobCache(limits.folder / "buckets" / name, limits.cache_bytes)
    return BucketBytes(bucket, cache, ThreadPoolExecutor(_REQUESTS_AT_ONCE))
