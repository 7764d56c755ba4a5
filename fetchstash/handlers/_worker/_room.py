"""The room of one worker: the folder that it is confined to, made and cleared by the server."""

import os
import shutil
import tempfile
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any


class Room:
    """A private folder with the job's document in ``in`` and what the worker writes in ``out``.

    A document is a hard link where one can be made, so that nothing is copied. Others are named to
    the worker at its start in ``readable`` and are read where they are.
    """

    def __init__(self, folder: Path | None) -> None:
        """Make the room in ``folder``, or in the system's folder for temporary files."""
        self.path = Path(tempfile.mkdtemp(prefix="worker-", dir=folder))
        self.readable: tuple[Path, ...] = ()
        self._in, self._out = self.path / "in", self.path / "out"
        self._in.mkdir(0o700)
        self._out.mkdir(0o700)

    def lend(self, source: Path) -> Path | None:
        """Return the path by which the worker may read ``source``, None if there is none."""
        if source in self.readable:
            return source
        linked = self._in / "document"
        try:
            linked.unlink(missing_ok=True)
            # A link to a symbolic link would lead out of the room.
            os.link(source.resolve(), linked)
        except OSError:
            return None
        return linked

    @contextmanager
    def lent(self, request: dict[str, Any]) -> Generator[dict[str, Any]]:
        """Yield a job's request with paths inside the room for its source and its text."""
        self._clear()
        text = self._out / "text"
        inside = request | {"source": str(self.lend(Path(request["source"])) or "")}
        if "text" not in request:
            yield inside
            return
        linked = True
        try:
            os.link(request["text"], text)
        except OSError:  # the text is wanted on another file system
            linked = False
            text.touch(0o600)
        try:
            yield inside | {"text": str(text)}
        finally:
            if not linked:
                with suppress(OSError):  # a text that is gone counts as a wrong answer
                    shutil.copyfile(text, request["text"])

    def _clear(self) -> None:
        """Remove what earlier jobs left."""
        for entry in (*self._in.iterdir(), *self._out.iterdir()):
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry, ignore_errors=True)
            else:
                with suppress(OSError):
                    entry.unlink()

    def remove(self) -> None:
        """Remove the room. A worker that is still ending may leave a file; remove it again then."""
        shutil.rmtree(self.path, ignore_errors=True)
