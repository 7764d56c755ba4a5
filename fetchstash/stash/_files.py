"""Files of this machine: into the spool, and out of the store."""

import os
import shutil
import stat
import tempfile
from collections.abc import Sequence
from pathlib import Path

from fetchstash.errors import BadArgument, Refused


def copy_in(path: Path, read_roots: Sequence[str], spool: Path) -> Path:
    """Copy a file that may be read to the spool. Resolving it first means that a link cannot lead out of the roots.

    Raises Refused for a file outside of them, whether there is one or not, BadArgument for one that
    is not there or cannot be read.
    """
    roots = [Path(root).expanduser().resolve() for root in read_roots]
    missing = BadArgument(f"There is no file {path}.", "Give the path of one that is there.")
    try:
        real = path.expanduser().resolve()
    except (
        OSError,
        RuntimeError,
        ValueError,
    ):  # RuntimeError: links that go round, a user who is not there; ValueError: a NUL
        raise missing from None
    if not any(real.is_relative_to(root) for root in roots):
        raise Refused(
            f"{path} is in no folder that may be read.",
            "Name its folder with --read-root when fetchstash is started.",
        )
    try:
        mode = real.stat().st_mode
    except OSError:
        raise missing from None
    if not stat.S_ISREG(mode):
        raise BadArgument(f"{path} is no regular file.", "Give the path of a file.")
    copy = spool / f"add-{real.name[:40]}-{id(real):x}"
    try:
        shutil.copyfile(real, copy)
    except OSError as error:
        copy.unlink(missing_ok=True)
        raise BadArgument(
            f"{path} cannot be read: {error.strerror}.", "Mend its permissions, or give another."
        ) from None
    return copy


def copy_out(source: Path, target: Path) -> None:
    """Copy a file to ``target``, which is replaced at once or not at all. Raises BadArgument where it cannot be written."""
    fd, name = -1, ""
    try:
        fd, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:40]}-")
        with os.fdopen(fd, "wb") as copy, source.open("rb") as file:
            shutil.copyfileobj(file, copy)
        Path(name).replace(target)
    except OSError as error:
        if name:
            Path(name).unlink(missing_ok=True)
        raise BadArgument(
            f"{target} cannot be written: {error.strerror}.", "Name a file that can."
        ) from None
