"""The store's folder, and everything that is done in it; all of it blocks, and is called from threads.

    catalog.db      what there is (_schema.py)          raw, text   the blobs (_blobs.py)
    lock            held for every change               spool       files on their way in
    in-use          held by whoever has it open         search.db   the words of large runs (_index.py)
    reserve         given up to delete on a full disk

put   Both files are hashed and synced; then, under the lock, renamed, their folders synced, the row
inserted and committed. Only
      then is the answer given.
gc    Under the lock rows are deleted and committed, and then files unlinked. What a crash leaves
between the two is a file
      without a row, which the next gc finds by listing the folders. As both happen under one lock, no put can claim a file that
      is about to be unlinked; and before files are taken for strays the log is settled (_catalog.py).
"""

import contextlib
import os
import secrets
import shutil
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from fetchstash.errors import ExpiredRef, NoText, StoreError, TooLarge, UnknownRef
from fetchstash.ranges import Ranges
from fetchstash.store import _rows as rows, _steps
from fetchstash.store._blobs import KINDS, Blob, Blobs, Kind
from fetchstash.store._catalog import Catalog, settle, transaction
from fetchstash.store._clock import Clock
from fetchstash.store._contract import (
    DEFAULT_RUN,
    Facts,
    Listing,
    Removed,
    SearchResult,
    StoreLimits,
)
from fetchstash.store._disk import Presence, sync_folder
from fetchstash.store._index import SearchIndex
from fetchstash.store._rank import rank_texts
from fetchstash.store._retention import plan
from fetchstash.store._source import FileSource
from fetchstash.store._stamp import keep_store_facts, stamp
from fetchstash.store._stride import StrideIndex
from fetchstash.store._text import StoredText

INDEX_BYTES = 8 * 2**20
"""A run with more text than that is searched by an index, any other by reading all of it, in well under a second."""

KEPT_INDICES = 16
"""Each takes 16 bytes for every 64 KiB of its text."""

_OWN_NAMES = (
    "raw", "text", "spool", "search.db", "search-lock", "reserve",
    "catalog.db", "catalog.db-journal", "catalog.db-shm", "catalog.db-wal", "lock", "in-use",
)  # fmt: skip
"""In the order in which they may be removed: whoever looks meanwhile sees no blobs without a catalogue."""
_LOST = (ExpiredRef, UnknownRef, StoreError)


