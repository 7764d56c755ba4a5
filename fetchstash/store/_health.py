"""What `fetchstash doctor` asks of the store: is it whole, is it private, is it on a disk that keeps what it promises."""

import contextlib
import os
import sqlite3
import stat
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from fetchstash.errors import BadArgument, Busy, FetchstashError
from fetchstash.store import _rows as rows
from fetchstash.store._blobs import Blob, Blobs, Kind
from fetchstash.store._catalog import Catalog, settle, transaction
from fetchstash.store._contract import Finding
from fetchstash.store._disk import Presence, translate_errors
from fetchstash.store._folder import refuse_foreign

# Locks and shared memory, which SQLite's WAL needs (https://sqlite.org/wal.html), work on none of
# these.
NETWORK_FILE_SYSTEMS = {
    "nfs",
    "nfs4",
    "cifs",
    "smb3",
    "smbfs",
    "9p",
    "afs",
    "ceph",
    "fuse.sshfs",
    "fuse.rclone",
    "fuse.glusterfs",
}
WAL_RESET_BUG = ((3, 7, 0), (3, 51, 2))
_REMOVES = "Fetch its document again; repair removes the artifact."


@dataclass(frozen=True, slots=True)
class Ailment:
    """A finding, and how to mend it."""

    finding: Finding
    mend: Callable[[], None] | None = None


def check_folder(folder: Path) -> tuple[Finding, ...]:
    """Examine the store in ``folder``, every file's hash included, and change nothing."""
    return tuple(replace(a.finding, mendable=a.mend is not None) for a in examine(folder))


def repair_folder(folder: Path) -> tuple[Finding, ...]:
    """Examine the store in ``folder`` and mend what can be mended."""
    return tuple(_mended(ailment) for ailment in examine(folder))


def _mended(ailment: Ailment) -> Finding:
    if ailment.mend is None:
        return ailment.finding
    try:
        with translate_errors():
            ailment.mend()
    except FetchstashError as error:
        return replace(
            ailment.finding,
            mendable=True,
            next_step=f"It could not be mended: {error.what} {error.next_step}",
        )
    return replace(ailment.finding, mendable=True, mended=True)


def examine(folder: Path) -> Iterator[Ailment]:
    """Go through everything that may be wrong. What is yielded may be mended before the next is asked for."""
    yield from _sqlite()
    if not folder.exists():
        yield Ailment(
            Finding("note", f"There is no store at {folder} yet.", "The first put makes it.")
        )
        return
    folder = folder.resolve()
    yield from _file_system(folder)
    try:
        with translate_errors():
            if not (folder / "in-use").exists():  # never was a store
                refuse_foreign(folder)
            presence = Presence(folder / "in-use", when_alone=lambda: None)
    except FetchstashError as error:
        yield Ailment(Finding("fault", error.what, error.next_step))
        return
    with contextlib.closing(presence):
        try:
            with translate_errors():
                yield from _Store(folder, presence).examine()
        except FetchstashError as error:
            yield Ailment(Finding("fault", error.what, error.next_step))


def _sqlite() -> Iterator[Ailment]:
    first, last = WAL_RESET_BUG
    if first <= sqlite3.sqlite_version_info <= last:
        yield Ailment(
            Finding(
                "note",
                f"SQLite {sqlite3.sqlite_version} has the WAL-reset bug; the store's own lock keeps it from happening.",
                "Let no other program write to catalog.db.",
            )
        )


def _file_system(folder: Path) -> Iterator[Ailment]:
    kind = file_system(folder)
    if kind in NETWORK_FILE_SYSTEMS:
        what = f"The store is on a network file system ({kind}), where locks do not hold."
        yield Ailment(Finding("fault", what, "Set store.folder to a local disk."))


def file_system(folder: Path) -> str:
    """Return the type of the file system on which ``folder`` is; "" where the system does not tell (proc(5), mountinfo)."""
    best, kind = -1, ""
    with contextlib.suppress(OSError):
        for line in (
            Path("/proc/self/mountinfo")
            .read_text(encoding="utf-8", errors="surrogateescape")
            .splitlines()
        ):
            left, _, right = line.partition(" - ")
            mounted = Path(left.split(" ")[4].replace("\\040", " "))
            if folder.is_relative_to(mounted) and len(mounted.parts) > best:
                best, kind = len(mounted.parts), right.split(" ")[0]
    return kind


def _rights(path: Path, found: os.stat_result) -> Iterator[Ailment]:
    """Tell of a file or folder that is not for this user, and this user alone."""
    right = 0o700 if stat.S_ISDIR(found.st_mode) else 0o600
    mend = partial(path.chmod, right)
    if found.st_uid != os.geteuid():
        yield Ailment(
            Finding(
                "fault", f"{path} belongs to another user.", "Give it to this user, or remove it."
            )
        )
    elif stat.S_ISLNK(found.st_mode):
        return
    elif found.st_mode & 0o077:
        yield Ailment(
            Finding("warning", f"Other users may get at {path}.", f"chmod {right:o} it."), mend
        )
    elif found.st_mode & right != right:
        yield Ailment(
            Finding(
                "fault", f"Its own user may not read and write {path}.", f"chmod {right:o} it."
            ),
            mend,
        )


