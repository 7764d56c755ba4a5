"""The store in a folder.

put   Both files are hashed and synced. Then, under the lock, they are renamed. While their folders
      are synced the row is inserted. When they are, the row is committed, then the sidecar is
      written. Only then is the put acknowledged.
gc    Under the lock sidecars are removed, rows are deleted and committed, and then files unlinked.
      A crash between the two leaves a file without a row, which the next gc finds by listing the
      folders. As both happen under one lock, no put can claim a file that is about to be unlinked,
      and before files are taken for orphans the log is settled (_catalog.py).
"""

import contextlib
import os
import sqlite3
import stat
import sys
import tempfile
import time
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self, TypeVar

from fetchstash.errors import StoreError
from fetchstash.store import _disk as disk, _rows as rows
from fetchstash.store._blobs import Blob, Kind
from fetchstash.store._catalog import Catalog, Connection, settle, transaction
from fetchstash.store._catalog_reads import KEPT, Known, Search
from fetchstash.store._catalog_store import NO_FILES, CatalogStore, Change
from fetchstash.store._clock import clock, read_now
from fetchstash.store._contract import Facts, Finding, Removed, SearchResult
from fetchstash.store._disk import (
    MIN_FREE_BYTES,
    is_full,
    locked_now,
    no_text,
    private_file,
    translate_errors,
)
from fetchstash.store._health import check_folder, repair_folder
from fetchstash.store._limits import ALL_RUNS, StoreLimits, View, own_run
from fetchstash.store._place import Place
from fetchstash.store._reader import TextReader
from fetchstash.store._search import RunTexts, SearchIndex
from fetchstash.store._text import FileSource, StoredText
from fetchstash.store._threads import Threads, in_thread
from fetchstash.system.processes import remove_tree

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _FolderSearch:
    """A search over texts of a folder, or over the run of a view where ``refs`` is empty."""

    limits: StoreLimits
    view: View
    query: str
    refs: tuple[str, ...]
    max_results: int

    def open(self) -> "LocalStore":
        """Open the store in this process, which deletes nothing of it."""
        run = self.view.lists
        return LocalStore(replace(self.limits, run=run, ephemeral=False), Threads())

    def run(self, opened: "LocalStore", cancelled: Callable[[], bool]) -> SearchResult:
        return opened.seen_from(self.view).search_here(self, cancelled)