class StoreFolder:
    """One folder, seen from one run. Must not be used after a fork: SQLite's locks and connections do not survive one."""

    def __init__(self, limits: StoreLimits) -> None:
        self._limits = limits
        # Who names no run and wants nothing kept must not take away what others keep in the common
        # one.
        own_run = limits.ephemeral and limits.run == DEFAULT_RUN
        self._run = f"ephemeral-{secrets.token_hex(8)}" if own_run else limits.run
        self._process = os.getpid()
        self._closed = False
        self._read: dict[
            str, None
        ] = {}  # references read since the last change, in order: their use is written down with the next
        self._indices: dict[str, StrideIndex] = {}  # of the texts read last, by SHA-256
        self._clock = Clock()
        self._folder = limits.folder.resolve()
        refuse_foreign(self._folder)
        self._blobs = Blobs(self._folder)
        self._catalog = Catalog(self._folder / "catalog.db", self._folder / "lock")
        self._index = SearchIndex(self._folder)
        self._presence = Presence(self._folder / "in-use", when_alone=self._begin)
        try:
            self._blobs.make_folders()
            self._catalog.prepare()
            sync_folder(self._folder)
            self._blobs.sweep_spool(all_of_it=False)
        except BaseException:
            self._catalog.close()
            self._presence.close()
            raise

    def _begin(self) -> None:
        """Remove what is left in the spool by processes that have ended: nobody else has the store open."""
        self._blobs.make_folders()
        self._blobs.sweep_spool(all_of_it=True)

    @property
    def path(self) -> Path:
        """The folder itself."""
        return self._folder

    @property
    def spool(self) -> Path:
        """The folder for files on their way in."""
        return self._blobs.spool

    def check_usable(self) -> None:
        """Raise StoreError after ``close`` or in a forked process."""
        if self._closed:
            raise StoreError("The store is closed.", "Open it again.")
        if os.getpid() != self._process:
            raise StoreError(
                "The store was opened before this process was forked.",
                "Open a store in each process.",
            )

    def put(self, raw: Path, text: Path | None, facts: Facts, ranges: Ranges, url: str) -> Facts:
        """Keep both files; what is left of them in the spool is removed, whatever happens."""
        arriving: dict[Kind, Path] = {"raw": raw, "text": text} if text else {"raw": raw}
        try:
            blobs = self._blobs.measure(arriving)
            _steps.reached("measured")
            facts = self._stamped(facts, *blobs)
            with self._catalog.locked() as db:
                try:
                    self._blobs.publish(zip(arriving.values(), blobs, strict=True))
                    with transaction(db):
                        self._note_reads(db)
                        rows.insert(db, self._run, facts, ranges, url, *blobs)
                except BaseException:
                    with contextlib.suppress(
                        OSError, sqlite3.Error
                    ):  # what cannot be removed now, gc will find
                        self._withdraw(db, blobs)
                    raise
                with contextlib.suppress(
                    OSError, sqlite3.Error
                ):  # the artifact is safe; gc will tell what is wrong
                    self._retain(db)
        except BaseException:
            self._blobs.discard(arriving.values())
            raise
        _steps.reached("put_done")
        return facts

    def get(self, ref_or_url: str) -> Facts:
        """Return the facts of an artifact; under a URL only of one that is whole, so that a lost one is fetched again."""
        with self._catalog.reading() as db:
            row = rows.find(db, ref_or_url, self._run)
            if row.ref != ref_or_url and not self._is_whole(db, row):
                raise UnknownRef("What was stored under this URL is lost.", "Fetch it again.")
        self._read[row.ref] = None
        return self._facts(row)

    def list(self, limit: int, offset: int) -> Listing:
        """Return a page of the run's artifacts, newest first."""
        with self._catalog.reading() as db:
            found = rows.newest(db, self._run, limit, offset)
            return Listing(tuple(self._facts(row) for row in found), rows.count(db, self._run))

    def open_text(self, ref_or_url: str) -> tuple[str, FileSource, StrideIndex, Ranges]:
        """Open the text of an artifact: its reference, bytes, index and ranges."""
        with self._catalog.reading() as db:
            row = rows.find(db, ref_or_url, self._run)
            if row.text is None:
                what = f"The artifact {row.ref} has no text: it is {row.facts().media_type}."
                raise NoText(what, "Read its facts with artifact_info.")
            blob = rows.blob(db, "text", row.text)
            index, ranges = self._text_index(db, row.text), rows.ranges(db, row)
        fd = self._open(blob, row.ref)
        self._read[row.ref] = None
        return row.ref, FileSource(fd), index, ranges

    def lend_raw(self, ref_or_url: str) -> Path:
        """Return a file with the raw bytes of an artifact, to be handed to ``take_back``.

        It is a hard link in the spool, so that it stays if the artifact goes meanwhile.
        """
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

    def take_back(self, path: Path) -> None:
        """Remove a file that was lent."""
        if path.parent == self.spool:
            path.unlink(missing_ok=True)

    def search(
        self, query: str, refs: Sequence[str], max_results: int, cancelled: Callable[[], bool]
    ) -> SearchResult:
        """Rank passages over these artifacts, or over the run, newest first."""
        if refs:
            return rank_texts(query, refs, self._stored_text, max_results, cancelled)
        with self._catalog.reading() as db:
            texts = rows.texts(db, self._run)
        if sum(size for _, _, size in texts) > INDEX_BYTES:
            by_hash = {sha256: ref for ref, sha256, _ in reversed(texts)}
            try:
                return SearchResult(
                    tuple(self._index.search(query, by_hash, self._stored_text, max_results))
                )
            except sqlite3.Error:  # no FTS5 here, or a damaged index: it is only a shortcut
                self._index.drop()
            except _LOST:
                pass
        refs = [ref for ref, _, _ in texts]
        return rank_texts(query, refs, self._text_if_kept, max_results, cancelled)

    def _stored_text(self, ref: str) -> StoredText:
        _, source, index, _ = self.open_text(ref)
        return StoredText(source, index)

    def _text_if_kept(self, ref: str) -> StoredText | None:
        """Open a text; None for one that gc took meanwhile or that was altered."""
        try:
            return self._stored_text(ref)
        except _LOST:
            return None

    def touch(self, ref: str, facts: Facts | None) -> Facts:
        """Make an artifact the one used last and keep it for a whole term from now; with ``facts``, replace the caller's own."""
        with self._catalog.locked() as db, transaction(db):
            self._note_reads(db)
            row = rows.find(db, ref, self._run)
            expires = self._clock.now() + self._limits.max_age_days * 86400
            rows.use(db, row.ref)
            rows.renew(db, row, keep_store_facts(facts or row.facts(), row.facts()), expires)
            return self._facts(rows.find(db, row.ref, self._run))

    def pin(self, ref: str, *, pinned: bool) -> Facts:
        """Pin an artifact, or lift its pin."""
        with self._catalog.locked() as db, transaction(db):
            row = rows.find(db, ref, self._run)
            rows.pin(db, row, pinned=pinned)
            return self._facts(rows.find(db, row.ref, self._run))

    def delete(self, ref: str) -> None:
        """Forget an artifact."""
        with self._catalog.locked(make_room=True) as db:
            row = rows.find(db, ref, self._run)
            self._remove(db, [row.ref], expired=False)

    def gc(self, *, dry_run: bool) -> tuple[Removed, ...]:
        """Apply retention, then remove files that no artifact names."""
        with self._catalog.locked(make_room=True) as db:
            with transaction(db):
                self._note_reads(db)
            settle(db)
            gone = self._due(db)
            if not dry_run:
                self._remove(db, [removed.artifact_ref for removed in gone], expired=True)
            known = rows.known(db)
            orphans = [file for file in self._blobs.files() if file[:2] not in known]
            for kind, name, _ in orphans if not dry_run else ():
                self._blobs.remove(kind, name)
        if not dry_run:
            self._index.forget([sha256 for kind, sha256 in known if kind == "text"])
            self._blobs.sweep_spool(all_of_it=False)
        _steps.reached("gc_done")
        return (*gone, *(Removed(f"{kind}/{name}", size, "orphan") for kind, name, size in orphans))

    def close(self) -> None:
        """Close. An ephemeral store removes its run, and the folder if then nothing is in it and nobody else has it open."""
        if self._closed:
            return
        self._closed = True
        try:
            try:
                empty = self._leave()
            finally:
                self._catalog.close()
            if empty:
                self._remove_folder()
        finally:
            self._presence.close()

    def _leave(self) -> bool:
        """Write down what was read, and remove an ephemeral run; return whether the folder is nobody's then."""
        if self._read:
            with self._catalog.locked() as db, transaction(db):
                self._note_reads(db)
        if not self._limits.ephemeral:
            return False
        with self._catalog.locked() as db:
            self._remove(db, rows.refs(db, self._run), expired=True)
            known = rows.known(db)
        self._index.forget([sha256 for kind, sha256 in known if kind == "text"])
        if not self._presence.alone():
            return False
        with self._catalog.reading() as db:
            return rows.is_empty(db)

    def _stamped(self, facts: Facts, raw: Blob, text: Blob | None = None) -> Facts:
        """Fill in the store's own facts."""
        if raw.size + (text.size if text else 0) > self._limits.max_total_bytes:
            raise TooLarge(
                "The document is larger than all that the store may keep.",
                "Raise store.max_total_bytes.",
            )
        index, days = text.index if text else None, self._limits.max_age_days
        facts = stamp(facts, raw.sha256, raw.size, index, now=self._clock.now(), max_age_days=days)
        shown = text or raw
        return replace(facts, path=str(self._blobs.path(shown.kind, shown.sha256)))

    def _withdraw(self, db: sqlite3.Connection, blobs: Iterable[Blob]) -> None:
        """Unlink what a failed put has renamed, unless an artifact names it."""
        try:
            settle(db)
        except sqlite3.OperationalError as error:
            if (
                error.sqlite_errorname != "SQLITE_FULL"
            ):  # a full disk took no whole commit; anything else may have
                raise
        known = rows.known(db)
        for blob in blobs:
            if (blob.kind, blob.sha256) not in known:
                self._blobs.remove(blob.kind, blob.sha256)

    def _facts(self, row: rows.Row) -> Facts:
        path = self._blobs.path("text", row.text) if row.text else self._blobs.path("raw", row.raw)
        return replace(row.facts(), path=str(path))

    def _open(self, blob: Blob, ref: str) -> int:
        try:
            return self._blobs.open(blob)
        except FileNotFoundError:
            with self._catalog.reading() as db:
                rows.find(db, ref, self._run)  # says so if gc took it since
            raise StoreError(
                f"The file of the artifact {ref} is missing.",
                "Fetch its document again, or run `fetchstash doctor`.",
            ) from None

    def _is_whole(self, db: sqlite3.Connection, row: rows.Row) -> bool:
        """Return whether an artifact's files are there, and not altered."""
        names: dict[Kind, str] = (
            {"raw": row.raw, "text": row.text} if row.text else {"raw": row.raw}
        )
        try:
            for kind, sha256 in names.items():
                os.close(self._blobs.open(rows.blob(db, kind, sha256)))
        except (FileNotFoundError, StoreError):
            return False
        return True

    def _text_index(self, db: sqlite3.Connection, sha256: str) -> StrideIndex:
        """Return a text's index; some stay at hand, as that of a large text is large. It never changes, as the text never does."""
        index = self._indices.get(sha256)
        if index is None:
            if len(self._indices) >= KEPT_INDICES:
                self._indices.clear()
            index = self._indices[sha256] = rows.index(db, sha256)
        return index

    def _note_reads(self, db: sqlite3.Connection) -> None:
        """Write down what was read since the last change, so that it is not the next to go."""
        read, self._read = self._read, {}
        for ref in read:
            rows.use(db, ref)

    def _retain(self, db: sqlite3.Connection) -> None:
        """Apply retention after a put."""
        if rows.is_due(db, self._run, self._limits, self._clock.oldest()):
            self._remove(db, [removed.artifact_ref for removed in self._due(db)], expired=True)

    def _due(self, db: sqlite3.Connection) -> Sequence[Removed]:
        """Return what retention removes: from this run, and what is too old in any other, since nobody may ever open that again."""
        oldest = self._clock.oldest()
        gone = plan(rows.candidates(db, self._run), self._limits, oldest)
        gone.extend(
            (candidate, "age") for candidate in rows.overdue(db, oldest, except_run=self._run)
        )
        return [Removed(candidate.ref, candidate.bytes, reason) for candidate, reason in gone]

    def _remove(self, db: sqlite3.Connection, refs: Iterable[str], *, expired: bool) -> None:
        """Forget artifacts, and then, still under the lock, unlink what no other artifact shares."""
        with transaction(db):
            unshared = [blob for ref in refs for blob in rows.forget(db, ref, expired=expired)]
        for kind, sha256 in unshared:
            self._blobs.remove(kind, sha256)
        _steps.reached("unlinked")

    def _remove_folder(self) -> None:
        """Remove the store, and the folder if nothing else is in it."""
        for path in (self._folder / name for name in _OWN_NAMES):
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(
                    missing_ok=True
                )  # at last the one that others wait for: they see that it is gone, and begin anew
        with contextlib.suppress(OSError):
            self._folder.rmdir()


def refuse_foreign(folder: Path) -> None:
    """Raise StoreError for a folder that holds something and is no store: gc would take it for strays."""
    try:
        foreign = [path.name for path in folder.iterdir() if path.name not in _OWN_NAMES]
    except (FileNotFoundError, NotADirectoryError):
        return
    foreign += [f"{kind}/{path.name}" for kind in KINDS for path in (folder / kind).glob("*")]
    if (
        foreign and not (folder / "catalog.db").exists()
    ):  # asked for last, as another process may be making it
        raise StoreError(
            f"{folder} is no store and not empty: it holds {foreign[0]}.",
            "Set store.folder to a folder of its own; if this was a store, `fetchstash doctor --repair` makes it one again.",
        )
