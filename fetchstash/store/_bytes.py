"""The bytes of a team's artifacts in a bucket, their cache, and searches over them anywhere.

``KIND/SHA256`` is the name of a blob. Which of them are there, and which may go, is the catalogue's
to say (_team.py).
"""

import contextlib
import hashlib
import os
import time
from collections import deque
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock

from fetchstash.errors import StoreError
from fetchstash.store._blobs import KINDS, PIECE, Blob, Blobs, Kind, copied, lost
from fetchstash.store._bucket import PART, Bucket, open_bucket
from fetchstash.store._contract import SearchResult
from fetchstash.store._disk import private_folder
from fetchstash.store._limits import StoreLimits, bucket_url, store_folder
from fetchstash.store._search import RunTexts, SearchIndex
from fetchstash.store._text import (
    ByteSource,
    FileSource,
    NotCached,
    StoredText,
    text_by_bytes,
    text_in_memory,
)

_LARGEST_SHARE = 0.5
"""A blob that would take more of the cache is not kept."""

_ROOM_SHARE = 0.9
"""What is left when the cache was full, so that it is not cleared at every put."""

_COUNTED_SHARE = 0.1
"""So much may come in before the files are counted again: other processes write here, too."""


class BlobCache(Blobs):
    """A bounded copy of blobs of one bucket and prefix. Several processes may share the folder.

    A file is hashed before its first use by a process, and again when its time or size changed.
    """

    def __init__(self, folder: Path, max_bytes: int) -> None:
        private_folder(folder)
        super().__init__(folder.resolve())
        self.make_folders()
        self._max_bytes = max_bytes
        self._lock = Lock()
        self._used: dict[tuple[Kind, str], float] = {}
        self._bytes = self._counted = sum(size for _, _, size in self.files())
        self.sweep_spool(time.time())

    def takes(self, blob: Blob) -> bool:
        """Return whether the cache keeps a blob of this size."""
        return blob.size <= self._max_bytes * _LARGEST_SHARE

    def keep(self, path: Path, blob: Blob) -> None:
        """Move a file of the spool, whose hash is the blob's, into the cache."""
        kept, modified_ns = self.path(blob.kind, blob.sha256), path.stat().st_mtime_ns
        path.replace(kept)
        with self._lock:
            self._touched[kept] = modified_ns
            self._used[blob.kind, blob.sha256] = time.time()
            self._bytes += blob.size
            uncounted = self._bytes - self._counted
        # Other processes add files, too: to count all with each put would cost a stat of each.
        if self._bytes > self._max_bytes or uncounted > self._max_bytes * _COUNTED_SHARE:
            self._make_room()

    def keep_copy(self, path: Path, blob: Blob) -> None:
        """Add a spool file to the cache by a hard link, if the cache takes the blob."""
        if self.takes(blob):
            copy = self.new_file()
            with contextlib.suppress(OSError):
                copy.hardlink_to(path)
                self.keep(copy, blob)

    def cached(self, blob: Blob) -> int | None:
        """Open a blob and return its descriptor, None if the cache has it not, or not whole."""
        try:
            # The time in the catalogue is that of another file: what this process saw counts.
            fd = self.descriptor(replace(blob, modified_ns=-1))
        except FileNotFoundError:
            return None
        except (OSError, StoreError):  # altered, or not readable
            self.remove(blob.kind, blob.sha256)
            return None
        self._used[blob.kind, blob.sha256] = time.time()
        return fd

    def link(self, blob: Blob) -> Path | None:
        """Return a new spool link to a cached blob, None if the cache lacks it."""
        fd = self.cached(blob)
        if fd is None:
            return None
        os.close(fd)
        path = self.new_file()
        try:
            path.hardlink_to(self.path(blob.kind, blob.sha256))
        except OSError:  # removed meanwhile, or a file system without links
            return None
        return path

    def remove(self, kind: Kind, sha256: str) -> None:
        """Forget a blob."""
        with self._lock:
            self._touched.pop(self.path(kind, sha256), None)
            self._used.pop((kind, sha256), None)
        with contextlib.suppress(OSError):
            super().remove(kind, sha256)

    def keep_only(self, named: Collection[tuple[Kind, str]]) -> int:
        """Remove the copies of blobs that are not ``named``; return how many."""
        stale: list[tuple[Kind, str]] = [
            (kind, name) for kind, name, _ in self.files() if (kind, name) not in named
        ]
        for kind, name in stale:
            self.remove(kind, name)
        return len(stale)

    def _make_room(self) -> None:
        """Count the files, and remove the least recently used where they are too many."""
        with self._lock:
            files: list[tuple[float, Kind, str, int]] = []
            for kind, name, size in self.files():
                with contextlib.suppress(OSError):
                    used = self._used.get((kind, name))
                    # What other processes read is not known here: the time of the write stands for
                    # it.
                    used = used or self.path(kind, name).stat().st_mtime
                    files.append((used, kind, name, size))
            self._bytes = self._counted = sum(size for _, _, _, size in files)
        if self._bytes <= self._max_bytes:
            return
        for _, kind, name, size in sorted(files):
            if self._bytes <= self._max_bytes * _ROOM_SHARE:
                return
            self.remove(kind, name)
            self._bytes = self._counted = self._bytes - size


