"""Counts and moments that the processes of a service share, as rows beside the artifacts.

In PostgreSQL they are tables of the catalogue, in a folder a file of their own. Its last changes
may be lost when the machine stops, as no sync holds up a fetch for them.
"""

import sqlite3
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from threading import Lock
from typing import Protocol, TypeVar

from fetchstash.store._catalog import Connection, transaction
from fetchstash.store._disk import private_file, private_folder
from fetchstash.store._schema import Db, make_counts
from fetchstash.store._threads import Threads

T = TypeVar("T")

CLEANED = "cleaned"
"""The kind of moment at which rows of a tenant went: caches have copies that no row names."""

_DAY = 86_400
_PACE, _ASKED = "pace", "asked"
_ROWS = 5_000
"""Of one statement: SQLite takes 32,766 values, PostgreSQL 65,535."""


class Transactions(Protocol):
    """Runs work in a transaction, which is committed at its end."""

    def __call__(self, work: Callable[[Db], T], /) -> Awaitable[T]: ...


class Counts:
    """Counters that several processes share. All methods raise StoreError and Busy."""

    def __init__(self, run: Transactions) -> None:
        self._run = run

    async def add(
        self, kind: str, counted: Mapping[tuple[str, int], int], since: int, forget: int
    ) -> dict[tuple[str, int], int]:
        """Add to the counts of a kind; return them by name and step, from step ``since`` on.

        Steps before ``forget`` are dropped.
        """

        def added(db: Db) -> dict[tuple[str, int], int]:
            # Sorted: two processes lock the rows in the same order.
            rows = [(kind, at, name, n) for (name, at), n in sorted(counted.items())]
            for first in range(0, len(rows), _ROWS):
                part = rows[first : first + _ROWS]
                marks = ", ".join(["(?, ?, ?, ?)"] * len(part))
                db.execute(
                    f"INSERT INTO used VALUES {marks}"  # noqa: S608 - ours
                    " ON CONFLICT (kind, at, name) DO UPDATE SET n = used.n + excluded.n",
                    [value for row in part for value in row],
                )
            db.execute("DELETE FROM used WHERE kind = ? AND at < ?", (kind, forget))
            of_kind = "SELECT name, at, n FROM used WHERE kind = ? AND at >= ?"
            return {(name, at): n for name, at, n in db.execute(of_kind, (kind, since))}

        return await self._run(added)

    async def ask(
        self, name: str, part: str, limit: int, now: float, seconds: float
    ) -> tuple[bool, float]:
        """Record a request for a part, unless the name asked for ``limit`` other parts already.

        Those of the last ``seconds`` count. Returns whether it may, and when it asked for the
        oldest of them. Times are seconds since 1970.
        """

        def asked(db: Db) -> tuple[bool, float]:
            key = f"{_ASKED} {name}"
            db.execute(
                "DELETE FROM moment WHERE name = ? AND at NOT BETWEEN ? AND ?",
                (key, now - seconds, now),
            )
            others = "SELECT count(*), min(at) FROM moment WHERE name = ? AND part <> ?"
            count, oldest = db.execute(others, (key, part)).fetchone()
            if count < limit:
                db.execute(
                    "INSERT INTO moment VALUES (?, ?, ?)"
                    " ON CONFLICT (name, part) DO UPDATE SET at = excluded.at",
                    (key, part, now),
                )
            return count < limit, oldest or now

        return await self._run(asked)

    async def reserve(self, part: str, seconds: float) -> float:
        """Reserve the next moment for a part; return how many seconds to wait for it.

        Two moments are ``seconds`` apart at least, by the clock of the database.
        """

        def reserved(db: Db) -> float:
            now = db.dialect.now
            row = db.execute(
                f"INSERT INTO moment VALUES ('{_PACE}', ?, {now} + ?)"  # noqa: S608 - ours
                f" ON CONFLICT (name, part) DO UPDATE SET at = ? + CASE WHEN moment.at"
                f" BETWEEN {now} AND {now} + {_DAY} THEN moment.at ELSE {now} END"
                f" RETURNING at - {now}",
                (part, seconds, seconds),
            ).fetchone()
            return max(float(row[0]) - seconds, 0.0)

        return await self._run(reserved)

    async def take_turn(self, kind: str, part: str, seconds: float) -> bool:
        """Return whether the last turn of this kind was so long ago, and begin one if so.

        One process alone gets it. A row says so, by the clock of the database: an advisory lock
        would end with its transaction behind a pooler, and a turn takes longer than one.
        """

        def taken(db: Db) -> bool:
            now = db.dialect.now
            begun = db.execute(
                f"INSERT INTO moment VALUES (?, ?, {now})"  # noqa: S608 - ours
                " ON CONFLICT (name, part) DO UPDATE SET at = excluded.at"
                " WHERE moment.at NOT BETWEEN excluded.at - ? AND excluded.at RETURNING at",
                (kind, part, seconds),
            )
            return begun.fetchone() is not None

        return await self._run(taken)

    async def recent(self, kind: str, seconds: float) -> set[str]:
        """Return the parts of a kind that were noted within so many seconds."""

        def read(db: Db) -> set[str]:
            now = db.dialect.now
            within = f"at BETWEEN {now} - ? AND {now}"
            select = f"SELECT part FROM moment WHERE name = ? AND {within}"  # noqa: S608 - ours
            return {part for (part,) in db.execute(select, (kind, seconds))}

        return await self._run(read)

    async def note(self, kind: str, part: str, *, ago: float = 0) -> None:
        """Record an event of a kind, ``ago`` seconds ago."""

        def noted(db: Db) -> None:
            db.execute(
                f"INSERT INTO moment VALUES (?, ?, {db.dialect.now} - ?)"  # noqa: S608 - ours
                " ON CONFLICT (name, part) DO UPDATE SET at = excluded.at",
                (kind, part, ago),
            )

        await self._run(noted)

    async def noted(self, kind: str) -> dict[str, float]:
        """Return when each part of a kind was noted last, within a day, in seconds since 1970."""
        select = "SELECT part, at FROM moment WHERE name = ?"
        return await self._run(lambda db: dict(db.execute(select, (kind,)).fetchall()))

    async def forget_moments(self) -> None:
        """Drop the moments that are a day old."""
        due = "DELETE FROM moment WHERE at < {} - {}"
        await self._run(lambda db: db.execute(due.format(db.dialect.now, _DAY)))


