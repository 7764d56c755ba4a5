"""Private folders and files, locks between processes, and what a failing disk means in plain words."""

import contextlib
import errno
import os
import random
import sqlite3
import stat
import sys
import time
from collections.abc import Callable, Generator
from pathlib import Path

from fetchstash.errors import Busy, FetchstashError, StoreError

LOCK_WAIT_SECONDS = 30
_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)
_CLOSE_ON_EXEC = getattr(os, "O_CLOEXEC", 0)
_BINARY = getattr(os, "O_BINARY", 0)  # Windows would turn line ends otherwise


def private_folder(folder: Path) -> None:
    """Make ``folder`` (0700) or take the one that is there, if it is a real folder of this user.

    Raises StoreError for a folder of somebody else's and for what is no folder.
    """
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700, parents=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode):
        raise StoreError(
            f"{folder} is not a folder.", "Move it away, or set store.folder to another place."
        )
    _own(folder, found)
    if sys.platform != "win32" and found.st_mode & 0o077:
        folder.chmod(0o700)


def private_file(path: Path) -> None:
    """Make ``path`` an empty file (0600) unless it is there, and then it must be a file of this user."""
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | _NO_FOLLOW | _BINARY, 0o600))
    found = path.lstat()
    _own(path, found)
    if sys.platform != "win32" and found.st_mode & 0o077:
        path.chmod(0o600)


def open_file(path: Path, *, write: bool = False) -> int:
    """Open a regular file and return its descriptor; a symbolic link is refused, as no link is ever made here."""
    fd = os.open(
        path, (os.O_RDWR if write else os.O_RDONLY) | _NO_FOLLOW | _BINARY | _CLOSE_ON_EXEC
    )
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise StoreError(
            f"{path} is not a regular file.",
            "Run `fetchstash doctor` to see what happened to the store.",
        )
    return fd


def sync_file(fd: int) -> None:
    """Return when the file's bytes are on the disk. On macOS only F_FULLFSYNC promises that (fsync(2) there says so)."""
    if sys.platform == "darwin":
        fcntl.fcntl(fd, fcntl.F_FULLFSYNC)
    else:
        os.fsync(fd)


def sync_folder(folder: Path) -> None:
    """Return when the folder's entries are on the disk. Windows has no such call and journals its folders."""
    if sys.platform == "win32":
        return
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


@contextlib.contextmanager
def locked(path: Path) -> Generator[None]:
    """Hold the lock of file ``path`` against every other thread and process. Raises Busy after 30 s.

    Each call opens the file anew, because a lock belongs to the open file: threads of one process
    exclude each other, too.
    """
    fd = _open_lock(path)
    try:
        _wait_for_lock(fd)
        yield
    finally:
        os.close(fd)


class Presence:
    """Tells that somebody has the store open: a shared lock on a file in its folder, held until ``close``.

    ``when_alone`` is called first if nobody else has it open, and nobody can open it meanwhile.
    Windows has no shared locks of this kind: nobody is ever known to be alone there.
    """

    def __init__(self, path: Path, when_alone: Callable[[], None]) -> None:
        while True:
            private_folder(path.parent)
            try:
                self._fd = _open_lock(path)
            except FileNotFoundError:
                continue  # whoever left last removed the folder since
            try:
                if self._enter(path, when_alone):
                    return
            except BaseException:
                os.close(self._fd)
                raise
            os.close(self._fd)  # whoever left last removed it since

    def _enter(self, path: Path, when_alone: Callable[[], None]) -> bool:
        """Take the lock, and return whether it still is the one of the file that others will find."""
        if sys.platform == "win32":
            return True
        if _try_lock(self._fd) and _is_at(self._fd, path):
            when_alone()
        _wait_for_lock(self._fd, shared=True)
        return _is_at(self._fd, path)

    def alone(self) -> bool:
        """Return whether nobody else has the store open. If so nobody can open it before ``close``; if not, close at once."""
        return sys.platform != "win32" and _try_lock(self._fd)

    def close(self) -> None:
        """Let go."""
        os.close(self._fd)


