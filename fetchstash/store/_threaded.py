"""A store that blocks, seen from an event loop: every call does its work in a thread."""

import os
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Protocol, TypeVar

from anyio import CancelScope

from fetchstash.errors import StoreError
from fetchstash.store._contract import Facts, Finding, Listing, Removed, Run, SearchResult
from fetchstash.store._disk import no_text
from fetchstash.store._reader import TextReader
from fetchstash.store._stride import ByteSource, StrideIndex
from fetchstash.store._threads import Threads
from fetchstash.text.ranges import Ranges

T = TypeVar("T")

Text = tuple[ByteSource, StrideIndex, Ranges]
"""A text that is open: its bytes, their index, and its ranges."""


class Contents(Protocol):
    """The artifacts of a folder or a bucket, seen from one run. All of it blocks."""

    @property
    def spool(self) -> Path:
        """The folder for files on their way in."""
        ...

    def follow(self) -> None:
        """Open the folder anew if somebody moved or deleted it since."""
        ...

    def put(self, raw: Path, text: Path | None, facts: Facts, ranges: Ranges, url: str) -> Facts:
        """Keep two files of the spool."""
        ...

    def get(self, ref_or_url: str) -> Facts:
        """Return the facts of an artifact."""
        ...

    def list(self, limit: int, offset: int) -> Listing:
        """Return a page of the run's artifacts, newest first."""
        ...

    def runs(self) -> tuple[Run, ...]:
        """Return the runs that have artifacts."""
        ...

    def open_artifact(self, ref_or_url: str) -> tuple[Facts, Text | None]:
        """Return the facts of an artifact, and its text where it has one."""
        ...

    def lend_raw(self, ref_or_url: str) -> Path:
        """Return a file with the raw bytes, to be handed to ``take_back``."""
        ...

    def take_back(self, path: Path) -> None:
        """Remove a file that was lent."""
        ...

    def search(
        self, query: str, refs: Sequence[str], max_results: int, cancelled: Callable[[], bool]
    ) -> SearchResult:
        """Rank passages over these artifacts, or over the run."""
        ...

    def replace_text(
        self, ref: str, text: Path, facts: Facts, ranges: Ranges, known: Facts
    ) -> Facts:
        """Give an artifact a new text."""
        ...

    def touch(self, ref: str, facts: Facts | None) -> Facts:
        """Keep an artifact for a whole term from now."""
        ...

    def pin(self, ref: str, *, pinned: bool) -> Facts:
        """Pin an artifact, or lift its pin."""
        ...

    def delete(self, ref: str) -> None:
        """Forget an artifact."""
        ...

    def gc(self, *, dry_run: bool) -> tuple[Removed, ...]:
        """Apply retention."""
        ...

    def check(self) -> tuple[Finding, ...]:
        """Examine the store and change nothing."""
        ...

    def repair(self) -> tuple[Finding, ...]:
        """Examine the store and mend what can be mended."""
        ...

    def close(self) -> None:
        """Close. An ephemeral store removes its run."""
        ...


