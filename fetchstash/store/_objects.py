"""Small named values beside the artifacts, such as tokens and counters, in any store.

A value is whole or not there, and the last write stays. There is no compare-and-swap: what several
processes write at once needs a key for each of them.
"""

import contextlib
import hashlib
import json
import os
import re
import secrets
import time
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

from fetchstash.errors import BadArgument, StoreError
from fetchstash.store._disk import (
    locked,
    open_file,
    private_file,
    private_folder,
    sync_file,
    sync_folder,
)
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
_DAY = 86_400


class Objects(Protocol):
    """Values of some kilobytes under keys, which several processes share.

    A key is a path of the characters a-z, 0-9, "_", "-" and ".", and no folder of another key. All
    methods raise StoreError where the store fails, and BadArgument for what is no key.
    """

    async def read(self, key: str) -> bytes | None:
        """Return a value, None where there is none."""
        ...

    async def write(self, key: str, data: bytes) -> None:
        """Write a value, in place of an earlier one. It is safe when this returns."""
        ...

    async def delete(self, key: str) -> None:
        """Delete a value. One that is not there is no error."""
        ...

    async def keys(self, folder: str = "") -> list[str]:
        """Return the keys below a folder, or all, in order."""
        ...

    async def reserve(self, key: str, seconds: float) -> float:
        """Reserve the next moment under a key; return how many seconds to wait for it.

        Two moments are ``seconds`` apart at least, whichever processes reserve them.
        """
        ...

    async def failing(self) -> str:
        """Return what of the store fails, in one word, "" if nothing does. Raises OSError."""
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
        self._reserved: dict[str, float] = {}

    async def read(self, key: str) -> bytes | None:
        return self._values.get(_checked(key))

    async def write(self, key: str, data: bytes) -> None:
        self._values[_checked(key)] = data

    async def delete(self, key: str) -> None:
        self._values.pop(_checked(key), None)

    async def keys(self, folder: str = "") -> list[str]:
        below = _below(folder)
        return sorted(key for key in self._values if key.startswith(below))

    async def reserve(self, key: str, seconds: float) -> float:
        return _next_moment(self._reserved, key, seconds)


class FolderObjects(Objects):
    """Objects in a folder: files of 0600 in folders of 0700."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._threads = Threads()

    async def run(self, work: "Callable[[], T]") -> T:
        return await self._threads.run(work)

    @in_thread
    def read(self, key: str) -> bytes | None:
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
        beside = path.parent / f".{secrets.token_hex(8)}"  # no key begins with a dot
        try:
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
        for folder in {path.parent, *made}:
            sync_folder(folder)

    @in_thread
    def delete(self, key: str) -> None:
        self._path(key).unlink(missing_ok=True)

    @in_thread
    def keys(self, folder: str = "") -> list[str]:
        names = (
            Path(above, name).relative_to(self._folder).as_posix()
            for above, _, files in os.walk(self._folder / _below(folder), onerror=_raise)
            for name in files
        )
        return sorted(name for name in names if _KEY.fullmatch(name))

    @in_thread
    def reserve(self, key: str, seconds: float) -> float:
        """Reserve the next moment under a key, among the processes of this folder."""
        path = self._folder / ".pace"
        self._make_folder(path.parent)
        with locked(self._folder / ".pace-lock"):
            reserved: dict[str, float] = {}
            with contextlib.suppress(OSError, ValueError):  # none yet, or half of one
                reserved = dict(json.loads(path.read_bytes()))
            wait = _next_moment(reserved, key, seconds)
            private_file(path)
            path.write_bytes(json.dumps(reserved).encode())
        return wait

    async def failing(self) -> str:
        """Write, read and delete a value; return "store_error" where that fails."""
        key = f"ready/{secrets.token_hex(8)}"
        await self.write(key, b"ready")
        value = await self.read(key)
        await self.delete(key)
        return "" if value == b"ready" else "store_error"

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
    """Raise what keeps a folder from being listed; one that is not there has no keys."""
    if not isinstance(error, FileNotFoundError):
        raise error


class CatalogObjects(Objects):
    """Objects as rows of the catalogue of a team. ``data`` is where its bytes are."""

    def __init__(self, database: "Database", data: "Bytes", threads: Threads) -> None:
        self._database = database
        self._data = data
        self._threads = threads

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

    async def keys(self, folder: str = "") -> list[str]:
        select = "SELECT key FROM object WHERE starts_with(key, ?)"
        below = _below(folder)
        listed = await self._run(lambda db: db.execute(select, (below,)).fetchall())
        return sorted(key for (key,) in listed)

    async def reserve(self, key: str, seconds: float) -> float:
        """Reserve the next moment under a key, by the clock of the database.

        The rows stay, so there are _PACES at most: two keys may share one, and wait a bit longer.
        """
        number = int.from_bytes(hashlib.sha256(key.encode()).digest()[:8], "big") % _PACES
        upsert = (
            f"INSERT INTO object VALUES (?, convert_to(({_NOW} + ?)::text, 'UTF8'))"  # noqa: S608 - ours
            " ON CONFLICT (key) DO UPDATE SET data ="
            f" convert_to((greatest({_MOMENT}, {_NOW}) + ?)::text, 'UTF8')"
            f" RETURNING {_MOMENT} - {_NOW}"
        )
        values = f"pace/{number}", seconds, seconds
        row = await self._run(lambda db: db.execute(upsert, values).fetchone())
        return max(float(row[0]) - seconds, 0.0)

    async def failing(self) -> str:
        """Return "database" or "bucket" where that fails, "" else."""
        try:
            await self._run(lambda db: db.execute("SELECT 1"))
        except StoreError:
            return "database"
        try:
            await self._threads.run(self._data.probe)
        except StoreError:
            return "bucket"
        return ""

    async def aclose(self) -> None:
        self._data.close()
        await self._threads.run(self._database.close)

    async def _run(self, work: "Callable[[Db], T]") -> T:
        def transaction() -> T:
            with self._database.connection() as db:
                return work(db)

        return await self._threads.run(transaction)


_NOW = "extract(epoch FROM clock_timestamp())::float8"
_PACES = 2**14
_MOMENT = "convert_from(object.data, 'UTF8')::float8"


def _next_moment(reserved: dict[str, float], key: str, seconds: float) -> float:
    """Reserve a moment among those ``reserved``, without those that are over."""
    now = time.time()
    for name in [name for name, moment in reserved.items() if not now < moment < now + _DAY]:
        del reserved[name]
    moment = max(reserved.get(key, now), now)
    reserved[key] = moment + seconds
    return moment - now


def _checked(key: str) -> str:
    if len(key) > _MAX_KEY or not _KEY.fullmatch(key):
        raise BadArgument(f"{key[:80]!r} is no key.", "Use a-z, 0-9, _, -, . and /.")
    return key


def _below(folder: str) -> str:
    """Return a folder with a slash at its end, "" for the root."""
    return _checked(folder.rstrip("/")) + "/" if folder else ""
