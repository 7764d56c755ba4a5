"""The store in a folder.

put   Both files are hashed and synced. Then, under the lock, they are renamed. While their folders
      are synced the sidecar is written and the row inserted. When they are, the row is committed,
      then the sidecar gets its name. Only then is the put acknowledged.
gc    Under the lock sidecars are removed, rows are deleted and committed, and then files unlinked.
      A crash between the two leaves a file without a row, which the next gc finds by listing the
      folders. As both happen under one lock, no put can claim a file that is about to be unlinked,
      and before files are taken for orphans the log is settled (_catalog.py).
"""

import contextlib
import os
import secrets
import sqlite3
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from fetchstash.errors import StoreError, TooLarge, UnknownRef
from fetchstash.store import _rows as rows, _steps
from fetchstash.store._blobs import Blob, Kind
from fetchstash.store._catalog import Connection, settle, transaction
from fetchstash.store._contract import (
    Facts,
    Finding,
    Listing,
    Removed,
    Run,
    SearchResult,
    is_ref,
    keep_store_facts,
    refuse_changed,
    restamp,
    stamp,
)
from fetchstash.store._disk import check_room, larger_than_the_store, no_text, translate_errors
from fetchstash.store._health import check_folder, repair_folder
from fetchstash.store._limits import StoreLimits, own_run, run_of_put
from fetchstash.store._place import Place, Upkeep
from fetchstash.store._protocol import Text, ThreadedStore, in_thread
from fetchstash.store._rank import rank_texts
from fetchstash.store._search import RunTexts, SearchIndex, search_run
from fetchstash.store._text import FileSource, StoredText, StrideIndex
from fetchstash.store._threads import LookUps, Threads
from fetchstash.text.ranges import Ranges

KEPT = 16
"""Artifacts whose facts and index stay in memory: 16 bytes for every 64 KiB of their texts."""


@dataclass(slots=True)
class _Known:
    """What was read of an artifact. It holds as long as its row is this."""

    row: rows.Row
    facts: Facts | None = None
    text: tuple[StrideIndex, Ranges] | None = None


