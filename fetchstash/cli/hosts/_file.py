"""Change a file of somebody else's: a backup first, then all of the new text or none of it."""

import os
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from fetchstash.errors import BadArgument, Busy, StoreError


class Malformed(Exception):
    """A text is not what the file should hold. The message is a clause that says why."""


@dataclass(frozen=True, slots=True)
class Change:
    """What became of a file: whether it was changed, and where its text of before is kept."""

    changed: bool
    backup: Path | None = None


def change_file(path: Path, edit: Callable[[str], str], *, by_hand: str) -> Change:
    """Replace the text of a file by what ``edit`` makes of it; a missing file is an empty text.

    A symbolic link stays one, and the file that it leads to is changed. Mode and owner stay.
    Raises BadArgument for a file that cannot be read as what it should be, and what ``edit``
    raises; StoreError if the system refuses; Busy if the file changed meanwhile. ``by_hand`` says
    what the person can do without us.
    """
    try:
        return _change(path.resolve(), path, edit)
    except OSError as error:
        reason = error.strerror or str(error)
        what = f"{path} cannot be changed: {reason}."
        raise StoreError(what, f"Mend that, or {by_hand}.") from None
    except Malformed as error:
        next_step = f"Nothing was changed. Mend the file, or {by_hand}."
        raise BadArgument(f"{path} cannot be read: {error}.", next_step) from None


def _change(file: Path, shown: Path, edit: Callable[[str], str]) -> Change:
    before = _bytes(file)
    try:
        old = (before or b"").decode("utf-8")
        bom = "\ufeff" if old.startswith("\ufeff") else ""
        new = bom + edit(old.removeprefix(bom))
    except UnicodeDecodeError:
        raise Malformed("it is no UTF-8") from None
    if new == old:
        return Change(changed=False)
    file.parent.mkdir(parents=True, exist_ok=True)
    stamp = time.strftime("%Y%m%d-%H%M%S")
    backup = None
    if before is not None:
        backup = _new_file(file, f"{stamp}.bak", before, like=file)
    written = _new_file(file, f"{stamp}.new", new.encode("utf-8"), like=file)
    try:
        if _bytes(file) == before:
            written.replace(file)
            return Change(changed=True, backup=backup)
    finally:
        written.unlink(missing_ok=True)
    raise Busy(f"{shown} was changed by another program just now.", "Try again.")


def _bytes(file: Path) -> bytes | None:
    return file.read_bytes() if file.exists() else None


def _new_file(file: Path, suffix: str, data: bytes, *, like: Path) -> Path:
    """Write a file beside another, with the mode and owner of a third if there is one."""
    for number in range(1, 100):
        path = file.with_name(f"{file.name}.{suffix}{number if number > 1 else ''}")
        with suppress(FileExistsError):
            # 0600: settings may hold keys.
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "wb") as stream:
                with suppress(OSError):
                    status = like.stat()
                    path.chmod(status.st_mode & 0o7777)
                    if hasattr(os, "chown"):
                        os.chown(path, status.st_uid, status.st_gid)
                stream.write(data)
                stream.flush()
                os.fsync(stream.fileno())
            return path
    raise FileExistsError(0, "too many backups stand beside it", str(file))
