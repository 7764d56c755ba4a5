"""A bounded copy of blobs on the local disk, named by SHA-256 and verified before it is used."""

import contextlib
import hashlib
import os
import time
from pathlib import Path
from threading import Lock

from fetchstash.errors import BadArgument, StoreError
from fetchstash.store._blobs import Blob, Blobs, Kind
from fetchstash.store._disk import private_folder

_LARGEST_SHARE = 0.5
"""A blob that would take more of the cache is not kept."""

_ROOM_SHARE = 0.9
"""What is left when the cache was full, so that it is not cleared at every put."""

_COUNTED_SHARE = 0.1
"""So much may come in before the files are counted again: other processes write here, too."""

QUICKLY_HASHED = 16 * 2**20
"""Bytes that are hashed in some milliseconds: a larger file of an earlier process takes longer than
a request for a part of it."""


class BlobCache(Blobs):
    """Files of one bucket and prefix. Several processes may share the folder.

    A file is hashed before its first use by a process, and again when its time or size changed.
    """

    def __init__(self, folder: Path, max_bytes: int) -> None:
        private_folder(folder)
        super().__init__(folder.resolve())
        self.make_folders()
        self._max_bytes = max_bytes
        self._lock = Lock()
        self._verified: dict[tuple[Kind, str], Blob] = {}
        self._used: dict[tuple[Kind, str], float] = {}
        self._bytes = self._counted = sum(size for _, _, size in self.files())
        self.sweep_spool(time.time())

    def keep(self, path: Path, blob: Blob) -> None:
        """Move a measured file of the spool into the cache, or remove it if it is too large."""
        if blob.size > self._max_bytes * _LARGEST_SHARE:
            path.unlink(missing_ok=True)
            return
        path.replace(self.path(blob.kind, blob.sha256))
        with self._lock:
            self._verified[blob.kind, blob.sha256] = blob
            self._used[blob.kind, blob.sha256] = time.time()
            self._bytes += blob.size
            uncounted = self._bytes - self._counted
        if self._bytes > self._max_bytes or uncounted > self._max_bytes * _COUNTED_SHARE:
            self._make_room()

    def cached(self, kind: Kind, sha256: str, *, most: int | None = None) -> int | None:
        """Open a blob and return its descriptor, None if the cache has it not, or not whole.

        ``most`` bytes are hashed for it.
        """
        try:
            blob = self._verified.get((kind, sha256)) or self._inspected(kind, sha256, most)
            fd = self.descriptor(blob) if blob else None
        except FileNotFoundError:
            return None
        except (BadArgument, OSError, StoreError):  # altered, or not readable
            self.remove(kind, sha256)
            return None
        self._used[kind, sha256] = time.time()
        return fd

    def link(self, kind: Kind, sha256: str) -> Path | None:
        """Return a file of the spool with a blob, None if the cache has it not."""
        fd = self.cached(kind, sha256)
        if fd is None:
            return None
        os.close(fd)
        path = self.new_file()
        try:
            path.hardlink_to(self.path(kind, sha256))
        except OSError:  # removed meanwhile, or a file system without links
            return None
        return path

    def keep_copy(self, path: Path, kind: Kind, sha256: str, size: int) -> None:
        """Keep a blob that was verified, and leave its file of the spool where it is."""
        copy = self.new_file()
        with contextlib.suppress(OSError):
            copy.hardlink_to(path)
            self.keep(copy, Blob(kind, sha256, size, copy.stat().st_mtime_ns))

    def remove(self, kind: Kind, sha256: str) -> None:
        """Forget a blob."""
        with self._lock:
            self._verified.pop((kind, sha256), None)
            self._used.pop((kind, sha256), None)
        with contextlib.suppress(OSError):
            super().remove(kind, sha256)

    def filling(self, kind: Kind, sha256: str, size: int) -> "Filling":
        """Return what keeps a blob that is read from its start in order."""
        wanted = 0 < size <= self._max_bytes * _LARGEST_SHARE
        return Filling(self, kind, sha256, size, wanted=wanted)

    def _inspected(self, kind: Kind, sha256: str, most: int | None) -> Blob | None:
        path = self.path(kind, sha256)
        if most is not None and path.stat().st_size > most:
            return None
        blob = self.inspect(kind, sha256)
        if blob.sha256 != sha256:
            raise StoreError(f"The file {path} was altered.", "Remove it.")
        self._verified[kind, sha256] = blob
        return blob

    def _make_room(self) -> None:
        """Count the files, and remove the least recently used where they are too many."""
        with self._lock:
            files: list[tuple[float, Kind, str, int]] = []
            for kind, name, size in self.files():
                with contextlib.suppress(OSError):
                    used = self._used.get((kind, name))
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


class Filling:
    """A blob on its way into the cache, as far as it was read without a gap."""

    def __init__(
        self, cache: BlobCache, kind: Kind, sha256: str, size: int, *, wanted: bool
    ) -> None:
        self._cache = cache
        self._kind: Kind = kind
        self._sha256 = sha256
        self._size = size
        self._next = 0 if wanted else -1
        self._digest = hashlib.sha256()
        self._path: Path | None = None
        self._begun: list[bytes] = []

    def __call__(self, start: int, data: bytes) -> None:
        """Take bytes that begin at ``start``. A full disk ends it: the cache is no promise."""
        if start != self._next:
            return
        self._next += len(data)
        self._begun.append(data)
        if self._next < self._size and len(self._begun) == 1 and not self._path:
            return  # a slice at the beginning reads no more
        try:
            self._path = self._path or self._cache.new_file()
            with self._path.open("ab") as file:
                for part in self._begun:
                    file.write(part)
                    self._digest.update(part)
            self._begun.clear()
            if self._next == self._size:
                self._finish(self._path)
        except OSError:
            self.close()

    def close(self) -> None:
        """Remove what is not whole."""
        self._next = -1
        self._begun.clear()
        if self._path:
            self._path.unlink(missing_ok=True)
            self._path = None

    def _finish(self, path: Path) -> None:
        if self._digest.hexdigest() == self._sha256:
            path.chmod(0o600)
            self._cache.keep_copy(path, self._kind, self._sha256, self._size)
        self.close()