WHOLE_TEXT = 2**20
"""A search reads a text of so many bytes at once."""

_REQUESTS_AT_ONCE, _PIECES_AT_ONCE = 16, 4


class BucketBytes:
    """Blobs in a bucket, with a bounded cache on this machine."""

    def __init__(self, bucket: Bucket, cache: BlobCache, executor: Executor) -> None:
        self._bucket = bucket
        self.cache = cache
        self._executor = executor
        self.index = SearchIndex()

    def write(self, files: Mapping[Path, Blob]) -> None:
        """Write files side by side. The bucket has confirmed them when this returns."""
        uploads = [self._executor.submit(self._upload, *item) for item in files.items()]
        wait(uploads)
        # Only now: an error that came out earlier would leave others writing for a put that failed.
        for upload in uploads:
            upload.result()
        for path, blob in files.items():
            self.cache.keep_copy(path, blob)

    def _upload(self, path: Path, blob: Blob) -> None:
        self._bucket.write(_key(blob), path.read_bytes() if blob.size <= PART else path)

    def are_there(self, blobs: Sequence[Blob]) -> bool:
        return all(self._bucket.size(_key(blob)) == blob.size for blob in blobs)

    def open(self, blob: Blob, ref: str) -> ByteSource:
        """Open the copy on this machine, made first if the cache takes the blob."""
        fd = self.cache.cached(blob)
        if fd is None and self.cache.takes(blob):
            with contextlib.suppress(OSError):  # a full disk: the cache is no promise
                self.cache.keep(self._fetched(blob, ref), blob)
                fd = self.cache.cached(blob)
        return BucketSource(self._bucket, blob, ref) if fd is None else FileSource(fd)

    def lend(self, blob: Blob, ref: str) -> Path:
        path = self.cache.link(blob)
        if path is None:
            path = self._fetched(blob, ref)
            self.cache.keep_copy(path, blob)
        return path

    def _fetched(self, blob: Blob, ref: str) -> Path:
        """Fetch a blob into a file of the spool, and compare its hash."""
        path = self.cache.new_file()
        try:
            path.touch(0o600, exist_ok=False)
            _check(copied(self._pieces(blob, ref), path), blob, ref)
        except BaseException:
            path.unlink(missing_ok=True)
            raise
        return path

    def _pieces(self, blob: Blob, ref: str) -> Generator[bytes]:
        """Yield the bytes of a blob; a few requests for them run at a time."""
        fetch, running = BucketSource(self._bucket, blob, ref).read, deque[Future[bytes]]()
        if blob.size <= PIECE:  # may be read by a thread that must not wait for another of them
            yield fetch(0, blob.size)
            return
        for start in range(0, blob.size, PIECE):
            running.append(self._executor.submit(fetch, start, min(start + PIECE, blob.size)))
            if len(running) == _PIECES_AT_ONCE:
                yield running.popleft().result()
        while running:
            yield running.popleft().result()

    def start_reading(self, texts: Mapping[str, Blob]) -> Mapping[str, Callable[[], StoredText]]:
        """Read the texts of these artifacts that are small, many at a time."""
        return {
            ref: self._executor.submit(self._small_text, ref, blob).result
            for ref, blob in texts.items()
            if blob.size <= WHOLE_TEXT
        }

    def _small_text(self, ref: str, blob: Blob) -> StoredText:
        with contextlib.closing(self.open(blob, ref)) as source:
            data = source.read(0, blob.size)
        _check(hashlib.sha256(data).hexdigest(), blob, ref)
        return text_in_memory(data)

    def remove(self, kind: Kind, sha256: str) -> None:
        """Remove a blob, and the copy of this machine."""
        self._bucket.delete(f"{kind}/{sha256}")
        self.cache.remove(kind, sha256)

    def stored(self) -> dict[tuple[Kind, str], tuple[int, float]]:
        return {
            (kind, key.removeprefix(f"{kind}/")): (size, written)
            for kind in KINDS
            for key, size, written in self._bucket.objects(kind)
        }

    def probe(self) -> None:
        self._bucket.probe()

    def failing(self) -> str:
        """Return "bucket", "cache" or "disk_full" if no document can be put, else "".

        A fetch writes into the spool of the cache before the bucket gets it.
        """
        try:
            self._bucket.probe()
        except StoreError:
            return "bucket"
        fault = self.cache.failing()
        return "cache" if fault == "store_error" else fault

    def close(self) -> None:
        """Cancel the reads that a search still wants."""
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


