"""Examine and repair a folder: blobs, records, the catalogue.

Repair never deletes a sound file. It makes a lost row again out of its sidecar, and moves what it
cannot place to the quarantine.
"""

import contextlib
import os
import sqlite3
import stat
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from fetchstash.errors import BadArgument, Busy, FetchstashError
from fetchstash.store import _rows as rows
from fetchstash.store._blobs import KINDS, Blob, Blobs, Kind
from fetchstash.store._catalog import Catalog, Connection, settle, transaction
from fetchstash.store._contract import Finding
from fetchstash.store._disk import (
    Presence,
    private_file,
    private_folder,
    refuse_disabled_locks,
    refuse_network,
    translate_errors,
)
from fetchstash.store._place import Sidecars, refuse_folders, refuse_foreign, was_store
from fetchstash.store._schema import Record
from fetchstash.text import counted

LIST = "list.txt"
NOT_DAMAGE = (
    "SQLITE_BUSY",
    "SQLITE_LOCKED",
    "SQLITE_FULL",
    "SQLITE_IOERR",
    "SQLITE_READONLY",
    "SQLITE_PERM",
    "SQLITE_AUTH",
    "SQLITE_NOMEM",
)
"""Errors of SQLite that say nothing about the file."""


WAL_RESET_BUG = ((3, 7, 0), (3, 51, 2))
_FETCH = "Fetch its document again; repair removes the artifact."


@dataclass(frozen=True, slots=True)
class Ailment:
    """A finding, and the function that mends it."""

    finding: Finding
    mend: Callable[[], None] | None = None


def check_folder(folder: Path) -> tuple[Finding, ...]:
    """Examine the store in ``folder``, every file's hash included, and change nothing."""
    ailments = examine(folder)
    return tuple(replace(a.finding, mendable=a.mend is not None) for a in ailments)


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
            calls=error.calls,
        )
    return replace(ailment.finding, mendable=True, mended=True)


def examine(folder: Path) -> Iterator[Ailment]:
    """Yield each finding. It may be mended before the next is asked for."""
    yield from _sqlite()
    folder = folder.resolve()
    try:
        with translate_errors():
            if not folder.exists():
                yield _no_store(folder)
                return
            refuse_network(folder)
            refuse_folders(folder)
            if not (folder / "in-use").exists():  # it never was a store
                refuse_foreign(folder)
            if not was_store(folder):
                yield from _all_rights(folder)
                yield _no_store(folder)
                return
            with contextlib.closing(Presence(folder / "in-use")) as presence:
                yield from _Store(folder, presence).examine()
    except FetchstashError as error:
        yield Ailment(Finding("fault", error.what, error.next_step, calls=error.calls))


def _no_store(folder: Path) -> Ailment:
    return Ailment(
        Finding("note", f"There is no store at {folder} yet.", "The first put makes it.")
    )


def _sqlite() -> Iterator[Ailment]:
    # 3.7.0 to 3.51.2: two writers at a checkpoint may lose commits. What Python links is often
    # older.
    first, last = WAL_RESET_BUG
    if first <= sqlite3.sqlite_version_info <= last:
        what = (
            f"SQLite {sqlite3.sqlite_version} has the WAL-reset bug; the store's own lock keeps it "
            "from happening."
        )
        yield Ailment(Finding("note", what, "Let no other program write to catalog.db."))


def _rights(path: Path, status: os.stat_result) -> Iterator[Ailment]:
    """Find a file or folder that others than this user can use."""
    if sys.platform == "win32":
        return
    mode = 0o700 if stat.S_ISDIR(status.st_mode) else 0o600
    mend, step = partial(path.chmod, mode), f"chmod {mode:o} it."
    if status.st_uid != os.geteuid():
        what = f"{path} belongs to another user."
        yield Ailment(Finding("fault", what, "Give it to this user, or remove it."))
    elif stat.S_ISLNK(status.st_mode):
        return
    elif status.st_mode & 0o077:
        yield Ailment(Finding("warning", f"Other users may get at {path}.", step), mend)
    elif status.st_mode & mode != mode:
        what = f"Its own user may not read and write {path}."
        yield Ailment(Finding("fault", what, step), mend)


