"""Bugs that the torture must find: its control."""
# ruff: noqa: SLF001 - a planted fault is reached where it is
# pyright: reportPrivateUsage=false

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path

from fetchstash.errors import StoreError
from fetchstash.store._blobs import Blob, Kind
from fetchstash.store._bucket_blobs import BucketBlobs
from fetchstash.store._bucket_record import StoredBlob

SECONDS = 0.05
"""By which the bytes come after their record."""


def record_before_bytes() -> None:
    """Acknowledge before the bytes are written: they come a moment later, if at all."""
    upload = BucketBlobs._upload

    def start_uploads(
        self: BucketBlobs, files: Mapping[Kind, Path], measured: Sequence[Blob], week: str
    ) -> list[Future[StoredBlob]]:
        results: list[Future[StoredBlob]] = []
        for path, blob in zip(files.values(), measured, strict=True):
            stored = StoredBlob(blob.sha256, blob.size, week, blob.index)
            copy = path.with_name(f"{path.name}.late")
            copy.write_bytes(path.read_bytes())

            def late(copy: Path = copy, stored: StoredBlob = stored) -> None:
                time.sleep(SECONDS)
                with suppress(StoreError):
                    upload(self, copy, stored)

            threading.Thread(target=late).start()
            results.append(Future())
            results[-1].set_result(stored)
        return results

    BucketBlobs.start_uploads = start_uploads  # type: ignore[method-assign]


def confirmed_before_written() -> None:
    """Remember bytes as written before they are: after a failure the next put leaves them out."""
    upload = BucketBlobs._upload

    def early(self: BucketBlobs, path: Path, blob: StoredBlob) -> StoredBlob:
        if blob.key in self._confirmed:
            return blob
        try:
            return upload(self, path, blob)
        finally:
            self._confirm(blob.key)

    BucketBlobs._upload = early  # type: ignore[method-assign]


def key_without_hash() -> None:
    """Name bytes by their size: different bytes of one size take each other's place."""
    StoredBlob.key = property(lambda self: f"blobs/{self.week}/{self.size}")  # type: ignore[assignment]


BUGS: Mapping[str, Callable[[], None]] = {
    "record before bytes": record_before_bytes,
    "key without hash": key_without_hash,
    "confirmed before written": confirmed_before_written,
}


def plant(bug: str) -> None:
    """Put a bug into this process."""
    BUGS[bug]()
