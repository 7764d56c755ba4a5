"""A store's folder: its blobs, sidecars and catalogue, and their upkeep.

They are written without a sync of their own: the catalogue is the truth, and a sidecar is read only
when the catalogue is damaged. It is written after the row's commit and before the put is
acknowledged, and is removed before the row is deleted. So a process that is killed leaves no
sidecar of a put that was not committed, and a sidecar without a row means that the row was lost.

catalog.db      what there is (_schema.py)       raw, text    the blobs (_blobs.py)
lock            held for every change            facts        sidecars (Sidecars)
in-use          held while the store is open     url-key      the key that hashes URLs
leases          held by ephemeral runs           spool        files on their way in
reserve         given up to delete on a full     search.db    the words of large runs
                disk                             quarantine   what repair could not place
calls.jsonl     what models were shown (server/tools/_answer.py)
removed         there if the store is to go with the last who has it open
"""

import contextlib
import hashlib
import json
import math
import os
import shutil
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from threading import Lock
from typing import Any, cast

from fetchstash.errors import StoreError
from fetchstash.store import _rows as rows
from fetchstash.store._blobs import KINDS, Blobs, Kind
from fetchstash.store._catalog import Catalog
from fetchstash.store._clock import clock
from fetchstash.store._contract import is_ref
from fetchstash.store._disk import (
    OTHER_FOLDER,
    REPAIR,
    Presence,
    private_file,
    private_folder,
    refuse_disabled_locks,
    refuse_network,
    sync_file,
    sync_folder,
)
from fetchstash.store._schema import Record


class Sidecars:
    """The folder ``facts`` of a store, and the key by which it hashes URLs."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "facts"
        self._spool = folder / "spool"
        self._key = folder / "url-key"

    def make_folder(self) -> None:
        """Make the folder if it is missing. Raises StoreError where something is in the way."""
        private_folder(self._folder)

    def write(self, record: Record) -> None:
        """Write the record of an artifact. If that fails, repair writes it later.

        The lock is held. Nobody sees half of it: it gets its name when it is whole.
        """
        path = self._spool / f"{record['ref']}.facts"
        try:
            # Not synced: the catalogue is what was promised, and repair writes lost sidecars from
            # it.
            fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(fd, "wb") as file:
                file.write(json.dumps(record, ensure_ascii=False).encode("utf-8", "replace"))
            path.replace(self._folder / record["ref"])
        except OSError:
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)

    def remove(self, refs: Iterable[str]) -> None:
        for ref in refs:
            with contextlib.suppress(OSError):
                (self._folder / ref).unlink()

    def read(self, ref: str) -> Record | None:
        """Return the record of an artifact; None if there is none or it is damaged."""
        try:
            record: Any = json.loads((self._folder / ref).read_text(encoding="utf-8"))
            return cast("Record", record) if record["ref"] == ref else None
        except (KeyError, OSError, RecursionError, TypeError, ValueError):
            return None

    def blobs(self, refs: Iterable[str]) -> set[tuple[Kind, str]]:
        """Return the blobs that the records of artifacts name."""
        records = [self.read(ref) or {} for ref in refs]
        return {(kind, str(record.get(kind))) for record in records for kind in KINDS}

    def refs(self) -> Iterator[str]:
        """Yield the references that have a sidecar."""
        with contextlib.suppress(FileNotFoundError), os.scandir(self._folder) as entries:
            yield from (entry.name for entry in entries if is_ref(entry.name))

    def keep_key(self, key: bytes) -> None:
        """Write the key to its file, unless it is there."""
        if self.key() != key:
            private_file(self._key)
            with self._key.open("wb") as file:
                file.write(key)
                file.flush()
                sync_file(file.fileno())

    def key(self) -> bytes | None:
        """Return the key; None if there is none."""
        with contextlib.suppress(OSError):
            return self._key.read_bytes() or None
        return None


_OWN_NAMES = (
    "raw",
    "text",
    "spool",
    "facts",
    "url-key",
    "leases",
    "removed",
    "quarantine",
    "search.db",
    "search.db-journal",
    "search-lock",
    "reserve",
    "catalog.db",
    "catalog.db-journal",
    "catalog.db-shm",
    "catalog.db-wal",
    "calls.jsonl",
    "calls.jsonl.1",
    "lock",
    "in-use",
)
"""In the order of removal: nobody ever sees blobs without a catalogue."""

_FILES = ("catalog.db", "lock", "in-use", "url-key")

_BESIDE = ("service", "tenants")
"""What a team's service keeps beside the artifacts (_objects.py). Removing them leaves it."""