class LocalStore(CatalogStore):
    """An ArtifactStore in a folder. Making one blocks."""

    def __init__(self, limits: StoreLimits, threads: Threads) -> None:
        run = own_run(limits)
        self._place = Place(limits.folder, run if limits.ephemeral else None)
        self._blobs, self._catalog = self._place.blobs, self._place.catalog
        self._index = SearchIndex(self._place.path)
        super().__init__(replace(limits, run=run), self._catalog, self._blobs, threads)
        self._texts: dict[str, RunTexts] = {}  # by their run
        self._remove_abandoned_runs()

    @classmethod
    async def open(cls, limits: StoreLimits, threads: Threads | None = None) -> Self:
        """Open the store in ``limits.folder``, making or migrating it. Raises StoreError, Busy."""
        threads = threads or Threads()
        return await threads.run(lambda: cls(limits, threads))

    async def get(self, ref_or_url: str) -> Facts:  # type: ignore[override] # as in_thread says
        ref, version = self._led.get(ref_or_url, (ref_or_url, None))
        known = self._unchanged(ref)
        facts = known.facts if known and version in (None, known.version) else None
        if known and facts and (version is None or self._is_whole(known.row, facts)):
            self._read[ref] = None
            return facts
        return await super().get(ref_or_url)

    def _is_whole(self, row: rows.Row, facts: Facts) -> bool:
        """Return whether the files of an artifact are unchanged by size and time."""
        try:
            is_whole = self._blobs.path("raw", row.raw).stat().st_size == facts.size_bytes
            if blob := row.text_blob:
                status = self._blobs.path("text", blob.sha256).stat()
                is_whole &= (status.st_size, status.st_mtime_ns) == (blob.size, blob.modified_ns)
        except (OSError, StoreError):
            return False
        return is_whole

    async def open_artifact(self, ref_or_url: str) -> tuple[Facts, TextReader | None]:
        """Return the facts and the text. Unchanged texts that were read before need no thread."""
        known = self._unchanged(ref_or_url)
        blob = known.row.text_blob if known else None
        if known and known.facts and known.text and blob:
            with contextlib.suppress(OSError, StoreError):
                fd, status = disk.open_with_status(self._blobs.path(blob.kind, blob.sha256))
                if (status.st_size, status.st_mtime_ns) == (blob.size, blob.modified_ns):
                    self._read[ref_or_url] = None
                    text = FileSource(fd), *known.text
                    return known.facts, TextReader(ref_or_url, *text, self._threads)
                os.close(fd)
        return await super().open_artifact(ref_or_url)

    def _unchanged(self, ref_or_url: str) -> Known | None:
        """Return what was read of a reference earlier, if the store has not changed since.

        The same is asked for one that was never read: an expired one and a guess cost alike.
        """
        self._check_usable()
        version, known = self._catalog.version(), self._kept.get(ref_or_url)
        is_known = known and version is not None and known.version == version
        return known if is_known and known and not known.row.seems_over else None

    def _find(self, ref_or_url: str) -> rows.Row:
        version = self._catalog.version()
        row = super()._find(ref_or_url)
        self._known(row).version = version
        if ref_or_url != row.ref and version is not None:
            if len(self._led) >= KEPT:
                self._led.clear()
            self._led[ref_or_url] = row.ref, version
        return row

    @property
    def spool(self) -> Path:
        self._check_usable()
        if not (self._place.path / "spool").is_dir():
            with translate_errors():
                self._follow()
                self._place.make_folders()
        return self._blobs.spool

    def _follow(self) -> None:
        self._place.follow()

    def _check_room(self) -> None:
        if is_full(self._place.path):
            least = f"less than {MIN_FREE_BYTES // 2**20} MiB are free"
            raise StoreError(f"The disk of the store is full: {least}.", "Make room on it.")

    def _change(
        self,
        work: Callable[[Change], T],
        files: Mapping[Path, Blob] = NO_FILES,
        *,
        frees: bool = False,
    ) -> T:
        """Rename the files, make the change and its sidecars, then unlink what nothing names."""
        sidecars, blobs = self._place.sidecars, list(files.values())
        with self._catalog.locked(make_room=frees) as db:
            change = Change(db, blobs)
            published = self._blobs.published(files.items()) if files else nullcontext()
            try:
                with transaction(db), published:
                    for blob in blobs:
                        rows.insert_blob(db, blob)
                    made = work(change)
                    before = self._catalog.version() if change.renewed else None
                    sidecars.remove(change.forgotten)
                    records = [rows.record(db, ref) for ref in change.written]
            except BaseException:
                # gc removes later what cannot be removed now.
                with contextlib.suppress(OSError, sqlite3.Error, StoreError):
                    if files:
                        self._withdraw(db, blobs)
                raise
            if change.renewed:  # nobody else has changed anything since
                ref, version = change.renewed.row.ref, self._catalog.version()
                change.renewed.version = version
                same = [url for url, led in list(self._led.items()) if led == (ref, before)]
                self._led.update(dict.fromkeys(same, (ref, version)))
            for record in records:
                sidecars.write(record)
            try:
                self._catalog.check_current(db)
            except StoreError:  # the folder is another's by now: take back what was written there
                sidecars.remove(change.written)
                raise
            # An artifact is safe by now: a failure here is gc's to report.
            with contextlib.suppress(OSError) if files else nullcontext():
                for kind, sha256 in change.unnamed:
                    self._blobs.remove(kind, sha256)
            if not files:
                disk.reached("unlinked")
        if files:
            disk.reached("put_done")
        return made

    def _search_job(self, query: str, refs: Sequence[str], max_results: int) -> Search:
        texts = self._named_texts(refs) if refs else self._run_texts()
        # A run is not added up: where one text is missing, others are likely to be.
        size = texts.bytes if self._index.missing(texts.refs) else 0
        return _FolderSearch(self._limits, self._view, query, tuple(refs), max_results), size, self

    def search_here(self, job: "_FolderSearch", cancelled: Callable[[], bool]) -> SearchResult:
        """Run a search in this process."""
        self._follow()
        texts = self._named_texts(job.refs) if job.refs else self._run_texts()
        opened, named = self._stored_text, bool(job.refs)
        return self._index.search(job.query, texts, opened, job.max_results, cancelled, named=named)

    def _named_texts(self, refs: Sequence[str]) -> RunTexts:
        blobs = {self._text_blob(ref): ref for ref in refs}
        texts = {blob.sha256: ref for blob, ref in blobs.items()}
        return RunTexts(texts, sum(blob.size for blob in blobs))

    def _stored_text(self, ref: str) -> StoredText:
        """Open a text for a search, without counting as a use of its artifact."""
        row, text = self._opened(ref)
        if text is None:
            raise no_text(row.ref)
        source, index, _ = text
        return StoredText(source, index)

    def _run_texts(self) -> RunTexts:
        """Return the texts of the run. They are kept until it changes: 100,000 take a second."""
        with self._catalog.reading() as db:
            run = self._view.lists
            now = read_now(db)
            state, known = rows.run_state(db, run, now), self._texts.get(run)
            if known is None or known.state != state:
                refs: dict[str, str] = {}
                size = 0
                for ref, sha256, text_bytes in rows.texts(db, run, now):
                    refs.setdefault(sha256, ref)
                    size += text_bytes
                known = self._texts[run] = RunTexts(refs, size, state)
            return known

    @in_thread
    def _sweep(self, *, dry_run: bool) -> tuple[int, Sequence[Removed]]:
        """Remove the files that no artifact names; those of a lost row are left for repair."""
        with self._catalog.locked(make_room=True) as db:
            settle(db)
            now, known = clock(db).now, rows.known(db)
            sidecars = self._place.sidecars
            lost = sidecars.blobs(set(sidecars.refs()).difference(rows.refs(db)))
            orphans = [f for f in self._blobs.files() if f[:2] not in known and f[:2] not in lost]
            self._catalog.check_current(db)
            if not dry_run:
                for kind, name, _ in orphans:
                    self._blobs.remove(kind, name)
        if not dry_run:
            self._index.forget([sha256 for kind, sha256 in known if kind == "text"])
            self._blobs.sweep_spool(now)
            self._remove_abandoned_runs()
        disk.reached("gc_done")
        if self._view.refs != ALL_RUNS:  # a file's name is the hash of what another had
            return len(orphans), ()
        shown = [Removed(f"{kind}/{name}", size, "orphan") for kind, name, size in orphans]
        return len(orphans), shown

    def _remove_abandoned_runs(self) -> None:
        """Remove the ephemeral runs whose process ended without doing so."""
        for lease in self._place.leases():
            with locked_now(lease) as abandoned:
                if abandoned:
                    run = lease.read_text(encoding="utf-8", errors="replace")
                    if run:
                        self._remove_run(run)
                    lease.unlink()

    def _remove_run(self, run: str) -> None:
        """Remove all artifacts of a run, and the index if it has their words."""
        super()._remove_run(run)
        with self._catalog.reading() as db:
            known = rows.known(db)
        self._index.forget([sha256 for kind, sha256 in known if kind == "text"])

    @in_thread
    def check(self) -> tuple[Finding, ...]:
        return check_folder(self._place.path)

    @in_thread
    def repair(self) -> tuple[Finding, ...]:
        return repair_folder(self._place.path)

    @in_thread
    def remove(self) -> None:
        """Remove all artifacts now; the last process that closes the folder removes it."""
        self._remove_run(ALL_RUNS)
        for log in self._place.path.glob("calls.jsonl*"):
            log.unlink()
        private_file(self._place.removed)

    def _close(self) -> None:
        self._index.close()
        try:
            try:
                with contextlib.suppress(FileNotFoundError):  # somebody removed the folder
                    self._end_run()
                is_unused = False
                if self._limits.ephemeral:
                    self._place.end_lease()
                if self._limits.ephemeral or self._place.removed.exists():
                    with self._catalog.reading() as db:
                        is_unused = self._place.alone() and not rows.refs(db)
            finally:
                self._catalog.close()
            if is_unused:
                self._place.remove()
        finally:
            self._place.close()

    def _withdraw(self, db: Connection, blobs: Iterable[Blob]) -> None:
        """Unlink what a failed change has renamed, unless an artifact names it."""
        try:
            settle(db)
        except sqlite3.OperationalError as error:
            # A full disk took no whole commit; anything else may have.
            if error.sqlite_errorname != "SQLITE_FULL":
                raise
        known = rows.known(db)
        self._catalog.check_current(db)
        for blob in blobs:
            if (blob.kind, blob.sha256) not in known:
                self._blobs.remove(blob.kind, blob.sha256)

    def _shown_path(self, kind: Kind, sha256: str) -> str:
        return str(self._blobs.path(kind, sha256))


