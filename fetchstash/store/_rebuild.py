"""A new catalogue in the place of a damaged or missing one."""

import contextlib
import sqlite3
from pathlib import Path

from fetchstash.errors import Busy
from fetchstash.store import _rows as rows
from fetchstash.store._catalog import Catalog, transaction
from fetchstash.store._disk import Presence
from fetchstash.store._quarantine import Quarantine
from fetchstash.store._schema import count_total
from fetchstash.store._sidecar import Sidecars

NOT_DAMAGE = (
    "SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_FULL", "SQLITE_IOERR", "SQLITE_READONLY",
    "SQLITE_PERM", "SQLITE_AUTH", "SQLITE_NOMEM",
)  # fmt: skip
"""Errors of SQLite that say nothing about the file."""


def rebuild(folder: Path, presence: Presence, sidecars: Sidecars, quarantine: Quarantine) -> None:
    """Make a new catalogue out of the old one's readable rows and of the sidecars, which win.

    Raises Busy if another process has the store open.
    """
    if not presence.alone():
        raise Busy("Another process has the store open.", "End it, and repair again.")
    path = folder / "catalog.db"
    moved = quarantine.move(path, "damaged catalogue")
    for suffix in ("-wal", "-journal"):
        log = quarantine.move(path.with_name(path.name + suffix), "its log")
        if log and moved:
            log.replace(moved.with_name(moved.name + suffix))
    path.with_name(path.name + "-shm").unlink(missing_ok=True)
    catalog = Catalog(path, folder / "lock")
    catalog.prepare()
    try:
        with catalog.locked() as db, transaction(db):
            if moved and moved.stat().st_size:
                with contextlib.closing(sqlite3.connect(moved)) as old:
                    for table in ("setting", "artifact", "blob", "expired"):
                        _salvage(old, db, table)
            key = sidecars.key()
            if key:
                rows.set_url_key(db, key)
            _restore(db, sidecars)
            count_total(db)
    finally:
        catalog.close()


def _salvage(old: sqlite3.Connection, new: sqlite3.Connection, table: str) -> None:
    """Copy the rows of a table, until the first that cannot be read."""
    with contextlib.suppress(sqlite3.Error):
        for row in old.execute(f"SELECT * FROM {table}"):  # noqa: S608 - a name of ours
            marks = ", ".join("?" * len(row))
            with contextlib.suppress(sqlite3.Error):  # a garbled row that breaks a rule
                new.execute(f"INSERT OR REPLACE INTO {table} VALUES ({marks})", row)  # noqa: S608


def _restore(db: sqlite3.Connection, sidecars: Sidecars) -> None:
    """Insert the artifacts of all sidecars, oldest first."""
    records = [record for ref in sidecars.refs() if (record := sidecars.read(ref))]
    for record in sorted(records, key=lambda record: str(record.get("created_at"))):
        with contextlib.suppress(ValueError):
            rows.restore(db, record)
