"""The local store, seen from an event loop: every call does its work in a thread of the store."""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Self, TypeVar

from anyio import CancelScope

from fetchstash.ranges import Ranges
from fetchstash.store._contract import (
    Facts,
    Finding,
    Listing,
    Removed,
    Run,
    SearchResult,
    StoreLimits,
)
from fetchstash.store._folder import StoreFolder
from fetchstash.store._health import check_folder, repair_folder
from fetchstash.store._reader import TextReader
from fetchstash.store._threads import Threads

T = TypeVar("T")


class LocalStore:
    """An ArtifactStore in a folder, which any number of processes may share."""

    def __init__(self, folder: StoreFolder, threads: Threads) -> None:
        self._folder = folder
        self._threads = threads

    @classmethod
    async def open(cls, limits: StoreLimits) -> Self:
        """Open the store in ``limits.folder``, making or migrating it. Raises StoreError, Busy."""
        threads = Threads()
        return cls(await threads.run(lambda: StoreFolder(limits)), threads)

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
        return await self._run(lambda: self._folder.put(raw, text, facts, ranges, url))

    async def get(self, ref_or_url: str) -> Facts:
        """Return the facts of a reference, or of the run's newest artifact under a URL."""
        return await self._run(lambda: self._folder.get(ref_or_url))

    async def list(self, *, limit: int = 100, offset: int = 0) -> Listing:
        """List the artifacts of this run, newest first."""
        return await self._run(lambda: self._folder.list(limit, offset))

    async def runs(self) -> tuple[Run, ...]:
        """Return the runs that have artifacts, that of the newest artifact first."""
        return await self._run(self._folder.runs)

    async def open_text(self, ref_or_url: str) -> TextReader:
        """Open the text. Raises NoText, and StoreError where the file is gone or altered."""
        ref, source, index, ranges = await self._run(lambda: self._folder.open_text(ref_or_url))
        return TextReader(ref, source, index, ranges, self._threads)

    @asynccontextmanager
    async def open_raw(self, ref_or_url: str) -> AsyncGenerator[Path]:
        """Lend a file with the raw bytes, which stays if the artifact goes."""
        path = await self._run(lambda: self._folder.lend_raw(ref_or_url))
        try:
            yield path
        finally:
            with CancelScope(shield=True):
                await self._threads.run(lambda: self._folder.take_back(path))

    async def search(self, query: str, refs: Sequence[str], max_results: int) -> SearchResult:
        """Rank passages over these artifacts, or over the run where ``refs`` is empty."""
        self._folder.check_usable()

        def work(cancelled: Callable[[], bool]) -> SearchResult:
            self._folder.follow()
            return self._folder.search(query, refs, max_results, cancelled)

        return await self._threads.scan(work)

    async def replace_text(
        self, ref: str, text: Path, facts: Facts, ranges: Ranges, *, known: Facts
    ) -> Facts:
        """Give an artifact a new text. Raises Busy where it was replaced since ``known``."""
        return await self._run(lambda: self._folder.replace_text(ref, text, facts, ranges, known))

    async def touch(self, ref: str, facts: Facts | None = None) -> Facts:
        """Mark as used now and keep for a whole term; ``facts`` replaces the caller's own facts."""
        return await self._run(lambda: self._folder.touch(ref, facts))

    async def pin(self, ref: str, *, pinned: bool = True) -> Facts:
        """Keep outside age, bytes and count until it is unpinned."""
        return await self._run(lambda: self._folder.pin(ref, pinned=pinned))

    async def delete(self, ref: str) -> None:
        """Forget an artifact, and unlink the files that no other shares."""
        await self._run(lambda: self._folder.delete(ref))

    async def gc(self, *, dry_run: bool = False) -> tuple[Removed, ...]:
        """Apply retention: age, count, bytes; then remove files without an artifact.

        The ``artifact_ref`` of such a file is its name.
        """
        return await self._run(lambda: self._folder.gc(dry_run=dry_run))

    async def check(self) -> tuple[Finding, ...]:
        """Examine the store, every file's hash included, and change nothing."""
        return await self._run(lambda: check_folder(self._folder.path))

    async def repair(self) -> tuple[Finding, ...]:
        """Examine the store and mend what can be mended."""
        return await self._run(lambda: repair_folder(self._folder.path))

    async def aclose(self) -> None:
        """Close. An ephemeral store deletes its artifacts first. Closing twice is no error."""
        await self._threads.run(self._folder.close)

    async def _run(self, work: Callable[[], T]) -> T:
        """Run work in a thread, after opening the folder anew if it was moved or deleted."""
        self._folder.check_usable()

        def followed() -> T:
            self._folder.follow()
            return work()

        return await self._threads.run(followed)
