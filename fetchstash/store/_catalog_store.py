"""Change stores with a catalogue, whatever its engine and wherever the bytes are."""

import sqlite3
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Self, TypeVar

from fetchstash.errors import Busy, Call, StoreError, TooLarge
from fetchstash.store import _disk as disk, _retention as retention, _rows as rows
from fetchstash.store._blobs import Blob, Kind
from fetchstash.store._catalog_reads import CatalogReads, Known
from fetchstash.store._clock import time_of_put
from fetchstash.store._contract import CleanUp, Facts, Removed, keep_store_facts, stamp
from fetchstash.store._limits import ALL_RUNS, View
from fetchstash.store._schema import Db, Record
from fetchstash.store._threads import end_processes, in_thread
from fetchstash.text.ranges import Ranges

T = TypeVar("T")

NO_FILES: Mapping[Path, Blob] = MappingProxyType({})


@dataclass(slots=True)
class Change:
    """A change of rows in a transaction, with its consequences for files.

    ``blobs`` have just been measured. ``written`` are the artifacts whose rows are new or others,
    ``forgotten`` those that have none any more, ``unnamed`` the bytes that nothing names now,
    ``renewed`` what is known of the one that was touched.
    """

    db: Db
    blobs: Sequence[Blob] = ()
    written: list[str] = field(default_factory=list[str])
    forgotten: list[str] = field(default_factory=list[str])
    unnamed: list[tuple[Kind, str]] = field(default_factory=list[tuple[Kind, str]])
    renewed: Known | None = None

    def forget(self, refs: Iterable[str], *, expired: bool) -> None:
        """Delete the rows of artifacts. ``expired``: remember that they were here."""
        for ref in refs:
            self.unnamed += rows.forget(self.db, ref, expired=expired)
            self.forgotten.append(ref)


def _files(raw: Path, text: Path | None) -> dict[Kind, Path]:
    return {"raw": raw, "text": text} if text else {"raw": raw}


