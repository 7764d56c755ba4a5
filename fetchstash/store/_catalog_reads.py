"""Read stores with a catalogue, whatever its engine and wherever the bytes are."""

import math
import os
from abc import abstractmethod
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from anyio import CancelScope

from fetchstash.errors import StoreError, UnknownRef
from fetchstash.store import _retention as retention, _rows as rows, _threads as pool
from fetchstash.store._blobs import PIECE, Blob, Blobs, Kind, copied
from fetchstash.store._clock import read_now
from fetchstash.store._contract import Facts, Listing, Run, SearchResult, Usage, is_ref
from fetchstash.store._disk import no_text
from fetchstash.store._limits import ALL_RUNS, StoreLimits, View, own_run
from fetchstash.store._protocol import ArtifactStore
from fetchstash.store._reader import TextReader
from fetchstash.store._schema import Catalog, CatalogDown, Record
from fetchstash.store._text import ByteSource, StrideIndex
from fetchstash.store._threads import Job, Threads, in_thread
from fetchstash.text.ranges import Ranges

if TYPE_CHECKING:
    from fetchstash.store._bytes import Bytes

T = TypeVar("T")

Search = tuple[Job, int, object]
"""A search as data, the bytes of text that it has to index, and what it opens."""

Text = tuple[ByteSource, StrideIndex, Ranges]
"""A text that is open: its bytes, their index, and its ranges."""

KEPT = 16
"""Artifacts whose facts and index stay in memory: 16 bytes for every 64 KiB of their texts."""


@dataclass(slots=True)
class Known:
    """An artifact's facts and text as read earlier; ``version`` is the catalogue's, if known."""

    row: rows.Row
    facts: Facts | None = None
    text: tuple[StrideIndex, Ranges] | None = None
    version: object = None


