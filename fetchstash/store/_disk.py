"""Files and folders of a store: private, synced; and system errors in words."""

import contextlib
import errno
import os
import random
import sqlite3
import stat
import sys
import time
from collections.abc import Callable, Generator
from itertools import takewhile
from pathlib import Path

from fetchstash.errors import Busy, Call, FetchstashError, NoText, StoreError, UnknownRef
from fetchstash.text import clip


def reached(step: str) -> None:
    """No-op: tests end the process at this point.

    put:  measured → locked → renamed → folders_synced → committed → put_done
    gc:   locked → committed → unlinked → gc_done
    """


class NotWritable(StoreError):
    """The folder of a store may not be made, read or written."""


REPAIR = Call("repair")
MAX_SHOWN_URL = 200
OTHER_FOLDER = Call("setting", {"name": "store.folder", "value": "FOLDER"})


def store_is_gone() -> StoreError:
    """Return the error for a tenant's store that was deleted, or whose database was lost."""
    what = "The store of this tenant is gone: the tenant was deleted, or the database replaced."
    return StoreError(what, "Ask whoever runs the service.", lasting=True)


def not_stored(url: str) -> UnknownRef:
    """Return the error for a URL that nothing was fetched from, with the call that fetches it."""
    if not url.startswith(("http://", "https://")):
        what = f"{clip(url, 60)!r} is neither a reference nor a URL."
        return UnknownRef(what, "{} lists what is stored.", Call("list"))
    is_short = len(url) <= MAX_SHOWN_URL
    call = Call("fetch", {"url": url}) if is_short else Call("list")
    next_step = "Fetch it first: {}." if is_short else "Give a reference; {} lists them."
    return UnknownRef("Nothing is stored under this URL.", next_step, call)


def no_text(ref: str) -> NoText:
    """Return the error for an artifact that is bytes alone, with the call that shows its facts."""
    what = f"The artifact {ref} has no text."
    return NoText(what, "Read its facts with {}.", Call("info", {"ref": ref}))


LOCK_WAIT_SECONDS = 30
_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)
_CLOSE_ON_EXEC = getattr(os, "O_CLOEXEC", 0)
_BINARY = getattr(os, "O_BINARY", 0)  # Windows would turn line ends otherwise


def private_folder(folder: Path) -> None:
    """Make ``folder`` (0700), or take the one that is there if it is a real folder of this user.

    Folders above it that are missing are private, too (XDG Base Directory Specification).
    Raises StoreError for a folder of another user and for what is no folder.
    """
    missing = [*takewhile(lambda above: not above.exists(), folder.parents)]
    for path in (*reversed(missing), folder):
        try:
            path.mkdir(mode=0o700, exist_ok=True)
        except FileExistsError:
            break  # said below
        except (FileNotFoundError, NotADirectoryError, PermissionError) as error:
            what = f"The store's folder {folder} cannot be made: {error.strerror}."
            raise NotWritable(what, *_ALLOW) from None
    status = folder.lstat()  # of a link itself: whoever owns it may lead it elsewhere
    if not stat.S_ISDIR(status.st_mode):
        raise StoreError(f"{folder} is not a folder.", "Move it away, or {}.", OTHER_FOLDER)
    _check_owner(folder, status)
    if sys.platform != "win32" and status.st_mode & 0o077:
        folder.chmod(0o700)


def private_file(path: Path) -> None:
    """Make ``path`` an empty file (0600), or take the one that is there if it is this user's."""
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | _NO_FOLLOW | _BINARY, 0o600))
    status = path.lstat()
    _check_owner(path, status)
    if sys.platform != "win32" and status.st_mode & 0o077:
        path.chmod(0o600)


def open_file(path: Path, *, write: bool = False) -> int:
    """Open a regular file and return its descriptor. Symbolic links are refused: we make none."""
    return open_with_status(path, write=write)[0]


def open_with_status(path: Path, *, write: bool = False) -> tuple[int, os.stat_result]:
    """Open a regular file as ``open_file`` does, and return its status, too."""
    mode = os.O_RDWR if write else os.O_RDONLY
    fd = os.open(path, mode | _NO_FOLLOW | _BINARY | _CLOSE_ON_EXEC)
    status = os.fstat(fd)
    if not stat.S_ISREG(status.st_mode):
        os.close(fd)
        raise StoreError(f"{path} is not a regular file.", "{}.", REPAIR)
    return fd, status


def sync_file(fd: int) -> None:
    """Sync the file's bytes to the disk.

    On macOS only F_FULLFSYNC promises that (fsync(2) there says so).
    """
    if sys.platform == "darwin":
        fcntl.fcntl(fd, fcntl.F_FULLFSYNC)
    else:
        os.fsync(fd)


