"""Small named values beside the artifacts, such as tokens, in any store.

A value is whole or not there, and the last write stays. There is no compare-and-swap: what several
processes write at once needs a key for each of them.
"""

import contextlib
import os
import re
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

from fetchstash.errors import BadArgument, StoreError
from fetchstash.store._counts import Counts, CountsFile
from fetchstash.store._disk import is_full, open_file, private_folder, sync_file, sync_folder
from fetchstash.store._limits import StoreLimits, is_shared, store_folder
from fetchstash.store._threads import CALLS_AT_ONCE, Threads, in_thread

if TYPE_CHECKING:
    from collections.abc import Callable

    from fetchstash.store._bytes import Bytes
    from fetchstash.store._postgres import Database
    from fetchstash.store._schema import Db

T = TypeVar("T")

SERVICE = "service"
_SEGMENT = "[a-z0-9_-][a-z0-9_.-]*"
_KEY = re.compile(f"{_SEGMENT}(/{_SEGMENT})*")
_MAX_KEY = 512


class Objects(Protocol):
    """Values of some kilobytes under keys, which several processes share.

    A key is a path of the characters a-z, 0-9, "_", "-" and ".", and no folder of another key. All
    methods raise StoreError where the store fails, and BadArgument for what is no key. ``counts``
    are what a service counts beside them.
    """

    counts: Counts

    async def read(self, key: str) -> bytes | None:
        """Return a value, None where there is none."""
        ...

    async def write(self, key: str, data: bytes) -> None:
        """Write a value, in place of an earlier one. It is safe when this returns."""
        ...

    async def delete(self, key: str) -> None:
        """Delete a value. One that is not there is no error."""
        ...

    async def items(self, folder: str = "") -> dict[str, bytes]:
        """Return the values below a folder, or all, by their keys."""
        ...

    async def failing(self) -> str:
        """Return the failing part of the store, in one word, "" if none fails. Raises OSError."""
        return ""

    async def aclose(self) -> None:
        """Close."""
        return


async def open_objects(limits: StoreLimits) -> Objects:
    """Open the values beside the artifacts of a store, under ``service`` of its folder or prefix.

    Raises BadArgument for a URL that is no store, and StoreError.
    """
    if is_shared(limits):
        from fetchstash.store._team import open_team  # noqa: PLC0415 - few need it

        threads = Threads(CALLS_AT_ONCE)
        return CatalogObjects(*await threads.run(lambda: open_team(limits)), threads)
    folder = store_folder(limits)
    return MemoryObjects() if folder is None else FolderObjects(folder / SERVICE)


class MemoryObjects(Objects):
    """Objects in memory."""

    def __init__(self) -> None:
        self._values: dict[str, bytes] = {}
        self.counts = Counts(CountsFile().run)

    async def read(self, key: str) -> bytes | None:
        return self._values.get(_checked(key))

    async def write(self, key: str, data: bytes) -> None:
        self._values[_checked(key)] = data

    async def delete(self, key: str) -> None:
        self._values.pop(_checked(key), None)

    async def items(self, folder: str = "") -> dict[str, bytes]:
        below = _below(folder)
        return {key: value for key, value in self._values.items() if key.startswith(below)}


