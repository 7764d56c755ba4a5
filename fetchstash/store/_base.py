"""Defaults of a store: what a program's own store may leave out."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from fetchstash.errors import NoText, StoreError
from fetchstash.store._contract import Facts, Finding, Listing, Removed, Run, SearchResult
from fetchstash.store._rank import rank_texts
from fetchstash.store._reader import TextReader
from fetchstash.store._threads import Threads
from fetchstash.text.ranges import Ranges

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
