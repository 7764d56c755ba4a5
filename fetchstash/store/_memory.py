"""A store in memory, for tests and for programs that keep nothing. Only its spool is a folder."""

import sqlite3
import tempfile
import weakref
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from threading import Lock
from typing import TypeVar

from fetchstash.store import _retention as retention, _rows as rows
from fetchstash.store._blobs import Blob, Blobs, FolderBytes, Kind, lost
from fetchstash.store._bytes import BytesSearch
from fetchstash.store._catalog import Connection, transaction
from fetchstash.store._catalog_store import CatalogStore, Change, Search
from fetchstash.store._contract import Finding, Removed
from fetchstash.store._limits import ALL_RUNS, StoreLimits
from fetchstash.store._schema import Db, take_steps
from fetchstash.store._search import SearchIndex
from fetchstash.store._text import BytesSource
from fetchstash.store._threads import Threads, in_thread
from fetchstash.system.processes import remove_tree

T = TypeVar("T")


class _MemoryCatalog:
    """The catalogue of a folder, without one: a connection that threads take turns at."""

    def __init__(self) -> None:
        self._turn = Lock()
        self._db = sqlite3.connect(
            ":memory:", isolation_level=None, check_same_thread=False, factory=Connection
        )
        weakref.finalize(self, self._db.close)  # nobody has to close a store in memory
        list(take_steps(self._db, 0))

    @contextmanager
    def connection(self) -> Generator[Connection]:
        """Lend the connection in a transaction."""
        with self._turn, transaction(self._db):
            yield self._db

    reading = connection


class _MemoryBytes(FolderBytes):
    """Blobs in memory. Files on their way in are in a folder."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="fetchstash-"))
        super().__init__(Blobs(self.folder.resolve()), SearchIndex())
        self._data: dict[tuple[Kind, str], bytes] = {}

    def write(self, files: Mapping[Path, Blob]) -> None:
        for path, blob in files.items():
            self._data[blob.kind, blob.sha256] = path.read_bytes()

    def are_there(self, blobs: Sequence[Blob]) -> bool:
        return all((blob.kind, blob.sha256) in self._data for blob in blobs)

    def open(self, blob: Blob, ref: str) -> BytesSource:
        try:
            return BytesSource(self._data[blob.kind, blob.sha256])
        except KeyError:
            raise lost(ref) from None

    def lend(self, blob: Blob, ref: str) -> Path:
        path = self._new_file()
        path.write_bytes(self.open(blob, ref).read(0, blob.size))
        return path

    def remove(self, kind: Kind, sha256: str) -> None:
        self._data.pop((kind, sha256), None)

    def close(self) -> None:
        """Remove the folder."""
        remove_tree(self.folder)


class MemoryStore(CatalogStore):
    """An ArtifactStore in memory. It ends with the process, or when nobody refers to it."""

    _bytes: _MemoryBytes

    def __init__(self, limits: StoreLimits, threads: Threads) -> None:
        catalog = _MemoryCatalog()
        super().__init__(limits, catalog, _MemoryBytes(), threads)

    @property
    def spool(self) -> Path:
        """A private temporary folder, removed by ``aclose``."""
        return self._bytes.spool

    def _follow(self) -> None:
        """Do nothing: nobody can move it."""

    def _changing(self, ref: str) -> AbstractContextManager[Db]:
        del ref
        return self._reads.connection()

    def _write(self, files: Mapping[Path, Blob], change: Change[T], *, is_put: bool) -> T:
        blobs = list(files.values())
        with self._reads.connection() as db:
            for blob in blobs:
                rows.insert_blob(db, blob)
            changed = change(db, blobs)
            self._bytes.write(files)  # nobody sees the rows before this ends
            if changed.unnamed_text:
                self._bytes.remove("text", changed.unnamed_text)
            if is_put:
                due = retention.due(db, retention.believed_now(db), self._limits)
                self._forget(db, [item.artifact_ref for item in due], expired=True)
                retention.report(due)
        return changed.made

    def _forget(self, db: Db, refs: Iterable[str], *, expired: bool) -> None:
        for ref in refs:
            for kind, sha256 in rows.forget(db, ref, expired=expired):
                self._bytes.remove(kind, sha256)

    def _search_job(self, query: str, refs: Sequence[str], max_results: int) -> Search:
        texts = {ref: self._text_blob(ref) for ref in refs}
        if not refs:
            with self._reads.reading() as db:
                found = rows.texts(db, self._view.lists)
            newest = {sha256: (ref, size) for ref, sha256, size in reversed(found)}
            texts = {
                ref: Blob("text", sha256, size, 0)
                for sha256, (ref, size) in reversed(newest.items())
            }
        # No other process has these texts: all of it is ranked here.
        return BytesSearch(self._limits, texts, query, max_results, bool(refs)), 0, self._bytes

    @property
    def _search_key(self) -> Path:
        return self._bytes.folder

    @in_thread
    def delete(self, ref: str) -> None:
        with self._reads.connection() as db:
            self._forget(db, [rows.find(db, ref, self._view).ref], expired=False)

    @in_thread
    def gc(self, *, dry_run: bool = False) -> tuple[Removed, ...]:
        with self._reads.connection() as db:
            self._record_reads(db)
            due = retention.due(db, retention.believed_now(db), self._limits, None)
            shown = tuple(self._shown(db, due))
            if not dry_run:
                self._forget(db, [item.artifact_ref for item in due], expired=True)
                retention.report(due)
        return shown

    async def check(self) -> tuple[Finding, ...]:
        """Return nothing: memory is not damaged."""
        return ()

    repair = check

    @in_thread
    def remove(self) -> None:
        with self._reads.connection() as db:
            self._forget(db, rows.refs(db, ALL_RUNS), expired=True)

    def _close(self) -> None:
        if self._limits.ephemeral:
            with self._reads.connection() as db:
                self._forget(db, rows.refs(db, self._view.puts), expired=True)
        self._bytes.close()
