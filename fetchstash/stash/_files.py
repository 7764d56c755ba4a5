"""Files of this machine: into the spool, and out of the store."""

import os
import shutil
import stat
import tempfile
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from fetchstash.errors import BadArgument, Call, Refused


def copy_in(path: Path, within: Sequence[str | Path] | None, spool: Path) -> Path:
    """Copy a file to the spool; return the copy.

    The path is resolved first, so that no link leads out of the folders ``within`` (None: no
    limits). Raises Refused for a path outside of them, whether a file is there or not, and
    BadArgument for a file that is missing or unreadable.
    """
    missing = BadArgument(f"There is no file {path}.", "Give the path of an existing one.")
    try:
        real = path.expanduser().resolve()
    except (OSError, RuntimeError, ValueError):  # a ring of links or an unknown user; a NUL
        raise missing from None
    if within is not None:
        roots = [Path(root).expanduser().resolve() for root in within]
        if not any(real.is_relative_to(root) for root in roots):
            allow = Call("setting", {"name": "ingest.read_roots", "value": [str(path.parent)]})
            raise Refused(f"{path} is in no folder that may be read.", "{}.", allow)
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
        what = f"{path} cannot be read: {error.strerror}."
        raise BadArgument(what, "Change its permissions, or give another.") from None
    return copy


@contextmanager
def replacing(target: Path) -> Generator[BinaryIO]:
    """Give a file that replaces ``target`` at the end, if all went well.

    Raises BadArgument where it cannot be written.
    """
    name = ""
    try:
        fd, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:40]}-")
        with os.fdopen(fd, "wb") as file:
            yield file
        Path(name).replace(target)
        name = ""
    except OSError as error:
        what = f"{target} cannot be written: {error.strerror}."
        raise BadArgument(what, "Give a path that can be written.") from None
    finally:
        if name:
            Path(name).unlink(missing_ok=True)


def copy_out(source: Path, target: Path) -> None:
    """Copy a file to ``target``. Raises BadArgument where that cannot be written."""
    with replacing(target) as copy, source.open("rb") as file:
        shutil.copyfileobj(file, copy)