def _open_lock(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | _NO_FOLLOW | _CLOSE_ON_EXEC, 0o600)


def _wait_for_lock(fd: int, *, shared: bool = False) -> None:
    """Take a lock, trying again and again: a thread that is blocked in flock(2) could not give up when a holder hangs."""
    deadline = time.monotonic() + LOCK_WAIT_SECONDS
    while not _try_lock(fd, shared=shared):
        if time.monotonic() > deadline:
            raise Busy(
                f"Another process has held the store for {LOCK_WAIT_SECONDS} s.",
                "Try again, or end that process.",
            )
        time.sleep(random.uniform(0.0005, 0.002))  # noqa: S311 - spreads the waiters, guards nothing


def _is_at(fd: int, path: Path) -> bool:
    """Return whether ``path`` still is the file that was opened."""
    try:
        return os.path.samestat(path.stat(), os.fstat(fd))
    except FileNotFoundError:
        return False


if sys.platform == "win32":
    import msvcrt

    def _try_lock(fd: int, *, shared: bool = False) -> bool:  # noqa: ARG001 - there are no shared ones
        try:
            msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

else:
    import fcntl

    def _try_lock(fd: int, *, shared: bool = False) -> bool:
        try:
            fcntl.flock(fd, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


def _own(path: Path, found: os.stat_result) -> None:
    if sys.platform != "win32" and found.st_uid != os.geteuid():
        raise StoreError(
            f"{path} belongs to another user.", "Set store.folder to a folder of your own."
        )


_FULL = {errno.ENOSPC, errno.EDQUOT}
_FORBIDDEN = {errno.EACCES, errno.EPERM, errno.EROFS}


@contextlib.contextmanager
def translate_errors() -> Generator[None]:
    """Turn errors of the disk and of SQLite into StoreError or Busy."""
    try:
        yield
    except OSError as error:
        raise _of_disk(error) from error
    except sqlite3.Error as error:
        raise _of_catalogue(error) from error


def _of_disk(error: OSError) -> FetchstashError:
    place = f" ({error.filename})" if error.filename else ""
    if error.errno in _FULL:
        return StoreError(f"The disk of the store is full{place}.", _MAKE_ROOM)
    if error.errno in _FORBIDDEN:
        return StoreError(f"The store may not be read or written{place}.", _ALLOW)
    if error.errno == errno.ELOOP:
        return StoreError(f"There is a symbolic link where the store keeps a file{place}.", _DOCTOR)
    if error.errno == errno.ENOENT:
        return StoreError(f"A file of the store is missing{place}.", _DOCTOR)
    return StoreError(f"The disk of the store failed: {error.strerror or error}{place}.", _DOCTOR)


def _of_catalogue(error: sqlite3.Error) -> FetchstashError:
    name = getattr(error, "sqlite_errorname", "") or ""
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return Busy("The catalogue of the store is in use by another program.", "Try again.")
    if is_of_full_disk(error):
        return StoreError("The disk of the store is full.", _MAKE_ROOM)
    if name.startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM", "SQLITE_AUTH")):
        return StoreError("The catalogue of the store may not be read or written.", _ALLOW)
    if name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")):
        return StoreError("The catalogue of the store is damaged.", _DOCTOR)
    return StoreError(f"The catalogue of the store failed: {error}.", _DOCTOR)


def is_of_full_disk(error: sqlite3.Error) -> bool:
    """Return whether SQLite found no room: for the log, the catalogue, or the memory that processes share."""
    name = getattr(error, "sqlite_errorname", "") or ""
    return name.startswith(("SQLITE_FULL", "SQLITE_IOERR_WRITE", "SQLITE_IOERR_SHMSIZE"))


_MAKE_ROOM = "Make room, or lower store.max_total_bytes and run `fetchstash gc`."
_ALLOW = "Give this user the rights to the folder, or set store.folder to another place."
_DOCTOR = (
    "Run `fetchstash doctor` to see what happened, and `fetchstash doctor --repair` to mend it."
)