class CountsFile:
    """The file of the counts of a folder, or without a path those of this process alone."""

    def __init__(self, path: Path | None = None, threads: Threads | None = None) -> None:
        self._path = path
        self._threads = threads or Threads()
        self._db: Connection | None = None
        self._lock = Lock()

    async def run(self, work: Callable[[Db], T]) -> T:
        """Run work in a transaction. A file that is damaged is made anew."""
        return await self._threads.run(lambda: self._run(work))

    def _run(self, work: Callable[[Db], T]) -> T:
        with self._lock:
            try:
                return self._tried(work)
            except sqlite3.DatabaseError as error:
                name = getattr(error, "sqlite_errorname", "")
                if not self._path or not name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")):
                    raise
                for end in ("", "-journal"):  # which belongs to what is removed
                    self._path.with_name(self._path.name + end).unlink(missing_ok=True)
                return self._tried(work)

    def _tried(self, work: Callable[[Db], T]) -> T:
        try:
            db = self._db = self._db or self._opened()
            with transaction(db):
                return work(db)
        except sqlite3.DatabaseError:
            self._close()
            raise

    def _opened(self) -> Connection:
        if self._path:
            private_folder(self._path.parent)
            private_file(self._path)
        db = sqlite3.connect(
            self._path or ":memory:",
            isolation_level=None,
            timeout=5,
            check_same_thread=False,
            factory=Connection,
        )
        try:
            db.execute("PRAGMA journal_mode = TRUNCATE")
            db.execute("PRAGMA synchronous = OFF")
            make_counts(db)
        except BaseException:
            db.close()
            raise
        return db

    async def aclose(self) -> None:
        await self._threads.run(self._close)

    def __del__(self) -> None:
        """Close counts in memory, which nobody else closes."""
        self._close()

    def _close(self) -> None:
        if self._db:
            self._db.close()
            self._db = None
