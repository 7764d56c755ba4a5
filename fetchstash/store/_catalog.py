"""The catalogue of a folder: SQLite in WAL mode, every write under one lock.

SQLite 3.7.0 to 3.51.2 can corrupt a WAL that one process resets while another writes
(https://sqlite.org/wal.html, the WAL-reset bug), and Python links such a version on many machines.
So every write transaction runs under a lock of ours, and so does the checkpoint that SQLite makes
after a commit when the log has grown. Readers need no lock.

The index of the log is mapped memory. Where a write to it may end the process on a full disk, the
catalogue has a rollback journal instead (https://sqlite.org/lockingv3.html).
"""

import contextlib
import sqlite3
from collections.abc import Generator
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Lock

from fetchstash.errors import StoreError
from fetchstash.store import _disk as disk, _schema
from fetchstash.store._disk import (
    REPAIR,
    can_map_on_full_disk,
    free_unlinked_blocks,
    is_disk_full,
    is_full,
    locked,
    private_file,
)
from fetchstash.store._schema import SQLITE, take_steps


def version(db: sqlite3.Connection) -> int:
    """Return a change counter, None if it cannot be read without blocking."""
    return int(db.execute("PRAGMA user_version").fetchone()[0])


CHECKPOINT_PAGES = 1000
LOG_BYTES = 4 * 2**20
RESERVE_BYTES = 2 * 2**20

Identity = tuple[int, int]


class Connection(sqlite3.Connection):
    """A connection that remembers its file's inode."""

    dialect = SQLITE
    identity: Identity = (0, 0)


class Catalog:
    """Connections to the catalogue, one for each thread that needs one at the moment.

    A connection whose file was moved or deleted is not used again.
    """

    def __init__(self, path: Path, lock: Path) -> None:
        self._path = path
        self._lock = lock
        self._reserve = path.with_name("reserve")
        self._reserve_given_up = False
        self._idle: SimpleQueue[Connection] = SimpleQueue()
        self._watch: Connection | None = None
        self._watching = Lock()

    def prepare(self) -> None:
        """Make or migrate the file where needed. Raises StoreError for one of a newer version."""
        if self._path.exists() and self._path.stat().st_size:
            private_file(self._path)
            with self.connection() as db:
                if version(db) == len(_schema.STEPS):
                    return
        with locked(self._lock):
            private_file(self._path)
            with self.connection() as db:
                journal = "WAL" if can_map_on_full_disk(self._path.parent) else "TRUNCATE"
                with contextlib.suppress(sqlite3.OperationalError):  # others read it: not now
                    db.execute(f"PRAGMA journal_mode = {journal}").fetchone()
                with transaction(db):
                    for number in take_steps(db, version(db)):
                        db.execute(f"PRAGMA user_version = {number}")
            self._drop_connections()  # they still have the journal that the file had before
            self._fill_reserve()

    @contextlib.contextmanager
    def reading(self) -> Generator[Connection]:
        """Yield a connection for reading one consistent state."""
        with self.connection() as db:
            db.execute("BEGIN")
            try:
                yield db
            finally:
                db.execute("ROLLBACK")

    @contextlib.contextmanager
    def locked(self, *, make_room: bool = False) -> Generator[Connection]:
        """Hold the store's lock; yield a connection for changing rows and their files.

        ``make_room``: the change frees disk space, and may use the reserve for it. Raises
        StoreError at the end if the catalogue was moved or deleted meanwhile.
        """
        with locked(self._lock):
            disk.reached("locked")
            reserve = self._open_reserve() if make_room else contextlib.nullcontext()
            with self.connection(check_after=True) as db, reserve:
                yield db

    @contextlib.contextmanager
    def _open_reserve(self) -> Generator[None]:
        """Free the reserved disk space meanwhile, because SQLite writes even to delete."""
        self._give_up_reserve()
        try:
            yield
        finally:
            self._fill_reserve()

    def _give_up_reserve(self) -> None:
        self._reserve_given_up = True
        with contextlib.suppress(OSError):
            self._reserve.unlink()  # not truncated: a full btrfs refuses that
            free_unlinked_blocks(self._path.parent)

    def _fill_reserve(self) -> None:
        self._reserve_given_up = False
        with contextlib.suppress(OSError):
            private_file(self._reserve)
            self._reserve.write_bytes(bytes(RESERVE_BYTES))

    def close(self) -> None:
        """Close all connections, under the lock: SQLite checkpoints when the last one closes."""
        with contextlib.ExitStack() as stack:
            with contextlib.suppress(FileNotFoundError):  # the folder is gone: nothing to guard
                stack.enter_context(locked(self._lock))
            self._drop_connections()
        if self._reserve_given_up:
            self._fill_reserve()

    def version(self) -> object:
        """Return a counter that changes with each commit, None where it cannot be read at once.

        It waits for no disk: one connection, which never writes, looks at SQLite's own counter
        (https://sqlite.org/pragma.html#pragma_data_version).
        """
        if not self._watching.acquire(blocking=False):
            return None
        try:
            identity = self._identity()
            if self._watch is None or self._watch.identity != identity:
                self._stop_watching()
                self._watch = connect(self._path)
                self._watch.identity = identity
                self._watch.execute("PRAGMA busy_timeout = 0")
            (number,) = self._watch.execute("PRAGMA data_version").fetchone()
        except (sqlite3.Error, StoreError):
            self._stop_watching()
            return None
        finally:
            self._watching.release()
        return identity, id(self._watch), number

    def _stop_watching(self) -> None:
        if self._watch:
            self._watch.close()
            self._watch = None

    def _drop_connections(self) -> None:
        with self._watching:
            self._stop_watching()
        with contextlib.suppress(Empty):
            while True:
                self._idle.get_nowait().close()

    @contextlib.contextmanager
    def connection(self, *, check_after: bool = False) -> Generator[Connection]:
        """Yield a connection. Each statement by itself sees one consistent state.

        ``check_after``: raise StoreError at the end if the file was moved or deleted meanwhile.
        """
        identity = self._identity()
        db = self._idle_connection(identity) or self._connect()
        db.identity = identity
        try:
            yield db
            if check_after:
                self.check_current(db)
        except sqlite3.Error:
            db.close()  # whatever state it is in
            raise
        except BaseException:
            self._idle.put(db)  # the caller's own error: whatever it began is rolled back
            raise
        self._idle.put(db)

    def check_current(self, db: Connection) -> None:
        """Raise StoreError if the catalogue of a connection was moved or deleted.

        Asked before files are unlinked: by then the folder may be another's.
        """
        if self._identity() != db.identity:
            raise StoreError(
                "The folder of the store was moved or deleted meanwhile.",
                "Try again: it is opened anew.",
            )

    def _identity(self) -> Identity:
        """Return the file's identity (device and inode). Raises StoreError if it is missing."""
        try:
            status = self._path.stat()
        except FileNotFoundError:
            raise StoreError(
                "The catalogue of the store is missing.",
                "{}: that makes a new one out of the stored files.",
                REPAIR,
            ) from None
        return status.st_dev, status.st_ino

    def _idle_connection(self, identity: Identity) -> Connection | None:
        with contextlib.suppress(Empty):
            while True:
                db = self._idle.get_nowait()
                if db.identity == identity:
                    return db
                db.close()
        return None

    def _connect(self) -> Connection:
        """Open the catalogue, on a full disk too: SQLite writes shared memory even to read."""
        try:
            return connect(self._path)
        except sqlite3.OperationalError as error:
            # SQLite cannot open the catalogue where it cannot make the files of its log.
            if not is_disk_full(error) and not is_full(self._path.parent):
                raise
        self._give_up_reserve()
        return connect(self._path)


