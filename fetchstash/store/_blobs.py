"""Blobs: immutable files, named by their SHA-256. Measured in the spool, renamed into place."""

import contextlib
import hashlib
import os
import re
import secrets
import sys
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, TypeVar

from fetchstash.errors import BadArgument, StoreError
from fetchstash.store import _disk as disk
from fetchstash.store._disk import (
    REPAIR,
    open_file,
    open_with_status,
    private_folder,
    sync_file,
    sync_folder,
)
from fetchstash.store._search import SearchIndex
from fetchstash.store._text import (
    STRIDE,
    ByteSource,
    FileSource,
    StoredText,
    StrideBuilder,
    StrideIndex,
)
from fetchstash.system.processes import remove_tree

T = TypeVar("T")

Kind = Literal["raw", "text"]
KINDS: tuple[Kind, ...] = ("raw", "text")
_SHA256 = re.compile(r"[0-9a-f]{64}")
SPOOL_SECONDS = 24 * 3600  # no fetch takes a day: older files were left by a process that died


@dataclass(frozen=True, slots=True)
class Blob:
    """A blob. ``modified_ns`` is the time of its file, by which an altered file is noticed."""

    kind: Kind
    sha256: str
    size: int
    modified_ns: int
    index: StrideIndex | None = None


class Blobs:
    """The blobs of one store in a folder: its folders raw, text and spool. All of it blocks.

    ``index`` is of the texts searched last. What is lost raises StoreError.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.index = SearchIndex()
        self._spool = folder / "spool"
        self._folders: dict[Kind, Path] = {kind: folder / kind for kind in KINDS}
        self._threads = ThreadPoolExecutor()
        self._touched: dict[Path, int] = {}

    def make_folders(self) -> None:
        """Make the folders that are missing. Raises StoreError where something is in the way."""
        for folder in (self._spool, *self._folders.values()):
            private_folder(folder)

    @staticmethod
    def at(folder: Path) -> "Blobs":
        """Return the blobs of a folder, which is made if it is missing."""
        blobs = Blobs(folder.resolve())
        blobs.make_folders()
        blobs.sweep_spool(time.time())
        return blobs

    @property
    def spool(self) -> Path:
        """The folder for files on their way in. It is made anew if somebody removed it."""
        if not self._spool.is_dir():
            self.make_folders()
        return self._spool

    def new_file(self) -> Path:
        """Return an unused path in the spool."""
        return self.spool / f"open-{secrets.token_hex(8)}"

    def path(self, kind: Kind, sha256: str) -> Path:
        """Return the path of a blob, whether or not it is there."""
        return self._folders[kind] / sha256

    def measure(self, spooled: Mapping[Kind, Path], sha256: str = "", size: int = 0) -> list[Blob]:
        """Hash and index files of the spool, make them private and sync them to the disk.

        A text that is the raw file itself, under a second name, is read once. ``sha256`` is that of
        the raw file's ``size`` bytes, where the caller has hashed them. Raises BadArgument for a
        file that is not in the spool, or a text that is no UTF-8.
        """
        for path in spooled.values():
            if not self._is_spooled(path):
                raise BadArgument(
                    f"{path.name} is not in the store's spool.",
                    "Write files into the folder `spool` of the store, then put them.",
                )
        with contextlib.ExitStack() as stack:
            files: dict[Kind, int] = {}
            for kind, path in spooled.items():
                files[kind] = open_file(path, write=True)
                stack.callback(os.close, files[kind])
                if sys.platform != "win32":
                    # By the descriptor: the name may be another file's by now.
                    os.fchmod(files[kind], 0o600)
            raw, text = files.get("raw", -1), files.get("text", -1)
            # A caller's hash is taken for a file of its size alone: one that was written to since
            # has another.
            if not _SHA256.fullmatch(sha256) or raw < 0 or os.fstat(raw).st_size != size:
                sha256 = ""
            if min(raw, text) >= 0 and os.path.sameopenfile(raw, text):
                with self._syncing(sync_file, [raw]):
                    blob = _measured(text, "text", sha256)
                return [replace(blob, kind="raw", index=None), blob]
            with self._syncing(sync_file, files.values()):
                return [
                    _measured(fd, kind, sha256 if kind == "raw" else "")
                    for kind, fd in files.items()
                ]

    @contextlib.contextmanager
    def _syncing(self, sync: Callable[[T], None], items: Iterable[T]) -> Generator[None]:
        """Sync files or folders to the disk while the body runs, side by side.

        A disk that syncs slowly then makes a put wait for one sync where it had to wait for two.
        The last one is this thread's own: another thread for it would cost more than it gains.
        There is none where all blobs of a put were kept before.
        """
        mine = list(items)
        running = [self._threads.submit(sync, item) for item in mine[:-1]]
        try:
            yield
            for item in mine[-1:]:
                sync(item)
        finally:
            wait(running)
        for future in running:
            future.result()

    def discard(self, paths: Iterable[Path]) -> None:
        """Unlink the files of a put that failed, if they are in the spool."""
        for path in paths:
            if self._is_spooled(path):
                path.unlink(missing_ok=True)

    def _is_spooled(self, path: Path) -> bool:
        """Return whether a file is in the spool, symbolic links and dots resolved."""
        return path.parent == self._spool or path.parent.resolve().is_relative_to(self._spool)

    def inspect(self, kind: Kind, sha256: str) -> Blob:
        """Measure the file of this name. It is sound if its hash is its name.

        Raises BadArgument for a text that is no UTF-8.
        """
        fd = open_file(self.path(kind, sha256))
        try:
            return _measured(fd, kind)
        finally:
            os.close(fd)

    @contextlib.contextmanager
    def published(self, moves: Iterable[tuple[Path, Blob]]) -> Generator[None]:
        """Rename files of the spool to their names, which are on the disk when the body has run.

        A blob that is there already is replaced by the same bytes, which are known to be sound.
        """
        folders = set[Path]()
        for source, blob in moves:
            target = self.path(blob.kind, blob.sha256)
            try:
                source.replace(target)
            except PermissionError:
                if not target.exists():  # else it is read on Windows, and stays
                    raise
                source.unlink()
            folders.add(target.parent)
        disk.reached("renamed")
        with self._syncing(sync_folder, folders):
            yield
        disk.reached("folders_synced")

    def descriptor(self, blob: Blob) -> int:
        """Open a blob. Raises FileNotFoundError, and StoreError where it was altered."""
        path = self.path(blob.kind, blob.sha256)
        fd, status = open_with_status(path)
        # Size and time first: to hash a file with each read would cost as much as the read.
        if status.st_size == blob.size and self._is_sound(path, blob, status.st_mtime_ns):
            return fd
        os.close(fd)
        raise StoreError(
            f"The file {path} was altered after it was stored.",
            "Fetch the document again, or {}.",
            REPAIR,
        )

    def _is_sound(self, path: Path, blob: Blob, modified_ns: int) -> bool:
        """Return whether a file has the time of its blob, or else its hash."""
        if modified_ns in (blob.modified_ns, self._touched.get(path)):
            return True
        if self.digest(path) != blob.sha256:
            return False
        self._touched[path] = modified_ns  # a large file is not hashed again with every read
        return True

    def digest(self, path: Path) -> str:
        """Return the SHA-256 of a file as it is now."""
        fd = open_file(path)
        try:
            return _measured(fd, "raw").sha256
        finally:
            os.close(fd)

    def remove(self, kind: Kind, sha256: str) -> None:
        """Unlink a blob if it is there. One that is read on Windows stays for the next gc."""
        expected = (
            (FileNotFoundError, PermissionError)
            if sys.platform == "win32"
            else (FileNotFoundError,)
        )
        with contextlib.suppress(*expected):
            self.path(kind, sha256).unlink()

    def files(self) -> Iterator[tuple[Kind, str, int]]:
        """Yield the kind, name and size in bytes of each file in raw and text."""
        for kind, folder in self._folders.items():
            with os.scandir(folder) as entries:
                for entry in entries:
                    if not entry.is_dir(follow_symlinks=False):
                        yield kind, entry.name, entry.stat(follow_symlinks=False).st_size

    def sweep_spool(self, now: float) -> None:
        """Remove spool files that are older than a day at ``now``, in seconds since 1970."""
        for path in self._spool.glob("*"):
            with contextlib.suppress(OSError):  # gone meanwhile
                if _last_change(path) < now - SPOOL_SECONDS:
                    remove_tree(path) if _is_folder(path) else path.unlink()

    def write(self, files: Mapping[Path, Blob]) -> None:
        """Give files of the spool a second name among the blobs, which is on the disk then."""
        moves: list[tuple[Path, Blob]] = []
        for path, blob in files.items():
            link = self.new_file()
            link.hardlink_to(path)
            moves.append((link, blob))
        with self.published(moves):
            pass

    def are_there(self, blobs: Sequence[Blob]) -> bool:
        try:
            for blob in blobs:
                os.close(self.descriptor(blob))
        except (FileNotFoundError, StoreError):
            return False
        return True

    def open(self, blob: Blob, ref: str) -> ByteSource:
        try:
            return FileSource(self.descriptor(blob))
        except FileNotFoundError:
            raise lost(ref) from None

    def lend(self, blob: Blob, ref: str) -> Path:
        """Return a second name in the spool, which stays if the artifact goes meanwhile."""
        # A hard link costs no copy, and the bytes never change under any name.
        path, link = self.path(blob.kind, blob.sha256), self.new_file()
        try:
            os.close(self.descriptor(blob))
        except FileNotFoundError:
            raise lost(ref) from None
        with contextlib.suppress(OSError):  # a full disk, or a file system without links
            link.hardlink_to(path)
            return link
        return path

    def start_reading(self, texts: Mapping[str, Blob]) -> Mapping[str, Callable[[], StoredText]]:
        """No-op: local reads need no prefetch."""
        del texts
        return {}

    def stored(self) -> dict[tuple[Kind, str], tuple[int, float]]:
        """Return what is stored: size, and the time of the write in seconds since 1970."""
        found: dict[tuple[Kind, str], tuple[int, float]] = {}
        for kind, name, size in self.files():
            with contextlib.suppress(FileNotFoundError):  # removed meanwhile
                found[kind, name] = size, self.path(kind, name).stat().st_mtime
        return found

    def probe(self) -> None:
        path = self.new_file()
        path.write_bytes(b"probe")
        path.unlink()

    def failing(self) -> str:
        """Return "disk_full" or "store_error" if no file can be put here, "" if one can."""
        try:
            if disk.is_full(self.folder):
                return "disk_full"
            self.probe()
        except (OSError, StoreError):
            return "store_error"
        return ""

    def close(self) -> None:
        """Do nothing: nothing is open."""


def lost(ref: str) -> StoreError:
    """Return the error for an artifact whose bytes are gone."""
    return StoreError(f"The bytes of the artifact {ref} are lost.", "Fetch its document again.")


PIECE = 4 * 2**20
"""Bytes that are copied at once: of one request where the source is a bucket."""


def copied(pieces: Iterable[bytes], path: Path) -> str:
    """Write pieces into a file; return their SHA-256."""
    digest = hashlib.sha256()
    with path.open("wb") as file:
        for piece in pieces:
            digest.update(piece)
            file.write(piece)
    return digest.hexdigest()


def _last_change(path: Path) -> float:
    """Return when a file, or a folder or what is directly in it, changed last. Raises OSError."""
    paths = [path, *path.iterdir()] if _is_folder(path) else [path]
    return max(path.lstat().st_mtime for path in paths)


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _measured(fd: int, kind: Kind, sha256: str = "") -> Blob:
    """Hash a file, unless its hash is known, and index it if it is a text.

    Raises BadArgument for a text that is no UTF-8.
    """
    digest = hashlib.sha256()
    builder = StrideBuilder() if kind == "text" else None
    try:
        with os.fdopen(fd, "rb", closefd=False) as file:
            while (builder or not sha256) and (block := file.read(STRIDE)):
                if not sha256:
                    digest.update(block)
                if builder:
                    builder.add(block)
        index = builder.finish() if builder else None
    except UnicodeDecodeError as error:
        raise BadArgument("The text is no UTF-8.", "Put text as UTF-8.") from error
    status = os.fstat(fd)
    sha256 = sha256 or digest.hexdigest()
    return Blob(kind, sha256, status.st_size, status.st_mtime_ns, index)