def sync_folder(folder: Path) -> None:
    """Sync the folder's entries to the disk. Windows has no such call."""
    if sys.platform == "win32":
        return
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


@contextlib.contextmanager
def locked(path: Path) -> Generator[None]:
    """Hold the lock of file ``path`` against all threads and processes. Raises Busy after 30 s.

    Each call opens the file anew, because a lock belongs to the open file: threads of one process
    exclude each other too. A lock on a file that was moved or deleted meanwhile excludes nobody, so
    the file is opened again.
    """
    while True:
        fd = _open_lock(path)
        try:
            wait_for_lock(fd)
            if is_at(fd, path):
                yield
                return
        finally:
            os.close(fd)


@contextlib.contextmanager
def locked_now(path: Path) -> Generator[bool]:
    """Lock a file if it is free, without waiting; yield whether it was."""
    fd = _open_lock(path)
    try:
        yield _try_lock(fd) and is_at(fd, path)
    finally:
        os.close(fd)


def refuse_disabled_locks(path: Path) -> None:
    """Raise StoreError where two locks on the file ``path`` do not exclude each other."""
    fds = [_open_lock(path), _open_lock(path)]
    try:
        if _try_lock(fds[0]) and _try_lock(fds[1]):
            what = f"Locks do not work on the disk of {path.parent}."
            raise StoreError(what, "{}.", OTHER_FOLDER)
    finally:
        for fd in fds:
            os.close(fd)


class Presence:
    """A shared lock on a file, held until ``close``: it shows that the store is in use.

    ``when_alone`` is called first if nobody else holds it, and nobody can take it meanwhile.
    Windows has no shared locks of this kind: there nobody is ever known to be alone.
    """

    def __init__(self, path: Path, when_alone: Callable[[], None] = lambda: None) -> None:
        self._path = path
        while True:
            private_folder(path.parent)
            try:
                self._fd = _open_lock(path)
            except FileNotFoundError:
                continue  # whoever left last removed the folder since
            try:
                self._status = os.fstat(self._fd)
                if self._enter(when_alone):
                    return
            except BaseException:
                os.close(self._fd)
                raise
            os.close(self._fd)  # whoever left last removed it since

    def _enter(self, when_alone: Callable[[], None]) -> bool:
        """Take the lock. Return whether its file is still at its path."""
        if sys.platform == "win32":
            return True
        if _try_lock(self._fd) and self.is_current():
            when_alone()
        wait_for_lock(self._fd, shared=True)
        return self.is_current()

    def is_current(self) -> bool:
        """Return whether the file is still where others find it."""
        return _leads_to(self._path, self._status)

    def alone(self) -> bool:
        """Return whether no other process holds it; then none can take it before ``close``."""
        return sys.platform != "win32" and _try_lock(self._fd)

    def close(self) -> None:
        """Release the lock."""
        os.close(self._fd)

    def remove(self) -> None:
        """Remove the file if nobody else holds it, and release the lock."""
        if self.alone() and self.is_current():
            self._path.unlink()
        self.close()


def _open_lock(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | _NO_FOLLOW | _CLOSE_ON_EXEC, 0o600)


def wait_for_lock(fd: int, *, shared: bool = False) -> None:
    """Take a lock by trying: a thread blocked in flock(2) could not give up on a hung holder."""
    deadline = time.monotonic() + LOCK_WAIT_SECONDS
    while not _try_lock(fd, shared=shared):
        if time.monotonic() > deadline:
            raise Busy(
                f"Another process has held the store for {LOCK_WAIT_SECONDS} s.",
                "Try again, or end that process.",
            )
        time.sleep(random.uniform(0.0005, 0.002))  # noqa: S311 - spreads the waiters, guards nothing


def is_at(fd: int, path: Path) -> bool:
    """Return whether ``path`` still is the file that was opened."""
    return _leads_to(path, os.fstat(fd))


def _leads_to(path: Path, status: os.stat_result) -> bool:
    try:
        return os.path.samestat(path.stat(), status)
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


def _check_owner(path: Path, status: os.stat_result) -> None:
    if sys.platform != "win32" and status.st_uid != os.geteuid():
        raise StoreError(f"{path} belongs to another user.", "{}.", OTHER_FOLDER)


_FULL = {errno.ENOSPC, errno.EDQUOT}
_FORBIDDEN = {errno.EACCES, errno.EPERM, errno.EROFS}
_NO_LOCKS = {errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS}


