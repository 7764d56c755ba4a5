"""The room of one worker: the folder that it is confined to, made and cleared by the server."""

import errno
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from threading import Thread
from typing import Any

from fetchstash._folders import remove_tree

if sys.platform == "linux":
    import fcntl


MAX_LEFT = 10
"""Entries of its folder that a job may leave. A worker that leaves more is ended."""


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
        self.path = Path(tempfile.mkdtemp(prefix="worker-", dir=folder))
        self.readable: tuple[Path, ...] = ()
        self._in, self._out = self.path / "in", self.path / "out"
        self._in.mkdir(0o700)
        self._out.mkdir(0o700)

    def lend(self, source: Path | None) -> bool:
        """Clear the room for a job and lend it ``source``; return whether the worker can read it.

        It cannot in a room that holds more than can be cleared at once. Else ``document`` is then
        the path by which the worker reads it, None for a job without one.
        """
        if not self._clear():
            return False
        self.document = source
        if source is None or source in self.readable:
            return True
        self.document = self._in / "document"
        try:
            # A link to a symbolic link would lead out of the room.
            os.link(source.resolve(), self.document)
        except OSError:
            return False
        return True

    @contextmanager
    def lent(self, request: dict[str, Any]) -> Generator[dict[str, Any]]:
        """Yield a job's request with paths inside the room: ``document``, and one for its text.

        Raises KeptOpen after a job whose text the worker could still change.
        """
        text = self._out / "text"
        inside = request | {"source": str(self.document or "")}
        if "text" not in request:
            yield inside
            return
        # On Windows a worker may only write files that were made in its folder (_windows).
        linked = sys.platform != "win32"
        try:
            if linked:
                os.link(request["text"], text)
        except OSError:  # the text is wanted on another file system
            linked = False
        if not linked:
            text.touch(0o600)
        try:
            yield inside | {"text": str(text)}
            if linked:
                _take_back(text, Path(request["text"]))
        finally:
            if not linked:
                with suppress(OSError):  # a text that is gone counts as a wrong answer
                    _copy(text, Path(request["text"]))

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
        """Remove the room. A worker that is still ending may leave a file; remove it again then.

        What a worker left in heaps is removed in a thread, because nothing else may wait for it.
        """
        if self._clear():
            remove_tree(self.path)
        elif self.path.exists():
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


def _copy(text: Path, target: Path) -> None:
    """Copy what a worker wrote. Raises OSError for a file that is not its own.

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
            shutil.copyfileobj(written, file)