_TEMPORARY = "fetchstash-memory-"
_NEW_SECONDS = 60
"""A folder that is younger may not have been taken yet by who made it."""


def _remove_left_behind() -> None:
    """Remove the folders of killed processes. Windows does not show which are open."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_TEMPORARY}*"):
        with contextlib.suppress(OSError, StoreError):
            status = folder.lstat()
            is_new = time.time() - status.st_mtime < _NEW_SECONDS
            if sys.platform == "win32" or is_new or status.st_uid != os.geteuid():
                continue
            if stat.S_ISDIR(status.st_mode):  # nothing is written behind a link
                with locked_now(folder / "in-use") as is_left:
                    if is_left:
                        remove_tree(folder)


class TemporaryStore(LocalStore):
    """A store that keeps nothing: its folder goes when it is closed, or when nobody refers to it.

    At the latest it goes at the end of the process, or where that was killed with the next one.
    """

    def __init__(self, limits: StoreLimits, threads: Threads) -> None:
        _remove_left_behind()
        folder = Path(tempfile.mkdtemp(prefix=_TEMPORARY))
        super().__init__(replace(limits, folder=folder), threads)
        # Not of this object: a copy of it, which somebody else sees, may outlive it.
        self._end = weakref.finalize(self._place, _end, self._catalog, folder)

    def _close(self) -> None:
        super()._close()
        self._end()


def _end(catalog: Catalog, folder: Path) -> None:
    catalog.close()
    remove_tree(folder)