class CatalogReads(ArtifactStore):
    """The reading half of a store whose artifacts are rows. Blocking work runs ``in_thread``.

    Must not be used after a fork.
    """

    def __init__(
        self, limits: StoreLimits, catalog: Catalog, data: "Bytes", threads: Threads
    ) -> None:
        self._bytes = data
        self._files = data if isinstance(data, Blobs) else data.cache
        self._threads = threads
        self._process = os.getpid()
        self._closed = self._is_left = False
        self._limits = limits
        self._view = View.of(own_run(limits))
        self._reads = catalog
        # References read since the last change, in order: their use is recorded with the next.
        self._read: dict[str, None] = {}
        self._kept: dict[str, Known] = {}  # of the artifacts read last
        self._led: dict[str, tuple[str, object]] = {}  # what URLs led to, at which version

    @property
    def spool(self) -> Path:
        """A private folder for files on their way in. It is made anew if somebody removed it."""
        self._check_usable()
        return self._files.spool

    def _follow(self) -> None:
        """Reopen the store if somebody moved or deleted it."""

    @abstractmethod
    def _search_job(self, query: str, refs: Sequence[str], max_results: int) -> Search: ...

    def _shown_path(self, kind: Kind, sha256: str) -> str | None:
        """Return the file that programs of this machine can read, None if there is none."""
        del kind, sha256
        return None

    @in_thread
    def get(self, ref_or_url: str) -> Facts:
        row = self._find(ref_or_url)
        self._read[row.ref] = None
        return self._known_facts(row)

    async def open_artifact(self, ref_or_url: str) -> tuple[Facts, TextReader | None]:
        """Return the facts, and the text. Raises StoreError where its file is gone or altered."""

        def opened() -> tuple[Facts, Text | None]:
            row, text = self._opened(ref_or_url)
            self._read[row.ref] = None
            return self._known_facts(row), text

        facts, text = await self.run(opened)
        return facts, TextReader(facts.artifact_ref, *text, self._threads) if text else None

    async def open_text(self, ref_or_url: str) -> TextReader:
        """Open the text. Raises NoText, and StoreError where the file is gone or altered."""
        facts, reader = await self.open_artifact(ref_or_url)
        if reader is None:
            raise no_text(facts.artifact_ref)
        return reader

    @asynccontextmanager
    async def open_raw(self, ref_or_url: str) -> AsyncGenerator[Path]:
        """Yield a file with the raw bytes, which stays readable if the artifact is deleted."""

        def lend() -> Path:
            with self._reads.reading() as db:
                row = rows.find(db, ref_or_url, self._view)
                blob = rows.blob(db, "raw", row.raw)
            self._read[row.ref] = None
            try:
                return self._bytes.lend(blob, row.ref)
            except StoreError:
                with self._reads.reading() as db:
                    rows.find(db, row.ref, self._view)  # raises if gc took it since
                raise

        path = await self.run(lend)
        try:
            yield path
        finally:
            with CancelScope(shield=True):  # that of a blob itself is not in the spool
                await self._threads.run(lambda: self._files.discard([path]))

    async def search(self, query: str, refs: Sequence[str], max_results: int) -> SearchResult:
        job, size, opened = await self.run(lambda: self._search_job(query, refs, max_results))
        if size > pool.LITTLE:
            return await self._threads.search(job)
        return await self._threads.rank(partial(job.run, opened))

    def _check_usable(self) -> None:
        """Raise StoreError after ``aclose`` or in a forked process."""
        if self._closed:
            raise StoreError("The store is closed.", "Open it again.")
        if os.getpid() != self._process:
            what = "The store was opened before this process was forked."
            raise StoreError(what, "Open a store in each process.")

    async def run(self, work: Callable[[], T]) -> T:
        """Run work in a thread, after opening the store anew if it was moved or deleted."""
        self._check_usable()

        def followed() -> T:
            self._follow()
            return work()

        return await self._threads.run(followed)

    @in_thread
    def list(self, *, limit: int = 100, offset: int = 0) -> Listing:
        with self._reads.reading() as db:
            run, now = self._view.lists, read_now(db)
            page = rows.newest(db, run, limit, offset, now)
            return Listing(tuple(map(self._facts, page)), rows.kept(db, run, now)[0])

    @in_thread
    def runs(self) -> tuple[Run, ...]:
        seen = ALL_RUNS if self._view.refs == ALL_RUNS else self._view.lists
        with self._reads.reading() as db:
            listed = rows.runs(db, seen, read_now(db))
        return tuple(Run(name, n, datetime.fromtimestamp(at, UTC)) for name, n, at in listed)

    @in_thread
    def usage(self, *, own: bool = False) -> Usage:
        with self._reads.reading() as db:
            return retention.usage(db, self._view.puts if own else ALL_RUNS)

    @in_thread
    def refs(self, *, before: float = math.inf) -> Sequence[str]:
        """Return the references of the view that were put before a time since 1970, in order."""
        with self._reads.reading() as db:
            return rows.refs(db, self._view.lists, before)

    @in_thread
    def hand_over(self, ref: str, raw: Path, text: Path) -> Record | None:
        """Write the bytes of an artifact into these files; return its record, as JSON data.

        That is no use of it. Returns None where its bytes are lost or altered.
        """
        files: dict[Kind, Path] = {"raw": raw, "text": text}
        try:
            with self._reads.reading() as db:
                row = rows.find(db, ref, self._view)
                record, blobs = rows.record(db, row.ref), rows.blobs(db, row)
            for blob in blobs:
                with closing(self._bytes.open(blob, ref)) as source:
                    starts = range(0, blob.size, PIECE)
                    pieces = (source.read(at, at + PIECE) for at in starts)
                    if copied(pieces, files[blob.kind]) != blob.sha256:
                        return None
        except CatalogDown:
            raise
        except StoreError:
            return None
        return record

    @in_thread
    def url_keys(self) -> Sequence[bytes]:
        """Return the keys with which URLs are hashed."""
        with self._reads.reading() as db:
            return rows.url_keys(db)

    def _find(self, ref_or_url: str) -> rows.Row:
        """Return the row of an artifact. A URL finds only a row whose contents are all there."""
        ref_or_url = ref_or_url.strip()
        if is_ref(ref_or_url):
            try:
                # In one statement, which needs no transaction.
                with self._reads.connection() as db:
                    return rows.find(db, ref_or_url, self._view)
            except CatalogDown:
                known = self._kept.get(ref_or_url)
                if known and not known.row.seems_over:  # what was read last can be read on
                    return known.row
                raise
        with self._reads.reading() as db:
            row = rows.find(db, ref_or_url, self._view)
            try:
                blobs = rows.blobs(db, row)
            except StoreError:
                blobs = []
        if not blobs or not self._bytes.are_there(blobs):
            raise UnknownRef("What was stored under this URL is lost.", "Fetch it again.")
        return row

    def _opened(self, ref_or_url: str) -> tuple[rows.Row, Text | None]:
        row = self._find(ref_or_url)
        blob = row.text_blob
        if blob is None:
            return row, None
        try:
            index, ranges = self._known(row).text or self._read_text(row, blob)
            return row, (self._bytes.open(blob, row.ref), index, ranges)
        except StoreError:
            if self._find(row.ref) == row:
                raise
            return self._opened(row.ref)  # another process gave it a new text since

    def _read_text(self, row: rows.Row, text: Blob) -> tuple[StrideIndex, Ranges]:
        """Read the index and the ranges of a text. Raises StoreError if it was replaced since."""
        with self._reads.reading() as db:
            if rows.find(db, row.ref, self._view) != row:
                raise StoreError("The artifact was changed meanwhile.", "Try again.")
            known = self._known(row)
            known.text = rows.index(db, text.sha256), rows.ranges(db, row)
            return known.text

    def _text_blob(self, ref: str) -> Blob:
        """Return an artifact's text for a search, without counting as a use. Raises NoText."""
        row = self._find(ref)
        if row.text_blob is None:
            raise no_text(row.ref)
        return row.text_blob

    def _facts(self, row: rows.Row) -> Facts:
        path = self._shown_path("text", row.text) if row.text else self._shown_path("raw", row.raw)
        return row.facts(path)

    def _known_facts(self, row: rows.Row) -> Facts:
        known = self._known(row)
        if known.facts is None:
            known.facts = self._facts(row)
        return known.facts

    def _known(self, row: rows.Row) -> Known:
        """Return the facts and text that were read since the artifact's row was written."""
        known = self._kept.get(row.ref)
        if known is None or known.row != row:
            if len(self._kept) >= KEPT:
                self._kept.clear()
            known = self._kept[row.ref] = Known(row)
        return known