class CatalogStore(CatalogReads):
    """A store whose artifacts are rows. An engine makes a change durable; the rest is here."""

    @abstractmethod
    def _change(
        self,
        work: Callable[[Change], T],
        files: Mapping[Path, Blob] = NO_FILES,
        *,
        frees: bool = False,
    ) -> T:
        """Make a change of rows, with the bytes of measured files, which it names.

        Both are durable when this returns, and neither is if it raises. ``frees``: it makes room.
        """

    @abstractmethod
    def _close(self) -> None: ...

    @in_thread
    def put(
        self, raw: Path, text: Path | None, facts: Facts, ranges: Ranges, *, url: str = ""
    ) -> Facts:
        """Keep two files of the spool; they are removed from there, whether or not it works.

        Raises BadArgument for a file that is not in the spool or a text that is no UTF-8, TooLarge,
        StoreError, Busy.
        """

        def insert(change: Change) -> Facts:
            first, last = change.blobs[0], change.blobs[-1]
            own = stamp(
                facts,
                first.sha256,
                first.size,
                last.index,
                now=time_of_put(change.db),
                max_age_days=self._limits.max_age_days,
                path=self._shown_path(last.kind, last.sha256),
            )
            url_hash = rows.url_hash(change.db, url) if url else None
            record = rows.new_record(self._view.puts, own, ranges, url_hash, change.blobs)
            self._insert(change, record)
            self._evict(change, retention.due(change.db, self._limits))
            return own

        return self._keep(_files(raw, text), insert, facts.sha256, facts.size_bytes)

    def _insert(self, change: Change, record: Record) -> None:
        self._record_reads(change.db)
        rows.insert(change.db, record)
        change.written.append(record["ref"])

    @in_thread
    def replace_text(
        self, ref: str, text: Path, facts: Facts, ranges: Ranges, *, known: Facts
    ) -> Facts:

        def replaced(change: Change) -> Facts:
            row, (blob,) = rows.find(change.db, ref, self._view), change.blobs
            kept, index = row.facts(), blob.index
            if kept.document_facts() != known.document_facts():
                raise Busy(f"The text of {ref} was replaced meanwhile.", "Read it again.")
            assert index is not None  # a text has one
            changed = replace(
                keep_store_facts(facts, kept),
                extracted_chars=index.chars,
                text_bytes=index.size,
                text_lines=index.lines,
            )
            change.unnamed += rows.replace_text(change.db, row, changed, ranges, blob)
            change.written.append(ref)
            return self._facts(rows.find(change.db, ref, self._view))

        return self._keep({"text": text}, replaced)

    def _keep(
        self,
        files: Mapping[Kind, Path],
        work: Callable[[Change], T],
        sha256: str = "",
        size: int = 0,
    ) -> T:
        """Keep files of the spool, and remove them from there, whether or not it works.

        ``sha256`` and ``size`` are those of the raw file, where somebody has hashed it.
        """
        try:
            self._check_room()
            blobs = self._files.measure(files, sha256, size)
            disk.reached("measured")
            whole = sum(blob.size for blob in blobs)
            if whole > self._limits.max_total_bytes:
                raised = Call("setting", {"name": "store.max_total_bytes", "value": whole})
                what = "The document is larger than all that the store may keep."
                raise TooLarge(what, "{}.", raised)
            return self._change(work, dict(zip(files.values(), blobs, strict=True)))
        finally:
            self._files.discard(files.values())

    def _check_room(self) -> None:
        """Raise StoreError if there is no room for a put."""

    async def aclose(self) -> None:
        """Close. An ephemeral store deletes its artifacts first. Closing twice is no error."""
        self._closed = True
        await self._threads.run(self._leave)

    def _leave(self) -> None:
        if not self._is_left:
            self._is_left = True
            end_processes(self._limits)
            self._close()

    @in_thread
    def take_over(
        self, record: Record, url_keys: Sequence[bytes], raw: Path, text: Path | None
    ) -> None:
        """Store an artifact from another store: two files of the spool, and the record."""
        record["facts"].pop("path", None)  # of the other store

        def insert(change: Change) -> None:
            for key in url_keys:
                rows.add_url_key(change.db, key)
            self._insert(change, record)

        self._keep(_files(raw, text), insert)

    @in_thread
    def delete(self, ref: str) -> None:
        def forget(change: Change) -> None:
            row = rows.find(change.db, ref, self._view, expired=True)
            change.forget([row.ref], expired=False)

        self._change(forget, frees=True)

    async def gc(self, *, dry_run: bool = False) -> tuple[Removed, ...]:
        return (await self.clean_up(dry_run=dry_run)).removed

    async def clean_up(self, *, dry_run: bool = False) -> CleanUp:
        """Apply retention, then remove what no artifact names, until nothing is left to remove.

        In steps, so that it can be cancelled between two of them.
        """
        shown, files, is_done = dict[Removed, None](), 0, False
        while not is_done:
            removed, is_done = await self._apply_retention(dry_run=dry_run)
            shown |= dict.fromkeys(removed)
        is_done = False
        while not is_done:
            count, orphans = await self._sweep(dry_run=dry_run)
            shown |= dict.fromkeys(orphans)
            files += count
            is_done = dry_run or not count
        return CleanUp(tuple(shown), files)

    @in_thread
    def _apply_retention(self, *, dry_run: bool) -> tuple[Sequence[Removed], bool]:
        """Remove some of what is due; return what this view may know of it, and if that is all."""

        def step(change: Change) -> tuple[Sequence[Removed], bool]:
            self._record_reads(change.db)
            most = None if dry_run else retention.EVICTIONS_PER_PUT
            due, seen = retention.due(change.db, self._limits, most), self._view.refs
            shown = [
                item
                for item in due
                if seen == ALL_RUNS or rows.is_of(change.db, item.artifact_ref, seen)
            ]
            if not dry_run:
                self._evict(change, due)
            return shown, dry_run or not due

        return self._change(step, frees=True)

    def _evict(self, change: Change, due: Iterable[Removed]) -> None:
        change.forget([item.artifact_ref for item in due], expired=True)
        retention.report(due)

    @abstractmethod
    async def _sweep(self, *, dry_run: bool) -> tuple[int, Sequence[Removed]]:
        """Remove some of the files that no artifact names.

        Return how many, 0 if none is left, and those that this view may know of.
        """

    async def remove_orphans(
        self,
        older_than: float,  # noqa: ARG002 - of no use
        *,
        dry_run: bool = False,  # noqa: ARG002 - of no use
    ) -> Sequence[Removed]:
        """Remove bytes without a row that are so many seconds old. Default: ``gc`` has done it."""
        return ()

    async def prune_cache(self) -> int:
        """Remove what is gone from the cache of this machine. Default: there is none."""
        return 0

    def _remove_run(self, run: str) -> None:
        """Remove all artifacts of a run."""
        self._change(
            lambda change: change.forget(rows.refs(change.db, run), expired=True), frees=True
        )

    def _end_run(self) -> None:
        """Record what was read, and remove an ephemeral run."""
        if self._read:
            # On a full disk the use is not recorded: that is no reason to fail.
            with suppress(sqlite3.Error, StoreError):
                self._change(lambda change: self._record_reads(change.db))
        if self._limits.ephemeral:
            self._remove_run(self._view.puts)

    @abstractmethod
    async def remove(self) -> None:
        """Remove the store with all that it keeps. It must not be used any more."""

    def seen_from(self, view: View) -> Self:
        other = copy(self)
        other._view, other._kept, other._led = view, {}, {}  # noqa: SLF001 - a copy of this
        return other

    @in_thread
    def touch(self, ref: str, facts: Facts | None = None) -> Facts:
        def renew(change: Change) -> Facts:
            db = change.db
            self._record_reads(db)
            # Who opened it before its date may renew it after: clean-up has not removed it yet.
            row = rows.find(db, ref, self._view, expired=True)
            expires = time_of_put(db) + self._limits.max_age_days * 86_400
            rows.fetch_again(db, row.ref)
            kept, text = self._known_facts(row), self._known(row).text  # as it was
            kept = keep_store_facts(facts or kept, kept, datetime.fromtimestamp(expires, UTC))
            change.written.append(row.ref)
            change.renewed = self._known(rows.renew(db, row, kept, expires))
            change.renewed.facts, change.renewed.text = kept, text
            return kept

        return self._change(renew)

    @in_thread
    def pin(self, ref: str, *, pinned: bool = True) -> Facts:
        def set_pin(change: Change) -> Facts:
            rows.pin(change.db, rows.find(change.db, ref, self._view), pinned=pinned)
            change.written.append(ref)
            return self._facts(rows.find(change.db, ref, self._view))

        return self._change(set_pin)

    def _record_reads(self, db: Db) -> None:
        """Record the reads since the last change, so that eviction spares what was read."""
        for ref in list(self._read):  # of all views
            rows.use(db, ref)
            self._read.pop(ref, None)