class LocalStore(ThreadedStore):
    """An ArtifactStore in a folder. Making one blocks."""

    def __init__(self, limits: StoreLimits, threads: Threads) -> None:
        super().__init__(threads, LookUps())
        self._limits = limits
        self._run = own_run(limits)
        self._is_left = False
        # References read since the last change, in order: their use is recorded with the next.
        self._read: dict[str, None] = {}
        self._kept: dict[str, _Known] = {}  # of the artifacts read last
        self._texts = RunTexts()
        self._place = Place(limits.folder, self._run if limits.ephemeral else None)
        self._blobs, self._catalog = self._place.blobs, self._place.catalog
        self._index = SearchIndex(self._place.path)
        self._upkeep = Upkeep(self._place, self._index, limits)
        self._upkeep.remove_abandoned_runs()

    @classmethod
    async def open(cls, limits: StoreLimits, threads: Threads | None = None) -> Self:
        """Open the store in ``limits.folder``, making or migrating it. Raises StoreError, Busy."""
        threads = threads or Threads()
        return await threads.run(lambda: cls(limits, threads))

    @property
    def spool(self) -> Path:
        """A private folder for files on their way in. It is made anew if somebody removed it."""
        self._check_usable()
        if not self._blobs.spool.is_dir():
            with translate_errors():
                self._follow()
                self._place.make_folders()
        return self._blobs.spool

    def _follow(self) -> None:
        self._place.follow()

    @in_thread
    def put(
        self, raw: Path, text: Path | None, facts: Facts, ranges: Ranges, *, url: str = ""
    ) -> Facts:
        """Keep two files of the spool; they are gone from there, whether or not it works.

        Raises BadArgument for a file that is not in the spool or a text that is no UTF-8, TooLarge,
        StoreError, Busy.
        """
        files: dict[Kind, Path] = {"raw": raw, "text": text} if text else {"raw": raw}
        try:
            check_room(self._place.path)
            blobs = self._blobs.measure(files)
            self._check_size(blobs)
            _steps.reached("measured")
            moves = zip(files.values(), blobs, strict=True)
            with self._catalog.locked() as db:
                try:
                    with transaction(db), self._blobs.published(moves):
                        now = self._upkeep.believed_now(db)
                        facts = self._stamped(facts, max(now, time.time()), *blobs)
                        run = run_of_put(self._run)
                        url_hash = rows.url_hash(db, url) if url else None
                        record = rows.new_record(run, facts, ranges, url_hash, blobs)
                        self._place.sidecars.write(record)
                        self._record_reads(db)
                        rows.insert(db, record, blobs)
                except BaseException:
                    # gc removes later what cannot be removed now.
                    with contextlib.suppress(OSError, sqlite3.Error, StoreError):
                        self._withdraw(db, facts.artifact_ref, blobs)
                    raise
                self._place.sidecars.publish(facts.artifact_ref)
                # The artifact is safe: a failure here is gc's to report.
                with contextlib.suppress(OSError, sqlite3.Error):
                    self._upkeep.retain(db, now)
        except BaseException:
            self._blobs.discard(files.values())
            raise
        _steps.reached("put_done")
        return facts

    def _get(self, ref_or_url: str) -> Facts:
        row = self._find(ref_or_url)
        self._read[row.ref] = None
        return self._known_facts(row)

    def _find(self, ref_or_url: str) -> rows.Row:
        """Return the row of an artifact; under a URL only if it is whole."""
        if is_ref(ref_or_url):  # in one statement, which needs no transaction
            with self._catalog.connection() as db:
                return rows.find(db, ref_or_url, self._run)
        with self._catalog.reading() as db:
            row = rows.find(db, ref_or_url, self._run)
            if not self._is_whole(db, row):
                raise UnknownRef("What was stored under this URL is lost.", "Fetch it again.")
            return row

    @in_thread
    def list(self, *, limit: int = 100, offset: int = 0) -> Listing:
        """Return a page of the run's artifacts, newest first."""
        with self._catalog.reading() as db:
            page = rows.newest(db, self._run, limit, offset)
            return Listing(tuple(map(self._facts, page)), rows.count(db, self._run))

    @in_thread
    def runs(self) -> tuple[Run, ...]:
        """Return the runs that have artifacts, that of the newest artifact first."""
        with self._catalog.reading() as db:
            listed = rows.runs(db)
        return tuple(Run(name, n, datetime.fromtimestamp(at, UTC)) for name, n, at in listed)

    def _open_artifact(self, ref_or_url: str) -> tuple[Facts, Text | None]:
        row, text = self._opened(ref_or_url)
        self._read[row.ref] = None
        return self._known_facts(row), text

    def _opened(self, ref_or_url: str) -> tuple[rows.Row, Text | None]:
        row = self._find(ref_or_url)
        blob = row.text_blob
        if blob is None:
            return row, None
        try:
            index, ranges = self._known(row).text or self._read_text(row, blob)
            return row, (FileSource(self._open(blob, row.ref)), index, ranges)
        except StoreError:
            if self._find(row.ref) == row:
                raise
            return self._opened(row.ref)  # another process gave it a new text since

    def _lend_raw(self, ref_or_url: str) -> Path:
        """Return a hard link in the spool, so that it stays if the artifact goes meanwhile."""
        with self._catalog.reading() as db:
            row = rows.find(db, ref_or_url, self._run)
            blob = rows.blob(db, "raw", row.raw)
        os.close(self._open(blob, row.ref))
        self._read[row.ref] = None
        path = self._blobs.path("raw", row.raw)
        link = self.spool / f"open-{secrets.token_hex(8)}"
        try:
            link.hardlink_to(path)
        except OSError:  # a full disk, or a file system without links
            return path
        return link

    def _take_back(self, path: Path) -> None:
        if path.parent == self._blobs.spool:
            path.unlink(missing_ok=True)

    def _search(
        self, query: str, refs: Sequence[str], max_results: int, cancelled: Callable[[], bool]
    ) -> SearchResult:
        if refs:
            return rank_texts(query, refs, self._stored_text, max_results, cancelled)
        texts, opened = self._run_texts(), self._stored_text
        return search_run(self._index, query, texts, opened, max_results, cancelled)

    def _run_texts(self) -> RunTexts:
        """Return the texts of the run. They are kept until it changes: 100,000 take a second."""
        with self._catalog.reading() as db:
            state = rows.run_state(db, self._run)
            if self._texts.state != state:
                refs: dict[str, str] = {}
                size = 0
                for ref, sha256, text_bytes in rows.texts(db, self._run):
                    refs.setdefault(sha256, ref)
                    size += text_bytes
                self._texts = RunTexts(state, refs, size)
            return self._texts

    def _stored_text(self, ref: str) -> StoredText:
        """Open a text for a search, which is no use of its artifact."""
        row, text = self._opened(ref)
        if text is None:
            raise no_text(row.ref)
        source, index, _ = text
        return StoredText(source, index)

    @in_thread
    def replace_text(
        self, ref: str, text: Path, facts: Facts, ranges: Ranges, *, known: Facts
    ) -> Facts:
        """Give an artifact a new text. The file of the earlier one is unlinked last."""
        try:
            check_room(self._place.path)
            (blob,) = self._blobs.measure({"text": text})
            assert blob.index is not None  # a text has one
            with self._catalog.locked() as db:
                try:
                    with transaction(db), self._blobs.published([(text, blob)]):
                        row = rows.find(db, ref, self._run)
                        refuse_changed(row.facts(), known)
                        facts = restamp(facts, row.facts(), blob.index)
                        earlier = rows.replace_text(db, row, facts, ranges, blob)
                except BaseException:
                    # What cannot be removed now, gc will find.
                    with contextlib.suppress(OSError, sqlite3.Error, StoreError):
                        self._withdraw(db, ref, [blob])
                    raise
                self._catalog.check_current(db)
                changed = self._changed(db, row.ref)
                if earlier:
                    with contextlib.suppress(OSError):
                        self._blobs.remove("text", earlier)
        except BaseException:
            self._blobs.discard([text])
            raise
        return changed

    @in_thread
    def touch(self, ref: str, facts: Facts | None = None) -> Facts:
        """Keep an artifact for a whole term from now; ``facts`` replaces the caller's own."""
        with self._catalog.locked() as db:
            with transaction(db):
                self._record_reads(db)
                row = rows.find(db, ref, self._run)
                now = max(self._upkeep.believed_now(db), time.time())
                expires = now + self._limits.max_age_days * 86400
                rows.use(db, row.ref)
                rows.renew(db, row, keep_store_facts(facts or row.facts(), row.facts()), expires)
            return self._changed(db, row.ref)

    @in_thread
    def pin(self, ref: str, *, pinned: bool = True) -> Facts:
        """Pin an artifact, or lift its pin."""
        with self._catalog.locked() as db:
            with transaction(db):
                row = rows.find(db, ref, self._run)
                rows.pin(db, row, pinned=pinned)
            return self._changed(db, row.ref)

    def _changed(self, db: Connection, ref: str) -> Facts:
        """Bring the sidecar of an artifact up to date, and return the facts."""
        self._place.sidecars.write(rows.record(db, ref))
        self._place.sidecars.publish(ref)
        return self._facts(rows.find(db, ref, self._run))

    @in_thread
    def delete(self, ref: str) -> None:
        """Forget an artifact."""
        with self._catalog.locked(make_room=True) as db:
            row = rows.find(db, ref, self._run)
            self._upkeep.remove(db, [row.ref], expired=False)

    @in_thread
    def gc(self, *, dry_run: bool = False) -> tuple[Removed, ...]:
        """Apply retention, then remove files that no artifact names."""
        with self._catalog.locked(make_room=True) as db, transaction(db):
            self._record_reads(db)
        removed = self._upkeep.collect(dry_run=dry_run)
        _steps.reached("gc_done")
        return removed

    @in_thread
    def check(self) -> tuple[Finding, ...]:
        """Examine the folder, every file's hash included, and change nothing."""
        return check_folder(self._place.path)

    @in_thread
    def repair(self) -> tuple[Finding, ...]:
        """Examine the folder and mend what can be mended."""
        return repair_folder(self._place.path)

    def _close(self) -> None:
        if self._is_left:
            return
        self._is_left = True
        self._index.close()
        try:
            try:
                unused = self._leave()
            finally:
                self._catalog.close()
            if unused:
                self._place.remove()
        finally:
            self._place.close()

    def _leave(self) -> bool:
        """Record what was read and remove an ephemeral run. Return whether the folder is unused."""
        with contextlib.suppress(FileNotFoundError):  # somebody removed the folder
            if self._read:
                # On a full disk the use is not recorded: that is no reason to fail.
                full = contextlib.suppress(sqlite3.Error)
                with full, self._catalog.locked() as db, transaction(db):
                    self._record_reads(db)
            if self._limits.ephemeral:
                self._upkeep.remove_run(self._run)
                self._place.end_lease()
                if self._place.alone():
                    with self._catalog.reading() as db:
                        return rows.is_empty(db)
        return False

    def _check_size(self, blobs: Iterable[Blob]) -> None:
        size = sum(blob.size for blob in blobs)
        if size > self._limits.max_total_bytes:
            raise TooLarge(*larger_than_the_store(size))

    def _stamped(self, facts: Facts, now: float, raw: Blob, text: Blob | None = None) -> Facts:
        """Fill in the store's own facts."""
        index, days = text.index if text else None, self._limits.max_age_days
        shown = text or raw
        path = str(self._blobs.path(shown.kind, shown.sha256))
        return stamp(facts, raw.sha256, raw.size, index, now=now, max_age_days=days, path=path)

    def _withdraw(self, db: Connection, ref: str, blobs: Iterable[Blob]) -> None:
        """Unlink what a failed put has renamed, unless an artifact names it."""
        try:
            settle(db)
        except sqlite3.OperationalError as error:
            # A full disk took no whole commit; anything else may have.
            if error.sqlite_errorname != "SQLITE_FULL":
                raise
        known = rows.known(db)
        self._catalog.check_current(db)
        self._place.sidecars.discard(ref)
        for blob in blobs:
            if (blob.kind, blob.sha256) not in known:
                self._blobs.remove(blob.kind, blob.sha256)

    def _facts(self, row: rows.Row) -> Facts:
        path = self._blobs.path("text", row.text) if row.text else self._blobs.path("raw", row.raw)
        return replace(row.facts(), path=str(path))

    def _known_facts(self, row: rows.Row) -> Facts:
        known = self._known(row)
        if known.facts is None:
            known.facts = self._facts(row)
        return known.facts

    def _known(self, row: rows.Row) -> _Known:
        """Return what was read of an artifact since its row was written."""
        known = self._kept.get(row.ref)
        if known is None or known.row != row:
            if len(self._kept) >= KEPT:
                self._kept.clear()
            known = self._kept[row.ref] = _Known(row)
        return known

    def _open(self, blob: Blob, ref: str) -> int:
        try:
            return self._blobs.open(blob)
        except FileNotFoundError:
            with self._catalog.reading() as db:
                rows.find(db, ref, self._run)  # raises if gc took it since
            raise StoreError(
                f"The file of the artifact {ref} is missing.", "Fetch its document again."
            ) from None

    def _is_whole(self, db: Connection, row: rows.Row) -> bool:
        """Return whether an artifact's files are there and not altered."""
        names: dict[Kind, str] = {"raw": row.raw}
        if row.text:
            names["text"] = row.text
        try:
            for kind, sha256 in names.items():
                os.close(self._blobs.open(rows.blob(db, kind, sha256)))
        except (FileNotFoundError, StoreError):
            return False
        return True

    def _read_text(self, row: rows.Row, text: Blob) -> tuple[StrideIndex, Ranges]:
        """Read the index and the ranges of a text. Raises StoreError if it was replaced since."""
        with self._catalog.reading() as db:
            if rows.find(db, row.ref, self._run) != row:
                raise StoreError("The artifact was changed meanwhile.", "Try again.")
            known = self._known(row)
            known.text = rows.index(db, text.sha256), rows.ranges(db, row)
            return known.text

    def _record_reads(self, db: Connection) -> None:
        """Record the use of what was read since the last change, so that it does not go next."""
        read, self._read = self._read, {}
        for ref in read:
            rows.use(db, ref)
