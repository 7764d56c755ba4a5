"""The schema of the catalogue: an ordered list of steps. ``user_version`` counts those taken."""

import secrets
import sqlite3
from collections.abc import Callable

from fetchstash.errors import StoreError
from fetchstash.store._advice import OTHER_FOLDER


def _first(db: sqlite3.Connection) -> None:
    db.execute("CREATE TABLE setting (name TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID")
    db.execute("INSERT INTO setting VALUES ('url_key', ?)", (secrets.token_bytes(32),))
    # id is the order of puts and used the order of use: neither depends on the clock.
    db.execute("""
        CREATE TABLE artifact (
            id INTEGER PRIMARY KEY, ref TEXT NOT NULL UNIQUE, run TEXT NOT NULL, url_hash BLOB,
            raw TEXT NOT NULL, text TEXT, bytes INTEGER NOT NULL, used INTEGER NOT NULL,
            pinned INTEGER NOT NULL DEFAULT 0, created_at REAL NOT NULL, expires_at REAL NOT NULL,
            facts TEXT NOT NULL, ranges TEXT NOT NULL)""")
    db.execute(
        "CREATE INDEX artifact_retention ON artifact (run, pinned, used, bytes, expires_at, ref)"
    )
    db.execute("CREATE INDEX artifact_used ON artifact (used)")
    db.execute("CREATE INDEX artifact_expiry ON artifact (pinned, expires_at)")
    db.execute("CREATE INDEX artifact_url ON artifact (url_hash, run)")
    db.execute("CREATE INDEX artifact_raw ON artifact (raw)")
    db.execute("CREATE INDEX artifact_text ON artifact (text)")
    # chars, lines and strides are a text's (StrideIndex); modified_ns is the time of the file.
    db.execute("""
        CREATE TABLE blob (
            kind TEXT NOT NULL, sha256 TEXT NOT NULL, size INTEGER NOT NULL,
            modified_ns INTEGER NOT NULL, chars INTEGER, lines INTEGER, strides BLOB,
            PRIMARY KEY (kind, sha256))""")
    db.execute(
        "CREATE TABLE expired (id INTEGER PRIMARY KEY AUTOINCREMENT, ref TEXT NOT NULL UNIQUE)"
    )


def _second(db: sqlite3.Connection) -> None:
    # A preview was no more than a text; now it says how much it shows (ranges.Preview).
    db.execute("""
        UPDATE artifact SET ranges = json_set(
            ranges, '$.preview', json_object('text', json_extract(ranges, '$.preview')))
        WHERE json_type(ranges, '$.preview') = 'text'""")


def _third(db: sqlite3.Connection) -> None:
    # Every index ends with the id: the artifacts of a run are listed newest first without a sort.
    db.execute("CREATE INDEX artifact_run ON artifact (run)")


def _fourth(db: sqlite3.Connection) -> None:
    # Limits hold for the whole store. Its total is one row, kept by triggers, and the least
    # recently used artifacts of all runs come first in one index.
    db.execute("DROP INDEX artifact_retention")
    db.execute("CREATE INDEX artifact_lru ON artifact (pinned, used, bytes, expires_at, ref)")
    db.execute("CREATE TABLE total (artifacts INTEGER NOT NULL, bytes INTEGER NOT NULL)")
    count_total(db)
    db.execute("""
        CREATE TRIGGER total_insert AFTER INSERT ON artifact WHEN new.pinned = 0 BEGIN
            UPDATE total SET artifacts = artifacts + 1, bytes = bytes + new.bytes; END""")
    db.execute("""
        CREATE TRIGGER total_delete AFTER DELETE ON artifact WHEN old.pinned = 0 BEGIN
            UPDATE total SET artifacts = artifacts - 1, bytes = bytes - old.bytes; END""")
    db.execute("""
        CREATE TRIGGER total_pin AFTER UPDATE OF pinned ON artifact BEGIN
            UPDATE total SET artifacts = artifacts + old.pinned - new.pinned,
                             bytes = bytes + (old.pinned - new.pinned) * new.bytes; END""")


def count_total(db: sqlite3.Connection) -> None:
    """Count the artifacts that are not pinned, and their bytes, anew."""
    db.execute("DELETE FROM total")
    db.execute("""
        INSERT INTO total SELECT count(*), coalesce(sum(bytes), 0) FROM artifact
        WHERE pinned = 0""")


STEPS: tuple[Callable[[sqlite3.Connection], None], ...] = (_first, _second, _third, _fourth)


def version(db: sqlite3.Connection) -> int:
    """Return how many steps the catalogue has taken; 0 for an empty one."""
    return int(db.execute("PRAGMA user_version").fetchone()[0])


def migrate(db: sqlite3.Connection) -> None:
    """Take the missing steps, inside the caller's transaction.

    Raises StoreError for a catalogue of a newer fetchstash.
    """
    taken = version(db)
    if taken > len(STEPS):
        schemas = f"schema {taken}, this one knows {len(STEPS)}"
        raise StoreError(
            f"The store was written by a newer fetchstash ({schemas}).",
            "Upgrade fetchstash, or {}.",
            OTHER_FOLDER,
        )
    for number, step in enumerate(STEPS[taken:], start=taken + 1):
        step(db)
        db.execute(f"PRAGMA user_version = {number}")
