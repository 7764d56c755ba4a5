"""Where the bytes of a team's artifacts are: in a folder that all replicas see, or in a bucket.

``KIND/SHA256`` is the name of a blob in either. Which of them are there, and which may go, is the
catalogue's to say (_team.py).
"""

import contextlib
import hashlib
import os
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path

from fetchstash.errors import StoreError
from fetchstash.store._blobs import KINDS, Blob, Blobs, Kind
from fetchstash.store._bucket import PART, Bucket, open_bucket
from fetchstash.store._bucket_cache import QUICKLY_HASHED, BlobCache
from fetchstash.store._contract import SearchResult
from fetchstash.store._limits import StoreLimits, bucket_url, store_folder
from fetchstash.store._ranged import RangedSource
from fetchstash.store._search import RunTexts, SearchIndex
from fetchstash.store._text import (
    ByteSource,
    BytesSource,
    FileSource,
    StoredText,
    StrideIndex,
    text_by_bytes,
)

WHOLE_TEXT = 2**20
"""A search reads a text of so many bytes at once."""

_DOWNLOAD = 2**20
_REQUESTS_AT_ONCE = 16


class FolderBytes:
    """The blobs of one tenant in a folder. All of it blocks.

    ``index`` is of the texts searched last. What is lost raises StoreError.
    """

    def __init__(self, blobs: Blobs, index: SearchIndex) -> None:
        self.blobs = blobs
        self.index = index

    @classmethod
    def at(cls, folder: Path) -> "FolderBytes":
        """Return the blobs of a folder, which is made if it is missing."""
        blobs = Blobs(folder.resolve())
        blobs.make_folders()
        blobs.sweep_spool(time.time())
        return cls(blobs, SearchIndex())

    @property
    def spool(self) -> Path:
        """The folder for files on their way in. It is made anew if somebody removed it."""
        if not self.blobs.spool.is_dir():
            self.blobs.make_folders()
        return self.blobs.spool

    def write(self, files: Mapping[Path, Blob]) -> None:
        """Give files of the spool a second name among the blobs, which is on the disk then."""
        moves: list[tuple[Path, Blob]] = []
        for path, blob in files.items():
            link = self._new_file()
            link.hardlink_to(path)
            moves.append((link, blob))
        with self.blobs.published(moves):
            pass

    def are_there(self, blobs: Sequence[Blob]) -> bool:
        """Return whether all of these are there and not altered."""
        try:
            for blob in blobs:
                os.close(self.blobs.open(blob))
        except (FileNotFoundError, StoreError):
            return False
        return True

    def open(self, blob: Blob, ref: str) -> ByteSource:
        try:
            return FileSource(self.blobs.open(blob))
        except FileNotFoundError:
            raise lost(ref) from None

    def lend(self, blob: Blob, ref: str) -> Path:
        """Return a second name in the spool, which stays if the artifact goes meanwhile."""
        path, link = self.blobs.path(blob.kind, blob.sha256), self._new_file()
        try:
            os.close(self.blobs.open(blob))
        except FileNotFoundError:
            raise lost(ref) from None
        with contextlib.suppress(OSError):  # a full disk, or a file system without links
            link.hardlink_to(path)
            return link
        return path

    def start_reading(self, texts: Mapping[str, Blob]) -> Mapping[str, Callable[[], StoredText]]:
        """Begin nothing: a disk is quick."""
        del texts
        return {}

    def remove(self, kind: Kind, sha256: str) -> None:
        self.blobs.remove(kind, sha256)

    def sizes(self) -> dict[tuple[Kind, str], int]:
        return {(kind, name): size for kind, name, size in self.blobs.files()}

    def probe(self) -> None:
        """Write and remove a few bytes."""
        path = self._new_file()
        path.write_bytes(b"probe")
        path.unlink()

    def close(self) -> None:
        """Do nothing: nothing is open."""

    def _new_file(self) -> Path:
        return self.spool / f"open-{secrets.token_hex(8)}"