@contextlib.contextmanager
def translate_errors() -> Generator[None]:
    """Turn errors of the disk and of SQLite into StoreError or Busy."""
    try:
        yield
    except OSError as error:
        raise _disk_error(error) from error
    except sqlite3.Error as error:
        raise _catalogue_error(error) from error


def _disk_error(error: OSError) -> FetchstashError:
    place = f" ({error.filename})" if error.filename else ""
    if error.errno in _FULL:
        return StoreError(f"The disk of the store is full{place}.", *_MAKE_ROOM)
    if error.errno in _FORBIDDEN:
        return NotWritable(f"The store may not be read or written{place}.", *_ALLOW)
    if error.errno in _NO_LOCKS:
        return StoreError("Locks do not work on the disk of the store.", *_MOVE)
    if error.errno == errno.ELOOP:
        what = f"There is a symbolic link where the store keeps a file{place}."
        return StoreError(what, *_REPAIR)
    if error.errno == errno.ENOENT:
        return StoreError(f"A file of the store is missing{place}.", *_REPAIR)
    return StoreError(f"The disk of the store failed: {error.strerror or error}{place}.", *_REPAIR)


def _catalogue_error(error: sqlite3.Error) -> FetchstashError:
    name = getattr(error, "sqlite_errorname", "") or ""
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return Busy("The catalogue of the store is in use by another program.", "Try again.")
    if is_disk_full(error):
        return StoreError("The disk of the store is full.", *_MAKE_ROOM)
    if name.startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM", "SQLITE_AUTH")):
        return NotWritable("The catalogue of the store may not be read or written.", *_ALLOW)
    if name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")):
        return StoreError("The catalogue of the store is damaged.", *_REPAIR)
    return StoreError(f"The catalogue of the store failed: {error}.", *_REPAIR)


def is_disk_full(error: sqlite3.Error) -> bool:
    """Return whether SQLite lacked disk space for the log, the catalogue or its shared memory."""
    name = getattr(error, "sqlite_errorname", "") or ""
    return name.startswith(("SQLITE_FULL", "SQLITE_IOERR_WRITE", "SQLITE_IOERR_SHMSIZE"))


_MAKE_ROOM = ("Make room on it.",)
_ALLOW = ("Give this user the rights to the folder, or {}.", OTHER_FOLDER)
_MOVE = ("{}.", OTHER_FOLDER)
_REPAIR = ("{}.", REPAIR)


# Locks and shared memory, which SQLite's WAL needs (https://sqlite.org/wal.html), fail on these.
NETWORK = frozenset(
    {
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
)
COPY_ON_WRITE = frozenset({"btrfs", "zfs", "bcachefs"})
PAGE_BYTES = 4096
MIN_FREE_BYTES = 4 * 2**20
"""A put begins only if so much is free: the catalogue's log and its checkpoint fit in."""


def file_system(folder: Path) -> str:
    """Return the type of the file system of ``folder``; "" if unknown (proc(5), mountinfo)."""
    longest, kind = -1, ""
    try:
        mounts = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return ""
    for line in mounts.splitlines():
        left, _, right = line.partition(" - ")
        mounted = Path(left.split(" ")[4].replace("\\040", " "))
        # Of two mounts on one place the later hides the earlier.
        if folder.is_relative_to(mounted) and len(mounted.parts) >= longest:
            longest, kind = len(mounted.parts), right.split(" ")[0]
    return kind


def refuse_network(folder: Path) -> None:
    """Raise StoreError for a folder on a network file system."""
    kind = file_system(folder)
    if kind in NETWORK:
        raise StoreError(
            f"The store is on a network file system ({kind}), where locks do not hold.",
            "{}.",
            OTHER_FOLDER,
        )


def can_map_on_full_disk(folder: Path) -> bool:
    """Return whether a write to mapped memory of an allocated file works on a full disk.

    It ends the process with SIGBUS where the write needs new blocks: on copy-on-write file systems,
    and where SQLite allocates one block of several in a page.
    """
    if sys.platform == "win32":
        return True
    return file_system(folder) not in COPY_ON_WRITE and os.statvfs(folder).f_frsize >= PAGE_BYTES


def free_unlinked_blocks(folder: Path) -> None:
    """Make the blocks of unlinked files free on a disk that is full.

    Copy-on-write file systems free them only when they commit.
    """
    if sys.platform != "win32" and is_full(folder) and file_system(folder) in COPY_ON_WRITE:
        os.sync()


def is_full(folder: Path) -> bool:
    """Return whether less is free than a put needs."""
    if sys.platform == "win32":
        return False
    disk = os.statvfs(folder)
    # What f_bfree has beyond f_bavail is kept for root (statvfs(3)).
    return disk.f_bavail * disk.f_frsize < MIN_FREE_BYTES
