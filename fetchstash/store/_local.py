"""The store in a folder, which any number of processes may share."""

from collections.abc import Callable
from typing import Self, TypeVar

from fetchstash.store._folder import StoreFolder
from fetchstash.store._limits import StoreLimits
from fetchstash.store._look_ups import LookUps
from fetchstash.store._threaded import ThreadedStore
from fetchstash.store._threads import Threads

T = TypeVar("T")


class LocalStore(ThreadedStore):
    """An ArtifactStore in a folder."""

    def __init__(self, contents: StoreFolder, threads: Threads) -> None:
        super().__init__(contents, threads)
        self._look_ups = LookUps()

    @classmethod
    async def open(cls, limits: StoreLimits, threads: Threads | None = None) -> Self:
        """Open the store in ``limits.folder``, making or migrating it. Raises StoreError, Busy."""
        threads = threads or Threads()
        return cls(await threads.run(lambda: StoreFolder(limits)), threads)

    async def aclose(self) -> None:
        """Close. An ephemeral store deletes its artifacts first. Closing twice is no error."""
        await super().aclose()
        self._look_ups.close()

    async def _look_up(self, work: Callable[[], T]) -> T:
        return await self._look_ups.run(self._followed(work))
