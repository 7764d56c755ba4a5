"""A store in memory, for tests and for programs that keep nothing. Only its spool is a folder."""

import hashlib
import secrets
import tempfile
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from copy import copy
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Self

from fetchstash.errors import BadArgument, ExpiredRef, TooLarge, UnknownRef
from fetchstash.store._contract import (
    REF_PREFIX,
    Facts,
    Listing,
    Removed,
    SearchResult,
    Usage,
    keep_store_facts,
    refuse_changed,
    restamp,
    stamp,
)
from fetchstash.store._disk import larger_than_the_store, no_text, not_stored
from fetchstash.store._limits import (
    ALL_RUNS,
    DEFAULT_RUN,
    Candidate,
    StoreLimits,
    Total,
    View,
    plan,
)
from fetchstash.store._protocol import StoreBase
from fetchstash.store._reader import TextReader
from fetchstash.store._retention import report
from fetchstash.store._search import RunTexts, SearchIndex
from fetchstash.store._text import BytesSource, StrideIndex, text_in_memory
from fetchstash.store._threads import Threads
from fetchstash.system.processes import remove_tree
from fetchstash.text.ranges import Ranges


@dataclass
class _Artifact:
    run: str
    url: str
    raw: bytes
    text: bytes | None
    index: StrideIndex | None
    facts: Facts
    ranges: Ranges
    used: int

    @property
    def size(self) -> int:
        return len(self.raw) + len(self.text or b"")


@dataclass
class _Contents:
    """What all views of a store share."""

    artifacts: dict[str, _Artifact] = field(default_factory=dict[str, _Artifact])
    expired: set[str] = field(default_factory=set[str])
    uses: int = 0
    index: SearchIndex = field(default_factory=SearchIndex)


