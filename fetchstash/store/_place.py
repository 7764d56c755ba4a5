"""The folder of a store: whose it is, who uses it, and what happens when somebody moves it.

catalog.db      what there is (_schema.py)       raw, text    the blobs (_blobs.py)
lock            held for every change            facts        sidecars (_sidecar.py)
in-use          held while the store is open     url-key      the key that hashes URLs
leases          held by ephemeral runs           spool        files on their way in
reserve         given up to delete on a full     search.db    the words of large runs
                disk                             quarantine   what repair could not place
calls.jsonl     what models were shown (tools/_log.py)
"""

import contextlib
import hashlib
import math
import shutil
from pathlib import Path
from threading import Lock

from fetchstash.errors import StoreError
from fetchstash.store import _rows as rows
from fetchstash.store._advice import OTHER_FOLDER, REPAIR
from fetchstash.store._blobs import KINDS, Blobs
from fetchstash.store._catalog import Catalog
from fetchstash.store._disk import (
    Presence,
    private_folder,
    refuse_disabled_locks,
    sync_folder,
)
from fetchstash.store._filesystem import refuse_network
from fetchstash.store._sidecar import Sidecars

_OWN_NAMES = (
    "raw", "text", "spool", "facts", "url-key", "leases", "quarantine", "search.db",
    "search.db-journal", "search-lock", "reserve", "catalog.db", "catalog.db-journal",
    "catalog.db-shm", "catalog.db-wal", "calls.jsonl", "calls.jsonl.1", "lock", "in-use",
)  # fmt: skip
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
        self._run = ephemeral_run
        self._opening = Lock()
        self._lease: Presence | None = None
        self._presence = self._open()

    def follow(self) -> None:
        """Open the folder anew if somebody moved or deleted it since."""
        if self._presence.is_current():
            return
        with self._opening:
            if not self._presence.is_current():
                moved, self._presence = self._presence, self._open()
                moved.close()

    def _open(self) -> Presence:
        refuse_foreign(self.path)
        refuse_folders(self.path)
        presence = Presence(self.path / "in-use", when_alone=self._begin)
        try:
            refuse_network(self.path)
            self.make_folders()
            refuse_disabled_locks(self.path / "lock")
            self.catalog.prepare()
            with self.catalog.reading() as db:
                self.sidecars.keep_key(rows.url_key(db))
                now = rows.clock(db).now
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

    @property
    def _leases(self) -> Path:
        return self.path / "leases"

    def _take_lease(self) -> None:
        """Hold the lease of an ephemeral run, so that others do not take it for abandoned."""
        if self._run is None:
            return
        if self._lease:
            self._lease.close()
        path = self._leases / hashlib.sha256(self._run.encode()).hexdigest()[:32]
        self._lease = Presence(path)
        path.write_text(self._run, encoding="utf-8")

    def leases(self) -> list[Path]:
        """Return the leases of ephemeral runs. Each file holds the name of its run."""
        return list(self._leases.iterdir())

    def end_lease(self) -> None:
        """Give up the lease of an ephemeral run whose artifacts are removed."""
        if self._lease:
            self._lease.remove()
            self._lease = None

    def alone(self) -> bool:
        """Return whether nobody else has the store open. If so nobody can before ``close``."""
        return self._presence.is_current() and self._presence.alone()

    def close(self) -> None:
        """Close everything."""
        if self._lease:
            self._lease.close()
        self._presence.close()

    def remove(self) -> None:
        """Remove the store, and the folder if nothing else is in it."""
        self.blobs.sweep_spool(math.inf)
        for path in (self.path / name for name in _OWN_NAMES):
            if path.is_dir():
                shutil.rmtree(path)
            else:  # at last "in-use", for which others wait: they see that it is gone
                path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            self.path.rmdir()


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
    except (FileNotFoundError, NotADirectoryError):
        return
    blobs = [f"{kind}/{path.name}" for kind in KINDS for path in (folder / kind).glob("*")]
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