class Place:
    """The open folder of a store. ``run`` is leased if it is ephemeral."""

    def __init__(self, folder: Path, ephemeral_run: str | None = None) -> None:
        self.path = folder.resolve()
        self.blobs = Blobs(self.path)
        self.sidecars = Sidecars(self.path)
        self.catalog = Catalog(self.path / "catalog.db", self.path / "lock")
        self._leases = self.path / "leases"
        self.removed = self.path / "removed"  # a file: the folder is to go when nobody has it open
        self._run = ephemeral_run
        self._opening = Lock()
        self._lease: Presence | None = None
        self._presence = self._open()

    def follow(self) -> None:
        """Reopen the folder if somebody moved or deleted it."""
        if self._presence.is_current():
            return
        with self._opening:
            # Another thread may have opened it meanwhile.
            if not self._presence.is_current():
                moved, self._presence = self._presence, self._open()
                moved.close()

    def _open(self) -> Presence:
        refuse_foreign(self.path)
        refuse_folders(self.path)
        # First of all: from here on nobody removes the folder.
        presence = Presence(self.path / "in-use", when_alone=self._begin)
        try:
            refuse_network(self.path)
            self.make_folders()
            refuse_disabled_locks(self.path / "lock")
            self.catalog.prepare()
            with self.catalog.reading() as db:
                # Before the first put: with a lost catalogue and no key no URL would be found
                # again.
                self.sidecars.keep_key(rows.url_keys(db)[0])
                now = clock(db).now
            sync_folder(self.path)
            self.blobs.sweep_spool(now)
            self._take_lease()
        except BaseException:
            self.catalog.close()
            presence.close()
            raise
        return presence

    def _begin(self) -> None:
        """Empty the spool: nobody else has the store open, so its files were left behind."""
        self.blobs.make_folders()
        self.blobs.sweep_spool(math.inf)

    def make_folders(self) -> None:
        """Make the folders that are missing. Raises StoreError where something is in the way."""
        self.blobs.make_folders()
        self.sidecars.make_folder()
        private_folder(self._leases)

    def _take_lease(self) -> None:
        """Hold the lease of an ephemeral run, so that others do not take it for abandoned."""
        if self._run is None:
            return
        if self._lease:
            self._lease.close()
        # A run may have any name, longer than a file's or with a slash in it.
        path = self._leases / hashlib.sha256(self._run.encode()).hexdigest()[:32]
        self._lease = Presence(path)
        path.write_text(self._run, encoding="utf-8")

    def leases(self) -> list[Path]:
        """Return the leases of ephemeral runs. Each file holds the name of its run.

        On Windows it is unknown who holds them.
        """
        return [] if sys.platform == "win32" else list(self._leases.iterdir())

    def end_lease(self) -> None:
        """Release the lease of an ephemeral run after its artifacts were removed."""
        if self._lease:
            self._lease.remove()
            self._lease = None

    def alone(self) -> bool:
        """Return whether no other process has the store open; then none can before ``close``."""
        return self._presence.is_current() and self._presence.alone()

    def close(self) -> None:
        if self._lease:
            self._lease.close()
        self._presence.close()

    def remove(self) -> None:
        """Remove the store, and the folder if nothing else is in it."""
        self.blobs.sweep_spool(math.inf)
        for path in (self.path / name for name in _OWN_NAMES):
            # No symbolic link: rmtree refuses to follow one, and this store makes none.
            if path.is_dir():
                shutil.rmtree(path)
            else:  # at last "in-use", for which others wait: they see that it is gone
                path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            self.path.rmdir()


def was_store(folder: Path) -> bool:
    """Return whether a folder is or was a store, even if its catalogue is lost.

    The folder of a service has its tenants' stores beside it and need not be one itself.
    """
    made = (folder / "catalog.db", folder / "url-key")
    kept = (path for name in ("facts", *KINDS) for path in (folder / name).glob("*"))
    return any(path.exists() for path in made) or any(True for _ in kept)


def refuse_folders(folder: Path) -> None:
    """Raise StoreError where a folder stands in the place of a file of a store."""
    for path in (folder / name for name in _FILES):
        if path.is_dir():
            raise StoreError(f"{path} is no file.", "Move it away, or {}.", OTHER_FOLDER)


def refuse_foreign(folder: Path) -> None:
    """Raise StoreError for a folder that holds something and is no store."""
    expected = (*_OWN_NAMES, *_BESIDE)
    try:
        foreign = [path.name for path in folder.iterdir() if path.name not in expected]
        blobs = [f"{kind}/{path.name}" for kind in KINDS for path in (folder / kind).glob("*")]
    except (FileNotFoundError, NotADirectoryError):  # or another process is removing it
        return
    foreign += blobs
    # The catalogue is looked for last, as another process may be making it. An empty one, which a
    # crash of the machine may leave, has no blobs: a new one in its place would hide them.
    catalogue = folder / "catalog.db"
    is_lost = not catalogue.exists() or bool(blobs and not catalogue.stat().st_size)
    if foreign and is_lost:
        raise StoreError(
            f"{folder} is no store and not empty: it holds {foreign[0]}.",
            "{}. If this was a store, {}.",
            OTHER_FOLDER,
            REPAIR,
        )