class _Store:
    """The parts of a store that may be broken, each opened for itself."""

    def __init__(self, folder: Path, presence: Presence) -> None:
        self._folder = folder
        self._presence = presence
        self._blobs = Blobs(folder)
        self._catalog = self._open()

    def _open(self) -> Catalog:
        return Catalog(self._folder / "catalog.db", self._folder / "lock")

    def examine(self) -> Iterator[Ailment]:
        self._blobs.make_folders()
        yield from self._rights()
        try:
            yield from self._catalogue()
            yield from self._artifacts()
            yield from self._strays()
        finally:
            with contextlib.suppress(sqlite3.Error):
                self._catalog.close()

    def _rights(self) -> Iterator[Ailment]:
        for folder, names, files in os.walk(self._folder) if sys.platform != "win32" else ():
            if Path(folder) == self._blobs.spool:  # what is on its way is made private by put
                names.clear()
                continue
            for path in (Path(folder, name) for name in (*names, *files)):
                with contextlib.suppress(FileNotFoundError):  # gone meanwhile
                    yield from _rights(path, path.lstat())

    def _catalogue(self) -> Iterator[Ailment]:
        try:
            self._catalog.prepare()
            with self._catalog.reading() as db:
                ((verdict,), *_) = db.execute("PRAGMA integrity_check(1)").fetchall()
        except sqlite3.DatabaseError as error:
            if isinstance(error, sqlite3.OperationalError):
                raise
            verdict = str(error)
        if verdict != "ok":
            what = f"The catalogue is damaged: {verdict}."
            yield Ailment(
                Finding("fault", what, "Repair saves what can be read of it into a new one."),
                self._rebuild,
            )

    def _rebuild(self) -> None:
        """Put a new catalogue in the place of a damaged one, with every row that can still be read."""
        if not self._presence.alone():
            raise Busy("Another process has the store open.", "End it, and repair again.")
        with contextlib.suppress(sqlite3.Error):
            self._catalog.close()
        path = self._folder / "catalog.db"
        damaged = path.with_name("catalog.db.damaged")
        path.replace(damaged)
        for suffix in ("-wal", "-shm"):
            with contextlib.suppress(FileNotFoundError):
                path.with_name(path.name + suffix).replace(damaged.with_name(damaged.name + suffix))
        self._catalog = self._open()
        self._catalog.prepare()
        with (
            self._catalog.locked() as db,
            contextlib.closing(sqlite3.connect(damaged)) as old,
            transaction(db),
        ):
            for table in ("setting", "artifact", "blob", "expired"):
                _salvage(old, db, table)

    def _artifacts(self) -> Iterator[Ailment]:
        with self._catalog.reading() as db:
            damaged = rows.damaged(db)
        for ref in damaged:
            what = f"The catalogue's record of the artifact {ref} is damaged."
            yield Ailment(Finding("fault", what, _REMOVES, ref), partial(self._forget, ref))
        with self._catalog.reading() as db:
            named = rows.known(db)
        for (kind, sha256), ref in named.items():
            problem = self._problem(kind, sha256)
            if problem is not None and self._is_named(kind, sha256):  # gc may have taken it since
                yield self._ailment(kind, sha256, ref, problem)

    def _is_named(self, kind: Kind, sha256: str) -> bool:
        with self._catalog.reading() as db:
            return bool(rows.naming(db, kind, sha256))

    def _problem(self, kind: Kind, sha256: str) -> str | None:
        """Return what is wrong with a blob that an artifact names, if anything is."""
        try:
            found = self._blobs.inspect(kind, sha256)
        except FileNotFoundError:
            return "is missing"
        except BadArgument:
            return "was altered after it was stored"
        if found.sha256 != sha256:
            return "was altered after it was stored"
        with self._catalog.reading() as db:
            return None if rows.is_recorded(db, found) else "has no record that is right"

    def _ailment(self, kind: Kind, sha256: str, ref: str, problem: str) -> Ailment:
        what = f"The file {kind}/{sha256} of the artifact {ref} {problem}."
        if problem == "has no record that is right":
            return Ailment(
                Finding("fault", what, "Repair measures it anew.", ref),
                partial(self._record, kind, sha256),
            )
        return Ailment(Finding("fault", what, _REMOVES, ref), partial(self._remove, kind, sha256))

    def _record(self, kind: Kind, sha256: str) -> None:
        found: Blob = self._blobs.inspect(kind, sha256)
        with self._catalog.locked() as db, transaction(db):
            rows.insert_blob(db, found)

    def _remove(self, kind: Kind, sha256: str) -> None:
        """Remove every artifact that names a lost blob, unless a put has brought the bytes back."""
        with self._catalog.locked() as db:
            if self._problem(kind, sha256) is not None:
                self._forget_all(db, rows.naming(db, kind, sha256))

    def _forget(self, ref: str) -> None:
        with self._catalog.locked() as db:
            self._forget_all(db, [ref])

    def _forget_all(self, db: sqlite3.Connection, refs: list[str]) -> None:
        with transaction(db):
            unshared = [blob for ref in refs for blob in rows.forget(db, ref, expired=True)]
        for kind, sha256 in unshared:
            self._blobs.remove(kind, sha256)

    def _strays(self) -> Iterator[Ailment]:
        with self._catalog.locked() as db:
            settle(db)
            known = rows.known(db)
            strays = [file for file in self._blobs.files() if file[:2] not in known]
        for kind, name, size in strays:
            what = f"The file {kind}/{name} ({size} bytes) belongs to no artifact."
            yield Ailment(
                Finding("warning", what, "gc removes it, too."), partial(self._discard, kind, name)
            )

    def _discard(self, kind: Kind, name: str) -> None:
        with self._catalog.locked() as db:
            settle(db)
            if (kind, name) not in rows.known(db):
                self._blobs.remove(kind, name)


def _salvage(old: sqlite3.Connection, new: sqlite3.Connection, table: str) -> None:
    """Copy the rows of a table, until the first that cannot be read."""
    with contextlib.suppress(sqlite3.DatabaseError):
        for row in old.execute(f"SELECT * FROM {table}"):  # noqa: S608 - a name of ours
            marks = ", ".join("?" * len(row))
            new.execute(f"INSERT OR REPLACE INTO {table} VALUES ({marks})", row)  # noqa: S608 - a name of ours
