"""Files of this machine: into the spool, and out of the store."""

import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from fetchstash.errors import BadArgument, Call, Refused, TooLarge

COPY_BYTES = 2**20


def copy_in(path: Path, within: Sequence[str | Path] | None, copy: Path, max_bytes: int) -> None:
    """Copy a file to ``copy``, a new file of the caller's.

    The file is opened once, and what was opened is checked: where it really is must lie in one of
    the folders ``within`` (None: anywhere), however names change meanwhile. Raises Refused for a
    file outside of them, whether there is one or not, and then for a hard link to another user's
    file; TooLarge over ``max_bytes``; BadArgument for a file that is missing or unreadable.
    """
    missing = BadArgument(f"There is no file {path}.", "Give the path of an existing one.")
    roots = None if within is None else [Path(root).expanduser().resolve() for root in within]
    try:
        real = path.expanduser().resolve()
    except (OSError, RuntimeError, ValueError):  # a ring of links or an unknown user; a NUL
        raise missing from None
    _check_place(path, real, roots)
    try:
        # The last name is no link any more; opening a pipe must not wait for its writer.
        source = os.fdopen(os.open(real, _OPEN_FLAGS), "rb")
    except PermissionError as error:
        raise _unreadable(path, error) from None
    except OSError:
        raise missing from None
    with source:
        _check_place(path, _place_of(source, real), roots)
        _check_file(path, os.fstat(source.fileno()), max_bytes, anywhere=roots is None)
        _copy(path, source, copy, max_bytes)


# Not every system has all of them.
_OPEN_FLAGS = sum(
    getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY")
)


def _place_of(file: BinaryIO, path: Path) -> Path:
    """Return where an open file is now, by the system's word where it gives one."""
    if sys.platform == "linux":
        return Path(f"/proc/self/fd/{file.fileno()}").readlink()
    if sys.platform == "darwin":
        import fcntl  # noqa: PLC0415 - POSIX alone has it

        name = fcntl.fcntl(file.fileno(), fcntl.F_GETPATH, bytes(1_024))
        return Path(os.fsdecode(name.rstrip(b"\0")))
    # Windows lets nobody rename a file that is open, so its path still leads to it.
    return path.resolve()


def _check_place(path: Path, real: Path, roots: Sequence[Path] | None) -> None:
    if roots is not None and not any(real.is_relative_to(root) for root in roots):
        allow = Call("setting", {"name": "ingest.read_roots", "value": [str(path.parent)]})
        raise Refused(f"{path} is in no folder that may be read.", "{}.", allow)


def _check_file(path: Path, status: os.stat_result, max_bytes: int, *, anywhere: bool) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise BadArgument(f"{path} is no regular file.", "Give the path of a file.")
    # A hard link has no place of its own: it may name a file that lies outside of the folders.
    if not anywhere and os.name != "nt" and status.st_nlink > 1 and status.st_uid != os.geteuid():
        what = f"{path} is a hard link to a file of another user."
        raise Refused(what, "Copy it, and give the path of the copy.")
    if status.st_size > max_bytes:
        raise _too_large(path, max_bytes)


def _copy(path: Path, source: BinaryIO, copy: Path, max_bytes: int) -> None:
    """Copy what the file holds, at most ``max_bytes`` however it grows."""
    size = 0
    try:
        with copy.open("wb") as file:
            while data := source.read(COPY_BYTES):
                size += len(data)
                if size > max_bytes:
                    raise _too_large(path, max_bytes)
                file.write(data)
    except OSError as error:
        raise _unreadable(path, error) from None


def _unreadable(path: Path, error: OSError) -> BadArgument:
    what = f"{path} cannot be read: {error.strerror}."
    return BadArgument(what, "Change its permissions, or give another.")


def _too_large(path: Path, max_bytes: int) -> TooLarge:
    what = f"{path} has more than the {max_bytes:,} bytes that one document may have."
    return TooLarge(what, "Give a part of it, or allow more: {}.", Call("setting", _MAX_BYTES))


_MAX_BYTES = {"name": "fetch.max_decoded_bytes", "value": 2**30}


@contextmanager
def replacing(target: Path) -> Generator[BinaryIO]:
    """Give a file that replaces ``target`` at the end, if all went well.

    A link stays, and what it leads to is replaced; a file keeps its permissions; a device or a pipe
    is written to as it is. Raises BadArgument where it cannot be written.
    """
    name = ""
    try:
        target = target.resolve()
        mode = _mode_for(target)
        if not stat.S_ISREG(mode):
            with target.open("wb") as file:
                yield file
            return
        fd, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:40]}-")
        with os.fdopen(fd, "wb") as file:
            yield file
        Path(name).chmod(stat.S_IMODE(mode))
        Path(name).replace(target)
        name = ""
    except OSError as error:
        what = f"{target} cannot be written: {error.strerror}."
        raise BadArgument(what, "Give a path that can be written.") from None
    finally:
        if name:
            Path(name).unlink(missing_ok=True)


def _mode_for(target: Path) -> int:
    """Return the mode of a file that is there, or the one that a new file gets."""
    try:
        return target.stat().st_mode
    except FileNotFoundError:
        mask = os.umask(0o077)  # there is no other way to read it
        os.umask(mask)
        return stat.S_IFREG | (0o666 & ~mask)


def copy_out(source: Path, target: Path) -> None:
    """Copy a file to ``target``. Raises BadArgument where that cannot be written."""
    with replacing(target) as copy, source.open("rb") as file:
        shutil.copyfileobj(file, copy)
