"""A store in memory, for tests and for programs that keep nothing. Only its spool is a folder."""

import sqlite3
import tempfile
import weakref
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import TypeVar

from fetchstash.store import _rows as rows
from fetchstash.store._blobs import Blob, Blobs, Kind, lost
from fetchstash.store._bytes import BytesSearch
from fetchstash.store._catalog import Connection, transaction
from fetchstash.store._catalog_reads import Search
from fetchstash.store._catalog_store import NO_FILES, CatalogStore, Change
from fetchstash.store._limits import ALL_RUNS, StoreLimits
from fetchstash.store._schema import take_steps
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


class _MemoryBlobs(Blobs):
    """Blobs in memory. Files on their way in are in a folder."""

    def __init__(self) -> None:
        super().__init__(Path(tempfile.mkdtemp(prefix="fetchstash-")).resolve())
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
        path = self.new_file()
        path.write_bytes(self.open(blob, ref).read(0, blob.size))
        return path

    def remove(self, kind: Kind, sha256: str) -> None:
        self._data.pop((kind, sha256), None)

    def close(self) -> None:
        """Remove the folder."""
        remove_tree(self.folder)


class MemoryStore(CatalogStore):
    """An ArtifactStore in memory. It ends with the process, or when nobody refers to it."""

    _bytes: _MemoryBlobs

    def __init__(self, limits: StoreLimits, threads: Threads) -> None:
        super().__init__(limits, _MemoryCatalog(), _MemoryBlobs(), threads)

    def _change(
        self,
        work: Callable[[Change], T],
        files: Mapping[Path, Blob] = NO_FILES,
        *,
        frees: bool = False,
    ) -> T:
        del frees
        blobs = list(files.values())
        with self._reads.connection() as db:
            for blob in blobs:
                rows.insert_blob(db, blob)
            change = Change(db, blobs)
            made = work(change)
            self._bytes.write(files)  # nobody sees the rows before this ends
            for kind, sha256 in change.unnamed:
                self._bytes.remove(kind, sha256)
        return made

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
    def remove(self) -> None:
        self._remove_run(ALL_RUNS)

    def _close(self) -> None:
        self._end_run()
        self._bytes.close()