def _all_rights(whole: Path) -> Iterator[Ailment]:
    """Check the rights of everything in a folder, except the stores of tenants in it."""
    for folder, names, files in os.walk(whole) if sys.platform != "win32" else ():
        if Path(folder) == whole / "spool":  # put makes private what is on its way
            names.clear()
            continue
        for path in (Path(folder, name) for name in (*names, *files)):
            with contextlib.suppress(FileNotFoundError):  # gone meanwhile
                yield from _rights(path, path.lstat())
        if Path(folder) == whole / "tenants":
            names.clear()


class _Store:
    """The parts of a store that may be broken, each opened by itself."""

    def __init__(self, folder: Path, presence: Presence) -> None:
        self._folder = folder
        self._presence = presence
        self._has_catalogue = self._is_rebuilt = False
        self._blobs = Blobs(folder)
        self._sidecars = Sidecars(folder)
        self._quarantine = folder / "quarantine"
        self._catalog = Catalog(folder / "catalog.db", folder / "lock")

    def examine(self) -> Iterator[Ailment]:
        self._blobs.make_folders()
        yield from _all_rights(self._folder)
        refuse_disabled_locks(self._folder / "lock")
        try:
            yield from self._catalogue()
            if not self._has_catalogue:
                return
            yield from self._lost_rows()
            yield from self._artifacts()
            yield from self._orphans()
            yield from self._missing_sidecars()
            yield from self._quarantined()
        finally:
            with contextlib.suppress(sqlite3.Error, FetchstashError):
                self._catalog.close()

    def _catalogue(self) -> Iterator[Ailment]:
        step = "Repair makes a new one out of what can be read, and keeps the old in quarantine."
        path = self._folder / "catalog.db"
        if not path.exists() or not path.stat().st_size:
            yield Ailment(Finding("fault", "The catalogue is missing.", step), self._rebuild)
            return
        try:
            self._catalog.prepare()
            with self._catalog.reading() as db:
                ((verdict,), *_) = db.execute("PRAGMA integrity_check(1)").fetchall()
                rows.damaged(db)
        except sqlite3.DatabaseError as error:
            name = getattr(error, "sqlite_errorname", "")
            if name.startswith(NOT_DAMAGE):
                raise
            verdict = str(error)
        if verdict != "ok":
            what = f"The catalogue is damaged: {verdict}."
            yield Ailment(Finding("fault", what, step), self._rebuild)
            return
        self._has_catalogue = True

    def _rebuild(self) -> None:
        """Make a new catalogue out of the sidecars, and keep the old one in the quarantine.

        Raises Busy if another process has the store open.
        """
        if not self._presence.alone():
            raise Busy("Another process has the store open.", "End it, and repair again.")
        with contextlib.suppress(sqlite3.Error, FetchstashError):
            self._catalog.close()
        path = self._folder / "catalog.db"
        moved = self._set_aside(path, "damaged catalogue")
        for suffix in ("-wal", "-journal"):
            log = self._set_aside(path.with_name(path.name + suffix), "its log")
            if log and moved:
                log.replace(moved.with_name(moved.name + suffix))
        path.with_name(path.name + "-shm").unlink(missing_ok=True)
        self._catalog = Catalog(path, self._folder / "lock")
        self._catalog.prepare()
        records = [record for ref in self._sidecars.refs() if (record := self._sidecars.read(ref))]
        with self._catalog.locked() as db, transaction(db):
            if key := self._sidecars.key():
                rows.set_url_key(db, key)
            # A fetch that the kept copy answered moved this date on, and what is written last is
            # listed first.
            for record in sorted(records, key=lambda record: str(record.get("expires_at"))):
                with contextlib.suppress(ValueError):
                    rows.restore(db, record)
            for kind, sha256 in rows.known(db):
                if blob := self._sound(kind, sha256):
                    rows.insert_blob(db, blob)
        self._has_catalogue = self._is_rebuilt = True

    def _lost_rows(self) -> Iterator[Ailment]:
        for ref in self._lost_refs():
            what = f"The catalogue lacks the artifact {ref}."
            finding = Finding("fault", what, "Repair restores it.", ref)
            yield Ailment(finding, partial(self._restore_or_remove, [ref]))

    def _lost_refs(self) -> list[str]:
        """Return the artifacts that have a sidecar and files but no row (_place.py)."""
        with self._catalog.locked() as db:
            settle(db)
            lost = set(self._sidecars.refs()).difference(rows.refs(db))
        return [ref for ref in sorted(lost) if self._whole(ref)]

    def _whole(self, ref: str) -> tuple[Record, list[Blob]] | None:
        """Return the sidecar of an artifact and its files, None where one of these is not sound."""
        record = self._sidecars.read(ref) or {}
        named: list[tuple[Kind, str]] = [(k, str(record[k])) for k in KINDS if record.get(k)]
        blobs = [blob for kind, sha256 in named if (blob := self._sound(kind, sha256))]
        return (record, blobs) if blobs and len(blobs) == len(named) else None

    def _restore(self, ref: str) -> bool:
        """Restore an artifact's row from its sidecar, if the files it names are sound."""
        if whole := self._whole(ref):
            record, blobs = whole
            with contextlib.suppress(ValueError), self._catalog.locked() as db, transaction(db):
                rows.restore(db, record)
                for blob in blobs:
                    rows.insert_blob(db, blob)
                return True
        return False

    def _artifacts(self) -> Iterator[Ailment]:
        with self._catalog.reading() as db:
            damaged, named = rows.damaged(db), rows.known(db)
        for ref in damaged:
            what = f"The catalogue's record of the artifact {ref} is damaged."
            step = "Repair restores it." if self._whole(ref) else _FETCH
            yield Ailment(
                Finding("fault", what, step, ref), partial(self._restore_or_remove, [ref])
            )
        for (kind, sha256), ref in named.items():
            blob, step = self._sound(kind, sha256), _FETCH
            with self._catalog.reading() as db:
                if not rows.naming(db, kind, sha256):  # gc has taken it since
                    continue
                if blob and rows.is_recorded(db, blob):
                    continue
            if blob:
                problem, step = "has no record that is right", "Repair measures it anew."
            elif self._blobs.path(kind, sha256).exists():
                problem = "was altered after it was stored"
            else:
                problem = "is missing"
            what = f"The file {kind}/{sha256} of the artifact {ref} {problem}."
            yield Ailment(Finding("fault", what, step, ref), partial(self._mend, kind, sha256))

    def _sound(self, kind: Kind, sha256: str) -> Blob | None:
        """Measure a file; return None where it is missing or not what its name says."""
        try:
            blob = self._blobs.inspect(kind, sha256)
        except (BadArgument, FileNotFoundError, ValueError):  # ValueError: no file has such a name
            return None
        return blob if blob.sha256 == sha256 else None

    def _mend(self, kind: Kind, sha256: str) -> None:
        """Record a blob anew; remove every artifact that names one that is lost."""
        if blob := self._sound(kind, sha256):
            with self._catalog.locked() as db, transaction(db):
                rows.insert_blob(db, blob)
        else:
            with self._catalog.reading() as db:
                refs = rows.naming(db, kind, sha256)
            self._restore_or_remove(refs)

    def _restore_or_remove(self, refs: Iterable[str]) -> None:
        """Restore artifacts from their sidecars, or remove them and quarantine their files."""
        for ref in refs:
            if self._restore(ref):
                continue
            with self._catalog.locked() as db:
                self._sidecars.remove([ref])
                with transaction(db):
                    unshared = rows.forget(db, ref, expired=True)
                for kind, sha256 in unshared:
                    self._set_aside(self._blobs.path(kind, sha256), f"of artifact {ref}")

    def _orphans(self) -> Iterator[Ailment]:
        """Find the files that no artifact names.

        What a killed put leaves is gc's. Where the catalogue was lost, that may be the bytes of an
        artifact whose sidecar is lost too: it goes to the quarantine.
        """
        lost = self._sidecars.blobs(self._lost_refs())
        with self._catalog.locked() as db:
            settle(db)
            known = lost.union(rows.known(db))
            orphans = [file for file in self._blobs.files() if file[:2] not in known]
        left = 0
        for kind, name, size in orphans:
            if not self._is_rebuilt and self._sound(kind, name):
                left += 1
                continue
            what = f"The file {kind}/{name} ({counted(size, 'byte')}) belongs to no artifact."
            finding = Finding("warning", what, "Repair moves it to the quarantine; gc removes it.")
            yield Ailment(finding, partial(self._set_orphan_aside, kind, name))
        if left:
            what = f"{counted(left, 'file')} without an artifact, left by a put that was ended."
            yield Ailment(Finding("note", what, "The next gc removes them."))

    def _set_orphan_aside(self, kind: Kind, name: str) -> None:
        with self._catalog.locked() as db:
            settle(db)
            if (kind, name) not in rows.known(db):
                self._set_aside(self._blobs.path(kind, name), "belongs to no artifact")

    def _missing_sidecars(self) -> Iterator[Ailment]:
        """Find the artifacts whose sidecar is missing, cut or old: it is written without a sync."""
        with self._catalog.reading() as db:
            missing = {ref for ref in rows.refs(db) if not self._has_sidecar(db, ref)}
        with self._catalog.locked() as db:  # some may have gone since, or been written
            missing.intersection_update(rows.refs(db))
            missing = {ref for ref in missing if not self._has_sidecar(db, ref)}
        if missing:
            what = f"Without its catalogue the store loses {counted(len(missing), 'artifact')}."
            finding = Finding("note", what, "Repair writes down their facts beside it.")
            yield Ailment(finding, partial(self._write_sidecars, missing))

    def _has_sidecar(self, db: Connection, ref: str) -> bool:
        """Return whether an artifact's sidecar equals its row."""
        sidecar = self._sidecars.read(ref)
        with contextlib.suppress(ValueError):  # a damaged row, which is reported by itself
            return sidecar == rows.record(db, ref)
        return sidecar is not None

    def _write_sidecars(self, refs: Iterable[str]) -> None:
        self._sidecars.make_folder()
        with self._catalog.locked() as db:
            self._sidecars.keep_key(rows.url_keys(db)[0])
            for ref in set(refs).intersection(rows.refs(db)):
                self._sidecars.write(rows.record(db, ref))

    def _set_aside(self, path: Path, reason: str) -> Path | None:
        """Move a file to the quarantine and return its new place; None if it is gone."""
        private_folder(self._quarantine)
        target = self._quarantine / f"{path.parent.name}-{path.name}"
        if target.exists():
            target = target.with_name(f"{target.name}-{time.time_ns()}")
        try:
            path.replace(target)
        except FileNotFoundError:
            return None
        with contextlib.suppress(OSError):  # a full disk: the file itself is safe
            private_file(self._quarantine / LIST)
            when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
            with (self._quarantine / LIST).open("a", encoding="utf-8") as file:
                file.write(f"{when}\t{target.name}\t{target.stat().st_size}\t{reason}\n")
        return target

    def _quarantined(self) -> Iterator[Ailment]:
        files = [path for path in self._quarantine.glob("*") if path.name != LIST]
        if files:
            size = counted(sum(path.stat().st_size for path in files), "byte")
            what = f"The quarantine {self._quarantine} has {counted(len(files), 'file')}, {size}."
            yield Ailment(Finding("note", what, "Read list.txt in it, then remove the folder."))
