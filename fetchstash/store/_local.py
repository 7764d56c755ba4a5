"""The store in a folder, which any number of processes may share."""

from typing import Self

from fetchstash.store._folder import StoreFolder
from fetchstash.store._limits import StoreLimits
from fetchstash.store._threaded import ThreadedStore
from fetchstash.store._threads import Threads


class LocalStore(ThreadedStore):
    """An ArtifactStore in a folder."""

    @classmethod
    async def open(cls, limits: StoreLimits, threads: Threads | None = None) -> Self:
        """Open the store in ``limits.folder``, making or migrating it. Raises StoreError, Busy."""
        threads = threads or Threads()
        return cls(await threads.run(lambda: StoreFolder(limits)), threads)
