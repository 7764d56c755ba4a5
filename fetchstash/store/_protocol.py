"""ArtifactStore: the contract of every store, with its optional parts."""

from abc import abstractmethod
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, suppress
from pathlib import Path
from typing import Protocol

from fetchstash.errors import NoText, StoreError
from fetchstash.store._contract import Facts, Finding, Listing, Removed, Run, SearchResult, Usage
from fetchstash.store._limits import View
from fetchstash.store._reader import TextReader
from fetchstash.store._search import RunTexts, SearchIndex
from fetchstash.store._threads import Threads
from fetchstash.text.ranges import Ranges

_MOST_TEXTS = 1_000


class ArtifactStore(Protocol):
    """Artifacts of one folder or bucket, seen from one run.

    A reference is valid in every run (it is unguessable); lists, search and clean-up are of this
    run alone. All methods raise StoreError where the store fails, and UnknownRef or ExpiredRef for
    a reference that leads nowhere. A store that derives from this may leave out what has a default.
    """

    @property
    def spool(self) -> Path:
        """A private folder for files on their way into ``put``. Old files in it are removed."""
        ...

    @abstractmethod
    async def put(
        self, raw: Path, text: Path | None, facts: Facts, ranges: Ranges, *, url: str = ""
    ) -> Facts:
        """Keep two files of the spool and return the facts, the store's own filled in.

        The files are gone from the spool afterwards. They may be one file under two names. Whoever
        has hashed the raw bytes gives ``facts.sha256`` and ``facts.size_bytes``. ``url`` is the
        whole URL by which the artifact can be found again; only a keyed hash of it is kept.
        """

    @abstractmethod
    async def get(self, ref_or_url: str) -> Facts:
        """Return the facts of a reference, or of the run's newest artifact under a URL.

        All spellings of a URL are one: ``fetchstash.text.urls.key_of`` says which. A URL whose
        bytes are lost is unknown, so that fetching it again brings them back.
        """

    @abstractmethod
    async def list(self, *, limit: int = 100, offset: int = 0) -> Listing:
        """List the artifacts of this run, the last fetched first."""

    async def runs(self) -> tuple[Run, ...]:
        """Return the runs that have artifacts, that of the newest artifact first. Default: none."""
        return ()

    async def usage(self, *, own: bool = False) -> Usage:  # noqa: ARG002 - of one run
        """Return how much is kept: in all runs, or with ``own`` in the run of puts alone."""
        listed = (await self.list(limit=(await self.list(limit=0)).total)).facts
        size = sum(facts.size_bytes + (facts.text_bytes or 0) for facts in listed)
        expiries = [facts.expires_at.timestamp() for facts in listed if facts.expires_at]
        return Usage(len(listed), size, min(expiries, default=0.0))

    def seen_from(self, view: View) -> "ArtifactStore":
        """Return the same store with another view; it closes with this one."""
        raise StoreError(f"This store has no run {view.puts}.", "Use another store.")

    async def open_artifact(self, ref_or_url: str) -> tuple[Facts, TextReader | None]:
        """Return the facts as ``get`` does, and the text, None where there is none."""
        facts = await self.get(ref_or_url)
        if facts.extracted_chars is None:
            return facts, None
        return facts, await self.open_text(facts.artifact_ref)

    @abstractmethod
    async def open_text(self, ref_or_url: str) -> TextReader:
        """Open the text. Raises NoText where there is none."""

    @abstractmethod
    def open_raw(self, ref_or_url: str) -> AbstractAsyncContextManager[Path]:
        """Yield a file with the raw bytes, valid until the context ends; never write to it."""

    async def search(self, query: str, refs: Sequence[str], max_results: int) -> SearchResult:
        """Rank passages over these artifacts, or all of the run where ``refs`` is empty.

        Default: over its newest 1,000.
        """
        if not refs:
            listing = await self.list(limit=_MOST_TEXTS)
            refs = [facts.artifact_ref for facts in listing.facts]
        readers: dict[str, TextReader] = {}
        for ref in refs:
            with suppress(NoText):
                readers[ref] = await self.open_text(ref)

        texts = RunTexts({ref: ref for ref in readers})
        return await Threads().rank(
            lambda cancelled: SearchIndex().search(
                query, texts, lambda ref: readers[ref].stored, max_results, cancelled
            )
        )

    async def replace_text(
        self, ref: str, text: Path, facts: Facts, ranges: Ranges, *, known: Facts
    ) -> Facts:
        """Give an artifact a new text, a file of the spool, with its facts and ranges.

        The file is gone from the spool afterwards, and the earlier text from the store. ``known``
        are the facts from which the caller made the new text: raises Busy where those of the
        document are others by now. Default: raises StoreError, so that OCR is of no use.
        """
        del text, facts, ranges, known
        raise StoreError(f"This store cannot replace the text of {ref}.", "Use another store.")

    @abstractmethod
    async def touch(self, ref: str, facts: Facts | None = None) -> Facts:
        """Mark as used now, and restart its term.

        ``facts`` replaces the caller's own facts (a revalidation).
        """

    @abstractmethod
    async def pin(self, ref: str, *, pinned: bool = True) -> Facts:
        """Exempt from the limits on age, bytes and count until it is unpinned."""

    @abstractmethod
    async def delete(self, ref: str) -> None:
        """Forget an artifact, and remove the bytes that no other artifact shares."""

    async def gc(self, *, dry_run: bool = False) -> tuple[Removed, ...]:  # noqa: ARG002 - of no use
        """Apply retention (age, count, bytes; least recently used first), then remove orphans.

        Default: remove nothing.
        """
        return ()

    async def check(self) -> tuple[Finding, ...]:
        """Examine the store, every file's hash included, and change nothing. Default: no damage."""
        return ()

    async def repair(self) -> tuple[Finding, ...]:
        """Examine the store and mend what can be mended. Default: nothing."""
        return ()

    async def aclose(self) -> None:
        """Close. An ephemeral store deletes the artifacts of its run first."""
        return