class FolderObjects(Objects):
    """Objects in a folder: files of 0600 in folders of 0700."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._threads = Threads()
        self._counted = CountsFile(folder / ".counts.db", self._threads)  # no key has such a name
        self.counts = Counts(self._counted.run)

    async def run(self, work: "Callable[[], T]") -> T:
        return await self._threads.run(work)

    @in_thread
    def read(self, key: str) -> bytes | None:
        return self._value(key)

    def _value(self, key: str) -> bytes | None:
        try:
            fd = open_file(self._path(key))
        except (FileNotFoundError, NotADirectoryError):
            return None
        with os.fdopen(fd, "rb") as file:
            return file.read()

    @in_thread
    def write(self, key: str, data: bytes) -> None:
        """Write beside, sync, rename and sync the name: a reader sees all of it or none."""
        path = self._path(key)
        made = self._make_folder(path.parent)
        beside = path.parent / f".{secrets.token_hex(8)}"
        try:
            # O_EXCL follows no link and takes no file that is there (open(2)).
            fd = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(fd, "wb") as file:
                file.write(data)
                file.flush()
                sync_file(file.fileno())
            beside.replace(path)
        except BaseException:
            with contextlib.suppress(OSError):
                beside.unlink(missing_ok=True)
            raise
        # A new name is on the disk when its folder is synced, and a new folder when the one above
        # is (fsync(2)).
        for folder in {path.parent, *made}:
            sync_folder(folder)

    @in_thread
    def delete(self, key: str) -> None:
        self._path(key).unlink(missing_ok=True)

    @in_thread
    def items(self, folder: str = "") -> dict[str, bytes]:
        names = (
            Path(above, name).relative_to(self._folder).as_posix()
            for above, _, files in os.walk(self._folder / _below(folder), onerror=_raise)
            for name in files
        )
        # Names that begin with a dot are the halves of writes that a crash ended, and the counts. A
        # value that goes meanwhile is none.
        found = {name: self._value(name) for name in names if _KEY.fullmatch(name)}
        return {name: value for name, value in found.items() if value is not None}

    async def failing(self) -> str:
        """Write, read and delete a value; return "disk_full" or "store_error" where that fails."""
        if await self._is_full():
            return "disk_full"
        key = f"ready/{secrets.token_hex(8)}"
        await self.write(key, b"ready")
        value = await self.read(key)
        await self.delete(key)
        return "" if value == b"ready" else "store_error"

    @in_thread
    def _is_full(self) -> bool:
        # The first value makes the folder.
        return is_full(next(at for at in (self._folder, *self._folder.parents) if at.exists()))

    async def aclose(self) -> None:
        await self._counted.aclose()

    def _path(self, key: str) -> Path:
        return self._folder / _checked(key)

    def _make_folder(self, folder: Path) -> list[Path]:
        """Make a folder and those above it, and return the folders that have a new entry."""
        if folder.is_dir():
            return []
        above = [] if folder == self._folder else self._make_folder(folder.parent)
        private_folder(folder)
        return [*above, folder.parent]


def _raise(error: OSError) -> None:
    """Raise the error that keeps a folder from being listed; a missing folder has no keys."""
    if not isinstance(error, FileNotFoundError):
        raise error


class CatalogObjects(Objects):
    """Objects as rows of the catalogue of a team. ``data`` is where its bytes are."""

    def __init__(self, database: "Database", data: "Bytes", threads: Threads) -> None:
        self._database = database
        self._data = data
        self._threads = threads
        self.counts = Counts(self._run)

    async def read(self, key: str) -> bytes | None:
        select = "SELECT data FROM object WHERE key = ?"
        row = await self._run(lambda db: db.execute(select, (_checked(key),)).fetchone())
        return bytes(row[0]) if row else None

    async def write(self, key: str, data: bytes) -> None:
        insert = (
            "INSERT INTO object VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET data = excluded.data"
        )
        await self._run(lambda db: db.execute(insert, (_checked(key), data)))

    async def delete(self, key: str) -> None:
        await self._run(lambda db: db.execute("DELETE FROM object WHERE key = ?", (_checked(key),)))

    async def items(self, folder: str = "") -> dict[str, bytes]:
        select = "SELECT key, data FROM object WHERE starts_with(key, ?)"
        below = _below(folder)
        found = await self._run(lambda db: db.execute(select, (below,)).fetchall())
        return {key: bytes(data) for key, data in found}

    async def failing(self) -> str:
        """Return "database", "schema_newer", "schema_older", or what fails of the bytes."""
        try:
            fault = await self._threads.run(self._database.schema_fault)
        except StoreError:
            return "database"
        return fault or await self._threads.run(self._data.failing)

    async def aclose(self) -> None:
        self._data.close()
        await self._threads.run(self._database.close)

    async def _run(self, work: "Callable[[Db], T]") -> T:
        def transaction() -> T:
            with self._database.connection() as db:
                return work(db)

        return await self._threads.run(transaction)


def _checked(key: str) -> str:
    if len(key) > _MAX_KEY or not _KEY.fullmatch(key):
        raise BadArgument(f"{key[:80]!r} is no key.", "Use a-z, 0-9, _, -, . and /.")
    return key


def _below(folder: str) -> str:
    """Return a folder with a slash at its end, "" for the root."""
    return _checked(folder.rstrip("/")) + "/" if folder else ""
