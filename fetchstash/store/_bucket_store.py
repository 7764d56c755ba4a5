"""The store in a bucket, which any number of replicas may share."""

import hashlib
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Self

from fetchstash.store._bucket import CALLS_AT_ONCE, Bucket, open_bucket
from fetchstash.store._bucket_contents import BucketContents
from fetchstash.store._limits import StoreLimits
from fetchstash.store._protocol import ThreadedStore
from fetchstash.store._threads import Threads, Turn


class BucketStore(ThreadedStore):
    """An ArtifactStore in a bucket."""

    @classmethod
    async def open(
        cls, limits: StoreLimits, bucket: Bucket | None = None, turn: Turn = nullcontext
    ) -> Self:
        """Open the store in the bucket that ``limits.url`` names. Raises StoreError.

        The cache and the spool are in a folder below ``limits.folder``, one for each URL.
        """
        threads = Threads(CALLS_AT_ONCE, turn)
        limits = replace(limits, folder=cache_folder(limits))
        return cls(
            await threads.run(lambda: BucketContents(bucket or open_bucket(limits), limits)),
            threads,
        )


def cache_folder(limits: StoreLimits) -> Path:
    """Return the folder of the cache of a bucket."""
    name = hashlib.sha256(f"{limits.endpoint} {limits.url}".encode()).hexdigest()[:16]
    return limits.folder / "buckets" / name