class BucketBytes:
    """The same in a bucket, with a bounded cache on this machine."""

    def __init__(self, bucket: Bucket, cache: BlobCache, executor: Executor) -> None:
        self._bucket = bucket
        self._cache = cache
        self._executor = executor
        self.blobs = cache.blobs
        self.index = SearchIndex()

    @property
    def spool(self) -> Path:
        return self._cache.spool

    def write(self, files: Mapping[Path, Blob]) -> None:
        """Write files side by side. The bucket has confirmed them when this returns."""
        uploads = [self._executor.submit(self._upload, *item) for item in files.items()]
        wait(uploads)
        for upload in uploads:
            upload.result()
        for path, blob in files.items():
            self._cache.keep_copy(path, blob.kind, blob.sha256, blob.size)

    def _upload(self, path: Path, blob: Blob) -> None:
        self._bucket.write(_key(blob), path.read_bytes() if blob.size <= PART else path)

    def are_there(self, blobs: Sequence[Blob]) -> bool:
        return all(self._bucket.size(_key(blob)) == blob.size for blob in blobs)

    def open(self, blob: Blob, ref: str) -> ByteSource:
        """Return the copy of this machine, or ranges of the object."""
        fd = self._cache.open(blob.kind, blob.sha256, most=QUICKLY_HASHED)
        if fd is not None:
            return FileSource(fd)
        filling = self._cache.filling(blob.kind, blob.sha256, blob.size)
        return RangedSource(self._fetcher(blob, ref), blob.size, self._executor, filling)

    def lend(self, blob: Blob, ref: str) -> Path:
        """Return a file of the spool with the bytes."""
        path = self._cache.link(blob.kind, blob.sha256)
        if path:
            return path
        path = self._cache.new_file()
        filling = self._cache.filling(blob.kind, blob.sha256, 0)
        source = RangedSource(self._fetcher(blob, ref), blob.size, self._executor, filling)
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
        self._cache.keep_copy(path, blob.kind, blob.sha256, blob.size)
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
        fd = self._cache.open("text", blob.sha256)
        if fd is None:
            data = self._fetcher(blob, ref)(0, blob.size)
            _check(hashlib.sha256(data).hexdigest(), blob, ref)
            self._cache.filling("text", blob.sha256, blob.size)(0, data)
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
        self._cache.remove(kind, sha256)

    def sizes(self) -> dict[tuple[Kind, str], int]:
        return {
            (kind, key.removeprefix(f"{kind}/")): size
            for kind in KINDS
            for key, size in self._bucket.sizes(kind)
        }

    def probe(self) -> None:
        """Write, read and remove one object."""
        self._bucket.probe()

    def close(self) -> None:
        """Give up what is being read ahead."""
        self._executor.shutdown(wait=False, cancel_futures=True)


Bytes = FolderBytes | BucketBytes


def _key(blob: Blob) -> str:
    return f"{blob.kind}/{blob.sha256}"


def lost(ref: str) -> StoreError:
    """Return the error for an artifact whose bytes are gone."""
    return StoreError(f"The bytes of the artifact {ref} are lost.", "Fetch its document again.")


def _check(sha256: str, blob: Blob, ref: str) -> None:
    if sha256 != blob.sha256:
        raise _altered(ref)


def _altered(ref: str) -> StoreError:
    what = f"The bytes of the artifact {ref} were altered after they were stored."
    return StoreError(what, "Fetch its document again.")


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
        """The place of the bytes."""
        return self.limits.url, self.limits.folder

    def open(self) -> Bytes:
        """Open the bytes; the database is not asked."""
        if bucket_url(self.limits.url):
            return bucket_bytes(self.limits, open_bucket(self.limits))
        return FolderBytes.at(store_folder(self.limits) or self.limits.folder)

    def run(self, opened: Bytes, cancelled: Callable[[], bool]) -> SearchResult:
        """Search."""
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
