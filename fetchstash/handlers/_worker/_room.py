"""The room of one worker: the folder that it is confined to, made and cleared by the server."""

import errno
import os
import stat
import sys
import tempfile
from itertools import islice
from pathlib import Path
from threading import Thread

from fetchstash.system.folders import remove_tree

if sys.platform == "linux":
    import fcntl


MAX_LEFT = 10
"""Entries of its folder that a job may leave. A worker that leaves more is ended."""
_PIECE_BYTES = 2**20


class KeptOpen(Exception):
    """A worker could still change the text of a job that it says is done."""


class Room:
    """A private folder with the job's document in ``in`` and what the worker writes in ``out``.

    A document is a hard link where one can be made, so that nothing is copied. Others are named to
    the worker at its start in ``readable`` and are read where they are.
    """

    def __init__(self, folder: Path | None) -> None:
        """Make the room in ``folder``, or in the system's folder for temporary files."""
        self.document: Path | None = None
        self.text: Path | None = None
        self._target = Path()
        self._linked = False
        self.path = Path(tempfile.mkdtemp(prefix="worker-", dir=folder))
        self.readable: tuple[Path, ...] = ()
        self._in, self._out = self.path / "in", self.path / "out"
        self._in.mkdir(0o700)
        self._out.mkdir(0o700)

    def lend(self, source: Path | None, text: Path | None = None) -> bool:
        """Clear the room for a job, and lend it ``source`` to read and ``text`` to write. Blocking.

        ``document`` and ``text`` are then the paths by which the worker knows them. Return False
        for a document that cannot be linked, and for a room that cannot be cleared or in which a
        worker that goes on puts files of its own in the way.
        """
        self.document, self.text = source, None
        if not self._clear():
            return False
        if source is not None and source not in self.readable:
            self.document = self._in / "document"
            try:
                # A link to a symbolic link would lead out of the room.
                os.link(source.resolve(), self.document)
            except OSError:
                return False
        return text is None or self._lend_text(text)

    def _lend_text(self, target: Path) -> bool:
        self._target, self.text = target, self._out / "text"
        # On Windows a worker may only write files that were made in its folder (_windows).
        self._linked = sys.platform != "win32"
        try:
            if self._linked:
                os.link(target, self.text)
        except FileExistsError:
            return False
        except OSError:  # the text is wanted on another file system
            self._linked = False
        try:
            if not self._linked:
                self.text.touch(0o600, exist_ok=False)
        except OSError:
            return False
        return True

    def take_text(self, size: int) -> None:
        """Take the text back, of one that was copied ``size`` bytes. Blocking.

        Raises KeptOpen if the worker could still change it, and OSError if there is none.
        """
        assert self.text is not None
        if self._linked:
            _take_back(self.text, self._target)
        else:
            _copy(self.text, self._target, size)

    def _clear(self) -> bool:
        """Remove what earlier jobs left; return whether all of it is gone."""
        try:
            for folder in (self._in, self._out):
                with os.scandir(folder) as entries:
                    for entry in islice(entries, MAX_LEFT):
                        path = Path(entry)
                        path.rmdir() if entry.is_dir(follow_symlinks=False) else path.unlink()
                    if next(entries, None):
                        return False
        except OSError:
            return False
        return True

    def remove(self) -> None:
        """Remove the room, in a thread: nothing waits for what a worker left in heaps."""
        Thread(target=remove_tree, args=(self.path,)).start()


def _take_back(text: Path, target: Path) -> None:
    """Remove a worker's name of its text. Raises KeptOpen if it kept another, or the file open.

    A read lease is refused while a file is open for writing, or mapped so (fcntl(2), F_SETLEASE).
    Where the file system has no leases nothing is known.
    """
    text.unlink(missing_ok=True)
    if target.stat().st_nlink != 1:
        raise KeptOpen
    if sys.platform == "linux":
        fd = os.open(target, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_RDLCK)
            fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_UNLCK)
        except BlockingIOError:
            raise KeptOpen from None
        except OSError:
            return
        finally:
            os.close(fd)


def _copy(text: Path, target: Path, size: int) -> None:
    """Copy the first ``size`` bytes of what a worker wrote. Raises OSError for another's file.

    A worker that was taken over may have put a link to another file in its place where the system
    does not forbid that (macOS).
    """
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    fd = os.open(text, flags | getattr(os, "O_BINARY", 0))
    with os.fdopen(fd, "rb") as written:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode) or status.st_nlink != 1:
            raise OSError(errno.EPERM, "the text is a link")
        with target.open("r+b") as file:
            while size > 0 and (data := written.read(min(size, _PIECE_BYTES))):
                size -= file.write(data)
