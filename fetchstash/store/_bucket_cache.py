"""A bounded copy of blobs on the local disk, named by SHA-256 and verified before it is used."""

import contextlib
import os
import time
from dataclasses import replace
from pathlib import Path
from threading import Lock

from fetchstash.errors import StoreError
from fetchstash.store._blobs import Blob, Blobs, Kind
from fetchstash.store._disk import private_folder

_LARGEST_SHARE = 0.5
"""A blob that would take more of the cache is not kept."""

_ROOM_SHARE = 0.9
"""What is left when the cache was full, so that it is not cleared at every put."""

_COUNTED_SHARE = 0.1
"""So much may come in before the files are counted again: other processes write here, too."""


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
        if self._bytes > self._max_bytes or uncounted > self._max_bytes * _COUNTED_SHARE:
            self._make_room()

    def keep_copy(self, path: Path, blob: Blob) -> None:
        """Keep a blob that the cache takes, and leave its file of the spool where it is."""
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
        """Return a file of the spool with a blob, None if the cache has it not."""
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
