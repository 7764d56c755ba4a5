"""The catalogue: one SQLite file in WAL mode that several processes share.

SQLite 3.7.0 to 3.51.2 can corrupt a WAL that one process resets while another writes
(https://sqlite.org/wal.html, the WAL-reset bug), and Python links such a version on many machines.
So every write transaction runs under one lock of ours, and with it the checkpoint that SQLite makes
after a commit when the log has grown. Readers need no lock.
"""

import contextlib
import os
import sqlite3
from collections.abc import Generator
from pathlib import Path
from queue import Empty, SimpleQueue

from fetchstash.store import _steps
from fetchstash.store._disk import is_of_full_disk, locked, private_file
from fetchstash.store._schema import STEPS, migrate, version

CHECKPOINT_PAGES = 1000
LOG_BYTES = 4 * 2**20
RESERVE_BYTES = 512 * 2**10


class Catalog:
    """Connections to the catalogue, one for each thread that needs one at the moment."""

    def __init__(self, path: Path, lock: Path) -> None:
        self._path = path
        self._lock = lock
        self._reserve = path.with_name("reserve")
        self._reserve_given_up = False
        self._idle: SimpleQueue[sqlite3.Connection] = SimpleQueue()

    def prepare(self) -> None:
        """Make or migrate the file where that must be. Raises StoreError where it is a newer one, or somebody else's."""
        if self._path.exists() and self._path.stat().st_size:
            private_file(self._path)
            with self._connection() as db:
                if version(db) == len(STEPS):
                    return
        with locked(self._lock):
            private_file(self._path)
            with self._connection() as db, transaction(db):
                migrate(db)
            self._fill_reserve()

    @contextlib.contextmanager
    def reading(self) -> Generator[sqlite3.Connection]:
        """Lend a connection to read one consistent state with."""
        with self._connection() as db:
            db.execute("BEGIN")
            try:
                yield db
            finally:
                db.execute("ROLLBACK")

    @contextlib.contextmanager
    def locked(self, *, make_room: bool = False) -> Generator[sqlite3.Connection]:
        """Hold the store's lock and lend a connection, for write transactions and for the files that go with them.

        ``make_room``: what is done will free disk space, and may use the reserve for it.
        """
        with locked(self._lock):
            _steps.reached("locked")
            with (
                self._connection() as db,
                self._reserve_open() if make_room else contextlib.nullcontext(),
            ):
                yield db

    @contextlib.contextmanager
    def _reserve_open(self) -> Generator[None]:
        """Give up the reserve meanwhile: even to delete something SQLite must write, which a full disk would not let it."""
        self._give_up_reserve()
        try:
            yield
        finally:
            self._fill_reserve()

    def _give_up_reserve(self) -> None:
        self._reserve_given_up = True
        with contextlib.suppress(OSError):
            os.truncate(self._reserve, 0)

    def _fill_reserve(self) -> None:
        self._reserve_given_up = False
        with contextlib.suppress(OSError):
            private_file(self._reserve)
            self._reserve.write_bytes(bytes(RESERVE_BYTES))

    def close(self) -> None:
        """Close all connections. SQLite checkpoints when the last one closes, so this too needs the lock."""
        with contextlib.ExitStack() as held:
            with contextlib.suppress(
                FileNotFoundError
            ):  # somebody removed the folder: there is nothing left to guard
                held.enter_context(locked(self._lock))
            with contextlib.suppress(Empty):
                while True:
                    self._idle.get_nowait().close()
        if self._reserve_given_up:
            self._fill_reserve()

    @contextlib.contextmanager
    def _connection(self) -> Generator[sqlite3.Connection]:
        try:
            db = self._idle.get_nowait()
        except Empty:
            db = self._connect()
        try:
            yield db
        except sqlite3.Error:
            db.close()  # whatever state it is in
            raise
        except BaseException:
            self._idle.put(db)
            raise
        self._idle.put(db)

    def _connect(self) -> sqlite3.Connection:
        """Open the catalogue, on a full disk, too: SQLite must write even to read, into the memory that processes share."""
        try:
            return connect(self._path)
        except sqlite3.OperationalError as error:
            if not is_of_full_disk(error):
                raise
        self._give_up_reserve()
        return connect(self._path)


def connect(path: Path) -> sqlite3.Connection:
    """Open the catalogue; a commit is on the disk when it returns."""
    # mode=rw: a catalogue that somebody removed is an error, not an empty one
    db = sqlite3.connect(
        f"{path.as_uri()}?mode=rw",
        uri=True,
        timeout=5,
        isolation_level=None,
        check_same_thread=False,
    )
    try:
        db.execute("PRAGMA journal_mode = WAL").fetchone()
        db.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}").fetchone()
        # A log that is moved is written over, not made anew: fdatasync(2) is quicker where the file
        # need not grow.
        db.execute(f"PRAGMA journal_size_limit = {LOG_BYTES}").fetchone()
        db.execute("PRAGMA synchronous = FULL")
        db.execute("PRAGMA fullfsync = ON")
    except BaseException:
        db.close()
        raise
    return db


def settle(db: sqlite3.Connection) -> None:
    """Commit anything, so that a commit which a killed process left half done is in force or can never be.

    Such a commit may lie whole in the log and not be announced in the log's index: nobody sees it,
    until the next process that opens the catalogue alone reads the log anew. Whoever is about to
    unlink files because no row names them has to overwrite it first
    (https://sqlite.org/walformat.html, sections 2.2 and 4.4).
    """
    with transaction(db):
        db.execute("INSERT OR REPLACE INTO setting VALUES ('settled', randomblob(8))")


@contextlib.contextmanager
def transaction(db: sqlite3.Connection) -> Generator[None]:
    """Commit at the end, or roll all of it back; for who holds the store's lock."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        with contextlib.suppress(sqlite3.Error):  # a full disk has rolled it back already
            db.execute("ROLLBACK")
        raise
    _steps.reached("committed")
