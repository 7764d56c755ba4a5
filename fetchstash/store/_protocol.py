"""ArtifactStore, what any store promises, and a base that runs blocking work in threads."""

import os
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from pathlib import Path
from typing import Protocol, TypeVar

from anyio import CancelScope

from fetchstash.errors import NoText, StoreError
from fetchstash.store._contract import Facts, Finding, Listing, Removed, Run, SearchResult
from fetchstash.store._disk import no_text
from fetchstash.store._rank import rank_texts
from fetchstash.store._reader import TextReader
from fetchstash.store._text import ByteSource, StrideIndex
from fetchstash.store._threads import Threads
from fetchstash.text.ranges import Ranges


class ArtifactStore(Protocol):
    """Artifacts of one folder or bucket, seen from one run.

    A reference is valid in every run (it is unguessable); lists, search and clean-up are of this
    run alone. All methods raise StoreError where the store fails, and UnknownRef or ExpiredRef for
    a reference that leads nowhere.
    """

    @property
    def spool(self) -> Path:
        """A private folder for files on their way into ``put``. Old files in it are removed."""
        ...

    async def put(
        self, raw: Path, text: Path | None, facts: Facts, ranges: Ranges, *, url: str = ""
    ) -> Facts:
        """Keep two files of the spool and return the facts, the store's own filled in.

        The files are gone from the spool afterwards. ``url`` is the whole URL by which the artifact
        can be found again; only a keyed hash of it is kept.
        """
        ...

    async def get(self, ref_or_url: str) -> Facts:
        """Return the facts of a reference, or of the run's newest artifact under a URL.

        A URL whose bytes are lost is unknown, so that fetching it again brings them back.
        """
        ...

    async def list(self, *, limit: int = 100, offset: int = 0) -> Listing:
        """List the artifacts of this run, newest first."""
        ...

    async def runs(self) -> tuple[Run, ...]:
        """Return the runs that have artifacts, that of the newest artifact first."""
        ...

    async def open_artifact(self, ref_or_url: str) -> tuple[Facts, TextReader | None]:
        """Return the facts as ``get`` does, and the text, None where there is none."""
        ...

    async def open_text(self, ref_or_url: str) -> TextReader:
        """Open the text. Raises NoText where there is none."""
        ...

    def open_raw(self, ref_or_url: str) -> AbstractAsyncContextManager[Path]:
        """Lend a file with the raw bytes. It is there until the context ends; never write to it."""
        ...

    async def search(self, query: str, refs: Sequence[str], max_results: int) -> SearchResult:
        """Rank passages over these artifacts, or all of the run where ``refs`` is empty."""
        ...

    async def replace_text(
        self, ref: str, text: Path, facts: Facts, ranges: Ranges, *, known: Facts
    ) -> Facts:
        """Give an artifact a new text, a file of the spool, with its facts and ranges.

        The file is gone from the spool afterwards, and the earlier text from the store. ``known``
        are the facts from which the caller made the new text: raises Busy where those of the
        document are others by now.
        """
        ...

    async def touch(self, ref: str, facts: Facts | None = None) -> Facts:
        """Mark as used now and keep for a whole term from now.

        ``facts`` replaces the caller's own facts (a revalidation).
        """
        ...

    async def pin(self, ref: str, *, pinned: bool = True) -> Facts:
        """Keep outside age, bytes and count until it is unpinned."""
        ...

    async def delete(self, ref: str) -> None:
        """Forget an artifact, and remove the bytes that no other artifact shares."""
        ...

    async def gc(self, *, dry_run: bool = False) -> tuple[Removed, ...]:
        """Apply retention (age, count, bytes; least recently used first), then remove orphans."""
        ...

    async def check(self) -> tuple[Finding, ...]:
        """Examine the store, every file's hash included, and change nothing."""
        ...

    async def repair(self) -> tuple[Finding, ...]:
        """Examine the store and mend what can be mended."""
        ...

    async def aclose(self) -> None:
        """Close. An ephemeral store deletes the artifacts of its run first."""
        ...


_MOST_TEXTS = 1_000


class StoreBase(ABC):
    """Completes an ArtifactStore: ranks the texts that it opens, removes and repairs nothing."""

    @abstractmethod
    async def list(self, *, limit: int = 100, offset: int = 0) -> Listing:
        """List the artifacts of this run, newest first."""

    @abstractmethod
    async def get(self, ref_or_url: str) -> Facts:
        """Return the facts of a reference, or of the newest artifact under a URL."""

    async def open_artifact(self, ref_or_url: str) -> tuple[Facts, TextReader | None]:
        """Return the facts, and the text where there is one."""
        facts = await self.get(ref_or_url)
        if facts.extracted_chars is None:
            return facts, None
        return facts, await self.open_text(facts.artifact_ref)

    @abstractmethod
    async def open_text(self, ref_or_url: str) -> TextReader:
        """Open the text. Raises NoText where there is none."""

    async def replace_text(
        self, ref: str, text: Path, facts: Facts, ranges: Ranges, *, known: Facts
    ) -> Facts:
        """Raise StoreError: this store keeps no text but the first, so that OCR is of no use."""
        del text, facts, ranges, known
        raise StoreError(f"This store cannot replace the text of {ref}.", "Use another store.")

    async def search(self, query: str, refs: Sequence[str], max_results: int) -> SearchResult:
        """Rank passages over these artifacts, or the newest 1,000 where ``refs`` is empty."""
        if not refs:
            listing = await self.list(limit=_MOST_TEXTS)
            refs = [facts.artifact_ref for facts in listing.facts]
        readers: dict[str, TextReader] = {}
        for ref in refs:
            with suppress(NoText):
                readers[ref] = await self.open_text(ref)

        def work(cancelled: Callable[[], bool]) -> SearchResult:
            texts = {ref: reader.stored for ref, reader in readers.items()}
            return rank_texts(query, list(texts), texts.get, max_results, cancelled)

        return await Threads().scan(work)

    async def runs(self) -> tuple[Run, ...]:
        """Return nothing: this store does not list its runs."""
        return ()

    async def gc(self, *, dry_run: bool = False) -> tuple[Removed, ...]:  # noqa: ARG002 - the Protocol's
        """Remove nothing: this store has no retention."""
        return ()

    async def check(self) -> tuple[Finding, ...]:
        """Return nothing: this store sees no damage."""
        return ()

    async def repair(self) -> tuple[Finding, ...]:
        """Return nothing: there is nothing to mend."""
        return ()

    async def aclose(self) -> None:  # noqa: B027 - a default, not a gap
        """Do nothing: nothing is open."""


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
