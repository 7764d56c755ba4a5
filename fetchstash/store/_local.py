"""The local store, seen from an event loop: every call does its work in a thread of the store's own."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from anyio import CapacityLimiter

from fetchstash.ranges import Ranges
from fetchstash.store._contract import Facts, Listing, Passage, Removed, StoreLimits
from fetchstash.store._folder import StoreFolder
from fetchstash.store._reader import LocalReader, in_thread

T = TypeVar("T")

THREADS = 8


class LocalStore:
    """An ArtifactStore in a folder, which any number of processes may share. ``open_store`` opens one."""

    def __init__(self, folder: StoreFolder, limiter: CapacityLimiter) -> None:
        self._folder = folder
        self._limiter = limiter

    @property
    def spool(self) -> Path:
        """A private folder on the store's own disk for files on their way into ``put``."""
        return self._folder.spool

    async def put(
        self, raw: Path, text: Path | None, facts: Facts, ranges: Ranges, *, url: str = ""
    ) -> Facts:
        """Keep two files of the spool; they are gone from there, whether or not it works.

        Raises BadArgument for a file that is not in the spool or a text that is no UTF-8, TooLarge,
        StoreError, Busy.
        """
        return await self._do(lambda: self._folder.put(raw, text, facts, ranges, url))

    async def get(self, ref_or_url: str) -> Facts:
        """Return the facts of a reference, or of the run's newest artifact under this URL. Raises UnknownRef or ExpiredRef."""
        return await self._do(lambda: self._folder.get(ref_or_url))

    async def list(self, *, limit: int = 100, offset: int = 0) -> Listing:
        """List this run's artifacts, newest first."""
        return await self._do(lambda: self._folder.list(limit, offset))

    async def open_text(self, ref_or_url: str) -> LocalReader:
        """Open the text. Raises NoText, UnknownRef or ExpiredRef; StoreError where the file is gone or altered."""
        ref, text, ranges = await self._do(lambda: self._folder.open_text(ref_or_url))
        return LocalReader(ref, text, ranges, self._limiter)

    async def open_raw(self, ref_or_url: str) -> Path:
        """Return the path of the raw bytes, to be read at once and never written. Raises as ``open_text``."""
        return await self._do(lambda: self._folder.open_raw(ref_or_url))

    async def search(
        self, query: str, refs: Sequence[str], max_results: int
    ) -> tuple[Passage, ...]:
        """Rank passages over these artifacts, or over the run where ``refs`` is empty, best first."""
        return await self._do(lambda: self._folder.search(query, refs, max_results))

    async def touch(self, ref: str, facts: Facts | None = None) -> Facts:
        """Mark as used now and keep for a whole term from now; ``facts`` replaces the caller's own facts."""
        return await self._do(lambda: self._folder.touch(ref, facts))

    async def pin(self, ref: str, *, pinned: bool = True) -> Facts:
        """Keep outside age, bytes and count until it is unpinned."""
        return await self._do(lambda: self._folder.pin(ref, pinned=pinned))

    async def delete(self, ref: str) -> None:
        """Forget an artifact, and unlink what no other shares."""
        await self._do(lambda: self._folder.delete(ref))

    async def gc(self, *, dry_run: bool = False) -> tuple[Removed, ...]:
        """Apply retention: age, count, bytes; then remove files that no artifact names (their ``artifact_ref`` is the file)."""
        return await self._do(lambda: self._folder.gc(dry_run=dry_run))

    async def aclose(self) -> None:
        """Close; an ephemeral store deletes its run's artifacts first. Closing twice is no error."""
        await in_thread(self._limiter, self._folder.close)

    async def _do(self, work: Callable[[], T]) -> T:
        self._folder.check_usable()
        return await in_thread(self._limiter, work)


async def open_store(limits: StoreLimits) -> LocalStore:
    """Open the store in ``limits.folder``, making it if there is none, and migrating one of an older version.

    Raises StoreError for a folder of another user, a newer version's or a damaged catalogue, and
    Busy.
    """
    limiter = CapacityLimiter(THREADS)
    folder = await in_thread(limiter, lambda: StoreFolder(limits))
    return LocalStore(folder, limiter)
