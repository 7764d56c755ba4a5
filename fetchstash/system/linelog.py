"""Logs of JSON lines, 0600, that several processes may write to, and anybody may move away.

A file stays open between its lines, and is opened anew where its path leads to another one by now.
"""

import json
import os
import stat
import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any, cast

MOST_OPEN = 64
"""Files that stay open. One more closes the one that was opened first."""

_to_json = json.JSONEncoder(separators=(",", ":")).encode
_POSIX = ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC")  # Windows has none of them
_FLAGS = os.O_WRONLY | os.O_APPEND | os.O_CREAT | sum(getattr(os, name, 0) for name in _POSIX)

_open: dict[str, tuple[int, tuple[int, int]]] = {}
"""Descriptor, device and inode by path."""
_lock = Lock()  # a line must not go to the number of another file, opened after close


@dataclass(frozen=True, slots=True)
class LineLog:
    """A log, and the file ``NAME.1`` before it: both within ``max_bytes``."""

    path: Path
    max_bytes: int
    needs_folder: bool = False
    """Whether nothing is written where its folder is missing; otherwise that is made."""

    def append(self, record: Mapping[str, Any]) -> None:
        """Append one line. A log that cannot be written fails nothing else."""
        line, most = json_line(record), self.max_bytes // 2
        if len(line) > most:
            return
        with suppress(OSError, ValueError):  # ValueError: a NUL in the path
            if not self._append(line, most):
                self.path.replace(self._before)
                self._append(line, most)

    def records(self) -> Generator[dict[str, Any]]:
        """Return the records of both files, oldest first. Broken lines are skipped."""
        for path in (self._before, self.path):
            yield from _lines(path)

    def forget(self, is_over: Callable[[dict[str, Any]], bool]) -> None:
        """Remove the lines that match. A line that is written meanwhile may be lost."""
        for path in (self._before, self.path):
            if path.exists():
                kept = [json_line(line) for line in _lines(path) if not is_over(line)]
                beside = path.with_name(f"{path.name}.new")
                beside.touch(0o600)
                beside.write_bytes(b"".join(kept))
                beside.replace(path)

    @property
    def _before(self) -> Path:
        return self.path.with_name(self.path.name + ".1")

    def _append(self, line: bytes, most: int) -> bool:
        """Append a line. Return False if the log is full."""
        try:
            return append(self.path, line, most=most) is not None
        except FileNotFoundError:
            if self.needs_folder:
                raise
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            return append(self.path, line, most=most) is not None


def _lines(path: Path) -> Generator[dict[str, Any]]:
    with suppress(OSError), path.open(encoding="utf-8", errors="replace") as log:
        for line in log:
            with suppress(ValueError):  # a line of a disk that was full
                record = json.loads(line)
                if isinstance(record, dict):
                    yield cast("dict[str, Any]", record)


def json_line(record: Mapping[str, Any]) -> bytes:
    """Return a record as a line of a log."""
    return _to_json(record).encode() + b"\n"


def append(path: Path, line: bytes, *, most: int | None = None) -> int | None:
    """Append a line in one write; return how many of its bytes were written.

    None: the file would have more than ``most`` bytes. Raises OSError, also for what is no file,
    and ValueError. Never follows a link, and never waits for the reader of a pipe.
    """
    name = os.fspath(path)
    with _lock:
        file, size = _opened(name)
        try:
            return None if most is not None and size + len(line) > most else os.write(file, line)
        finally:
            if sys.platform == "win32":  # nobody could move it
                _close(name)


def _opened(name: str) -> tuple[int, int]:
    """Return the descriptor of a log, and its size."""
    if name in _open:
        file, identity = _open[name]
        with suppress(OSError):
            status = os.lstat(name)
            if (status.st_dev, status.st_ino) == identity:
                return file, status.st_size
        _close(name)
    file = os.open(name, _FLAGS, 0o600)
    status = os.fstat(file)
    if not stat.S_ISREG(status.st_mode):
        os.close(file)
        raise OSError(None, "it is no file")
    while len(_open) >= MOST_OPEN:
        _close(next(iter(_open)))
    _open[name] = file, (status.st_dev, status.st_ino)
    return file, status.st_size


def _close(name: str) -> None:
    os.close(_open.pop(name)[0])


def _after_fork() -> None:
    """Replace the lock: in a child, nobody would release one that another thread held."""
    global _lock  # noqa: PLW0603 - held for one write
    _lock = Lock()


if sys.platform != "win32":
    os.register_at_fork(after_in_child=_after_fork)