class ThreadedStore:
    """An ArtifactStore over contents that block."""

    def __init__(self, contents: Contents, threads: Threads) -> None:
        self._contents = contents
        self._threads = threads
        self._process = os.getpid()
        self._closed = False

    @property
    def spool(self) -> Path:
        """A private folder for files on their way into ``put``. Raises StoreError."""
        self._check_usable()
        return self._contents.spool

    async def put(
        self, raw: Path, text: Path | None, facts: Facts, ranges: Ranges, *, url: str = ""
    ) -> Facts:
        """Keep two files of the spool; they are gone from there, whether or not it works.

        Raises BadArgument for a file that is not in the spool or a text that is no UTF-8, TooLarge,
        StoreError, Busy.
        """
        return await self._run(lambda: self._contents.put(raw, text, facts, ranges, url))

    async def get(self, ref_or_url: str) -> Facts:
        """Return the facts of a reference, or of the run's newest artifact under a URL."""
        return await self._look_up(lambda: self._contents.get(ref_or_url))

    async def list(self, *, limit: int = 100, offset: int = 0) -> Listing:
        """List the artifacts of this run, newest first."""
        return await self._run(lambda: self._contents.list(limit, offset))

    async def runs(self) -> tuple[Run, ...]:
        """Return the runs that have artifacts, that of the newest artifact first."""
        return await self._run(self._contents.runs)

    async def open_artifact(self, ref_or_url: str) -> tuple[Facts, TextReader | None]:
        """Return the facts, and the text. Raises StoreError where its file is gone or altered."""
        facts, text = await self._look_up(lambda: self._contents.open_artifact(ref_or_url))
        return facts, TextReader(facts.artifact_ref, *text, self._threads) if text else None

    async def open_text(self, ref_or_url: str) -> TextReader:
        """Open the text. Raises NoText, and StoreError where the file is gone or altered."""
        facts, reader = await self.open_artifact(ref_or_url)
        if reader is None:
            raise no_text(facts.artifact_ref)
        return reader

    @asynccontextmanager
    async def open_raw(self, ref_or_url: str) -> AsyncGenerator[Path]:
        """Lend a file with the raw bytes, which stays if the artifact goes."""
        path = await self._run(lambda: self._contents.lend_raw(ref_or_url))
        try:
            yield path
        finally:
            with CancelScope(shield=True):
                await self._threads.run(lambda: self._contents.take_back(path))

    async def search(self, query: str, refs: Sequence[str], max_results: int) -> SearchResult:
        """Rank passages over these artifacts, or over the run where ``refs`` is empty."""
        self._check_usable()

        def work(cancelled: Callable[[], bool]) -> SearchResult:
            self._contents.follow()
            return self._contents.search(query, refs, max_results, cancelled)

        return await self._threads.scan(work)

    async def replace_text(
        self, ref: str, text: Path, facts: Facts, ranges: Ranges, *, known: Facts
    ) -> Facts:
        """Give an artifact a new text. Raises Busy where it was replaced since ``known``."""
        return await self._run(lambda: self._contents.replace_text(ref, text, facts, ranges, known))

    async def touch(self, ref: str, facts: Facts | None = None) -> Facts:
        """Mark as used now and keep for a whole term; ``facts`` replaces the caller's own facts."""
        return await self._run(lambda: self._contents.touch(ref, facts))

    async def pin(self, ref: str, *, pinned: bool = True) -> Facts:
        """Keep outside age, bytes and count until it is unpinned."""
        return await self._run(lambda: self._contents.pin(ref, pinned=pinned))

    async def delete(self, ref: str) -> None:
        """Forget an artifact."""
        await self._run(lambda: self._contents.delete(ref))

    async def gc(self, *, dry_run: bool = False) -> tuple[Removed, ...]:
        """Apply retention: age, count, bytes; then remove files without an artifact.

        The ``artifact_ref`` of such a file is its name.
        """
        return await self._run(lambda: self._contents.gc(dry_run=dry_run))

    async def check(self) -> tuple[Finding, ...]:
        """Examine the store and change nothing."""
        return await self._run(self._contents.check)

    async def repair(self) -> tuple[Finding, ...]:
        """Examine the store and mend what can be mended."""
        return await self._run(self._contents.repair)

    async def aclose(self) -> None:
        """Close. An ephemeral store deletes its artifacts first. Closing twice is no error."""
        self._closed = True
        await self._threads.run(self._contents.close)

    def _check_usable(self) -> None:
        """Raise StoreError after ``aclose`` or in a forked process."""
        if self._closed:
            raise StoreError("The store is closed.", "Open it again.")
        if os.getpid() != self._process:
            what = "The store was opened before this process was forked."
            raise StoreError(what, "Open a store in each process.")

    async def _run(self, work: Callable[[], T]) -> T:
        """Run work in a thread, after opening the folder anew if it was moved or deleted."""
        return await self._threads.run(self._followed(work))

    async def _look_up(self, work: Callable[[], T]) -> T:
        """Run work that looks an artifact up. It may wait for a network."""
        return await self._run(work)

    def _followed(self, work: Callable[[], T]) -> Callable[[], T]:
        self._check_usable()

        def followed() -> T:
            self._contents.follow()
            return work()

        return followed