def connect(path: Path) -> Connection:
    """Open the catalogue. A commit is on the disk when it returns."""
    # mode=rw: a catalogue that somebody removed is an error, not an empty one
    db = sqlite3.connect(
        f"{path.as_uri()}?mode=rw",
        uri=True,
        timeout=5,
        # Transactions are begun by hand: sqlite3 would begin them deferred.
        isolation_level=None,
        # Threads take turns at a connection: ``Catalog`` lends it to one at a time.
        check_same_thread=False,
        factory=Connection,
    )
    try:
        (journal,) = db.execute("PRAGMA journal_mode").fetchone()
        if journal == "wal":
            db.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}").fetchone()
            # A log that is moved is overwritten, not made anew: fdatasync(2) is quicker where the
            # file need not grow.
            db.execute(f"PRAGMA journal_size_limit = {LOG_BYTES}").fetchone()
        else:
            db.execute("PRAGMA journal_mode = TRUNCATE").fetchone()
        # With NORMAL a power cut may take back commits of a WAL that were acknowledged
        # (https://sqlite.org/pragma.html#pragma_synchronous).
        db.execute("PRAGMA synchronous = FULL")
        # On macOS fsync(2) leaves the bytes in the drive's cache.
        db.execute("PRAGMA fullfsync = ON")
    except BaseException:
        db.close()
        raise
    return db


def settle(db: sqlite3.Connection) -> None:
    """Commit something, so that a killed process's commit takes effect or never can.

    Such a commit may stand whole in the log and not in the log's index. Nobody sees it until the
    next process that opens the catalogue alone reads the log again. So it must be overwritten
    before files are unlinked because no row names them (https://sqlite.org/walformat.html,
    sections 2.2 and 4.4).
    """
    with transaction(db):
        db.execute("INSERT OR REPLACE INTO setting VALUES ('settled', randomblob(8))")


@contextlib.contextmanager
def transaction(db: sqlite3.Connection) -> Generator[None]:
    """Commit at the end, or roll everything back. The caller holds the store's lock."""
    # A deferred transaction that reads first may fail with SQLITE_BUSY at its first write
    # (https://sqlite.org/lang_transaction.html, section 2.2).
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        with contextlib.suppress(sqlite3.Error):  # a full disk has rolled it back already
            db.execute("ROLLBACK")
        raise
    disk.reached("committed")
