"""Folders that a worker which a document took over may have filled."""

import os
import secrets
from contextlib import suppress
from pathlib import Path


def remove_tree(folder: Path) -> None:
    """Remove a folder with all that is in it, as far as the system lets this process.

    Folders are moved up before they are emptied: they may be nested deeper than a path or Python's
    stack reaches, and ``shutil.rmtree`` fails there.
    """
    prefix = secrets.token_hex(8)
    folders = [folder]
    for current in folders:  # the list grows on the way
        with suppress(OSError):
            if not os.access(current, os.R_OK | os.W_OK | os.X_OK):
                current.chmod(0o700)
            with os.scandir(current) as entries:
                for entry in entries:
                    with suppress(OSError):
                        if not entry.is_dir(follow_symlinks=False):
                            Path(entry).unlink()
                        else:
                            folders.append(folder / f"{prefix}{len(folders)}")
                            Path(entry).rename(folders[-1])
    for current in reversed(folders):
        with suppress(OSError):
            current.rmdir()