class MemoryStore(StoreBase):
    """An ArtifactStore in memory."""

    def __init__(self, limits: StoreLimits, threads: Threads) -> None:
        self._limits = limits
        self._view = View.of(limits.run)
        self._contents = _Contents()
        self._threads = threads
        self._spool = Path(tempfile.mkdtemp(prefix="fetchstash-"))

    @property
    def spool(self) -> Path:
        """A private temporary folder, removed by ``aclose``."""
        return self._spool

    async def put(
        self, raw: Path, text: Path | None, facts: Facts, ranges: Ranges, *, url: str = ""
    ) -> Facts:
        data, words = await self._threads.run(lambda: self._take(raw, text))
        index = None if words is None else await self._threads.run(lambda: StrideIndex.of(words))
        now, days = time.time(), self._limits.max_age_days
        sha256 = hashlib.sha256(data).hexdigest()
        facts = stamp(facts, sha256, len(data), index, now=now, max_age_days=days)
        artifact = _Artifact(
            self._view.puts, url, data, words, index, facts, ranges, self._next_use()
        )
        self._contents.artifacts[facts.artifact_ref] = artifact
        self._retain()
        return facts

    def seen_from(self, view: View) -> Self:
        other = copy(self)
        other._view = view  # noqa: SLF001 - a copy of this
        return other

    async def get(self, ref_or_url: str) -> Facts:
        return self._use(ref_or_url).facts

    async def list(self, *, limit: int = 100, offset: int = 0) -> Listing:
        facts = [artifact.facts for artifact in reversed(self._run_artifacts())]
        return Listing(tuple(facts[offset : offset + limit]), len(facts))

    async def usage(self, *, own: bool = False) -> Usage:
        artifacts = self._contents.artifacts.values()
        kept = [a for a in artifacts if not own or a.run == self._view.puts]
        expiries = [a.facts.expires_at.timestamp() for a in kept if a.facts.expires_at]
        return Usage(len(kept), sum(a.size for a in kept), min(expiries, default=0.0))

    async def open_text(self, ref_or_url: str) -> TextReader:
        artifact = self._use(ref_or_url)
        ref = artifact.facts.artifact_ref
        if artifact.text is None or artifact.index is None:
            raise no_text(ref)
        source = BytesSource(artifact.text)
        return TextReader(ref, source, artifact.index, artifact.ranges, self._threads)

    @asynccontextmanager
    async def open_raw(self, ref_or_url: str) -> AsyncGenerator[Path]:
        data = self._use(ref_or_url).raw
        path = self._spool / f"open-{secrets.token_hex(8)}"
        await self._threads.run(lambda: path.write_bytes(data))
        try:
            yield path
        finally:
            path.unlink(missing_ok=True)

    async def search(self, query: str, refs: Sequence[str], max_results: int) -> SearchResult:
        """Rank passages. Raises NoText where one of ``refs`` has none."""
        artifacts = [self._find(ref) for ref in refs] or self._run_artifacts()
        for artifact in artifacts if refs else ():
            if artifact.text is None:
                raise no_text(artifact.facts.artifact_ref)
        data = {a.facts.artifact_ref: a.text for a in artifacts if a.text is not None}

        def work(cancelled: Callable[[], bool]) -> SearchResult:
            digests = {hashlib.sha256(text).hexdigest(): ref for ref, text in data.items()}
            texts = RunTexts(digests, sum(map(len, data.values())))
            return self._contents.index.search(
                query,
                texts,
                lambda ref: text_in_memory(data[ref]),
                max_results,
                cancelled,
                named=bool(refs),
            )

        return await self._threads.rank(work)

    async def replace_text(
        self, ref: str, text: Path, facts: Facts, ranges: Ranges, *, known: Facts
    ) -> Facts:
        words, _ = await self._threads.run(lambda: self._take(text, None))
        index = await self._threads.run(lambda: StrideIndex.of(words))
        artifact = self._use(ref)
        refuse_changed(artifact.facts, known)
        artifact.facts = restamp(facts, artifact.facts, index)
        artifact.text, artifact.index, artifact.ranges = words, index, ranges
        return artifact.facts

    async def touch(self, ref: str, facts: Facts | None = None) -> Facts:
        artifact = self._use(ref)
        expires = datetime.fromtimestamp(time.time(), UTC)
        expires += timedelta(days=self._limits.max_age_days)
        kept = keep_store_facts(facts or artifact.facts, artifact.facts)
        artifact.facts = replace(kept, expires_at=expires)
        return artifact.facts

    async def pin(self, ref: str, *, pinned: bool = True) -> Facts:
        artifact = self._find(ref)
        artifact.facts = replace(artifact.facts, pinned=pinned)
        return artifact.facts

    async def delete(self, ref: str) -> None:
        del self._contents.artifacts[self._find(ref).facts.artifact_ref]

    async def gc(self, *, dry_run: bool = False) -> tuple[Removed, ...]:
        return self._retain(dry_run=dry_run)

    async def aclose(self) -> None:
        """Close. An ephemeral store deletes the artifacts of its run first."""
        if self._limits.ephemeral:
            for artifact in self._run_artifacts():
                del self._contents.artifacts[artifact.facts.artifact_ref]
        await self._threads.run(lambda: remove_tree(self._spool))

    def _take(self, raw: Path, text: Path | None) -> tuple[bytes, bytes | None]:
        """Read files of the spool and remove them."""
        files = [path for path in (raw, text) if path]
        for path in files:
            if not path.parent.resolve().is_relative_to(self._spool.resolve()):
                raise BadArgument(
                    f"{path.name} is not in the store's spool.",
                    "Write files into the folder `spool` of the store, then put them.",
                )
        try:
            size = sum(path.stat().st_size for path in files)
            if size > self._limits.max_total_bytes:
                raise TooLarge(*larger_than_the_store(size))
            return raw.read_bytes(), text.read_bytes() if text else None
        finally:
            for path in files:
                path.unlink(missing_ok=True)

    def _retain(self, *, dry_run: bool = False) -> tuple[Removed, ...]:
        unpinned = [a for a in self._contents.artifacts.values() if not a.facts.pinned]
        unpinned.sort(key=lambda artifact: artifact.used)
        candidates = [
            Candidate(n, a.facts.artifact_ref, a.size, a.facts.expires_at.timestamp())
            for n, a in enumerate(unpinned)
            if a.facts.expires_at
        ]
        now, total = time.time(), Total(len(candidates), sum(c.bytes for c in candidates))
        overdue = [candidate for candidate in candidates if candidate.expires_at <= now]
        planned = plan(overdue, candidates, total, self._limits)
        removed = [Removed(candidate.ref, candidate.bytes, reason) for candidate, reason in planned]
        for item in removed if not dry_run else ():
            del self._contents.artifacts[item.artifact_ref]
            self._contents.expired.add(item.artifact_ref)
        if not dry_run:
            report(removed)
        refs = self._view.refs
        seen = {a.facts.artifact_ref for a in unpinned if refs in (a.run, ALL_RUNS)}
        return tuple(item for item in removed if item.artifact_ref in seen)

    def _run_artifacts(self) -> Sequence[_Artifact]:
        run = self._view.lists
        return [a for a in self._contents.artifacts.values() if run in (a.run, ALL_RUNS)]

    def _next_use(self) -> int:
        self._contents.uses += 1
        return self._contents.uses

    def _use(self, ref_or_url: str) -> _Artifact:
        artifact = self._find(ref_or_url)
        artifact.used = self._next_use()
        return artifact

    def _find(self, ref_or_url: str) -> _Artifact:
        artifacts = self._contents.artifacts
        known = artifacts.get(ref_or_url)
        refs = self._view.refs
        if known and (refs == ALL_RUNS or known.run in (refs, DEFAULT_RUN)):
            return known
        if ref_or_url in self._contents.expired:
            raise ExpiredRef(
                f"The artifact {ref_or_url} is no longer kept.", "Fetch its document again."
            )
        if not ref_or_url.startswith(REF_PREFIX):
            for artifact in reversed(self._run_artifacts()):
                if artifact.url == ref_or_url and ref_or_url:
                    return artifact
            raise not_stored(ref_or_url)
        raise UnknownRef(
            "There is no such artifact.", "Check the reference, or list the artifacts."
        )