class BucketSource:
    """A ByteSource over a blob of a bucket: each read is a request."""

    def __init__(self, bucket: Bucket, blob: Blob, ref: str) -> None:
        self._bucket = bucket
        self._blob = blob
        self._ref = ref

    def read(self, start: int, end: int) -> bytes:
        end = min(end, self._blob.size)
        if start >= end:
            return b""
        data = self._bucket.read_range(_key(self._blob), start, end)
        if data is None:
            raise lost(self._ref)
        # Fewer bytes than the catalogue knows: the object was replaced, or a proxy cut the answer.
        if len(data) != end - start:
            raise _altered(self._ref)
        return data

    def read_cached(self, start: int, end: int) -> bytes:
        """Raise NotCached: a request takes its time."""
        del start, end
        raise NotCached

    def close(self) -> None:
        """Do nothing: nothing is open."""


@dataclass(frozen=True, slots=True)
class BytesSearch:
    """A search over texts in a bucket or folder. One that is lost is left out unless named."""

    limits: StoreLimits
    texts: Mapping[str, Blob]
    query: str
    max_results: int
    are_named: bool

    def open(self) -> Bytes:
        """Open the bytes; the database is not asked."""
        bucket = open_bucket(self.limits) if bucket_url(self.limits.url) else None
        return open_bytes(self.limits, bucket)

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


def open_bytes(limits: StoreLimits, bucket: Bucket | None) -> Bytes:
    """Return the bytes of a bucket, with a cache on this machine, or those of a folder."""
    if bucket is None:
        return Blobs.at(store_folder(limits) or limits.folder)
    # Two buckets of one name at different endpoints must not share copies.
    name = hashlib.sha256(f"{limits.endpoint} {limits.url}".encode()).hexdigest()[:16]
    cache = BlobCache(limits.folder / "buckets" / name, limits.cache_bytes)
    return BucketBytes(bucket, cache, ThreadPoolExecutor(_REQUESTS_AT_ONCE))
