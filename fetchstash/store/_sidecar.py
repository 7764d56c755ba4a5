"""Sidecars: each artifact's row as a small file, out of which a lost catalogue is made again.

They are written without a sync of their own: the catalogue is the truth, and a sidecar is read only
when the catalogue is damaged. It is written in the spool while the row is, gets its name after the
row's commit and before the put is acknowledged, and is removed before the row is deleted. So a
process that is killed leaves no sidecar of a put that was not committed, and a sidecar without a
row means that the row was lost.
"""

import contextlib
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, cast

from fetchstash.store._blobs import KINDS, Kind
from fetchstash.store._disk import private_file, private_folder, sync_file
from fetchstash.store._stamp import is_ref


class Sidecars:
    """The folder ``facts`` of a store, and the key by which it hashes URLs."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "facts"
        self._spool = folder / "spool"
        self._key = folder / "url-key"

    def make_folder(self) -> None:
        """Make the folder if it is missing. Raises StoreError where something is in the way."""
        private_folder(self._folder)

    def write(self, record: dict[str, Any]) -> None:
        """Write the record of an artifact, for ``publish``. The lock is held until then."""
        with contextlib.suppress(OSError):
            _write(self._spooled(record["ref"]), record)

    def publish(self, ref: str) -> None:
        """Let what was written be the record. If that fails, repair writes it later."""
        with contextlib.suppress(OSError):
            self._spooled(ref).replace(self._folder / ref)

    def discard(self, ref: str = "*") -> None:
        """Remove what was written of an artifact, or of any, and not published.

        The lock is held, so no living process is about to publish it.
        """
        for path in self._spool.glob(f"{ref}.facts"):
            path.unlink(missing_ok=True)

    def _spooled(self, ref: str) -> Path:
        return self._spool / f"{ref}.facts"

    def remove(self, refs: Iterable[str]) -> None:
        """Remove the records of artifacts."""
        for ref in refs:
            with contextlib.suppress(OSError):
                (self._folder / ref).unlink()

    def read(self, ref: str) -> dict[str, Any] | None:
        """Return the record of an artifact; None if there is none or it is damaged."""
        try:
            record: Any = json.loads((self._folder / ref).read_text(encoding="utf-8"))
            return cast("dict[str, Any]", record) if record["ref"] == ref else None
        except (KeyError, OSError, RecursionError, TypeError, ValueError):
            return None

    def blobs(self, refs: Iterable[str]) -> set[tuple[Kind, str]]:
        """Return the blobs that the records of artifacts name."""
        records = [self.read(ref) or {} for ref in refs]
        return {(kind, str(record.get(kind))) for record in records for kind in KINDS}

    def refs(self) -> Iterator[str]:
        """Go through the references that have a record."""
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


def _write(path: Path, record: dict[str, Any]) -> None:
    data = json.dumps(record, ensure_ascii=False).encode("utf-8", "replace")
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        os.write(fd, data)
    finally:
        os.close(fd)
