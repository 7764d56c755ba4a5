"""The promise of any store: what was put is there, whole, until retention removes it."""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Protocol

from fetchstash.store._contract import Facts, Finding, Listing, Removed, Run, SearchResult
from fetchstash.store._reader import TextReader
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
